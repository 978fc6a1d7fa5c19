// Locks that sanitizers do not see, and the order that they are told of.
//
// ThreadSanitizer takes every mutex for an order between threads. The emulator's own bookkeeping must be no such order,
// or it would hide exactly the races that a program has on a device. So this library is built without instrumentation,
// its lock is a bare futex, and the order that the device really gives (issue before execution, record before wait,
// end before synchronisation) is stated with `release` and `acquire`. Nothing else is.
#ifndef DAGSCHED_EMULATOR_SYNC_HPP
#define DAGSCHED_EMULATOR_SYNC_HPP

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

extern "C" {
void __tsan_acquire(void* address) __attribute__((weak));
void __tsan_release(void* address) __attribute__((weak));
void AnnotateIgnoreReadsBegin(const char* file, int line) __attribute__((weak));
void AnnotateIgnoreReadsEnd(const char* file, int line) __attribute__((weak));
void AnnotateIgnoreWritesBegin(const char* file, int line) __attribute__((weak));
void AnnotateIgnoreWritesEnd(const char* file, int line) __attribute__((weak));
}

namespace emu {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

/// Everything before this call comes before what follows an `acquire` of the same address.
inline void release(const void* address) {
  if (__tsan_release) __tsan_release(const_cast<void*>(address));
}
inline void acquire(const void* address) {
  if (__tsan_acquire) __tsan_acquire(const_cast<void*>(address));
}

inline long futex(std::atomic<uint32_t>* word, int op, uint32_t value, const timespec* timeout = nullptr) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), op | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

/// A mutex; while it is held, ThreadSanitizer looks away: what it guards is the emulator's own.
class Lock {
 public:
  void lock() {
    uint32_t free = 0;
    if (!word_.compare_exchange_strong(free, 1)) {
      while (word_.exchange(2) != 0) futex(&word_, FUTEX_WAIT, 2);
    }
    if (AnnotateIgnoreReadsBegin) {
      AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
      AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
  }
  void unlock() {
    if (AnnotateIgnoreReadsBegin) {
      AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
      AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
    if (word_.exchange(0) == 2) futex(&word_, FUTEX_WAKE, 1);
  }

 private:
  std::atomic<uint32_t> word_{0};  // 0: free, 1: held, 2: held and waited for
};

/// A condition variable for `Lock`.
class Gate {
 public:
  /// Unlocks, waits for `wake` or until the time has come, and locks. May wake without cause.
  void wait(Lock& lock, Time until = Time::max()) {
    const uint32_t seen = turn_.load();
    waiting_.fetch_add(1);
    lock.unlock();
    if (until == Time::max()) {
      futex(&turn_, FUTEX_WAIT, seen);
    } else if (const auto left = until - Clock::now(); left > Clock::duration::zero()) {
      const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
      const timespec timeout{static_cast<time_t>(nanoseconds / 1000000000), static_cast<long>(nanoseconds % 1000000000)};
      futex(&turn_, FUTEX_WAIT, seen, &timeout);
    }
    lock.lock();
    waiting_.fetch_sub(1);
  }
  void wake() {
    turn_.fetch_add(1);
    if (waiting_.load() != 0) futex(&turn_, FUTEX_WAKE, INT_MAX);
  }

 private:
  std::atomic<uint32_t> turn_{0};
  std::atomic<uint32_t> waiting_{0};
};

/// Holds the lock for a scope.
class Guard {
 public:
  explicit Guard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Guard() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Lock& lock_;
};

/// Leaves the lock for a scope, to run what is the program's own.
class Away {
 public:
  explicit Away(Lock& lock) : lock_(lock) { lock_.unlock(); }
  ~Away() { lock_.lock(); }
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;

 private:
  Lock& lock_;
};

}  // namespace emu

#endif  // DAGSCHED_EMULATOR_SYNC_HPP
