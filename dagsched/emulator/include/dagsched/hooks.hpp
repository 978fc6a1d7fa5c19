// What generated hooks do instead of a plan's functions: mix what they read into what they write (see meaning.py).
#ifndef DAGSCHED_EMULATOR_HOOKS_HPP
#define DAGSCHED_EMULATOR_HOOKS_HPP

#include <dagsched_emulator.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#define DAGSCHED_NOTE(op, iteration) dagsched_emulator_note(op, iteration)

// Mixing every byte of large buffers takes minutes where each access is instrumented. So ThreadSanitizer does not see
// the functions that go over bytes, and is told what they are about to touch: to the byte, in one call for each run.
#if defined(__SANITIZE_THREAD__)
#define DAGSCHED_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DAGSCHED_THREAD_SANITIZER 1
#endif
#endif
#ifdef DAGSCHED_THREAD_SANITIZER
#define DAGSCHED_UNSEEN __attribute__((no_sanitize("thread")))
extern "C" void __tsan_read_range(void* address, unsigned long size);
extern "C" void __tsan_write_range(void* address, unsigned long size);
#else
#define DAGSCHED_UNSEEN
#endif

namespace hooks {

inline void sees_read([[maybe_unused]] const unsigned char* data, [[maybe_unused]] size_t size) {
#ifdef DAGSCHED_THREAD_SANITIZER
  if (size != 0) __tsan_read_range(const_cast<unsigned char*>(data), size);
#endif
}
inline void sees_write([[maybe_unused]] unsigned char* data, [[maybe_unused]] size_t size) {
#ifdef DAGSCHED_THREAD_SANITIZER
  if (size != 0) __tsan_write_range(data, size);
#endif
}

inline uint64_t key_of(const std::string& text) {
  uint64_t value = 0xCBF29CE484222325u;
  for (const char letter : text) value = (value ^ static_cast<unsigned char>(letter)) * 0x100000001B3u;
  return value;
}
DAGSCHED_UNSEEN inline uint64_t mixed(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}
inline size_t size_of(const std::string& buffer, int64_t index, size_t capacity) {
  return 1 + static_cast<size_t>((key_of(buffer) + 37 * static_cast<uint64_t>(index)) % capacity);
}

// The contiguous parts of a view, by the addresses that the program knows.
using Runs = std::vector<std::pair<unsigned char*, size_t>>;

template <class View>
auto runs_of(const View& view) -> decltype(static_cast<size_t>(view.capacity), Runs()) {
  return {{reinterpret_cast<unsigned char*>(const_cast<char*>(reinterpret_cast<const char*>(view.data))), view.bytes}};
}
template <class View>
auto runs_of(const View& view) -> decltype(view.stride, Runs()) {
  Runs runs{{reinterpret_cast<unsigned char*>(const_cast<char*>(reinterpret_cast<const char*>(view.data))), view.run}};
  for (size_t axis = 0; axis < view.count.size(); ++axis) {
    Runs next;
    for (const auto& [data, size] : runs) {
      for (size_t n = 0; n < view.count[axis]; ++n) next.push_back({data + n * view.stride[axis], size});
    }
    runs = std::move(next);
  }
  return runs;
}

// What a function makes of the bytes that it reads.
struct Digest {
  uint64_t total, word = 0, number = 0;
  size_t bytes = 0;

  DAGSCHED_UNSEEN void take(const unsigned char* data, size_t size) {
    size_t at = 0;
    for (; bytes % 8 == 0 && at + 8 <= size; at += 8, bytes += 8) {
      std::memcpy(&word, data + at, 8);
      add();
    }
    for (; at < size; ++at) {
      word |= static_cast<uint64_t>(data[at]) << 8 * (bytes % 8);
      if (++bytes % 8 == 0) add();
    }
  }
  uint64_t end() {
    if (bytes % 8 != 0) add();
    return total + mixed(bytes);
  }

 private:
  DAGSCHED_UNSEEN void add() {
    total += mixed(word + ++number * 0x9E3779B97F4A7C15u);
    word = 0;
  }
};

// Writes the bytes from number `bytes` on of the stream that begins with `start`; returns the number of the next.
DAGSCHED_UNSEEN inline size_t fill(unsigned char* data, size_t size, uint64_t start, size_t bytes, bool add) {
  size_t at = 0;
  for (; !add && bytes % 8 == 0 && at + 8 <= size; at += 8, bytes += 8) {
    const uint64_t word = mixed(start + bytes / 8);
    std::memcpy(data + at, &word, 8);
  }
  for (; at < size; ++at, ++bytes) {
    const auto value = static_cast<unsigned char>(mixed(start + bytes / 8) >> 8 * (bytes % 8));
    data[at] = static_cast<unsigned char>((add ? data[at] : 0) + value);
  }
  return bytes;
}

class Mix {
 public:
  explicit Mix(const std::string& function) : value_(key_of(function)) {}
  uint64_t value() const { return value_; }
  void index(int64_t i) { value_ = value_ * 31 + static_cast<uint64_t>(i); }

  void read(const std::string& name, const Runs& runs, int mode) {
    Digest digest{key_of(name)};
    for (const auto& [address, size] : runs) {
      dagsched_emulator_access(address, size, mode);
      const auto* data = static_cast<const unsigned char*>(dagsched_emulator_device(address));
      sees_read(data, size);
      digest.take(data, size);
    }
    value_ += digest.end();
  }

  // In two halves, between which other streams may make their steps; sums are made in one, and one after another.
  void write(const std::string& name, const Runs& runs, int mode) const {
    static std::mutex adding;
    const bool add = mode == DAGSCHED_ACCUMULATE;
    std::unique_lock<std::mutex> lock(adding, std::defer_lock);
    if (add) lock.lock();
    const uint64_t start = value_ + key_of(name);
    size_t bytes = 0;
    for (size_t n = 0; n < runs.size(); ++n) {
      const auto& [address, size] = runs[n];
      if (mode != DAGSCHED_UPDATE) dagsched_emulator_access(address, size, mode);
      auto* data = static_cast<unsigned char*>(dagsched_emulator_device(address));
      const size_t half = add ? size : size / 2;
      sees_write(data, half);
      bytes = fill(data, half, start, bytes, add);
      if (!add && n == runs.size() / 2) dagsched_emulator_breathe();
      sees_write(data + half, size - half);
      bytes = fill(data + half, size - half, start, bytes, add);
    }
  }

 private:
  uint64_t value_;
};

inline void log_call(const std::string& function, std::initializer_list<int64_t> indices, uint64_t mix) {
  std::string line = function;
  for (const int64_t index : indices) line += " " + std::to_string(index);
  dagsched_emulator_log((line + " " + std::to_string(mix)).c_str());
}

// An input's contents before a run.
template <class View>
void fill_input(const View& view, const std::string& name) {
  std::vector<unsigned char> data(view.capacity);
  fill(data.data(), data.size(), key_of(name), 0, false);
  dagsched_emulator_set(view.data, data.data(), data.size(), ("fill " + name).c_str());
}

inline void save(const std::string& folder, size_t buffer, int slot, const unsigned char* data, size_t size) {
  const std::string path = folder + "/" + std::to_string(buffer) + "." + std::to_string(slot);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0) std::abort();
}

// What the host reads of an output after a run.
template <class View>
void save_output(const std::string& folder, size_t buffer, int slot, const View& view, const std::string& name) {
  std::vector<unsigned char> data(view.bytes);
  dagsched_emulator_get(data.data(), view.data, data.size(), ("read " + name).c_str());
  save(folder, buffer, slot, data.data(), data.size());
}

// What a block holds in the end, whoever was to read it.
inline void save_block(const std::string& folder, size_t buffer, int slot, const std::string& name, size_t size) {
  std::vector<unsigned char> data(size);
  if (dagsched_emulator_contents(name.c_str(), slot, data.data(), size) >= 0) save(folder, buffer, slot, data.data(), size);
}

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned char>(letter));
    const bool plain = static_cast<unsigned char>(letter) >= 0x20 && letter != '"' && letter != '\\';
    out += plain ? std::string(1, letter) : std::string(escape);
  }
  return out + "\"";
}

}  // namespace hooks

#endif  // DAGSCHED_EMULATOR_HOOKS_HPP
