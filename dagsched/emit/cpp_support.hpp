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

inline @Error@ allocate_pageable(void** memory, size_t size) {
  constexpr size_t kAlignment = 64;
  if (size > SIZE_MAX - kAlignment) return @BadAlloc@;
  *memory = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  return *memory == nullptr ? @BadAlloc@ : @Success@;
}

inline @Error@ free_pageable(void* memory) {
  std::free(memory);
  return @Success@;
}

@PARTS@

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
  @Error@ code = @Success@;
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

  @Event@ operator[](int64_t index) const {
    return handles[static_cast<size_t>(floor_mod(index, static_cast<int64_t>(Count)))];
  }
  @Error@ create_all() {
    for (Event& event : handles) {
      if (const @Error@ code = create_event(event); code != @Success@) return code;
    }
    return @Success@;
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
  @Error@ allocate_all() {
    for (Memory& memory : slots) {
      if (const @Error@ code = allocate(memory, Size); code != @Success@) return code;
    }
    return @Success@;
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
  @Error@ resize(int64_t version, size_t bytes) {
    if (bytes > Size) return @Invalid@;
    used[this->slot(version)] = bytes;
    return @Success@;
  }
};

/// A loop count: not negative, and small enough that no index or offset overflows.
inline @Error@ check_count(int64_t count, int64_t largest) {
  return 0 <= count && count <= largest ? @Success@ : @Invalid@;
}

/// Whether what is copied has room where it goes.
inline @Error@ check_copy(int64_t bytes, int64_t room) {
  return bytes <= room ? @Success@ : @Invalid@;
}

/// Copies within the host's memory are host functions.
inline @Error@ copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return @Success@;
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
  return @Success@;
}

inline @Error@ fill_bytes(std::byte* to, int value, size_t bytes) {
  std::memset(to, value, bytes);
  return @Success@;
}

/// Whether a region lies inside its axis: 0 <= lo < hi <= extent.
inline @Error@ check_region(int64_t lo, int64_t hi, int64_t extent) {
  return 0 <= lo && lo < hi && hi <= extent ? @Success@ : @Invalid@;
}

/// Host functions on streams. Each call that is queued owns its arguments until it has run, and none is run once one
/// has failed. The object must outlive the streams.
class HostCalls {
 public:
  HostCalls() = default;
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  @Error@ launch(@Stream@ stream, const Place& place, std::function<@Error@()> body) {
    Call* call = take();
    call->owner = this;
    call->place = place;
    call->body = std::move(body);
    const @Error@ code = @LaunchHostFunc@(stream, &HostCalls::run, call);
    if (code != @Success@) give_back(call);
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
      failure.code = @Failure@;
      keep_exception(failure);
    }
    if (failure.code == @Success@) return;
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
    std::function<@Error@()> body;
  };

  static void @Calling@run(void* argument) noexcept {
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

