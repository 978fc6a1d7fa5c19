// detector_cuda.hpp: the plan detector as a CUDA program.
// Written by dagsched 0.1.0; the plan's digest is ea3d1283b0d1c0db31e08605d2e53f3cd9a243053b864ec95f214dcb6b45f2b2.
// Change the plan and compile it again rather than this file.

#ifndef DAGSCHED_DETECTOR_CUDA_HPP
#define DAGSCHED_DETECTOR_CUDA_HPP

#if defined(__HIP_PLATFORM_AMD__)
#include "dagsched_hip.h"
#else
#include <cuda_runtime.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace dagsched::detector_cuda {

// ---------------------------------------------------------------------------------------------------------------------
// What every pipeline needs: views, errors, handles that release themselves, and host functions on a stream
// ---------------------------------------------------------------------------------------------------------------------

/// Contiguous memory of one buffer. `bytes` of it hold data, up to `capacity` may be touched.
template <class T>
struct View {
  T* data = nullptr;
  size_t bytes = 0;
  size_t capacity = 0;

  View() = default;
  View(T* data_, size_t bytes_, size_t capacity_) : data(data_), bytes(bytes_), capacity(capacity_) {}

  /// A view may lose its type and the right to write, never gain them.
  template <class U, class = std::enable_if_t<std::is_convertible_v<U*, T*> && !std::is_same_v<U, T>>>
  View(const View<U>& other) : data(other.data), bytes(other.bytes), capacity(other.capacity) {}
};

/// A region that is not contiguous: `count[0]` times `count[1]` ... runs of `run` bytes, `stride[k]` bytes apart.
template <class T, size_t Axes>
struct Strided {
  T* data = nullptr;
  size_t run = 0;
  std::array<size_t, Axes> count{};
  std::array<size_t, Axes> stride{};

  Strided() = default;
  Strided(T* data_, size_t run_, std::array<size_t, Axes> count_, std::array<size_t, Axes> stride_)
      : data(data_), run(run_), count(count_), stride(stride_) {}

  template <class U, class = std::enable_if_t<std::is_convertible_v<U*, T*> && !std::is_same_v<U, T>>>
  Strided(const Strided<U, Axes>& other) : data(other.data), run(other.run), count(other.count), stride(other.stride) {}

  /// The bytes of all runs together.
  size_t bytes() const {
    size_t total = run;
    for (const size_t n : count) total *= n;
    return total;
  }
};

constexpr int64_t kNoIteration = -1;

/// Owns one handle of the runtime, or one block of memory, and releases it once.
template <class T, auto Release>
class Handle {
 public:
  Handle() = default;
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Handle() {
    if (value_ != nullptr) static_cast<void>(Release(value_));
  }

  operator T() const { return value_; }
  T* receive() { return &value_; }

 private:
  T value_ = nullptr;
};

inline cudaError_t allocate_pageable(void** memory, size_t size) {
  constexpr size_t kAlignment = 64;
  if (size > SIZE_MAX - kAlignment) return cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

inline cudaError_t free_pageable(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

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

/// Where a pipeline is: what is being called, in which file and line, for which op and iteration.
struct Place {
  const char* op = "";
  int64_t iteration = kNoIteration;
  const char* call = "";
  const char* file = "";
  int line = 0;
};

/// The first thing that went wrong, and where.
struct Failure {
  cudaError_t code = cudaSuccess;
  Place place;
  std::string detail;            // what the runtime or the exception said
  std::exception_ptr exception;  // what a hook threw, if it did

  std::string message() const {
    std::string text = std::string(place.file) + ":" + std::to_string(place.line) + ": " + place.op;
    if (place.iteration != kNoIteration) text += ", iteration " + std::to_string(place.iteration);
    text += std::string(": ") + place.call + ": " + error_name(code);
    text += " (" + std::to_string(static_cast<int>(code)) + ")";
    if (!detail.empty()) text += ": " + detail;
    return text;
  }
};

/// Keeps what is being thrown; to be called in a handler.
inline void keep_exception(Failure& failure) {
  failure.exception = std::current_exception();
  try {
    throw;
  } catch (const std::exception& error) {
    failure.detail = error.what();
  } catch (...) {
    failure.detail = "an exception that is no std::exception";
  }
}

/// Division that rounds towards minus infinity, and its remainder: ring indices before the first iteration wrap round.
constexpr int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0); }
constexpr int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

/// A ring of event handles. A wait binds to the newest record of its handle; where there is none, it is no wait.
template <size_t Count>
struct EventRing {
  std::array<Event, Count> handles;

  cudaEvent_t operator[](int64_t index) const {
    return handles[static_cast<size_t>(floor_mod(index, static_cast<int64_t>(Count)))];
  }
  cudaError_t create_all() {
    for (Event& event : handles) {
      if (const cudaError_t code = create_event(event); code != cudaSuccess) return code;
    }
    return cudaSuccess;
  }
};

/// A ring of memory blocks: version v of the buffer lives in slot v mod Slots.
template <class Memory, class T, size_t Slots, size_t Size>
struct Buffer {
  static constexpr size_t size = Size;  // bytes of one slot
  std::array<Memory, Slots> slots;

  static size_t slot(int64_t version) { return static_cast<size_t>(floor_mod(version, static_cast<int64_t>(Slots))); }
  std::byte* operator[](int64_t version) const {
    return static_cast<std::byte*>(static_cast<void*>(slots[slot(version)]));
  }
  View<const T> read(int64_t version) const { return {address(version, 0), Size, Size}; }
  View<T> write(int64_t version) const { return {address(version, 0), Size, Size}; }
  View<const T> read(int64_t version, int64_t offset, int64_t bytes) const { return write(version, offset, bytes); }
  View<T> write(int64_t version, int64_t offset, int64_t bytes) const {
    return {address(version, offset), static_cast<size_t>(bytes), static_cast<size_t>(bytes)};
  }
  template <size_t Axes>
  Strided<const T, Axes> read(int64_t version, int64_t offset, int64_t run, std::array<size_t, Axes> count,
                              std::array<size_t, Axes> stride) const {
    return {address(version, offset), static_cast<size_t>(run), count, stride};
  }
  template <size_t Axes>
  Strided<T, Axes> write(int64_t version, int64_t offset, int64_t run, std::array<size_t, Axes> count,
                         std::array<size_t, Axes> stride) const {
    return {address(version, offset), static_cast<size_t>(run), count, stride};
  }
  cudaError_t allocate_all() {
    for (Memory& memory : slots) {
      if (const cudaError_t code = allocate(memory, Size); code != cudaSuccess) return code;
    }
    return cudaSuccess;
  }

 protected:
  T* address(int64_t version, int64_t offset) const {
    return static_cast<T*>(static_cast<void*>((*this)[version] + offset));
  }
};

/// A buffer whose versions differ in size: `Size` is what a slot can hold, `used` what it holds now. Sizes are followed
/// as ops are issued; that order agrees with the order of execution wherever an op depends on another.
template <class Memory, class T, size_t Slots, size_t Size>
struct DynamicBuffer : Buffer<Memory, T, Slots, Size> {
  std::array<size_t, Slots> used{};

  size_t bytes(int64_t version) const { return used[this->slot(version)]; }
  View<const T> read(int64_t version) const { return {this->address(version, 0), bytes(version), Size}; }
  View<T> write(int64_t version) const { return {this->address(version, 0), bytes(version), Size}; }
  cudaError_t resize(int64_t version, size_t bytes) {
    if (bytes > Size) return cudaErrorInvalidValue;
    used[this->slot(version)] = bytes;
    return cudaSuccess;
  }
};

/// A loop count: not negative, and small enough that no index or offset overflows.
inline cudaError_t check_count(int64_t count, int64_t largest) {
  return 0 <= count && count <= largest ? cudaSuccess : cudaErrorInvalidValue;
}

/// Whether what is copied has room where it goes.
inline cudaError_t check_copy(int64_t bytes, int64_t room) {
  return bytes <= room ? cudaSuccess : cudaErrorInvalidValue;
}

/// Copies within the host's memory are host functions.
inline cudaError_t copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

template <size_t Levels>
auto copy_rows(std::byte* to, const std::byte* from, const std::array<int64_t, Levels>& count,
               const std::array<int64_t, Levels>& to_step, const std::array<int64_t, Levels>& from_step, size_t run,
               size_t level = 0) {
  if (level == Levels) return copy_bytes(to, from, run);
  for (int64_t n = 0; n < count[level]; ++n) {
    std::byte* const row = to + n * to_step[level];
    static_cast<void>(copy_rows(row, from + n * from_step[level], count, to_step, from_step, run, level + 1));
  }
  return cudaSuccess;
}

inline cudaError_t fill_bytes(std::byte* to, int value, size_t bytes) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}

/// Whether a region lies inside its axis: 0 <= lo < hi <= extent.
inline cudaError_t check_region(int64_t lo, int64_t hi, int64_t extent) {
  return 0 <= lo && lo < hi && hi <= extent ? cudaSuccess : cudaErrorInvalidValue;
}

/// Host functions on streams. Each call that is queued owns its arguments until it has run, and none is run once one
/// has failed. The object must outlive the streams.
class HostCalls {
 public:
  HostCalls() = default;
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  cudaError_t launch(cudaStream_t stream, const Place& place, std::function<cudaError_t()> body) {
    Call* call = take();
    call->owner = this;
    call->place = place;
    call->body = std::move(body);
    const cudaError_t code = cudaLaunchHostFunc(stream, &HostCalls::run, call);
    if (code != cudaSuccess) give_back(call);
    return code;
  }

  /// Runs a host function now, unless one has failed, and keeps its failure.
  template <class Body>
  void execute(const Place& place, const Body& body) noexcept {
    if (failed()) return;
    Failure failure;
    try {
      failure.code = body();
    } catch (...) {
      failure.code = cudaErrorUnknown;
      keep_exception(failure);
    }
    if (failure.code == cudaSuccess) return;
    failure.place = place;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failed()) return;
    failure_ = std::move(failure);
    failed_.store(true, std::memory_order_release);
  }

  bool failed() const { return failed_.load(std::memory_order_acquire); }

  /// The first failure since the last call, for a caller that has synchronised the streams.
  Failure take_failure() {
    const std::lock_guard<std::mutex> lock(mutex_);
    failed_.store(false, std::memory_order_release);
    return std::exchange(failure_, Failure());
  }

 private:
  struct Call {
    HostCalls* owner = nullptr;
    Place place;
    std::function<cudaError_t()> body;
  };

  static void CUDART_CB run(void* argument) noexcept {
    Call* call = static_cast<Call*>(argument);
    call->owner->execute(call->place, call->body);
    call->owner->give_back(call);
  }

  Call* take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (idle_.empty()) {
      if (idle_.capacity() <= calls_.size()) idle_.reserve(2 * calls_.size() + 8);  // giving back never allocates
      return &calls_.emplace_back();
    }
    Call* call = idle_.back();
    idle_.pop_back();
    return call;
  }

  void give_back(Call* call) noexcept {
    call->body = nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(call);
  }

  std::mutex mutex_;
  std::deque<Call> calls_;
  std::vector<Call*> idle_;
  std::atomic<bool> failed_{false};
  Failure failure_;
};

// ---------------------------------------------------------------------------------------------------------------------
// The pipeline of detector
// ---------------------------------------------------------------------------------------------------------------------

/// What you fill in: one method for each function of the plan. Anything but cudaSuccess, or an exception, ends the run.
/// Compute functions enqueue their work on `stream` and return without waiting for it. Host functions run on a thread
/// of the runtime, in the order of their stream; they must not call the CUDA runtime.
class Hooks {
 public:
  virtual ~Hooks() = default;

  // Host function decode_frame, called by decode.
  virtual cudaError_t decode_frame(View<void> frame, int64_t i) = 0;

  // Compute function resize, called by resize.
  virtual cudaError_t resize(View<const void> image, View<uint16_t> tensor, int64_t i, cudaStream_t stream) = 0;

  // Compute function detector, called by infer.
  virtual cudaError_t detector(View<const uint16_t> tensor, View<const void> weights, View<void> boxes, int64_t i,
                               cudaStream_t stream) = 0;

  // Host function draw_boxes, called by draw.
  virtual cudaError_t draw_boxes(View<const void> result, int64_t i) = 0;
};

// Told of every op before its calls are made: define it for a profiler's ranges, or leave it alone.
#ifndef DAGSCHED_NOTE
#define DAGSCHED_NOTE(op, iteration) static_cast<void>(0)
#endif

// Notes the place, makes the call, and leaves the function with what failed.
#define DAGSCHED_TRY(op, iteration, ...)                                                \
  do {                                                                                  \
    at_ = Place{op, iteration, #__VA_ARGS__, __FILE__, __LINE__};                       \
    DAGSCHED_NOTE(op, iteration);                                                       \
    if (const cudaError_t code = (__VA_ARGS__); code != cudaSuccess) return fail(code); \
  } while (false)

/// Owns the streams, events and memory of the pipeline and runs it, as often as you like; one run at a time, from any
/// thread. It lives on the device that is current in `init`: release it before that device is reset.
class Pipeline {
 public:
  /// The largest loop count: up to it, no index and no offset overflows.
  static constexpr int64_t kMaxCount = int64_t{1} << 53;

  /// Creates everything. On failure nothing is left behind.
  [[nodiscard]] cudaError_t init() {
    failure_ = Failure();
    own_.reset();
    std::unique_ptr<Resources> own(new (std::nothrow) Resources);
    DAGSCHED_TRY("init", kNoIteration, own ? cudaSuccess : cudaErrorMemoryAllocation);
    DAGSCHED_TRY("init", kNoIteration, cudaGetDevice(&own->device));
    DAGSCHED_TRY("stream h2d", kNoIteration, create_stream(own->streams.h2d));
    DAGSCHED_TRY("stream decode_frame", kNoIteration, create_stream(own->streams.decode_frame));
    DAGSCHED_TRY("stream ai-core", kNoIteration, create_stream(own->streams.ai_core));
    DAGSCHED_TRY("stream d2h", kNoIteration, create_stream(own->streams.d2h));
    DAGSCHED_TRY("stream draw_boxes", kNoIteration, create_stream(own->streams.draw_boxes));
    DAGSCHED_TRY("event decode+infer.done", kNoIteration, own->events.decode_infer_done.create_all());
    DAGSCHED_TRY("event upload.done", kNoIteration, own->events.upload_done.create_all());
    DAGSCHED_TRY("event resize.done", kNoIteration, own->events.resize_done.create_all());
    DAGSCHED_TRY("event download.done", kNoIteration, own->events.download_done.create_all());
    DAGSCHED_TRY("event draw.done", kNoIteration, own->events.draw_done.create_all());
    DAGSCHED_TRY("buffer frame", kNoIteration, own->buffers.frame.allocate_all());
    DAGSCHED_TRY("buffer image", kNoIteration, own->buffers.image.allocate_all());
    DAGSCHED_TRY("buffer tensor", kNoIteration, own->buffers.tensor.allocate_all());
    DAGSCHED_TRY("buffer weights", kNoIteration, own->buffers.weights.allocate_all());
    DAGSCHED_TRY("buffer boxes", kNoIteration, own->buffers.boxes.allocate_all());
    DAGSCHED_TRY("buffer result", kNoIteration, own->buffers.result.allocate_all());
    DAGSCHED_TRY("buffer weights_file", kNoIteration, own->buffers.weights_file.allocate_all());
    own_ = std::move(own);
    return cudaSuccess;
  }

  /// Runs the plan from its beginning to its end and returns when the device has finished. After a failure
  /// nothing more is issued, what was issued has finished, and `failure` says what went wrong; it may be run
  /// again.
  [[nodiscard]] cudaError_t run(Hooks& hooks, int64_t frames) {
    failure_ = Failure();
    DAGSCHED_TRY("run", kNoIteration, own_ ? cudaSuccess : cudaErrorInitializationError);
    const CurrentDevice current(own_->device);
    DAGSCHED_TRY("run", kNoIteration, current.code());
    DAGSCHED_TRY("run", kNoIteration, check_count(frames, kMaxCount));
    cudaError_t code = cudaSuccess;
    try {
      code = issue(hooks, frames);
    } catch (...) {
      code = fail(cudaErrorUnknown);
      keep_exception(failure_);
    }
    if (code != cudaSuccess) own_->drain();
    Failure on_host = own_->calls.take_failure();
    if (on_host.code != cudaSuccess && failure_.code == cudaSuccess) {
      failure_ = std::move(on_host);
      code = failure_.code;
    }
    return code;
  }

  /// What went wrong in the last `init` or `run`.
  const Failure& failure() const { return failure_; }

  /// Waits for the device and releases everything; so does the destructor.
  void release() { own_.reset(); }

  /// Input, to be filled before a run: host buffer weights_file, 50,331,648 bytes. Empty before `init`.
  View<void> weights_file(int64_t version = 0) const {
    return own_ ? own_->buffers.weights_file.write(version) : View<void>();
  }

 private:
  struct Streams {
    Stream h2d;           // h2d: load, upload
    Stream decode_frame;  // host: decode
    Stream ai_core;       // ai-core: resize, infer
    Stream d2h;           // d2h: download
    Stream draw_boxes;    // host: draw
  };

  struct Events {
    EventRing<1> decode_infer_done;
    EventRing<1> upload_done;
    EventRing<1> resize_done;
    EventRing<1> download_done;
    EventRing<1> draw_done;
  };

  struct Buffers {
    Buffer<PinnedMemory, void, 1, 6220800> frame;
    Buffer<DeviceMemory, void, 1, 6220800> image;
    Buffer<DeviceMemory, uint16_t, 1, 2457600> tensor;
    Buffer<DeviceMemory, void, 1, 50331648> weights;
    Buffer<DeviceMemory, void, 1, 40000> boxes;
    Buffer<PinnedMemory, void, 1, 40000> result;
    Buffer<PinnedMemory, void, 1, 50331648> weights_file;
  };

  // What the device may work on: nothing of it is released before every stream has come to its end.
  struct Resources {
    int device = -1;
    HostCalls calls;
    Buffers buffers;
    Events events;
    Streams streams;

    Resources() = default;
    Resources(const Resources&) = delete;
    Resources& operator=(const Resources&) = delete;
    ~Resources() {
      if (device == -1) return;
      const CurrentDevice current(device);
      drain();
      streams = Streams();
      events = Events();
      buffers = Buffers();
    }

    void drain() {
      drain_stream(streams.h2d);
      drain_stream(streams.decode_frame);
      drain_stream(streams.ai_core);
      drain_stream(streams.d2h);
      drain_stream(streams.draw_boxes);
    }
  };

  cudaError_t fail(cudaError_t code) {
    failure_ = Failure();
    failure_.code = code;
    failure_.place = at_;
    failure_.detail = recent_message(code);
    return code;
  }

  // Queues a host function; it must own, by value, whatever it uses.
  template <class Body>
  cudaError_t on_host(cudaStream_t stream, Body body) {
    return own_->calls.launch(stream, at_, std::move(body));
  }

  // Issues everything in the order of the schedule.
  cudaError_t issue(Hooks& hooks, int64_t frames) {
    const auto& streams = own_->streams;
    const auto& events = own_->events;
    auto& buffers = own_->buffers;

    // load: copy weights_file to weights
    DAGSCHED_TRY("load", kNoIteration,
                 cudaMemcpyAsync(buffers.weights[0], buffers.weights_file[0], buffers.weights_file.size,
                                 cudaMemcpyHostToDevice, streams.h2d));

    for (int64_t i = 0; i < frames; ++i) {
      if (own_->calls.failed()) return cudaErrorUnknown;

      // upload@i-1 before decode@i (WAR on frame)
      DAGSCHED_TRY("decode", i, cudaStreamWaitEvent(streams.decode_frame, events.upload_done[i - 1], 0));
      // decode: host decode_frame
      {
        const auto frame = buffers.frame.write(0);
        DAGSCHED_TRY("decode", i, on_host(streams.decode_frame, [=, &hooks] { return hooks.decode_frame(frame, i); }));
      }
      DAGSCHED_TRY("decode", i, cudaEventRecord(events.decode_infer_done[i], streams.decode_frame));

      // decode@i before upload@i (RAW on frame)
      DAGSCHED_TRY("upload", i, cudaStreamWaitEvent(streams.h2d, events.decode_infer_done[i], 0));
      // resize@i-1 before upload@i (WAR on image)
      DAGSCHED_TRY("upload", i, cudaStreamWaitEvent(streams.h2d, events.resize_done[i - 1], 0));
      // upload: copy frame to image
      DAGSCHED_TRY("upload", i,
                   cudaMemcpyAsync(buffers.image[0], buffers.frame[0], buffers.frame.size, cudaMemcpyHostToDevice,
                                   streams.h2d));
      DAGSCHED_TRY("upload", i, cudaEventRecord(events.upload_done[i], streams.h2d));

      // upload@i before resize@i (RAW on image)
      DAGSCHED_TRY("resize", i, cudaStreamWaitEvent(streams.ai_core, events.upload_done[i], 0));
      // resize: compute resize
      DAGSCHED_TRY("resize", i, hooks.resize(buffers.image.read(0), buffers.tensor.write(0), i, streams.ai_core));
      DAGSCHED_TRY("resize", i, cudaEventRecord(events.resize_done[i], streams.ai_core));

      // download@i-1 before infer@i (WAR on boxes)
      DAGSCHED_TRY("infer", i, cudaStreamWaitEvent(streams.ai_core, events.download_done[i - 1], 0));
      // infer: compute detector
      DAGSCHED_TRY("infer", i,
                   hooks.detector(buffers.tensor.read(0), buffers.weights.read(0), buffers.boxes.write(0), i,
                                  streams.ai_core));
      DAGSCHED_TRY("infer", i, cudaEventRecord(events.decode_infer_done[i], streams.ai_core));

      // infer@i before download@i (RAW on boxes)
      DAGSCHED_TRY("download", i, cudaStreamWaitEvent(streams.d2h, events.decode_infer_done[i], 0));
      // draw@i-1 before download@i (WAR on result)
      DAGSCHED_TRY("download", i, cudaStreamWaitEvent(streams.d2h, events.draw_done[i - 1], 0));
      // download: copy boxes to result
      DAGSCHED_TRY("download", i,
                   cudaMemcpyAsync(buffers.result[0], buffers.boxes[0], buffers.boxes.size, cudaMemcpyDeviceToHost,
                                   streams.d2h));
      DAGSCHED_TRY("download", i, cudaEventRecord(events.download_done[i], streams.d2h));

      // download@i before draw@i (RAW on result)
      DAGSCHED_TRY("draw", i, cudaStreamWaitEvent(streams.draw_boxes, events.download_done[i], 0));
      // draw: host draw_boxes
      {
        const auto result = buffers.result.read(0);
        DAGSCHED_TRY("draw", i, on_host(streams.draw_boxes, [=, &hooks] { return hooks.draw_boxes(result, i); }));
      }
      DAGSCHED_TRY("draw", i, cudaEventRecord(events.draw_done[i], streams.draw_boxes));
    }

    DAGSCHED_TRY("synchronise h2d", kNoIteration, cudaStreamSynchronize(streams.h2d));
    DAGSCHED_TRY("synchronise decode_frame", kNoIteration, cudaStreamSynchronize(streams.decode_frame));
    DAGSCHED_TRY("synchronise ai-core", kNoIteration, cudaStreamSynchronize(streams.ai_core));
    DAGSCHED_TRY("synchronise d2h", kNoIteration, cudaStreamSynchronize(streams.d2h));
    DAGSCHED_TRY("synchronise draw_boxes", kNoIteration, cudaStreamSynchronize(streams.draw_boxes));
    return cudaSuccess;
  }

  std::unique_ptr<Resources> own_;
  Place at_;
  Failure failure_;
};

#undef DAGSCHED_TRY

}  // namespace dagsched::detector_cuda

#endif  // DAGSCHED_DETECTOR_CUDA_HPP
