// AscendCL: notifies, which a record sets and a wait clears, and waits for a value in device memory.
//
// In the trace a notify is a counting pair (`set` and `take`). A value's wait is a wait for the write that let it go on,
// which is known only when it has; where something else than aclrtValueWrite did, nothing is said to order it.
#include <cstring>

#include "acl_face.hpp"

using namespace emu;

namespace emu {
namespace {

constexpr size_t kNotifies = 8192;  // of an Atlas A2 or A3 device

int find_notify(aclrtNotify handle, EventPtr& notify) {
  notify = find_event(handle);
  if (notify && notify->kind == EventKind::notify) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_INVALID_HANDLE, "EE1001: " + explain_handle(handle, "notify"));
}

int find_notify_on(aclrtNotify handle, aclrtStream queue, EventPtr& notify, Stream*& stream) {
  if (const int code = find_notify(handle, notify); code != ACL_SUCCESS) return code;
  if (const int code = find_queue(queue, stream); code != ACL_SUCCESS) return code;
  if (!stream->capture) return ACL_SUCCESS;
  stream->capture->broken = true;
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006: notifies are not captured here");
}

// The last aclrtValueWrite that has been executed, by address: what a wait that its value lets go on comes after.
auto& written = *new std::map<const char*, EventPtr>;

int check_value(const void* address, aclrtStream queue, char*& place, Stream*& stream) {
  if (const int code = find_queue(queue, stream); code != ACL_SUCCESS) return code;
  const BlockPtr block = block_at(address);
  if (!block || block->place != Place::device || reaches_outside(block, address, sizeof(uint64_t))) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: 8 bytes of device memory are needed for a value");
  }
  place = const_cast<char*>(static_cast<const char*>(address));
  if (reinterpret_cast<uintptr_t>(address) % sizeof(uint64_t) != 0) {
    return fail(ACL_ERROR_RT_ADDR_UNALIGNED, "EE1001: the address of a value is not aligned to 8 bytes");
  }
  if (!stream->capture) return ACL_SUCCESS;
  stream->capture->broken = true;
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006: writes and waits of values are not captured here");
}

uint64_t value_at(const char* place) {
  uint64_t value = 0;
  std::memcpy(&value, view_of(place), sizeof value);
  return value;
}

bool lets_go(uint64_t found, uint64_t wanted, uint32_t how) {
  switch (how) {
    case ACL_STREAM_WAIT_VALUE_GEQ: return static_cast<int64_t>(found - wanted) >= 0;
    case ACL_STREAM_WAIT_VALUE_EQ: return found == wanted;
    case ACL_STREAM_WAIT_VALUE_AND: return (found & wanted) != 0;
    default: return ~(found | wanted) != 0;
  }
}

}  // namespace
}  // namespace emu

extern "C" {

aclError aclrtCreateNotify(aclrtNotify* handle, uint64_t flag) {
  ACL_CALL(work);
  Context* context = nullptr;
  if (const int code = require_place(handle, "the notify"); code != ACL_SUCCESS) return code;
  if (flag > ACL_NOTIFY_DEVICE_USE_ONLY) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: there are no such flags");
  if (const int code = find_context(context); code != ACL_SUCCESS) return code;
  size_t count = 0;
  for (const EventPtr& event : world().events) count += event->kind == EventKind::notify ? 1 : 0;
  if (count >= kNotifies) return fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "EE1023: the device has no more notifies");
  *handle = open_event(context, EventKind::notify, 0, numbered(label("notify"))).get();
  return ACL_SUCCESS;
}

aclError aclrtDestroyNotify(aclrtNotify handle) {
  ACL_CALL(release);
  EventPtr notify;
  if (const int code = find_notify(handle, notify); code != ACL_SUCCESS) return code;
  close_event(handle);
  return ACL_SUCCESS;
}

aclError aclrtRecordNotify(aclrtNotify handle, aclrtStream queue) {
  ACL_CALL(plain);
  EventPtr notify;
  Stream* stream = nullptr;
  if (const int code = find_notify_on(handle, queue, notify, stream); code != ACL_SUCCESS) return code;
  set_notify(notify, stream);
  return ACL_SUCCESS;
}

aclError aclrtWaitAndResetNotify(aclrtNotify handle, aclrtStream queue, uint32_t) {
  ACL_CALL(plain);
  EventPtr notify;
  Stream* stream = nullptr;
  if (const int code = find_notify_on(handle, queue, notify, stream); code != ACL_SUCCESS) return code;
  take_notify(notify, stream);
  return ACL_SUCCESS;
}

aclError aclrtGetNotifyId(aclrtNotify handle, uint32_t* id) {
  ACL_CALL(plain);
  EventPtr notify;
  if (const int code = require_place(id, "the number"); code != ACL_SUCCESS) return code;
  if (const int code = find_notify(handle, notify); code != ACL_SUCCESS) return code;
  *id = static_cast<uint32_t>(notify->number);
  return ACL_SUCCESS;
}

aclError aclrtValueWrite(void* address, uint64_t value, uint32_t flag, aclrtStream queue) {
  ACL_CALL(work);
  Stream* stream = nullptr;
  char* place = nullptr;
  if (flag != 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: the flag of aclrtValueWrite is reserved: give 0");
  if (const int code = check_value(address, queue, place, stream); code != ACL_SUCCESS) return code;
  const auto event = std::make_shared<Event>();
  event->kind = EventKind::flag;
  event->name = numbered("value");
  const auto token = std::make_shared<Token>();
  event->latest = token;
  enqueue(stream, "write of a value", [=](Replay*) {
    auto task = std::make_unique<Task>();
    hold(*task, {place});
    task->work = [token] {
      release(token.get());
      return kDone;
    };
    task->finished = [=] {
      if (world().lost != 0) return;
      std::memcpy(view_of(place), &value, sizeof value);
      written[place] = event;
    };
    return task;
  }, event_step("record", event));
  return ACL_SUCCESS;
}

aclError aclrtValueWait(void* address, uint64_t value, uint32_t how, aclrtStream queue) {
  ACL_CALL(plain);
  Stream* stream = nullptr;
  char* place = nullptr;
  if (how > ACL_STREAM_WAIT_VALUE_NOR) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: there is no such comparison");
  if (const int code = check_value(address, queue, place, stream); code != ACL_SUCCESS) return code;
  Step step;
  step.action = "wait";
  const auto by = std::make_shared<EventPtr>();  // the write that has let it go on
  enqueue(stream, "wait for a value", [=](Replay*) {
    auto task = std::make_unique<Task>();
    hold(*task, {place});
    Task* self = task.get();
    task->ready = [=] { return self->uses.front()->released || lets_go(value_at(place), value, how); };
    task->begun = [=] {
      const auto at = written.find(place);
      if (at == written.end() || world().lost != 0) return;
      *by = at->second;
      if (self->step >= 0) world().trace[static_cast<size_t>(self->step)].event = *by;
    };
    task->work = [by] {
      if (*by) acquire((*by)->latest.get());
      return kDone;
    };
    return task;
  }, std::move(step));
  return ACL_SUCCESS;
}

}  // extern "C"
