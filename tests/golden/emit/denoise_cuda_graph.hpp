// denoise_cuda_graph.hpp: the plan denoise as a CUDA program.
// Written by dagsched 0.1.0; the plan's digest is 9c5538ed548abffd2b1cc8863dac4625c9e2e063093c51fc39541a0815b944a3.
// Change the plan and compile it again rather than this file.
//
// Loop i: 4 iterations a launch, predicted to take 18.06 ms each; issued call by call, where iterations overlap freely,
// they take 18.06 ms.

#ifndef DAGSCHED_DENOISE_CUDA_GRAPH_HPP
#define DAGSCHED_DENOISE_CUDA_GRAPH_HPP

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

namespace dagsched::denoise_cuda_graph {

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

/// A captured piece of the program that can be launched as often as one likes; its launches follow each other.
class Graph {
 public:
  Graph() = default;
  ~Graph() { release(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  cudaError_t begin(cudaStream_t stream) { return cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal); }
  cudaError_t end(cudaStream_t stream) {
    cudaGraph_t captured = nullptr;
    cudaError_t code = cudaStreamEndCapture(stream, &captured);
    if (code == cudaSuccess) code = cudaGraphInstantiateWithFlags(&exec_, captured, 0);
    if (captured != nullptr) static_cast<void>(cudaGraphDestroy(captured));
    return code;
  }
  cudaError_t launch(cudaStream_t stream) { return cudaGraphLaunch(exec_, stream); }

  /// To be called when no launch is under way.
  void release() {
    if (exec_ != nullptr) static_cast<void>(cudaGraphExecDestroy(std::exchange(exec_, nullptr)));
  }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

/// Captures what is issued to a stream, and to the streams that it forks, until it is finished. One that is not
/// finished is given up, so that the streams can be used again.
class Capture {
 public:
  Capture(Graph& graph, cudaStream_t stream) : graph_(graph), stream_(stream) {}
  ~Capture() {
    if (!open_) return;
    static_cast<void>(graph_.end(stream_));
    graph_.release();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cudaError_t begin() {
    const cudaError_t code = graph_.begin(stream_);
    open_ = code == cudaSuccess;
    return code;
  }
  cudaError_t finish() {
    open_ = false;
    return graph_.end(stream_);
  }

 private:
  Graph& graph_;
  cudaStream_t stream_;
  bool open_ = false;
};

/// Host functions in graphs: each runs once a launch, for an index that grows by the same step every time. They must
/// outlive the launches.
class RepeatedCalls {
 public:
  using Body = std::function<cudaError_t(int64_t)>;

  cudaError_t launch(HostCalls& host, cudaStream_t stream, const Place& place, Body body, int64_t index, int64_t step) {
    calls_.push_back(Call{&host, place, std::move(body), index, step});
    return cudaLaunchHostFunc(stream, &RepeatedCalls::run, &calls_.back());
  }
  void clear() { calls_.clear(); }

 private:
  struct Call {
    HostCalls* owner = nullptr;
    Place place;
    Body body;
    int64_t index = 0;
    int64_t step = 0;
  };

  static void CUDART_CB run(void* argument) noexcept {
    Call* call = static_cast<Call*>(argument);
    call->owner->execute(call->place, [call] { return call->body(call->index); });
    call->place.iteration += call->step;
    call->index += call->step;
  }

  std::deque<Call> calls_;
};

// ---------------------------------------------------------------------------------------------------------------------
// The pipeline of denoise
// ---------------------------------------------------------------------------------------------------------------------

/// What you fill in: one method for each function of the plan. Anything but cudaSuccess, or an exception, ends the run.
/// Compute functions enqueue their work on `stream` and return without waiting for it. Host functions run on a thread
/// of the runtime, in the order of their stream; they must not call the CUDA runtime.
class Hooks {
 public:
  virtual ~Hooks() = default;

  // Compute function unet, called by predict.
  virtual cudaError_t unet(View<const uint16_t> x, View<const uint16_t> text, View<uint16_t> y, int64_t phase,
                           cudaStream_t stream) = 0;

  // Compute function scheduler_step, called by step.
  virtual cudaError_t scheduler_step(View<const uint16_t> old, View<const uint16_t> predicted, View<uint16_t> new_,
                                     int64_t phase, cudaStream_t stream) = 0;
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
    DAGSCHED_TRY("stream ai-core", kNoIteration, create_stream(own->streams.ai_core));
    DAGSCHED_TRY("stream d2h", kNoIteration, create_stream(own->streams.d2h));
    DAGSCHED_TRY("stream graphs", kNoIteration, create_stream(own->streams.graphs));
    DAGSCHED_TRY("event bring_noise.done", kNoIteration, own->events.bring_noise_done.create_all());
    DAGSCHED_TRY("event step.done", kNoIteration, own->events.step_done.create_all());
    DAGSCHED_TRY("event show.done", kNoIteration, own->events.show_done.create_all());
    DAGSCHED_TRY("buffer noise", kNoIteration, own->buffers.noise.allocate_all());
    DAGSCHED_TRY("buffer prompt", kNoIteration, own->buffers.prompt.allocate_all());
    DAGSCHED_TRY("buffer text", kNoIteration, own->buffers.text.allocate_all());
    DAGSCHED_TRY("buffer latent", kNoIteration, own->buffers.latent.allocate_all());
    DAGSCHED_TRY("buffer predicted", kNoIteration, own->buffers.predicted.allocate_all());
    DAGSCHED_TRY("buffer preview", kNoIteration, own->buffers.preview.allocate_all());
    DAGSCHED_TRY("buffer image", kNoIteration, own->buffers.image.allocate_all());
    DAGSCHED_TRY("event step.done in graphs", kNoIteration, own->captured.step_done.create_all());
    DAGSCHED_TRY("event show.done in graphs", kNoIteration, own->captured.show_done.create_all());
    DAGSCHED_TRY("events around graphs", kNoIteration, own->forks.create_all());
    DAGSCHED_TRY("events in graphs", kNoIteration, own->joins.create_all());
    own_ = std::move(own);
    return cudaSuccess;
  }

  /// Runs the plan from its beginning to its end and returns when the device has finished. After a failure
  /// nothing more is issued, what was issued has finished, and `failure` says what went wrong; it may be run
  /// again.
  [[nodiscard]] cudaError_t run(Hooks& hooks, int64_t steps) {
    failure_ = Failure();
    DAGSCHED_TRY("run", kNoIteration, own_ ? cudaSuccess : cudaErrorInitializationError);
    const CurrentDevice current(own_->device);
    DAGSCHED_TRY("run", kNoIteration, current.code());
    DAGSCHED_TRY("run", kNoIteration, check_count(steps, kMaxCount));
    cudaError_t code = cudaSuccess;
    try {
      code = issue(hooks, steps);
    } catch (...) {
      code = fail(cudaErrorUnknown);
      keep_exception(failure_);
    }
    if (code != cudaSuccess) own_->drain();
    return code;
  }

  /// What went wrong in the last `init` or `run`.
  const Failure& failure() const { return failure_; }

  /// Waits for the device and releases everything; so does the destructor.
  void release() { own_.reset(); }

  /// Input, to be filled before a run: host buffer noise, 32,768 bytes. Empty before `init`.
  View<uint16_t> noise(int64_t version = 0) const {
    return own_ ? own_->buffers.noise.write(version) : View<uint16_t>();
  }

  /// Input, to be filled before a run: host buffer prompt, 118,272 bytes. Empty before `init`.
  View<uint16_t> prompt(int64_t version = 0) const {
    return own_ ? own_->buffers.prompt.write(version) : View<uint16_t>();
  }

  /// Output, to be read after a run: host buffer preview, 32,768 bytes, 4 slots. Empty before `init`.
  View<const uint16_t> preview(int64_t version = 0) const {
    return own_ ? own_->buffers.preview.read(version) : View<const uint16_t>();
  }

  /// Output, to be read after a run: host buffer image, 32,768 bytes. Empty before `init`.
  View<const uint16_t> image(int64_t version = 0) const {
    return own_ ? own_->buffers.image.read(version) : View<const uint16_t>();
  }

 private:
  struct Streams {
    Stream h2d;      // h2d: bring_text, bring_noise
    Stream ai_core;  // ai-core: predict, step
    Stream d2h;      // d2h: show, finish
    Stream graphs;   // captured loops
  };

  struct Events {
    EventRing<1> bring_noise_done;
    EventRing<1> step_done;
    EventRing<2> show_done;
  };

  struct Buffers {
    Buffer<PinnedMemory, uint16_t, 1, 32768> noise;
    Buffer<PinnedMemory, uint16_t, 1, 118272> prompt;
    Buffer<DeviceMemory, uint16_t, 1, 118272> text;
    Buffer<DeviceMemory, uint16_t, 2, 32768> latent;
    Buffer<DeviceMemory, uint16_t, 1, 32768> predicted;
    Buffer<PinnedMemory, uint16_t, 4, 32768> preview;
    Buffer<PinnedMemory, uint16_t, 1, 32768> image;
  };

  // Handles that are recorded in graphs, and never outside.
  struct CapturedEvents {
    EventRing<1> step_done;
    EventRing<2> show_done;
  };

  // What the device may work on: nothing of it is released before every stream has come to its end.
  struct Resources {
    int device = -1;
    HostCalls calls;
    Buffers buffers;
    Events events;
    Streams streams;
    CapturedEvents captured;
    EventRing<4> forks;  // around launches: where every stream stands
    EventRing<4> joins;  // in graphs: where every stream begins and ends
    Graph graph_1;

    Resources() = default;
    Resources(const Resources&) = delete;
    Resources& operator=(const Resources&) = delete;
    ~Resources() {
      if (device == -1) return;
      const CurrentDevice current(device);
      drain();
      graph_1.release();
      captured = CapturedEvents();
      forks = EventRing<4>();
      joins = EventRing<4>();
      streams = Streams();
      events = Events();
      buffers = Buffers();
    }

    void drain() {
      drain_stream(streams.h2d);
      drain_stream(streams.ai_core);
      drain_stream(streams.d2h);
      drain_stream(streams.graphs);
    }
  };

  cudaError_t fail(cudaError_t code) {
    failure_ = Failure();
    failure_.code = code;
    failure_.place = at_;
    failure_.detail = recent_message(code);
    return code;
  }

  // Loop i, call by call.
  cudaError_t loop_1(Hooks& hooks, int64_t from, int64_t to, int64_t /*steps*/) {
    const auto& streams = own_->streams;
    const auto& events = own_->events;
    const auto& buffers = own_->buffers;
    for (int64_t i = from; i < to; ++i) {
      // predict: compute unet
      DAGSCHED_TRY("predict", i,
                   hooks.unet(buffers.latent.read(i - 1), buffers.text.read(0), buffers.predicted.write(0),
                              floor_mod(i, 4), streams.ai_core));

      // show@i-2 before step@i (WAR on latent)
      DAGSCHED_TRY("step", i, cudaStreamWaitEvent(streams.ai_core, events.show_done[i - 2], 0));
      // step: compute scheduler_step
      DAGSCHED_TRY("step", i,
                   hooks.scheduler_step(buffers.latent.read(i - 1), buffers.predicted.read(0), buffers.latent.write(i),
                                        floor_mod(i, 4), streams.ai_core));
      DAGSCHED_TRY("step", i, cudaEventRecord(events.step_done[i], streams.ai_core));

      // step@i before show@i (RAW on latent)
      DAGSCHED_TRY("show", i, cudaStreamWaitEvent(streams.d2h, events.step_done[i], 0));
      // show: copy latent@i to preview@i
      DAGSCHED_TRY("show", i,
                   cudaMemcpyAsync(buffers.preview[i], buffers.latent[i], buffers.latent.size, cudaMemcpyDeviceToHost,
                                   streams.d2h));
      DAGSCHED_TRY("show", i, cudaEventRecord(events.show_done[i], streams.d2h));
    }
    return cudaSuccess;
  }

  // Captures 4 iterations of loop i. What is recorded outside of them needs no wait: a launch begins when all before it
  // has ended.
  cudaError_t capture_1(Hooks& hooks, int64_t first, int64_t /*steps*/) {
    const auto& streams = own_->streams;
    const auto& events = own_->captured;
    const auto& buffers = own_->buffers;
    DAGSCHED_TRY("loop i", first, cudaEventRecord(own_->joins[0], streams.graphs));
    DAGSCHED_TRY("loop i", first, cudaStreamWaitEvent(streams.ai_core, own_->joins[0], 0));
    DAGSCHED_TRY("loop i", first, cudaStreamWaitEvent(streams.d2h, own_->joins[0], 0));
    for (int64_t i = first; i < first + 4; ++i) {
      // predict: compute unet
      DAGSCHED_TRY("predict", i,
                   hooks.unet(buffers.latent.read(i - 1), buffers.text.read(0), buffers.predicted.write(0),
                              floor_mod(i, 4), streams.ai_core));

      if (i - first >= 2) {
        // show@i-2 before step@i (WAR on latent)
        DAGSCHED_TRY("step", i, cudaStreamWaitEvent(streams.ai_core, events.show_done[i - 2], 0));
      }
      // step: compute scheduler_step
      DAGSCHED_TRY("step", i,
                   hooks.scheduler_step(buffers.latent.read(i - 1), buffers.predicted.read(0), buffers.latent.write(i),
                                        floor_mod(i, 4), streams.ai_core));
      DAGSCHED_TRY("step", i, cudaEventRecord(events.step_done[i], streams.ai_core));

      // step@i before show@i (RAW on latent)
      DAGSCHED_TRY("show", i, cudaStreamWaitEvent(streams.d2h, events.step_done[i], 0));
      // show: copy latent@i to preview@i
      DAGSCHED_TRY("show", i,
                   cudaMemcpyAsync(buffers.preview[i], buffers.latent[i], buffers.latent.size, cudaMemcpyDeviceToHost,
                                   streams.d2h));
      DAGSCHED_TRY("show", i, cudaEventRecord(events.show_done[i], streams.d2h));
    }
    DAGSCHED_TRY("loop i", first, cudaEventRecord(own_->joins[1], streams.ai_core));
    DAGSCHED_TRY("loop i", first, cudaStreamWaitEvent(streams.graphs, own_->joins[1], 0));
    DAGSCHED_TRY("loop i", first, cudaEventRecord(own_->joins[2], streams.d2h));
    DAGSCHED_TRY("loop i", first, cudaStreamWaitEvent(streams.graphs, own_->joins[2], 0));
    return cudaSuccess;
  }

  // Loop i: launches of 4 iterations, and what is before and behind them.
  cudaError_t run_1(Hooks& hooks, int64_t steps) {
    const auto& streams = own_->streams;
    const int64_t lo = 0;
    const int64_t hi = steps;
    const int64_t first = 0;
    const int64_t launches = (hi - first) / 4;
    if (launches < 2) return loop_1(hooks, lo, hi, steps);
    {
      Capture capture(own_->graph_1, streams.graphs);
      DAGSCHED_TRY("loop i", first, capture.begin());
      if (const cudaError_t code = capture_1(hooks, first, steps); code != cudaSuccess) return code;
      DAGSCHED_TRY("loop i", first, capture.finish());
    }
    DAGSCHED_TRY("loop i", first, cudaEventRecord(own_->forks[0], streams.h2d));
    DAGSCHED_TRY("loop i", first, cudaStreamWaitEvent(streams.graphs, own_->forks[0], 0));
    DAGSCHED_TRY("loop i", first, cudaEventRecord(own_->forks[1], streams.ai_core));
    DAGSCHED_TRY("loop i", first, cudaStreamWaitEvent(streams.graphs, own_->forks[1], 0));
    DAGSCHED_TRY("loop i", first, cudaEventRecord(own_->forks[2], streams.d2h));
    DAGSCHED_TRY("loop i", first, cudaStreamWaitEvent(streams.graphs, own_->forks[2], 0));
    for (int64_t launch = 0; launch < launches; ++launch) {
      DAGSCHED_TRY("loop i", first + launch * 4, own_->graph_1.launch(streams.graphs));
    }
    DAGSCHED_TRY("loop i", hi, cudaEventRecord(own_->forks[3], streams.graphs));
    DAGSCHED_TRY("loop i", hi, cudaStreamWaitEvent(streams.h2d, own_->forks[3], 0));
    DAGSCHED_TRY("loop i", hi, cudaStreamWaitEvent(streams.ai_core, own_->forks[3], 0));
    DAGSCHED_TRY("loop i", hi, cudaStreamWaitEvent(streams.d2h, own_->forks[3], 0));
    if (const cudaError_t code = loop_1(hooks, first + launches * 4, hi, steps); code != cudaSuccess) return code;
    return cudaSuccess;
  }

  // Issues everything in the order of the schedule.
  cudaError_t issue(Hooks& hooks, int64_t steps) {
    const auto& streams = own_->streams;
    const auto& events = own_->events;
    const auto& buffers = own_->buffers;

    own_->graph_1.release();

    // bring_text: copy prompt to text
    DAGSCHED_TRY("bring_text", kNoIteration,
                 cudaMemcpyAsync(buffers.text[0], buffers.prompt[0], buffers.prompt.size, cudaMemcpyHostToDevice,
                                 streams.h2d));

    // bring_noise: copy noise to latent@-1
    DAGSCHED_TRY("bring_noise", kNoIteration,
                 cudaMemcpyAsync(buffers.latent[-1], buffers.noise[0], buffers.noise.size, cudaMemcpyHostToDevice,
                                 streams.h2d));
    DAGSCHED_TRY("bring_noise", kNoIteration, cudaEventRecord(events.bring_noise_done[0], streams.h2d));

    // bring_noise before predict@0 (RAW on latent)
    DAGSCHED_TRY("predict", kNoIteration, cudaStreamWaitEvent(streams.ai_core, events.bring_noise_done[0], 0));

    // Loop i: 4 iterations at once, as a graph.
    if (const cudaError_t code = run_1(hooks, steps); code != cudaSuccess) return code;

    if (steps == 0) {
      // bring_noise before finish (RAW on latent)
      DAGSCHED_TRY("finish", kNoIteration, cudaStreamWaitEvent(streams.d2h, events.bring_noise_done[0], 0));
    }
    // finish: copy latent@steps-1 to image
    DAGSCHED_TRY("finish", kNoIteration,
                 cudaMemcpyAsync(buffers.image[0], buffers.latent[steps - 1], buffers.latent.size,
                                 cudaMemcpyDeviceToHost, streams.d2h));

    DAGSCHED_TRY("synchronise h2d", kNoIteration, cudaStreamSynchronize(streams.h2d));
    DAGSCHED_TRY("synchronise ai-core", kNoIteration, cudaStreamSynchronize(streams.ai_core));
    DAGSCHED_TRY("synchronise d2h", kNoIteration, cudaStreamSynchronize(streams.d2h));
    DAGSCHED_TRY("synchronise graphs", kNoIteration, cudaStreamSynchronize(streams.graphs));
    return cudaSuccess;
  }

  std::unique_ptr<Resources> own_;
  Place at_;
  Failure failure_;
};

#undef DAGSCHED_TRY

}  // namespace dagsched::denoise_cuda_graph

#endif  // DAGSCHED_DENOISE_CUDA_GRAPH_HPP
