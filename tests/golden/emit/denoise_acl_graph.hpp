// denoise_acl_graph.hpp: the plan denoise as an AscendCL program.
// Written by dagsched 0.1.0; the plan's digest is 9c5538ed548abffd2b1cc8863dac4625c9e2e063093c51fc39541a0815b944a3.
// Change the plan and compile it again rather than this file.
//
// Loop i: 4 iterations a launch, predicted to take 18.06 ms each; issued call by call, where iterations overlap freely,
// they take 18.06 ms.

#ifndef DAGSCHED_DENOISE_ACL_GRAPH_HPP
#define DAGSCHED_DENOISE_ACL_GRAPH_HPP

#include <acl/acl.h>

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

namespace dagsched::denoise_acl_graph {

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

inline aclError allocate_pageable(void** memory, size_t size) {
  constexpr size_t kAlignment = 64;
  if (size > SIZE_MAX - kAlignment) return ACL_ERROR_BAD_ALLOC;
  *memory = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  return *memory == nullptr ? ACL_ERROR_BAD_ALLOC : ACL_SUCCESS;
}

inline aclError free_pageable(void* memory) {
  std::free(memory);
  return ACL_SUCCESS;
}

inline const char* error_name(aclError code) {
  switch (code) {
    case 0: return "ACL_SUCCESS";
    case 100000: return "ACL_ERROR_INVALID_PARAM";
    case 100001: return "ACL_ERROR_UNINITIALIZE";
    case 100002: return "ACL_ERROR_REPEAT_INITIALIZE";
    case 107000: return "ACL_ERROR_RT_PARAM_INVALID";
    case 107001: return "ACL_ERROR_RT_INVALID_DEVICEID";
    case 107002: return "ACL_ERROR_RT_CONTEXT_NULL";
    case 107003: return "ACL_ERROR_RT_STREAM_CONTEXT";
    case 107008: return "ACL_ERROR_RT_ADDR_UNALIGNED";
    case 107016: return "ACL_ERROR_RT_INVALID_MEMORY_TYPE";
    case 107017: return "ACL_ERROR_RT_INVALID_HANDLE";
    case 107018: return "ACL_ERROR_RT_INVALID_MALLOC_TYPE";
    case 107019: return "ACL_ERROR_RT_WAIT_TIMEOUT";
    case 107020: return "ACL_ERROR_RT_TASK_TIMEOUT";
    case 107022: return "ACL_ERROR_RT_DEVICE_TASK_ABORT";
    case 107023: return "ACL_ERROR_RT_STREAM_ABORT";
    case 107025: return "ACL_ERROR_RT_STREAM_UNJOINED";
    case 107027: return "ACL_ERROR_RT_STREAM_CAPTURED";
    case 107028: return "ACL_ERROR_RT_EVENT_CAPTURED";
    case 107030: return "ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT";
    case 107031: return "ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT";
    case 200000: return "ACL_ERROR_BAD_ALLOC";
    case 200001: return "ACL_ERROR_API_NOT_SUPPORT";
    case 200002: return "ACL_ERROR_INVALID_DEVICE";
    case 200003: return "ACL_ERROR_MEMORY_ADDRESS_UNALIGNED";
    case 200005: return "ACL_ERROR_INVALID_RESOURCE_HANDLE";
    case 200006: return "ACL_ERROR_FEATURE_UNSUPPORTED";
    case 207000: return "ACL_ERROR_RT_FEATURE_NOT_SUPPORT";
    case 207001: return "ACL_ERROR_RT_MEMORY_ALLOCATION";
    case 207002: return "ACL_ERROR_RT_MEMORY_FREE";
    case 207004: return "ACL_ERROR_RT_NO_DEVICE";
    case 207005: return "ACL_ERROR_RT_RESOURCE_ALLOC_FAIL";
    case 207006: return "ACL_ERROR_RT_NO_PERMISSION";
    case 207007: return "ACL_ERROR_RT_NO_EVENT_RESOURCE";
    case 207008: return "ACL_ERROR_RT_NO_STREAM_RESOURCE";
    case 207012: return "ACL_ERROR_RT_OVER_LIMIT";
    case 207014: return "ACL_ERROR_RT_QUEUE_FULL";
    case 207018: return "ACL_ERROR_RT_DEVICE_OOM";
    case 500000: return "ACL_ERROR_INTERNAL_ERROR";
    case 500001: return "ACL_ERROR_FAILURE";
    case 500003: return "ACL_ERROR_RT_FAILURE";
    case 500004: return "ACL_ERROR_DRV_FAILURE";
    case 507000: return "ACL_ERROR_RT_INTERNAL_ERROR";
    case 507001: return "ACL_ERROR_RT_TS_ERROR";
    case 507002: return "ACL_ERROR_RT_STREAM_TASK_FULL";
    case 507008: return "ACL_ERROR_RT_SOC_VERSION";
    case 507010: return "ACL_ERROR_RT_LOST_HEARTBEAT";
    case 507011: return "ACL_ERROR_RT_MODEL_EXECUTE";
    case 507013: return "ACL_ERROR_RT_SYS_DMA";
    case 507014: return "ACL_ERROR_RT_AICORE_TIMEOUT";
    case 507015: return "ACL_ERROR_RT_AICORE_EXCEPTION";
    case 507016: return "ACL_ERROR_RT_AICORE_TRAP_EXCEPTION";
    case 507017: return "ACL_ERROR_RT_AICPU_TIMEOUT";
    case 507018: return "ACL_ERROR_RT_AICPU_EXCEPTION";
    case 507034: return "ACL_ERROR_RT_VECTOR_CORE_TIMEOUT";
    case 507035: return "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION";
    case 507046: return "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT";
    case 507047: return "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT";
    case 507052: return "ACL_ERROR_RT_COPY_DATA";
    case 507053: return "ACL_ERROR_RT_DEVICE_MEM_ERROR";
    case 507054: return "ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR";
    case 507056: return "ACL_ERROR_RT_LINK_ERROR";
    case 507899: return "ACL_ERROR_RT_DRV_INTERNAL_ERROR";
    case 507901: return "ACL_ERROR_RT_SOCKET_CLOSE";
    default: return "an error that has no name here";
  }
}

/// What the runtime last said in this thread.
inline std::string recent_message(aclError /*code*/) {
  const char* recent = aclGetRecentErrMsg();
  return recent != nullptr ? recent : "";
}

/// Makes this context current for a scope, so that a pipeline may be used from any thread.
class CurrentContext {
 public:
  explicit CurrentContext(aclrtContext wanted) {
    if (aclrtGetCurrentContext(&previous_) != ACL_SUCCESS) previous_ = nullptr;
    if (previous_ != wanted) code_ = aclrtSetCurrentContext(wanted);
    changed_ = previous_ != wanted;
  }
  ~CurrentContext() {
    if (changed_ && previous_ != nullptr) static_cast<void>(aclrtSetCurrentContext(previous_));
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  aclError code() const { return code_; }

 private:
  aclrtContext previous_ = nullptr;
  aclError code_ = ACL_SUCCESS;
  bool changed_ = false;
};

using Stream = Handle<aclrtStream, &aclrtDestroyStream>;
using Event = Handle<aclrtEvent, &aclrtDestroyEvent>;
using DeviceMemory = Handle<void*, &aclrtFree>;
using PinnedMemory = Handle<void*, &aclrtFreeHost>;
using PageableMemory = Handle<void*, &free_pageable>;

/// Waits for what a stream has been given. Its errors have been reported already, or have nobody to be reported to.
inline void drain_stream(const Stream& stream) {
  if (stream != nullptr) static_cast<void>(aclrtSynchronizeStream(stream));
}

inline aclError allocate(DeviceMemory& memory, size_t size) {
  return aclrtMalloc(memory.receive(), size, ACL_MEM_MALLOC_HUGE_FIRST);
}
inline aclError allocate(PinnedMemory& memory, size_t size) { return aclrtMallocHost(memory.receive(), size); }
inline aclError allocate(PageableMemory& memory, size_t size) { return allocate_pageable(memory.receive(), size); }

inline aclError create_stream(Stream& stream) { return aclrtCreateStream(stream.receive()); }
inline aclError create_stream(Stream& stream, uint32_t priority) {
  return aclrtCreateStreamWithConfig(stream.receive(), priority, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC);
}

/// An event whose waits bind to the record that was issued last.
inline aclError create_event(Event& event) { return aclrtCreateEventExWithFlag(event.receive(), ACL_EVENT_SYNC); }

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
  aclError code = ACL_SUCCESS;
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

  aclrtEvent operator[](int64_t index) const {
    return handles[static_cast<size_t>(floor_mod(index, static_cast<int64_t>(Count)))];
  }
  aclError create_all() {
    for (Event& event : handles) {
      if (const aclError code = create_event(event); code != ACL_SUCCESS) return code;
    }
    return ACL_SUCCESS;
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
  aclError allocate_all() {
    for (Memory& memory : slots) {
      if (const aclError code = allocate(memory, Size); code != ACL_SUCCESS) return code;
    }
    return ACL_SUCCESS;
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
  aclError resize(int64_t version, size_t bytes) {
    if (bytes > Size) return ACL_ERROR_INVALID_PARAM;
    used[this->slot(version)] = bytes;
    return ACL_SUCCESS;
  }
};

/// A loop count: not negative, and small enough that no index or offset overflows.
inline aclError check_count(int64_t count, int64_t largest) {
  return 0 <= count && count <= largest ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
}

/// Whether what is copied has room where it goes.
inline aclError check_copy(int64_t bytes, int64_t room) {
  return bytes <= room ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
}

/// Copies within the host's memory are host functions.
inline aclError copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return ACL_SUCCESS;
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
  return ACL_SUCCESS;
}

inline aclError fill_bytes(std::byte* to, int value, size_t bytes) {
  std::memset(to, value, bytes);
  return ACL_SUCCESS;
}

/// Whether a region lies inside its axis: 0 <= lo < hi <= extent.
inline aclError check_region(int64_t lo, int64_t hi, int64_t extent) {
  return 0 <= lo && lo < hi && hi <= extent ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
}

/// Host functions on streams. Each call that is queued owns its arguments until it has run, and none is run once one
/// has failed. The object must outlive the streams.
class HostCalls {
 public:
  HostCalls() = default;
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  aclError launch(aclrtStream stream, const Place& place, std::function<aclError()> body) {
    Call* call = take();
    call->owner = this;
    call->place = place;
    call->body = std::move(body);
    const aclError code = aclrtLaunchHostFunc(stream, &HostCalls::run, call);
    if (code != ACL_SUCCESS) give_back(call);
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
      failure.code = ACL_ERROR_FAILURE;
      keep_exception(failure);
    }
    if (failure.code == ACL_SUCCESS) return;
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
    std::function<aclError()> body;
  };

  static void run(void* argument) noexcept {
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

  aclError begin(aclrtStream stream) { return aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL); }
  aclError end(aclrtStream stream) { return aclmdlRICaptureEnd(stream, &model_); }
  aclError launch(aclrtStream stream) { return aclmdlRIExecuteAsync(model_, stream); }

  /// To be called when no launch is under way.
  void release() {
    if (model_ != nullptr) static_cast<void>(aclmdlRIDestroy(std::exchange(model_, nullptr)));
  }

 private:
  aclmdlRI model_ = nullptr;
};

/// Captures what is issued to a stream, and to the streams that it forks, until it is finished. One that is not
/// finished is given up, so that the streams can be used again.
class Capture {
 public:
  Capture(Graph& graph, aclrtStream stream) : graph_(graph), stream_(stream) {}
  ~Capture() {
    if (!open_) return;
    static_cast<void>(graph_.end(stream_));
    graph_.release();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  aclError begin() {
    const aclError code = graph_.begin(stream_);
    open_ = code == ACL_SUCCESS;
    return code;
  }
  aclError finish() {
    open_ = false;
    return graph_.end(stream_);
  }

 private:
  Graph& graph_;
  aclrtStream stream_;
  bool open_ = false;
};

/// Host functions in graphs: each runs once a launch, for an index that grows by the same step every time. They must
/// outlive the launches.
class RepeatedCalls {
 public:
  using Body = std::function<aclError(int64_t)>;

  aclError launch(HostCalls& host, aclrtStream stream, const Place& place, Body body, int64_t index, int64_t step) {
    calls_.push_back(Call{&host, place, std::move(body), index, step});
    return aclrtLaunchHostFunc(stream, &RepeatedCalls::run, &calls_.back());
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

  static void run(void* argument) noexcept {
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

/// What you fill in: one method for each function of the plan. Anything but ACL_SUCCESS, or an exception, ends the run.
/// Compute functions enqueue their work on `stream` and return without waiting for it. Host functions run on a thread
/// of the runtime, in the order of their stream; they must not call AscendCL.
class Hooks {
 public:
  virtual ~Hooks() = default;

  // Compute function unet, called by predict.
  virtual aclError unet(View<const uint16_t> x, View<const uint16_t> text, View<uint16_t> y, int64_t phase,
                        aclrtStream stream) = 0;

  // Compute function scheduler_step, called by step.
  virtual aclError scheduler_step(View<const uint16_t> old, View<const uint16_t> predicted, View<uint16_t> new_,
                                  int64_t phase, aclrtStream stream) = 0;
};

// Told of every op before its calls are made: define it for a profiler's ranges, or leave it alone.
#ifndef DAGSCHED_NOTE
#define DAGSCHED_NOTE(op, iteration) static_cast<void>(0)
#endif

// Notes the place, makes the call, and leaves the function with what failed.
#define DAGSCHED_TRY(op, iteration, ...)                                             \
  do {                                                                               \
    at_ = Place{op, iteration, #__VA_ARGS__, __FILE__, __LINE__};                    \
    DAGSCHED_NOTE(op, iteration);                                                    \
    if (const aclError code = (__VA_ARGS__); code != ACL_SUCCESS) return fail(code); \
  } while (false)

/// Owns the streams, events and memory of the pipeline and runs it, as often as you like; one run at a time, from any
/// thread. It lives in the context that is current in `init`: release it before that context, the device or AscendCL.
class Pipeline {
 public:
  /// The largest loop count: up to it, no index and no offset overflows.
  static constexpr int64_t kMaxCount = int64_t{1} << 53;

  /// Creates everything. On failure nothing is left behind.
  [[nodiscard]] aclError init() {
    failure_ = Failure();
    own_.reset();
    std::unique_ptr<Resources> own(new (std::nothrow) Resources);
    DAGSCHED_TRY("init", kNoIteration, own ? ACL_SUCCESS : ACL_ERROR_BAD_ALLOC);
    DAGSCHED_TRY("init", kNoIteration, aclrtGetCurrentContext(&own->context));
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
    return ACL_SUCCESS;
  }

  /// Runs the plan from its beginning to its end and returns when the device has finished. After a failure
  /// nothing more is issued, what was issued has finished, and `failure` says what went wrong; it may be run
  /// again.
  [[nodiscard]] aclError run(Hooks& hooks, int64_t steps) {
    failure_ = Failure();
    DAGSCHED_TRY("run", kNoIteration, own_ ? ACL_SUCCESS : ACL_ERROR_UNINITIALIZE);
    const CurrentContext current(own_->context);
    DAGSCHED_TRY("run", kNoIteration, current.code());
    DAGSCHED_TRY("run", kNoIteration, check_count(steps, kMaxCount));
    aclError code = ACL_SUCCESS;
    try {
      code = issue(hooks, steps);
    } catch (...) {
      code = fail(ACL_ERROR_FAILURE);
      keep_exception(failure_);
    }
    if (code != ACL_SUCCESS) own_->drain();
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
    aclrtContext context = nullptr;
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
      if (context == nullptr) return;
      const CurrentContext current(context);
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

  aclError fail(aclError code) {
    failure_ = Failure();
    failure_.code = code;
    failure_.place = at_;
    failure_.detail = recent_message(code);
    return code;
  }

  // Loop i, call by call.
  aclError loop_1(Hooks& hooks, int64_t from, int64_t to, int64_t /*steps*/) {
    const auto& streams = own_->streams;
    const auto& events = own_->events;
    const auto& buffers = own_->buffers;
    for (int64_t i = from; i < to; ++i) {
      // predict: compute unet
      DAGSCHED_TRY("predict", i,
                   hooks.unet(buffers.latent.read(i - 1), buffers.text.read(0), buffers.predicted.write(0),
                              floor_mod(i, 4), streams.ai_core));

      // show@i-2 before step@i (WAR on latent)
      DAGSCHED_TRY("step", i, aclrtStreamWaitEvent(streams.ai_core, events.show_done[i - 2]));
      // step: compute scheduler_step
      DAGSCHED_TRY("step", i,
                   hooks.scheduler_step(buffers.latent.read(i - 1), buffers.predicted.read(0), buffers.latent.write(i),
                                        floor_mod(i, 4), streams.ai_core));
      DAGSCHED_TRY("step", i, aclrtRecordEvent(events.step_done[i], streams.ai_core));

      // step@i before show@i (RAW on latent)
      DAGSCHED_TRY("show", i, aclrtStreamWaitEvent(streams.d2h, events.step_done[i]));
      // show: copy latent@i to preview@i
      DAGSCHED_TRY("show", i,
                   aclrtMemcpyAsync(buffers.preview[i], buffers.preview.size, buffers.latent[i], buffers.latent.size,
                                    ACL_MEMCPY_DEVICE_TO_HOST, streams.d2h));
      DAGSCHED_TRY("show", i, aclrtRecordEvent(events.show_done[i], streams.d2h));
    }
    return ACL_SUCCESS;
  }

  // Captures 4 iterations of loop i. What is recorded outside of them needs no wait: a launch begins when all before it
  // has ended.
  aclError capture_1(Hooks& hooks, int64_t first, int64_t /*steps*/) {
    const auto& streams = own_->streams;
    const auto& events = own_->captured;
    const auto& buffers = own_->buffers;
    DAGSCHED_TRY("loop i", first, aclrtRecordEvent(own_->joins[0], streams.graphs));
    DAGSCHED_TRY("loop i", first, aclrtStreamWaitEvent(streams.ai_core, own_->joins[0]));
    DAGSCHED_TRY("loop i", first, aclrtStreamWaitEvent(streams.d2h, own_->joins[0]));
    for (int64_t i = first; i < first + 4; ++i) {
      // predict: compute unet
      DAGSCHED_TRY("predict", i,
                   hooks.unet(buffers.latent.read(i - 1), buffers.text.read(0), buffers.predicted.write(0),
                              floor_mod(i, 4), streams.ai_core));

      if (i - first >= 2) {
        // show@i-2 before step@i (WAR on latent)
        DAGSCHED_TRY("step", i, aclrtStreamWaitEvent(streams.ai_core, events.show_done[i - 2]));
      }
      // step: compute scheduler_step
      DAGSCHED_TRY("step", i,
                   hooks.scheduler_step(buffers.latent.read(i - 1), buffers.predicted.read(0), buffers.latent.write(i),
                                        floor_mod(i, 4), streams.ai_core));
      DAGSCHED_TRY("step", i, aclrtRecordEvent(events.step_done[i], streams.ai_core));

      // step@i before show@i (RAW on latent)
      DAGSCHED_TRY("show", i, aclrtStreamWaitEvent(streams.d2h, events.step_done[i]));
      // show: copy latent@i to preview@i
      DAGSCHED_TRY("show", i,
                   aclrtMemcpyAsync(buffers.preview[i], buffers.preview.size, buffers.latent[i], buffers.latent.size,
                                    ACL_MEMCPY_DEVICE_TO_HOST, streams.d2h));
      DAGSCHED_TRY("show", i, aclrtRecordEvent(events.show_done[i], streams.d2h));
    }
    DAGSCHED_TRY("loop i", first, aclrtRecordEvent(own_->joins[1], streams.ai_core));
    DAGSCHED_TRY("loop i", first, aclrtStreamWaitEvent(streams.graphs, own_->joins[1]));
    DAGSCHED_TRY("loop i", first, aclrtRecordEvent(own_->joins[2], streams.d2h));
    DAGSCHED_TRY("loop i", first, aclrtStreamWaitEvent(streams.graphs, own_->joins[2]));
    return ACL_SUCCESS;
  }

  // Loop i: launches of 4 iterations, and what is before and behind them.
  aclError run_1(Hooks& hooks, int64_t steps) {
    const auto& streams = own_->streams;
    const int64_t lo = 0;
    const int64_t hi = steps;
    const int64_t first = 0;
    const int64_t launches = (hi - first) / 4;
    if (launches < 2) return loop_1(hooks, lo, hi, steps);
    {
      Capture capture(own_->graph_1, streams.graphs);
      DAGSCHED_TRY("loop i", first, capture.begin());
      if (const aclError code = capture_1(hooks, first, steps); code != ACL_SUCCESS) return code;
      DAGSCHED_TRY("loop i", first, capture.finish());
    }
    DAGSCHED_TRY("loop i", first, aclrtRecordEvent(own_->forks[0], streams.h2d));
    DAGSCHED_TRY("loop i", first, aclrtStreamWaitEvent(streams.graphs, own_->forks[0]));
    DAGSCHED_TRY("loop i", first, aclrtRecordEvent(own_->forks[1], streams.ai_core));
    DAGSCHED_TRY("loop i", first, aclrtStreamWaitEvent(streams.graphs, own_->forks[1]));
    DAGSCHED_TRY("loop i", first, aclrtRecordEvent(own_->forks[2], streams.d2h));
    DAGSCHED_TRY("loop i", first, aclrtStreamWaitEvent(streams.graphs, own_->forks[2]));
    for (int64_t launch = 0; launch < launches; ++launch) {
      DAGSCHED_TRY("loop i", first + launch * 4, own_->graph_1.launch(streams.graphs));
    }
    DAGSCHED_TRY("loop i", hi, aclrtRecordEvent(own_->forks[3], streams.graphs));
    DAGSCHED_TRY("loop i", hi, aclrtStreamWaitEvent(streams.h2d, own_->forks[3]));
    DAGSCHED_TRY("loop i", hi, aclrtStreamWaitEvent(streams.ai_core, own_->forks[3]));
    DAGSCHED_TRY("loop i", hi, aclrtStreamWaitEvent(streams.d2h, own_->forks[3]));
    if (const aclError code = loop_1(hooks, first + launches * 4, hi, steps); code != ACL_SUCCESS) return code;
    return ACL_SUCCESS;
  }

  // Issues everything in the order of the schedule.
  aclError issue(Hooks& hooks, int64_t steps) {
    const auto& streams = own_->streams;
    const auto& events = own_->events;
    const auto& buffers = own_->buffers;

    own_->graph_1.release();

    // bring_text: copy prompt to text
    DAGSCHED_TRY("bring_text", kNoIteration,
                 aclrtMemcpyAsync(buffers.text[0], buffers.text.size, buffers.prompt[0], buffers.prompt.size,
                                  ACL_MEMCPY_HOST_TO_DEVICE, streams.h2d));

    // bring_noise: copy noise to latent@-1
    DAGSCHED_TRY("bring_noise", kNoIteration,
                 aclrtMemcpyAsync(buffers.latent[-1], buffers.latent.size, buffers.noise[0], buffers.noise.size,
                                  ACL_MEMCPY_HOST_TO_DEVICE, streams.h2d));
    DAGSCHED_TRY("bring_noise", kNoIteration, aclrtRecordEvent(events.bring_noise_done[0], streams.h2d));

    // bring_noise before predict@0 (RAW on latent)
    DAGSCHED_TRY("predict", kNoIteration, aclrtStreamWaitEvent(streams.ai_core, events.bring_noise_done[0]));

    // Loop i: 4 iterations at once, as a graph.
    if (const aclError code = run_1(hooks, steps); code != ACL_SUCCESS) return code;

    if (steps == 0) {
      // bring_noise before finish (RAW on latent)
      DAGSCHED_TRY("finish", kNoIteration, aclrtStreamWaitEvent(streams.d2h, events.bring_noise_done[0]));
    }
    // finish: copy latent@steps-1 to image
    DAGSCHED_TRY("finish", kNoIteration,
                 aclrtMemcpyAsync(buffers.image[0], buffers.image.size, buffers.latent[steps - 1], buffers.latent.size,
                                  ACL_MEMCPY_DEVICE_TO_HOST, streams.d2h));

    DAGSCHED_TRY("synchronise h2d", kNoIteration, aclrtSynchronizeStream(streams.h2d));
    DAGSCHED_TRY("synchronise ai-core", kNoIteration, aclrtSynchronizeStream(streams.ai_core));
    DAGSCHED_TRY("synchronise d2h", kNoIteration, aclrtSynchronizeStream(streams.d2h));
    DAGSCHED_TRY("synchronise graphs", kNoIteration, aclrtSynchronizeStream(streams.graphs));
    return ACL_SUCCESS;
  }

  std::unique_ptr<Resources> own_;
  Place at_;
  Failure failure_;
};

#undef DAGSCHED_TRY

}  // namespace dagsched::denoise_acl_graph

#endif  // DAGSCHED_DENOISE_ACL_GRAPH_HPP
