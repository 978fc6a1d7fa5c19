// AscendCL: streams, synchronisation, host functions and callbacks.
#include <pthread.h>

#include <algorithm>
#include <map>

#include "acl_face.hpp"

using namespace emu;

namespace emu {
namespace {

// A callback that a thread of the program has to run, and what waits for it.
struct Report {
  aclrtCallback function = nullptr;
  void* argument = nullptr;
  TokenPtr done;
  int step = -1;
};

// Never destroyed: a thread that runs callbacks may outlive `main`.
auto& subscriptions = *new std::map<const Stream*, uint64_t>;
auto& reports = *new std::map<uint64_t, std::deque<Report>>;

int create(aclrtStream* handle) {
  World& w = world();
  Context* context = nullptr;
  if (const int code = require_place(handle, "the stream"); code != ACL_SUCCESS) return code;
  if (const int code = find_context(context); code != ACL_SUCCESS) return code;
  if (w.streams.size() >= w.options.streams) {
    return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, "EE1023: the device has no more streams");
  }
  *handle = open_stream(context, unique(label("stream")));
  return ACL_SUCCESS;
}

int refuse_captured(const Stream* stream, const char* what) {
  stream->capture->broken = true;
  return fail(ACL_ERROR_RT_STREAM_CAPTURED, std::string("EE1016: ") + what + " of a stream that is being captured");
}

// The stream of a handle that is to be destroyed: no default stream, and none that is being captured.
int find_own(aclrtStream handle, Stream*& stream) {
  if (handle != nullptr) {
    if (const int code = find_stream(handle, stream); code != ACL_SUCCESS) return code;
  }
  if (handle == nullptr || stream == stream->context->default_stream) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: the default stream cannot be destroyed");
  }
  return stream->capture ? refuse_captured(stream, "destruction") : ACL_SUCCESS;
}

// AscendCL has two ways to run functions on the host, which one stream must not mix.
void note_way(Stream* stream, bool& way) {
  const bool mixed = !std::exchange(way, true) && stream->has_callbacks && stream->has_host_functions;
  if (mixed) complain("stream " + stream->name + " is given callbacks and host functions: only one of them may be used");
}

bool any_capture() {
  const auto& streams = world().streams;
  return std::any_of(streams.begin(), streams.end(), [](const Stream* stream) { return stream->capture != nullptr; });
}

}  // namespace

Time after(int32_t milliseconds) {
  return milliseconds < 0 ? Time::max() : Clock::now() + std::chrono::milliseconds(milliseconds);
}

int end_stream(Stream* stream, int32_t timeout, int late) {
  if (stream->capture) return refuse_captured(stream, "synchronisation");
  if (!drain(stream, after(timeout))) return fail(late, "EE1024: stream " + stream->name + " has not come to its end");
  Step step;
  step.action = "sync";
  step.stream = stream->name;
  add_step(step);
  const int code = world().lost != 0 ? world().lost : take_error(stream);
  if (code != 0) return fail(code, "EE9999: a task of stream " + stream->name + " has failed");
  return stream->context->stopped;
}

int end_context(Context* context) {
  if (any_capture()) return fail(ACL_ERROR_RT_STREAM_CAPTURED, "EE1016: the device is synchronised during a capture");
  int code = ACL_SUCCESS;
  std::vector<TokenPtr> ends;
  for (Stream* stream : streams_of(context)) ends.push_back(mark_end(stream));
  for (const TokenPtr& end : ends) {
    if (!wait_until([&end] { return end->done; })) {
      return fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "the device never comes to its end");
    }
    acquire(end.get());
  }
  Step step;
  step.action = "sync";
  add_step(step);
  for (Stream* stream : streams_of(context)) {
    const int one = take_error(stream);
    if (code == ACL_SUCCESS) code = one;
  }
  if (world().lost != 0) code = world().lost;
  return code == ACL_SUCCESS ? context->stopped : fail(code, "EE9999: a task has failed");
}

void queue_function(Stream* stream, const std::string& name, std::function<int()> run, std::vector<Touch> touches,
                    const std::vector<void*>& used) {
  Step step;
  step.action = "op";
  step.name = label(plain(name));
  step.touches = std::move(touches);
  const std::string what = step.name;
  enqueue(stream, what, [run = std::move(run), used](Replay*) {
    auto task = std::make_unique<Task>();
    hold(*task, used);
    task->work = run;
    return task;
  }, std::move(step));
}

}  // namespace emu

extern "C" {

aclError aclrtCreateStream(aclrtStream* stream) {
  ACL_CALL(work);
  return create(stream);
}

aclError aclrtCreateStreamWithConfig(aclrtStream* handle, uint32_t priority, uint32_t flag) {
  ACL_CALL(work);
  if (priority > 7 || flag > 0x3F) return fail(ACL_ERROR_RT_PARAM_INVALID, "priorities are 0 to 7, flags 0 to 0x3F");
  if (const int code = create(handle); code != ACL_SUCCESS) return code;
  static_cast<Stream*>(*handle)->priority = static_cast<int>(priority);
  static_cast<Stream*>(*handle)->flags = flag;
  return ACL_SUCCESS;
}

aclError aclrtDestroyStream(aclrtStream handle) {
  ACL_CALL(release);
  Stream* stream = nullptr;
  if (const int code = find_own(handle, stream); code != ACL_SUCCESS) return code;
  if (!stream->queue.empty() && world().lost == 0) {
    complain("stream " + stream->name + " is destroyed with " + std::to_string(stream->queue.size()) +
             " unfinished tasks");
  }
  subscriptions.erase(stream);
  close_stream(stream);
  return ACL_SUCCESS;
}

aclError aclrtDestroyStreamForce(aclrtStream handle) {
  ACL_CALL(release);
  Stream* stream = nullptr;
  if (const int code = find_own(handle, stream); code != ACL_SUCCESS) return code;
  const size_t kept = stream->flying || stream->paused ? 1 : 0;  // what is being executed comes to its end
  while (stream->queue.size() > kept) {
    const TaskPtr dropped = std::move(stream->queue.back());
    stream->queue.pop_back();
    if (dropped->finished) dropped->finished();
  }
  subscriptions.erase(stream);
  close_stream(stream);
  return ACL_SUCCESS;
}

aclError aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus* status) {
  ACL_CALL(plain);
  Stream* stream = nullptr;
  if (const int code = require_place(status, "the status"); code != ACL_SUCCESS) return code;
  if (const int code = find_stream(handle, stream); code != ACL_SUCCESS) return code;
  if (stream->capture) return refuse_captured(stream, "a query");
  *status = stream->queue.empty() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  if (*status != ACL_STREAM_STATUS_COMPLETE) return ACL_SUCCESS;
  return end_stream(stream, -1, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);  // who knows that it is done may rely on it
}

aclError aclrtStreamGetId(aclrtStream handle, int32_t* id) {
  ACL_CALL(plain);
  Stream* stream = nullptr;
  if (const int code = require_place(id, "the number"); code != ACL_SUCCESS) return code;
  if (const int code = find_stream(handle, stream); code != ACL_SUCCESS) return code;
  *id = stream->number;
  return ACL_SUCCESS;
}

aclError aclrtSetStreamFailureMode(aclrtStream handle, uint64_t mode) {
  ACL_CALL(plain);
  Stream* stream = nullptr;
  if (const int code = find_stream(handle, stream); code != ACL_SUCCESS) return code;
  if (handle == nullptr || mode > ACL_STOP_ON_FAILURE || (stream->stops_on_failure && mode == 0)) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "a failure mode is set once, and not for the default stream");
  }
  stream->stops_on_failure = mode == ACL_STOP_ON_FAILURE;
  return ACL_SUCCESS;
}

aclError aclrtGetStreamAvailableNum(uint32_t* count) {
  ACL_CALL(plain);
  if (const int code = require_place(count, "the number"); code != ACL_SUCCESS) return code;
  World& w = world();
  *count = static_cast<uint32_t>(w.options.streams - std::min(w.options.streams, w.streams.size()));
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeDevice(void) {
  ACL_CALL(plain);
  Context* context = nullptr;
  const int code = find_context(context);
  return code != ACL_SUCCESS ? code : end_context(context);
}

aclError aclrtSynchronizeStream(aclrtStream handle) {
  // A failing call has waited all the same: the fault is that of the answer.
  const Guard guard(world().lock);
  ThreadState& state = here();
  if (state.executing != nullptr || state.in_callback) {
    complain(state.in_callback ? "aclrtSynchronizeStream is called by a callback"
                               : "aclrtSynchronizeStream is called by a task");
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006: tasks and callbacks may not synchronise");
  }
  if (!std::exchange(state.counted, true)) ++world().host_threads;
  if (const int code = require_start("aclrtSynchronizeStream", Kind::plain); code != ACL_SUCCESS) return code;
  const int injected = enter("aclrtSynchronizeStream", false);
  const std::string message = state.message;
  Stream* stream = nullptr;
  int code = find_stream(handle, stream);
  if (code == ACL_SUCCESS) code = end_stream(stream, -1, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  advance();
  return injected != ACL_SUCCESS ? fail(injected, message) : code;
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream handle, int32_t timeout) {
  ACL_CALL(plain);
  Stream* stream = nullptr;
  if (timeout == 0 || timeout < -1) return fail(ACL_ERROR_RT_PARAM_INVALID, "a timeout is -1 or positive");
  if (const int code = find_stream(handle, stream); code != ACL_SUCCESS) return code;
  return end_stream(stream, timeout, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
}

aclError aclrtLaunchHostFunc(aclrtStream handle, aclrtHostFunc function, void* argument) {
  ACL_CALL(work);
  Stream* stream = nullptr;
  if (function == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: a null pointer instead of a function");
  if (const int code = find_queue(handle, stream); code != ACL_SUCCESS) return code;
  note_way(stream, stream->has_host_functions);
  queue_function(stream, "host_func", [=] {
    function(argument);
    return kDone;
  });
  return ACL_SUCCESS;
}

aclError aclrtSubscribeReport(uint64_t thread, aclrtStream handle) {
  ACL_CALL(plain);
  Stream* stream = nullptr;
  if (const int code = find_stream(handle, stream); code != ACL_SUCCESS) return code;
  if (subscriptions.count(stream) != 0) return fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, "the stream has its thread already");
  subscriptions[stream] = thread;
  reports[thread];
  return ACL_SUCCESS;
}

aclError aclrtUnSubscribeReport(uint64_t thread, aclrtStream handle) {
  ACL_CALL(release);
  Stream* stream = nullptr;
  if (const int code = find_stream(handle, stream); code != ACL_SUCCESS) return code;
  const auto at = subscriptions.find(stream);
  if (at == subscriptions.end() || at->second != thread) {
    return fail(ACL_ERROR_RT_STREAM_NO_CB_REG, "that thread does not run the stream's callbacks");
  }
  subscriptions.erase(at);
  return ACL_SUCCESS;
}

aclError aclrtLaunchCallback(aclrtCallback function, void* argument, aclrtCallbackBlockType block,
                             aclrtStream handle) {
  ACL_CALL(work);
  Stream* stream = nullptr;
  if (function == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: a null pointer instead of a function");
  if (const int code = find_queue(handle, stream); code != ACL_SUCCESS) return code;
  const auto at = subscriptions.find(stream);
  if (at == subscriptions.end()) {
    return fail(ACL_ERROR_RT_STREAM_NO_CB_REG, "no thread runs callbacks of stream " + stream->name);
  }
  note_way(stream, stream->has_callbacks);
  const uint64_t thread = at->second;
  const auto done = std::make_shared<Token>();
  Step step;
  step.action = "op";
  step.name = label("callback");
  enqueue(stream, "callback", [=](Replay*) {
    auto task = std::make_unique<Task>();
    task->work = [done] {
      release(done.get());
      return kDone;
    };
    task->finished = [=, task = task.get()] {
      reports[thread].push_back({function, argument, done, task->step});
      world().quiet.wake();
    };
    return task;
  }, std::move(step));
  if (block != ACL_CALLBACK_BLOCK) return ACL_SUCCESS;
  enqueue(stream, "end of a callback", [done](Replay*) {
    auto task = std::make_unique<Task>();
    task->ready = [done] { return done->done; };
    task->work = [done] {
      acquire(done.get());
      return kDone;
    };
    return task;
  });
  return ACL_SUCCESS;
}

aclError aclrtProcessReport(int32_t timeout) {
  ACL_CALL(plain);
  const auto thread = static_cast<uint64_t>(pthread_self());
  if (timeout < -1) return fail(ACL_ERROR_RT_PARAM_INVALID, "a timeout is -1 or more");
  if (reports.count(thread) == 0) return fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, "this thread runs no stream's callbacks");
  if (!std::exchange(here().serves, true)) ++world().servers;
  std::deque<Report>& waiting = reports[thread];
  if (!wait_until([&waiting] { return !waiting.empty(); }, after(timeout), true)) return ACL_ERROR_RT_REPORT_TIMEOUT;
  const Report report = waiting.front();
  waiting.pop_front();
  {
    const Away away(world().lock);
    acquire(report.done.get());
    here().in_callback = true;
    here().step = report.step;
    report.function(report.argument);
    here().step = -1;
    here().in_callback = false;
    release(report.done.get());
  }
  report.done->done = true;
  world().quiet.wake();
  return ACL_SUCCESS;
}

}  // extern "C"
