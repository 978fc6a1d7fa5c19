// The declarations of HIP that the prefix header names, in our own words: enough to compile against, nothing to run.
// For tests only, where the real headers (Debian: libamdhip64-dev) are missing.
#ifndef FAKE_HIP_RUNTIME_H
#define FAKE_HIP_RUNTIME_H

#include <cstddef>

enum [[nodiscard]] hipError_t {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorNotInitialized = 3,
  hipErrorUnknown = 999,
};
enum hipMemcpyKind { hipMemcpyHostToHost, hipMemcpyHostToDevice, hipMemcpyDeviceToHost, hipMemcpyDeviceToDevice };
enum hipStreamCaptureMode { hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal };
using hipStream_t = struct ihipStream*;
using hipEvent_t = struct ihipEvent*;
using hipGraph_t = struct ihipGraph*;
using hipGraphExec_t = struct ihipGraphExec*;
#define hipStreamNonBlocking 0x01
#define hipEventDisableTiming 0x2
#define hipHostMallocDefault 0x0

const char* hipGetErrorName(hipError_t code);
const char* hipGetErrorString(hipError_t code);
hipError_t hipGetLastError();
hipError_t hipGetDevice(int* device);
hipError_t hipSetDevice(int device);
hipError_t hipDeviceSynchronize();
hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest);
hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags);
hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags);
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode);
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph);
hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipMalloc(void** memory, size_t size);
hipError_t hipFree(void* memory);
hipError_t hipHostMalloc(void** memory, size_t size, unsigned flags);
hipError_t hipHostFree(void* memory);
hipError_t hipMemcpyAsync(void* to, const void* from, size_t size, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                            hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemsetAsync(void* memory, int value, size_t size, hipStream_t stream);
hipError_t hipMemset2DAsync(void* memory, size_t pitch, int value, size_t width, size_t height, hipStream_t stream);
hipError_t hipLaunchHostFunc(hipStream_t stream, void (*function)(void*), void* argument);
hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* exec, hipGraph_t graph, unsigned long long flags);
hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream);
hipError_t hipGraphDestroy(hipGraph_t graph);
hipError_t hipGraphExecDestroy(hipGraphExec_t exec);

#endif  // FAKE_HIP_RUNTIME_H
