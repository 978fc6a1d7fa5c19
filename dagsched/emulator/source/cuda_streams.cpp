// CUDA: errors, the device, streams, events and host functions.
#include <algorithm>
#include <cstdlib>

#include "cuda_face.hpp"

using namespace emu;

namespace emu {
namespace {

struct Name {
  cudaError_t code;
  const char *name, *text;
};
const Name kNames[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "not permitted when a stream captures"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated", "a capture failed because of an error"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge", "two captures would be merged"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", "the capture began on another stream"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "a stream was not joined to the capture"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation", "a dependency crosses the capture's border"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit", "the legacy stream would depend on a capture"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent", "the event was recorded in a capture"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread", "the capture began on another thread"},
};

cudaError_t find_event(cudaEvent_t handle, EventPtr& event) {
  event = emu::find_event(handle);
  return event ? cudaSuccess : refuse(cudaErrorInvalidResourceHandle, explain_handle(handle, "event"));
}

// After these the context is of no use: every call returns the error until the process ends.
bool breaks_context(int code) {
  static const int codes[] = {214, 700, 702, 710, 714, 715, 716, 717, 718, 719, 720};
  return std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
}

// What the legacy default stream is given would come after work that is only being captured.
cudaError_t check_legacy() {
  for (const Stream* stream : world().streams) {
    if (!stream->blocking || !stream->capture) continue;
    stream->capture->broken = true;
    return refuse(cudaErrorStreamCaptureImplicit,
                  "the default stream would wait for stream " + stream->name + ", which is being captured");
  }
  return cudaSuccess;
}

// All that the process has on the device goes; handles of it are good for nothing any more.
void release_everything() {
  World& w = world();
  for (Stream* stream : std::vector<Stream*>(w.streams)) {
    stream->capture = nullptr;
    close_stream(stream);
  }
  for (const EventPtr& event : std::vector<EventPtr>(w.events)) close_event(event.get());
  for (const auto& [address, block] : std::map<char*, BlockPtr>(w.blocks)) release_block(block);
  forget_graphs();
  for (const auto& context : w.contexts) context->default_stream = nullptr;
}

cudaError_t create(cudaStream_t* handle, unsigned flags, int priority) {
  World& w = world();
  if (handle == nullptr || flags > cudaStreamNonBlocking || priority > 0 || priority < -5) {
    return refuse(cudaErrorInvalidValue, "no place for the stream, or no such flags or priority");
  }
  if (w.streams.size() >= w.options.streams) return refuse(cudaErrorMemoryAllocation, "no more streams");
  Stream* stream = open_stream(here().context, unique(label("stream")));
  stream->blocking = flags != cudaStreamNonBlocking;
  stream->priority = priority;
  w.traced_streams[stream->name] = !stream->blocking;
  *handle = reinterpret_cast<cudaStream_t>(stream);
  return cudaSuccess;
}

cudaError_t end_event(const EventPtr& event) {
  if (event->capture) {
    event->capture->broken = true;
    return refuse(cudaErrorCapturedEvent, "event " + event->name + " is part of a capture");
  }
  const TokenPtr token = event->latest;
  if (!token) return cudaSuccess;
  if (!wait_until([&token] { return token->done; })) return refuse(cudaErrorUnknown, "the event never completes");
  acquire(token.get());
  Step step;
  step.action = "sync";
  step.event = event;
  step.generation = event->generation;
  add_step(step);
  return static_cast<cudaError_t>(world().lost);
}

}  // namespace

void begin() {
  World& w = world();
  catch_bad_accesses();
  if (w.contexts.empty()) {
    w.contexts.push_back(std::make_unique<Context>());
    w.contexts.back()->breaks_on = breaks_context;
    std::atexit([] {
      const Guard guard(world().lock);
      write_trace();
    });
  }
  here().context = w.contexts.front().get();
}

cudaError_t require_places(std::initializer_list<const void*> places) {
  const bool lacks = std::find(places.begin(), places.end(), nullptr) != places.end();
  return lacks ? refuse(cudaErrorInvalidValue, "a null pointer instead of a place for the result") : cudaSuccess;
}

int find_launch_stream(void* handle, Stream*& stream) {
  begin();
  return find_stream(static_cast<cudaStream_t>(handle), stream);
}

cudaError_t refuse(cudaError_t code, const std::string& why) { return static_cast<cudaError_t>(fail(code, why)); }

cudaError_t find_stream(cudaStream_t handle, Stream*& stream) {
  World& w = world();
  Context* context = here().context;
  if (handle == nullptr || handle == cudaStreamLegacy) {
    if (context->default_stream == nullptr) {
      context->default_stream = open_stream(context, "default");
      context->default_stream->legacy = true;
      w.traced_streams["default"] = false;
      w.legacy = true;
    }
    stream = context->default_stream;
    return check_legacy();
  }
  if (handle == cudaStreamPerThread) {
    Stream*& own = here().own_stream;
    if (std::find(w.streams.begin(), w.streams.end(), own) == w.streams.end()) {  // none yet, or gone with a reset
      own = open_stream(context, unique("per_thread"));
      own->blocking = own->internal = true;
      w.traced_streams[own->name] = false;
    }
    stream = own;
    return cudaSuccess;
  }
  const auto at = std::find(w.streams.begin(), w.streams.end(), reinterpret_cast<Stream*>(handle));
  if (at == w.streams.end() || (*at)->leaving) {
    return refuse(cudaErrorInvalidResourceHandle, explain_handle(handle, "stream"));
  }
  stream = *at;
  if (!stream->capture && stream->error != 0 && w.options.seed >= 2 && draw(2) == 0) {
    return refuse(static_cast<cudaError_t>(take_error(stream)), "a task of stream " + stream->name + " has failed");
  }
  return cudaSuccess;
}

cudaError_t end_stream(Stream* stream) {
  if (stream->capture) return captured(stream, "synchronisation");
  if (!drain(stream)) return refuse(cudaErrorUnknown, "stream " + stream->name + " never comes to its end");
  Step step;
  step.action = "sync";
  step.stream = stream->name;
  add_step(step);
  const int code = world().lost != 0 ? world().lost : take_error(stream);
  return code == 0 ? cudaSuccess : refuse(static_cast<cudaError_t>(code), "a task of stream " + stream->name + " has failed");
}

void idle_device() {
  for (const Stream* stream : streams_of(here().context)) {
    wait_until([stream] { return stream->queue.empty(); });
  }
}

}  // namespace emu

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  for (const Name& known : kNames) {
    if (known.code == error) return known.name;
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  for (const Name& known : kNames) {
    if (known.code == error) return known.text;
  }
  return "unrecognized error code";
}

cudaError_t cudaGetLastError(void) {
  const Guard guard(world().lock);
  if (world().lost != 0) return static_cast<cudaError_t>(world().lost);
  return static_cast<cudaError_t>(std::exchange(here().last_error, 0));
}

cudaError_t cudaPeekAtLastError(void) {
  const Guard guard(world().lock);
  return static_cast<cudaError_t>(world().lost != 0 ? world().lost : here().last_error);
}

cudaError_t cudaGetDeviceCount(int* count) {
  CUDA_CALL(look);
  if (const cudaError_t code = require_places({count}); code != cudaSuccess) return code;
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  CUDA_CALL(plain);
  return device == 0 ? cudaSuccess : refuse(cudaErrorInvalidDevice, "the emulator has one device");
}

cudaError_t cudaGetDevice(int* device) {
  CUDA_CALL(look);
  if (const cudaError_t code = require_places({device}); code != cudaSuccess) return code;
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceReset(void) {
  CUDA_CALL(release);
  write_trace();
  if (const std::string leaks = list_leaks(); !leaks.empty()) complain("cudaDeviceReset: not released:" + leaks);
  release_everything();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  CUDA_CALL(plain);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  CUDA_CALL(plain);
  std::vector<TokenPtr> ends;
  for (Stream* stream : streams_of(here().context)) {
    if (stream->capture) return captured(stream, "synchronisation");
    ends.push_back(mark_end(stream));
  }
  for (const TokenPtr& end : ends) {
    if (!wait_until([&end] { return end->done; })) return refuse(cudaErrorUnknown, "the device never ends");
    acquire(end.get());
  }
  Step step;
  step.action = "sync";
  add_step(step);
  int code = world().lost;
  for (Stream* stream : streams_of(here().context)) {
    const int one = take_error(stream);
    if (code == 0) code = one;
  }
  return code == 0 ? cudaSuccess : refuse(static_cast<cudaError_t>(code), "a task has failed");
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  CUDA_CALL(work);
  return create(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  CUDA_CALL(work);
  return create(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  CUDA_CALL(work);
  return create(stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  CUDA_CALL(release);
  Stream* stream = nullptr;
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  if (stream->legacy || stream->internal) {
    return refuse(cudaErrorInvalidResourceHandle, "a default stream cannot be destroyed");
  }
  if (stream->capture) return captured(stream, "destruction");
  close_stream(stream);  // what is queued comes to its end first
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  CUDA_CALL(plain);
  Stream* stream = nullptr;
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  return end_stream(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  CUDA_CALL(plain);
  Stream* stream = nullptr;
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  if (stream->capture) return captured(stream, "a query");
  return stream->queue.empty() ? end_stream(stream) : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned int flags) {
  CUDA_CALL(plain);
  Stream* stream = nullptr;
  EventPtr event;
  if (flags != 0) return refuse(cudaErrorInvalidValue, "flags must be 0");
  if (const cudaError_t code = find_event(event_handle, event); code != cudaSuccess) return code;
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  if (event->capture && stream->capture && event->capture != stream->capture) {
    return refuse(cudaErrorStreamCaptureMerge, "the event and the stream belong to different captures");
  }
  if (event->capture && stream->legacy) return refuse(cudaErrorStreamCaptureImplicit, "the legacy stream is not captured");
  if (stream->capture && !event->capture && event->latest) {
    stream->capture->broken = true;
    return refuse(cudaErrorStreamCaptureIsolation, "event " + event->name + " was recorded outside the capture");
  }
  wait_event(stream, event);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned int flags) {
  CUDA_CALL(work);
  if (handle == nullptr || flags > 3) return refuse(cudaErrorInvalidValue, "no place for the event, or no such flags");
  const EventPtr event = open_event(here().context, EventKind::latest, flags, numbered(label("event"), "@"));
  *handle = reinterpret_cast<cudaEvent_t>(event.get());
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  CUDA_CALL(release);
  EventPtr event;
  if (const cudaError_t code = find_event(handle, event); code != cudaSuccess) return code;
  close_event(handle);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event_handle, cudaStream_t handle) {
  CUDA_CALL(plain);
  Stream* stream = nullptr;
  EventPtr event;
  if (const cudaError_t code = find_event(event_handle, event); code != cudaSuccess) return code;
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  record_event(event, stream);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  CUDA_CALL(plain);
  EventPtr event;
  if (const cudaError_t code = find_event(handle, event); code != cudaSuccess) return code;
  return end_event(event);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  CUDA_CALL(plain);
  EventPtr event;
  if (const cudaError_t code = find_event(handle, event); code != cudaSuccess) return code;
  if (!event->capture && event->latest && !event->latest->done) return cudaErrorNotReady;
  return end_event(event);
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  CUDA_CALL(plain);
  if (const cudaError_t code = require_places({ms}); code != cudaSuccess) return code;
  Time times[2];
  for (int n = 0; n < 2; ++n) {
    EventPtr event;
    if (const cudaError_t code = find_event(n == 0 ? start : end, event); code != cudaSuccess) return code;
    if ((event->flags & cudaEventDisableTiming) != 0 || !event->latest) {
      return refuse(cudaErrorInvalidResourceHandle, "event " + event->name + " was not recorded, or takes no time");
    }
    if (!event->latest->done) return cudaErrorNotReady;
    times[n] = event->latest->when;
  }
  *ms = std::chrono::duration<float, std::milli>(times[1] - times[0]).count();
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* argument) {
  CUDA_CALL(work);
  Stream* stream = nullptr;
  if (function == nullptr) return refuse(cudaErrorInvalidValue, "a null pointer instead of a function");
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  Step step;
  step.action = "op";
  step.name = label("host_func");
  const std::string what = step.name;
  enqueue(stream, what, [=](Replay*) {
    auto task = std::make_unique<Task>();
    task->work = [=] {
      function(argument);
      return kDone;
    };
    return task;
  }, std::move(step));
  return cudaSuccess;
}

}  // extern "C"
