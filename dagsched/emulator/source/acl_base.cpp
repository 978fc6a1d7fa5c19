// AscendCL: initialisation, devices, contexts and errors.
#include <algorithm>
#include <cstdio>

#include "acl_face.hpp"

using namespace emu;

namespace emu {
namespace {

constexpr int32_t kDevices = 8;
bool initialised = false;
int references[kDevices] = {};

Context* primary_of(int32_t device) {
  for (const auto& context : world().contexts) {
    if (context->primary && context->device == device) return context.get();
  }
  return nullptr;
}

Context* known(aclrtContext handle) {
  for (const auto& context : world().contexts) {
    if (context.get() == handle) return context.get();
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
  if (context->default_stream != nullptr) close_stream(context->default_stream);
  for (const Stream* stream : streams_of(context)) {
    complain("the context of stream " + stream->name + " is destroyed before the stream is");
  }
  if (here().context == context) here().context = nullptr;
  const auto at = std::find_if(w.contexts.begin(), w.contexts.end(), [=](const auto& c) { return c.get() == context; });
  w.ended.push_back(std::move(*at));  // streams that are left still refer to it
  w.contexts.erase(at);
}

}  // namespace

int find_stream(aclrtStream handle, Stream*& stream) {
  World& w = world();
  Context* context = here().context;
  if (context == nullptr) return fail(ACL_ERROR_RT_CONTEXT_NULL, "EE1002: this thread has no current context");
  if (handle == nullptr) {
    if (context->default_stream == nullptr) context->default_stream = open_stream(context, unique("default"));
    stream = context->default_stream;
    return ACL_SUCCESS;
  }
  const auto at = std::find(w.streams.begin(), w.streams.end(), static_cast<Stream*>(handle));
  if (at == w.streams.end()) return fail(ACL_ERROR_RT_INVALID_HANDLE, "EE1001: that is no stream");
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
  ACL_CALL(plain);
  catch_bad_accesses();
  if (std::exchange(initialised, true)) return fail(ACL_ERROR_REPEAT_INITIALIZE, "aclInit has been called already");
  return ACL_SUCCESS;
}

aclError aclFinalize(void) {
  ACL_CALL(release);
  if (!std::exchange(initialised, false)) return fail(ACL_ERROR_UNINITIALIZE, "aclInit has not been called");
  write_trace();
  if (const std::string leaks = list_leaks(); !leaks.empty()) complain("aclFinalize: not released:" + leaks);
  return ACL_SUCCESS;
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
  ACL_CALL(plain);
  *count = kDevices;
  return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t device) {
  ACL_CALL(plain);
  if (!initialised) return fail(ACL_ERROR_UNINITIALIZE, "aclInit must be called first");
  if (device < 0 || device >= kDevices) return fail(ACL_ERROR_RT_INVALID_DEVICEID, "there is no such device");
  Context* context = primary_of(device);
  if (context == nullptr) context = make_context(device, true);
  ++references[device];
  here().context = context;
  return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t device) {
  ACL_CALL(release);
  if (device < 0 || device >= kDevices || references[device] == 0) {
    return fail(ACL_ERROR_RT_INVALID_DEVICEID, "the device has not been set");
  }
  if (--references[device] == 0) destroy(primary_of(device));
  return ACL_SUCCESS;
}

aclError aclrtResetDeviceForce(int32_t device) {
  ACL_CALL(release);
  if (device < 0 || device >= kDevices || references[device] == 0) {
    return fail(ACL_ERROR_RT_INVALID_DEVICEID, "the device has not been set");
  }
  references[device] = 0;
  destroy(primary_of(device));
  return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t* device) {
  ACL_CALL(plain);
  if (here().context == nullptr) return fail(ACL_ERROR_RT_CONTEXT_NULL, "this thread has no current context");
  *device = here().context->device;
  return ACL_SUCCESS;
}

aclError aclrtCreateContext(aclrtContext* context, int32_t device) {
  ACL_CALL(plain);
  if (!initialised) return fail(ACL_ERROR_UNINITIALIZE, "aclInit must be called first");
  if (device < 0 || device >= kDevices) return fail(ACL_ERROR_RT_INVALID_DEVICEID, "there is no such device");
  here().context = make_context(device, false);
  *context = here().context;
  return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext handle) {
  ACL_CALL(release);
  Context* context = known(handle);
  if (context == nullptr || context->primary) return fail(ACL_ERROR_RT_PARAM_INVALID, "that context cannot be destroyed");
  destroy(context);
  return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext handle) {
  ACL_CALL(release);
  Context* context = known(handle);
  if (context == nullptr) return fail(ACL_ERROR_RT_CONTEXT_NULL, "that is no context");
  here().context = context;
  return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  ACL_CALL(plain);
  if (here().context == nullptr) return fail(ACL_ERROR_RT_CONTEXT_NULL, "this thread has no current context");
  *context = here().context;
  return ACL_SUCCESS;
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* handle) {
  ACL_CALL(plain);
  Stream* stream = nullptr;
  if (const int code = find_stream(nullptr, stream); code != ACL_SUCCESS) return code;
  *handle = stream;
  return ACL_SUCCESS;
}

}  // extern "C"
