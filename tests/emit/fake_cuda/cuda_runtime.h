// The declarations of the CUDA runtime that emitted programs need, in our own words, over the runtime of fake_acl.cpp:
// streams that are threads, and events that bind a wait to the newest record, are the same in both. For tests only.
#ifndef FAKE_CUDA_RUNTIME_H
#define FAKE_CUDA_RUNTIME_H

#include <utility>

#include "fake_acl.h"

#define CUDART_CB

enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorIllegalAddress = 700,
  cudaErrorUnknown = 999,
};
struct FakeCudaStream;
struct FakeCudaEvent;
using cudaStream_t = FakeCudaStream*;
using cudaEvent_t = FakeCudaEvent*;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
constexpr unsigned cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDisableTiming = 2;

inline cudaError_t as_cuda(aclError code) { return static_cast<cudaError_t>(code); }
inline aclrtMemcpyKind as_acl(cudaMemcpyKind kind) { return static_cast<aclrtMemcpyKind>(kind); }

inline const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError: return "cudaErrorInitializationError";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    default: return "cudaErrorUnknown";
  }
}
inline const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "an error";
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }

inline cudaError_t cudaSetDevice(int device) { return as_cuda(aclrtSetDevice(device)); }
inline cudaError_t cudaGetDevice(int* device) {
  void* context = nullptr;
  *device = 0;
  return as_cuda(aclrtGetCurrentContext(&context));
}
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
  return as_cuda(aclrtCreateStream(reinterpret_cast<void**>(stream)));
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (priority < -5 || priority > 0) return cudaErrorInvalidValue;
  return cudaStreamCreateWithFlags(stream, flags);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) { return as_cuda(aclrtDestroyStream(stream)); }
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return as_cuda(aclrtSynchronizeStream(stream)); }
inline cudaError_t cudaDeviceSynchronize() { return as_cuda(aclrtSynchronizeDevice()); }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (flags != 0) return cudaErrorInvalidValue;
  return as_cuda(aclrtStreamWaitEvent(stream, event));
}

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (flags != cudaEventDisableTiming) return cudaErrorInvalidValue;
  return as_cuda(aclrtCreateEventExWithFlag(reinterpret_cast<void**>(event), ACL_EVENT_SYNC));
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return as_cuda(aclrtDestroyEvent(event)); }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return as_cuda(aclrtRecordEvent(event, stream));
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) { return as_cuda(aclrtSynchronizeEvent(event)); }

inline cudaError_t cudaMalloc(void** memory, size_t size) {
  return as_cuda(aclrtMalloc(memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
}
inline cudaError_t cudaFree(void* memory) { return as_cuda(aclrtFree(memory)); }
inline cudaError_t cudaMallocHost(void** memory, size_t size) { return as_cuda(aclrtMallocHost(memory, size)); }
inline cudaError_t cudaFreeHost(void* memory) { return as_cuda(aclrtFreeHost(memory)); }

inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return as_cuda(aclrtMemcpyAsync(to, count, from, count, as_acl(kind), stream));
}
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                     size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
  if (kind != cudaMemcpyDeviceToDevice) {
    return as_cuda(aclrtMemcpy2dAsync(to, to_pitch, from, from_pitch, width, height, as_acl(kind), stream));
  }
  for (size_t row = 0; row < height; ++row) {
    char* target = static_cast<char*>(to) + row * to_pitch;
    const char* source = static_cast<const char*>(from) + row * from_pitch;
    if (const aclError code = aclrtMemcpyAsync(target, width, source, width, as_acl(kind), stream)) return as_cuda(code);
  }
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* memory, int value, size_t count, cudaStream_t stream) {
  return as_cuda(aclrtMemsetAsync(memory, count, value, count, stream));
}
inline cudaError_t cudaMemset2DAsync(void* memory, size_t pitch, int value, size_t width, size_t height,
                                     cudaStream_t stream) {
  if (width > pitch) return cudaErrorInvalidValue;
  for (size_t row = 0; row < height; ++row) {
    char* target = static_cast<char*>(memory) + row * pitch;
    if (const aclError code = aclrtMemsetAsync(target, width, value, width, stream)) return as_cuda(code);
  }
  return cudaSuccess;
}
inline cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* argument) {
  return as_cuda(aclrtLaunchHostFunc(stream, function, argument));
}

// What tests may ask of the fake runtime beyond CUDA itself (see fake_acl.h).
namespace fake_cuda {

inline cudaError_t launch(cudaStream_t stream, std::function<void()> kernel) {
  return as_cuda(fake_acl::launch(stream, std::move(kernel)));
}
inline void fail(const char* function, int number, cudaError_t code) { fake_acl::fail(function, number, code); }
inline int alive() { return fake_acl::alive(); }
inline void perturb(unsigned seed) { fake_acl::perturb(seed); }
inline void leave_out(int wait, int of) { fake_acl::leave_out(wait, of); }
inline void start() { aclInit(nullptr); }
inline void finish() { aclFinalize(); }

}  // namespace fake_cuda

#endif  // FAKE_CUDA_RUNTIME_H
