// AscendCL: three kinds of events, each with its rules.
//
// aclrtCreateEventExWithFlag: a wait binds to the newest record when it is called; before any record it is none.
// aclrtCreateEvent: the same, but a wait before any record is an error.
// aclrtCreateEventWithFlag with the SYNC bit: a flag that a record sets, a wait blocks on, and a reset clears.
#include <algorithm>

#include "acl_face.hpp"

using namespace emu;

namespace emu {
namespace {

constexpr uint32_t kFlags = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE |
                            ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;

int create(aclrtEvent* handle, EventKind kind, uint32_t flags) {
  World& w = world();
  Context* context = nullptr;
  if (const int code = require_place(handle, "the event"); code != ACL_SUCCESS) return code;
  if (flags == 0 || (flags & ~kFlags) != 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: there are no such flags");
  if (const int code = find_context(context); code != ACL_SUCCESS) return code;
  if (kind == EventKind::flag && w.flag_events >= w.options.events) {
    return fail(ACL_ERROR_RT_NO_EVENT_RESOURCE, "EE1023: the device has no more events");
  }
  const std::string name = numbered(label("event"), "@");
  *handle = open_event(context, kind, flags, name).get();
  return ACL_SUCCESS;
}

int find(aclrtEvent handle, EventPtr& event) {
  event = find_event(handle);
  if (event && event->kind != EventKind::notify) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_INVALID_HANDLE, "EE1001: " + explain_handle(handle, "event"));
}

int find_both(aclrtEvent handle, aclrtStream queue, EventPtr& event, Stream*& stream) {
  if (const int code = find(handle, event); code != ACL_SUCCESS) return code;
  return find_queue(queue, stream);
}

int refuse_in_capture(const Event& event, const Stream* stream) {
  if (event.kind != EventKind::latest) {
    stream->capture->broken = true;
    return fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "EE1016: only events of aclrtCreateEventExWithFlag are captured");
  }
  return ACL_SUCCESS;
}

int wait(aclrtStream queue, aclrtEvent handle) {
  EventPtr event;
  Stream* stream = nullptr;
  if (const int code = find_both(handle, queue, event, stream); code != ACL_SUCCESS) return code;
  if ((event->flags & ACL_EVENT_SYNC) == 0) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006: event " + event->name + " was made without ACL_EVENT_SYNC");
  }
  if (event->capture && stream->capture && event->capture != stream->capture) {
    return fail(ACL_ERROR_STREAM_CAPTURE_CONFLICT, "EE1016: the event and the stream belong to different captures");
  }
  if (event->capture && queue == nullptr) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, "EE1016: the default stream cannot be captured");
  }
  if (stream->capture) {
    if (const int code = refuse_in_capture(*event, stream); code != ACL_SUCCESS) return code;
    if (!event->capture) {
      stream->capture->broken = true;
      return fail(ACL_ERROR_RT_CAPTURE_DEPENDENCY, "EE1016: event " + event->name + " was recorded outside the capture");
    }
  }
  if (event->kind == EventKind::counted && !event->latest) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1018: event " + event->name + " has not been recorded");
  }
  wait_event(stream, event);
  return ACL_SUCCESS;
}

int synchronize(aclrtEvent handle, int32_t timeout, int late) {
  EventPtr event;
  if (const int code = find(handle, event); code != ACL_SUCCESS) return code;
  if (event->capture) {
    event->capture->broken = true;
    return fail(ACL_ERROR_RT_EVENT_CAPTURED, "EE1016: event " + event->name + " is part of a capture");
  }
  if (event->kind == EventKind::counted && !event->latest) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1018: event " + event->name + " has not been recorded");
  }
  const bool nothing = event->kind == EventKind::latest && !event->latest;
  const TokenPtr token = event->latest;
  const auto done = [&] { return event->kind == EventKind::flag ? event->set : nothing || token->done; };
  if (!wait_until(done, after(timeout))) return fail(late, "event " + event->name + " does not complete");
  if (nothing) return ACL_SUCCESS;
  acquire(event->latest.get());
  Step step;
  step.action = "sync";
  step.event = event;
  step.generation = event->generation;
  add_step(step);
  return world().lost;
}

int query(aclrtEvent handle, bool& complete) {
  EventPtr event;
  if (const int code = find(handle, event); code != ACL_SUCCESS) return code;
  if (event->capture) {
    event->capture->broken = true;
    return fail(ACL_ERROR_RT_EVENT_CAPTURED, "EE1016: event " + event->name + " is part of a capture");
  }
  complete = is_complete(event);
  return complete ? synchronize(handle, -1, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT) : ACL_SUCCESS;
}

}  // namespace
}  // namespace emu

extern "C" {

aclError aclrtCreateEvent(aclrtEvent* event) {
  ACL_CALL(work);
  return create(event, EventKind::counted, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  ACL_CALL(work);
  return create(event, (flag & ACL_EVENT_SYNC) != 0 ? EventKind::flag : EventKind::counted, flag);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  ACL_CALL(work);
  return create(event, EventKind::latest, flag);
}

aclError aclrtDestroyEvent(aclrtEvent handle) {
  ACL_CALL(release);
  EventPtr event;
  if (const int code = find(handle, event); code != ACL_SUCCESS) return code;
  close_event(handle);
  return ACL_SUCCESS;
}

aclError aclrtRecordEvent(aclrtEvent handle, aclrtStream queue) {
  ACL_CALL(plain);
  EventPtr event;
  Stream* stream = nullptr;
  if (const int code = find_both(handle, queue, event, stream); code != ACL_SUCCESS) return code;
  if (stream->capture) {
    if (const int code = refuse_in_capture(*event, stream); code != ACL_SUCCESS) return code;
  }
  record_event(event, stream);
  return ACL_SUCCESS;
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  ACL_CALL(plain);
  return wait(stream, event);
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
  ACL_CALL(plain);
  if (timeout < 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "a timeout is 0 (never) or positive");
  return wait(stream, event);
}

aclError aclrtResetEvent(aclrtEvent handle, aclrtStream queue) {
  ACL_CALL(plain);
  EventPtr event;
  Stream* stream = nullptr;
  if (const int code = find_both(handle, queue, event, stream); code != ACL_SUCCESS) return code;
  if (event->kind == EventKind::latest) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006: events of aclrtCreateEventExWithFlag cannot be reset");
  }
  if (event->kind == EventKind::counted) {
    complain("aclrtResetEvent on event " + event->name + " of aclrtCreateEvent: what that does is not defined");
    return ACL_SUCCESS;
  }
  if (stream->capture) return refuse_in_capture(*event, stream);
  reset_event(event, stream);
  return ACL_SUCCESS;
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  ACL_CALL(plain);
  if (const int code = require_place(status, "the status"); code != ACL_SUCCESS) return code;
  bool complete = false;
  const int code = query(event, complete);
  *status = complete ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
  return code;
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  ACL_CALL(plain);
  if (const int code = require_place(status, "the status"); code != ACL_SUCCESS) return code;
  bool complete = false;
  const int code = query(event, complete);
  *status = complete ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return code;
}

aclError aclrtQueryEventWaitStatus(aclrtEvent handle, aclrtEventWaitStatus* status) {
  ACL_CALL(plain);
  EventPtr event;
  if (const int code = require_place(status, "the status"); code != ACL_SUCCESS) return code;
  if (const int code = find(handle, event); code != ACL_SUCCESS) return code;
  *status = event->waits_pending == 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  ACL_CALL(plain);
  return synchronize(event, -1, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  ACL_CALL(plain);
  if (timeout == 0 || timeout < -1) return fail(ACL_ERROR_RT_PARAM_INVALID, "a timeout is -1 or positive");
  return synchronize(event, timeout, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent start, aclrtEvent end) {
  ACL_CALL(plain);
  if (const int code = require_place(ms, "the time"); code != ACL_SUCCESS) return code;
  EventPtr events[2];
  Time times[2];
  for (int n = 0; n < 2; ++n) {
    if (const int code = find(n == 0 ? start : end, events[n]); code != ACL_SUCCESS) return code;
    if ((events[n]->flags & ACL_EVENT_TIME_LINE) == 0) {
      return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006: event " + events[n]->name + " has no ACL_EVENT_TIME_LINE");
    }
    if (!is_complete(events[n])) {
      return fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "event " + events[n]->name + " is not complete");
    }
    times[n] = events[n]->latest->when;
  }
  *ms = std::chrono::duration<float, std::milli>(times[1] - times[0]).count();
  return ACL_SUCCESS;
}

aclError aclrtSetOpWaitTimeout(uint32_t) {
  ACL_CALL(plain);
  return ACL_SUCCESS;
}

aclError aclrtGetEventAvailNum(uint32_t* count) {
  ACL_CALL(plain);
  if (const int code = require_place(count, "the number"); code != ACL_SUCCESS) return code;
  const World& w = world();
  const size_t used = w.flag_events + w.pending_records;
  *count = static_cast<uint32_t>(w.options.events - std::min(w.options.events, used));
  return ACL_SUCCESS;
}

}  // extern "C"
