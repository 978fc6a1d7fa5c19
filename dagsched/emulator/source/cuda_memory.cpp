// CUDA: memory, copies and fills.
#include "cuda_face.hpp"

using namespace emu;

namespace emu {
namespace {

cudaError_t check_end(const void* address, size_t size, bool& on_device, bool& pageable) {
  if (address == nullptr) return refuse(cudaErrorInvalidValue, "a null pointer");
  const BlockPtr block = block_at(address);
  on_device = block && block->place == Place::device;
  pageable = pageable || !block;
  if (!block || !reaches_outside(block, address, size)) return cudaSuccess;
  complain("a copy or fill reaches beyond the end of " + block->name);
  return refuse(cudaErrorInvalidValue, "beyond the end of " + block->name);
}

// Calls that may block cannot be made while a capture forbids them (cudaStreamBeginCapture has the modes).
cudaError_t check_mode(const char* what) {
  if (!forbid_in_capture()) return cudaSuccess;
  return refuse(cudaErrorStreamCaptureUnsupported, std::string(what) + " during a capture whose mode forbids it");
}

cudaError_t copy(const Rows& rows, enum cudaMemcpyKind kind, cudaStream_t handle, bool synchronous) {
  Stream* stream = nullptr;
  if (rows.width > rows.to_pitch || rows.width > rows.from_pitch) {
    return refuse(cudaErrorInvalidValue, "rows are wider than their pitch");
  }
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  if (rows.width == 0 || rows.height == 0) return cudaSuccess;
  bool to_device = false, from_device = false, pageable = false;
  size_t to_size = 0, from_size = 0;
  if (!extent(rows.to_pitch, rows.width, rows.height, to_size) ||
      !extent(rows.from_pitch, rows.width, rows.height, from_size)) {
    return refuse(cudaErrorInvalidValue, "the rows are longer than any memory");
  }
  if (const cudaError_t code = check_end(rows.to, to_size, to_device, pageable); code != cudaSuccess) return code;
  if (const cudaError_t code = check_end(rows.from, from_size, from_device, pageable); code != cudaSuccess) return code;
  const int real = (from_device ? 2 : 0) + (to_device ? 1 : 0);  // the numbers of the kinds
  if (kind > cudaMemcpyDefault || (kind != cudaMemcpyDefault && kind != real)) {
    complain("a copy of kind " + std::to_string(kind) + " between memory of other kinds");
    return refuse(cudaErrorInvalidMemcpyDirection, "the memory is not of the copy's kind");
  }
  if (stream->capture && (synchronous || pageable)) {
    stream->capture->broken = true;
    return refuse(cudaErrorStreamCaptureUnsupported, "a copy that waits cannot be captured");
  }
  if (synchronous || pageable) {
    if (const cudaError_t code = check_mode("a copy that waits"); code != cudaSuccess) return code;
  }
  static const char* const names[] = {"copy_h2h", "copy_h2d", "copy_d2h", "copy_d2d"};
  Step step;
  step.action = "op";
  step.name = label(names[real]);
  touch_rows(step.touches, rows.from, rows.from_pitch, rows.width, rows.height, Mode::read);
  touch_rows(step.touches, rows.to, rows.to_pitch, rows.width, rows.height, Mode::write);
  const std::string what = step.name;
  enqueue(stream, what, copy_in_pieces(rows), std::move(step));
  if (synchronous) return end_stream(stream);
  if (!pageable) return cudaSuccess;
  // Memory that is not page-locked goes through a staging area; programs must not rely on how long the call waits.
  if (!wait_until([stream] { return stream->queue.empty(); })) return refuse(cudaErrorUnknown, "a copy never runs");
  const int code = world().lost != 0 ? world().lost : take_error(stream);
  return code == 0 ? cudaSuccess : refuse(static_cast<cudaError_t>(code), "a task of the stream has failed");
}

cudaError_t fill(void* address, size_t pitch, int value, size_t width, size_t height, cudaStream_t handle) {
  Stream* stream = nullptr;
  if (width > pitch) return refuse(cudaErrorInvalidValue, "rows are wider than their pitch");
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  if (width == 0 || height == 0) return cudaSuccess;
  bool on_device = false, pageable = false;
  size_t size = 0;
  if (!extent(pitch, width, height, size)) return refuse(cudaErrorInvalidValue, "the rows are longer than any memory");
  if (const cudaError_t code = check_end(address, size, on_device, pageable); code != cudaSuccess) return code;
  if (!on_device && pageable) return refuse(cudaErrorInvalidValue, "that memory is not the device's");
  Step step;
  step.action = "op";
  step.name = label("fill");
  touch_rows(step.touches, static_cast<char*>(address), pitch, width, height, Mode::write);
  const std::string what = step.name;
  for (size_t row = 0; row < height; ++row) {
    enqueue(stream, what, fill_in_pieces(static_cast<char*>(address) + row * pitch, value, width), row == 0 ? step : Step());
  }
  return cudaSuccess;
}

Rows plain_rows(void* to, const void* from, size_t count) {
  return {static_cast<char*>(to), count, static_cast<const char*>(from), count, count, 1};
}

cudaError_t allocate_into(void** address, size_t size, Place place, const char* name) {
  if (const cudaError_t code = require_places({address}); code != cudaSuccess) return code;
  if (size == 0) return refuse(cudaErrorInvalidValue, "a size of 0");
  const BlockPtr block = allocate(place, size, numbered(label(name)));
  if (!block) return refuse(cudaErrorMemoryAllocation, "no memory is left for " + std::to_string(size) + " bytes");
  *address = block->host;
  return cudaSuccess;
}

cudaError_t find_owned(void* address, Place place, BlockPtr& block) {
  const auto at = world().blocks.find(static_cast<char*>(address));
  if (at != world().blocks.end() && at->second->place == place) {
    block = at->second;
    if (!block->leaving) return cudaSuccess;
    complain(block->name + " is released a second time");
    return refuse(cudaErrorInvalidValue, block->name + " is released a second time");
  }
  const std::string why = explain_release(address, place);
  if (address != nullptr) complain(why);
  return refuse(cudaErrorInvalidValue, why);
}

// A free waits until the device has nothing left to do. That is no order that anybody is told of.
cudaError_t release_memory(void* address, Place place) {
  if (address == nullptr && place != Place::registered) return cudaSuccess;
  BlockPtr block;
  if (const cudaError_t code = find_owned(address, place, block); code != cudaSuccess) return code;
  if (const cudaError_t code = check_mode("memory is released"); code != cudaSuccess) return code;
  idle_device();
  if (block->released) return refuse(cudaErrorInvalidValue, explain_release(address, place));
  Step step;
  step.action = "free";
  step.name = block->name;
  if (place != Place::registered) add_step(std::move(step));
  release_block(block);
  return cudaSuccess;
}

}  // namespace
}  // namespace emu

extern "C" {

cudaError_t cudaMalloc(void** address, size_t size) {
  CUDA_CALL(work);
  if (const cudaError_t code = check_mode("cudaMalloc"); code != cudaSuccess) return code;
  return allocate_into(address, size, Place::device, "device");
}

cudaError_t cudaMallocAsync(void** address, size_t size, cudaStream_t handle) {
  CUDA_CALL(work);
  Stream* stream = nullptr;
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  return allocate_into(address, size, Place::device, "device");
}

cudaError_t cudaFree(void* address) {
  CUDA_CALL(release);
  return release_memory(address, Place::device);
}

cudaError_t cudaFreeAsync(void* address, cudaStream_t handle) {
  CUDA_CALL(release);
  Stream* stream = nullptr;
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  BlockPtr block;
  if (const cudaError_t code = find_owned(address, Place::device, block); code != cudaSuccess) return code;
  block->leaving = true;
  Step step;  // on the stream: whoever touches the memory must be ordered before it, as before a write
  step.action = "op";
  step.name = "free " + block->name;
  touch_rows(step.touches, block->host, block->size, block->size, 1, Mode::write);
  enqueue(stream, "free " + block->name, [block](Replay*) {
    auto task = std::make_unique<Task>();
    task->essential = true;
    task->finished = [block] { release_block(block); };
    return task;
  }, std::move(step));
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** address, size_t size) {
  CUDA_CALL(work);
  if (const cudaError_t code = check_mode("cudaMallocHost"); code != cudaSuccess) return code;
  return allocate_into(address, size, Place::pinned, "host");
}

cudaError_t cudaHostAlloc(void** address, size_t size, unsigned int) {
  CUDA_CALL(work);
  if (const cudaError_t code = check_mode("cudaHostAlloc"); code != cudaSuccess) return code;
  return allocate_into(address, size, Place::pinned, "host");
}

cudaError_t cudaFreeHost(void* address) {
  CUDA_CALL(release);
  return release_memory(address, Place::pinned);
}

cudaError_t cudaHostRegister(void* address, size_t size, unsigned int) {
  CUDA_CALL(work);
  if (address == nullptr || size == 0) return refuse(cudaErrorInvalidValue, "there is no memory to be registered");
  if (overlaps_block(address, size)) return refuse(cudaErrorInvalidValue, "a part of it is registered already");
  adopt(static_cast<char*>(address), size, numbered(label("registered")));
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* address) {
  CUDA_CALL(release);
  return release_memory(address, Place::registered);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t count, enum cudaMemcpyKind kind) {
  CUDA_CALL(work);
  return copy(plain_rows(to, from, count), kind, nullptr, true);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_CALL(work);
  return copy(plain_rows(to, from, count), kind, stream, false);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_CALL(work);
  return copy({static_cast<char*>(to), to_pitch, static_cast<const char*>(from), from_pitch, width, height}, kind,
              stream, false);
}

cudaError_t cudaMemset(void* address, int value, size_t count) {
  CUDA_CALL(work);
  return fill(address, count, value, count, 1, nullptr);
}

cudaError_t cudaMemsetAsync(void* address, int value, size_t count, cudaStream_t stream) {
  CUDA_CALL(work);
  return fill(address, count, value, count, 1, stream);
}

cudaError_t cudaMemset2DAsync(void* address, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  CUDA_CALL(work);
  return fill(address, pitch, value, width, height, stream);
}

}  // extern "C"
