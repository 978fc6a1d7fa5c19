// AscendCL: initialisation, devices, contexts and errors.
#include <algorithm>
#include <cstdio>

#include "acl_face.hpp"

using namespace emu;

namespace emu {
namespace {

constexpr int32_t kDevices = 8;
uint64_t starts = 0;  // calls of aclInit that have not been taken back
bool was_started = false;
int references[kDevices] = {};

Context* primary_of(int32_t device) {
  for (const auto& context : world().contexts) {
    if (context->primary && context->device == device && !context->destroyed) return context.get();
  }
  return nullptr;
}

Context* known(aclrtContext handle) {
  for (const auto& context : world().contexts) {
    if (context.get() == handle && !context->destroyed) return context.get();
  }
  return nullptr;
}

Context* make_context(int32_t device, bool primary) {
  auto context = std::make_unique<Context>();
  context->device = device;
  context->primary = primary;
  world().contexts.push_back(std::move(context));
  return world().contexts.back().get();
}

void destroy(Context* context) {
  World& w = world();
  context->destroyed = true;  // from now on nobody finds it
  if (context->default_stream != nullptr) close_stream(context->default_stream);
  for (const Stream* stream : streams_of(context)) {
    complain("the context of stream " + stream->name + " is destroyed before the stream is");
  }
  if (here().context == context) here().context = nullptr;
  const auto at = std::find_if(w.contexts.begin(), w.contexts.end(), [=](const auto& c) { return c.get() == context; });
  w.ended.push_back(std::move(*at));  // streams that are left still refer to it
  w.contexts.erase(at);
}

int check_device(int32_t device) {
  if (device >= 0 && device < kDevices) return ACL_SUCCESS;
  const std::string last = std::to_string(kDevices - 1);
  return fail(ACL_ERROR_RT_INVALID_DEVICEID,
              "EE1003: there is no device " + std::to_string(device) + ": they are 0 to " + last);
}

int not_set(int32_t device) {
  return fail(ACL_ERROR_RT_INVALID_DEVICEID, "EE1003: device " + std::to_string(device) + " has not been set");
}

int finish() {
  write_trace();
  if (const std::string leaks = list_leaks(); !leaks.empty()) complain("aclFinalize: not released:" + leaks);
  return ACL_SUCCESS;
}

int not_started() {
  if (was_started) return fail(ACL_ERROR_REPEAT_FINALIZE, "aclFinalize has been called already");
  return fail(ACL_ERROR_UNINITIALIZE, "aclInit has not been called");
}

}  // namespace

int require_start(const char* function, Kind kind) {
  if (starts != 0 || kind == Kind::release || kind == Kind::look) return ACL_SUCCESS;
  const char* when = was_started ? " is called after aclFinalize" : " is called before aclInit";
  return fail(ACL_ERROR_UNINITIALIZE, std::string(function) + when);
}

int find_context(Context*& context) {
  context = here().context;
  if (context == nullptr) {
    return fail(ACL_ERROR_RT_CONTEXT_NULL,
                "EE1002: this thread has no current context: aclrtSetDevice or aclrtSetCurrentContext gives it one");
  }
  if (context->destroyed) return fail(ACL_ERROR_RT_CONTEXT_NULL, "EE1002: this thread's context has been destroyed");
  return ACL_SUCCESS;
}

int require_place(const void* place, const char* what) {
  if (place != nullptr) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_PARAM_INVALID, std::string("EE1001: a null pointer instead of a place for ") + what);
}

int find_launch_stream(void* handle, Stream*& stream) { return find_queue(handle, stream); }

int find_stream(aclrtStream handle, Stream*& stream) {
  World& w = world();
  Context* context = nullptr;
  if (const int code = find_context(context); code != ACL_SUCCESS) return code;
  if (handle == nullptr) {
    if (context->default_stream == nullptr) context->default_stream = open_stream(context, unique("default"));
    stream = context->default_stream;
    return ACL_SUCCESS;
  }
  const auto at = std::find(w.streams.begin(), w.streams.end(), static_cast<Stream*>(handle));
  if (at == w.streams.end() || (*at)->leaving) {
    return fail(ACL_ERROR_RT_INVALID_HANDLE, "EE1001: " + explain_handle(handle, "stream"));
  }
  if ((*at)->context != context) {
    return fail(ACL_ERROR_RT_STREAM_CONTEXT, "EE1017: stream " + (*at)->name + " is not of the current context");
  }
  stream = *at;
  return ACL_SUCCESS;
}

int find_queue(aclrtStream handle, Stream*& stream) {
  World& w = world();
  if (const int code = find_stream(handle, stream); code != ACL_SUCCESS) return code;
  if (stream->capture) return ACL_SUCCESS;
  const int stopped = stream->context->stopped;
  if (stopped != 0) return fail(stopped, "EE9999: a task has failed, and the context stops on failures");
  if (stream->error != 0 && w.options.seed >= 2 && draw(2) == 0) {
    return fail(take_error(stream), "EE9999: a task of stream " + stream->name + " has failed");
  }
  return ACL_SUCCESS;
}

}  // namespace emu

extern "C" {

aclError aclInit(const char*) {
  ACL_CALL_AT_ANY_TIME(plain);
  catch_bad_accesses();
  was_started = true;
  if (starts++ != 0) return fail(ACL_ERROR_REPEAT_INITIALIZE, "aclInit has been called already; that does no harm");
  return ACL_SUCCESS;
}

aclError aclFinalize(void) {
  ACL_CALL_AT_ANY_TIME(release);
  return std::exchange(starts, 0) == 0 ? not_started() : finish();
}

aclError aclFinalizeReference(uint64_t* left) {
  ACL_CALL_AT_ANY_TIME(release);
  if (starts == 0) return not_started();
  --starts;
  if (left != nullptr) *left = starts;
  return starts == 0 ? finish() : ACL_SUCCESS;
}

const char* aclGetRecentErrMsg(void) {
  const Guard guard(world().lock);
  ThreadState& state = here();
  if (state.message.empty()) return nullptr;
  state.shown = std::exchange(state.message, std::string());
  return state.shown.c_str();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel) {
  const Guard guard(world().lock);
  return here().last_error;
}

aclError aclrtGetLastError(aclrtLastErrLevel) {
  const Guard guard(world().lock);
  return std::exchange(here().last_error, 0);
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  ACL_CALL(look);
  if (const int code = require_place(count, "the number"); code != ACL_SUCCESS) return code;
  *count = kDevices;
  return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t device) {
  ACL_CALL(plain);
  if (const int code = check_device(device); code != ACL_SUCCESS) return code;
  Context* context = primary_of(device);
  if (context == nullptr) context = make_context(device, true);
  ++references[device];
  here().context = context;
  return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t device) {
  ACL_CALL(release);
  if (const int code = check_device(device); code != ACL_SUCCESS) return code;
  if (references[device] == 0) return not_set(device);
  if (--references[device] == 0) destroy(primary_of(device));
  return ACL_SUCCESS;
}

aclError aclrtResetDeviceForce(int32_t device) {
  ACL_CALL(release);
  if (const int code = check_device(device); code != ACL_SUCCESS) return code;
  if (references[device] == 0) return not_set(device);
  references[device] = 0;
  destroy(primary_of(device));
  return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t* device) {
  ACL_CALL(look);
  Context* context = nullptr;
  if (const int code = require_place(device, "the device"); code != ACL_SUCCESS) return code;
  if (const int code = find_context(context); code != ACL_SUCCESS) return code;
  *device = context->device;
  return ACL_SUCCESS;
}

aclError aclrtCreateContext(aclrtContext* context, int32_t device) {
  ACL_CALL(plain);
  if (const int code = require_place(context, "the context"); code != ACL_SUCCESS) return code;
  if (const int code = check_device(device); code != ACL_SUCCESS) return code;
  here().context = make_context(device, false);
  *context = here().context;
  return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext handle) {
  ACL_CALL(release);
  Context* context = known(handle);
  if (context == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: " + explain_handle(handle, "context"));
  if (context->primary) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: a device's default context goes with aclrtResetDevice only");
  }
  destroy(context);
  return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext handle) {
  ACL_CALL(look);
  Context* context = known(handle);
  if (context == nullptr) return fail(ACL_ERROR_RT_CONTEXT_NULL, "EE1002: " + explain_handle(handle, "context"));
  here().context = context;
  return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  ACL_CALL(look);
  Context* current = nullptr;
  if (const int code = require_place(context, "the context"); code != ACL_SUCCESS) return code;
  if (const int code = find_context(current); code != ACL_SUCCESS) return code;
  *context = current;
  return ACL_SUCCESS;
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* handle) {
  ACL_CALL(plain);
  Stream* stream = nullptr;
  if (const int code = require_place(handle, "the stream"); code != ACL_SUCCESS) return code;
  if (const int code = find_stream(nullptr, stream); code != ACL_SUCCESS) return code;
  *handle = stream;
  return ACL_SUCCESS;
}

}  // extern "C"
