inline const char* error_name(cudaError_t code) { return cudaGetErrorName(code); }

/// What the runtime says of an error; one that can be recovered from is not to show again in a later call.
inline std::string recent_message(cudaError_t code) {
  static_cast<void>(cudaGetLastError());
  return cudaGetErrorString(code);
}

/// Makes this device current for a scope, so that a pipeline may be used from any thread.
class CurrentDevice {
 public:
  explicit CurrentDevice(int wanted) {
    code_ = cudaGetDevice(&previous_);
    if (code_ == cudaSuccess && previous_ != wanted) code_ = cudaSetDevice(wanted);
    changed_ = code_ == cudaSuccess && previous_ != wanted;
  }
  ~CurrentDevice() {
    if (changed_) static_cast<void>(cudaSetDevice(previous_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  cudaError_t code() const { return code_; }

 private:
  int previous_ = 0;
  cudaError_t code_ = cudaSuccess;
  bool changed_ = false;
};

using Stream = Handle<cudaStream_t, &cudaStreamDestroy>;
using Event = Handle<cudaEvent_t, &cudaEventDestroy>;
using DeviceMemory = Handle<void*, &cudaFree>;
using PinnedMemory = Handle<void*, &cudaFreeHost>;
using PageableMemory = Handle<void*, &free_pageable>;

/// Waits for what a stream has been given. Its errors have been reported already, or have nobody to be reported to.
inline void drain_stream(const Stream& stream) {
  if (stream != nullptr) static_cast<void>(cudaStreamSynchronize(stream));
}

inline cudaError_t allocate(DeviceMemory& memory, size_t size) { return cudaMalloc(memory.receive(), size); }
inline cudaError_t allocate(PinnedMemory& memory, size_t size) { return cudaMallocHost(memory.receive(), size); }
inline cudaError_t allocate(PageableMemory& memory, size_t size) { return allocate_pageable(memory.receive(), size); }

/// A stream that has nothing to do with the default stream.
inline cudaError_t create_stream(Stream& stream) {
  return cudaStreamCreateWithFlags(stream.receive(), cudaStreamNonBlocking);
}

/// The same with a priority: 0 is the most urgent that the device has, larger numbers are less urgent.
inline cudaError_t create_stream(Stream& stream, int rank) {
  int least = 0;
  int greatest = 0;
  const cudaError_t code = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  if (code != cudaSuccess) return code;
  return cudaStreamCreateWithPriority(stream.receive(), cudaStreamNonBlocking, std::min(least, greatest + rank));
}

inline cudaError_t create_event(Event& event) {
  return cudaEventCreateWithFlags(event.receive(), cudaEventDisableTiming);
}
