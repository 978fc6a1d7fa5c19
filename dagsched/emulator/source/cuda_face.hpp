// What the parts of the CUDA face share.
#ifndef DAGSCHED_EMULATOR_CUDA_FACE_HPP
#define DAGSCHED_EMULATOR_CUDA_FACE_HPP

#include <initializer_list>

#include "call.hpp"
#include "cuda_runtime.h"

#define CUDA_CALL(kind)                                          \
  const Call call(__func__, Kind::kind, cudaErrorNotPermitted);  \
  begin();                                                       \
  if (call.code != 0) return static_cast<cudaError_t>(call.code)

namespace emu {

/// The device is there from the first call on.
void begin();
/// Whether there is a place for each result.
cudaError_t require_places(std::initializer_list<const void*> places);
cudaError_t refuse(cudaError_t code, const std::string& why);
/// The stream of a handle; null and 1 are the legacy default stream.
cudaError_t find_stream(cudaStream_t handle, Stream*& stream);
/// Waits for a stream's end and yields its error.
cudaError_t end_stream(Stream* stream);
/// Refuses what cannot be done to a stream that is being captured; the capture is lost.
cudaError_t captured(const Stream* stream, const char* what);
void forget_graphs();
/// Waits for the device's end without telling anybody: what a free does, and nobody may rely on.
void idle_device();

}  // namespace emu

#endif  // DAGSCHED_EMULATOR_CUDA_FACE_HPP
