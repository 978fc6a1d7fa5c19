// What a program may ask beyond the runtime (dagsched_emulator.h).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "call.hpp"
#include "dagsched_emulator.h"

using namespace emu;

namespace emu {
namespace {

constexpr int kNotAllowed = 207000;
constexpr int kNoFunction = 107000;

Mode mode_of(int mode) { return mode >= 0 && mode <= 3 ? static_cast<Mode>(mode) : Mode::update; }

}  // namespace
}  // namespace emu

extern "C" {

void dagsched_emulator_note(const char* op, int64_t iteration) {
  const Guard guard(world().lock);
  here().op = op == nullptr ? "" : op;
  here().iteration = iteration;
}

int dagsched_emulator_launch(void* handle, const char* name, int (*run)(void*), void* argument,
                             void (*release_argument)(void*)) {
  // Owns the argument: it is released once, when the last recipe and the last task that could use it are gone. That is
  // in the stream's own thread, unless the task belongs to a capture.
  std::shared_ptr<void> owner(argument, [release_argument](void* given) {
    acquire(given);
    if (release_argument != nullptr) release_argument(given);
  });
  const Call call("kernel", Kind::work, kNotAllowed);
  if (call.code != 0) return call.code;
  if (run == nullptr || name == nullptr) return fail(kNoFunction, "a kernel is launched without a function or a name");
  Stream* stream = nullptr;
  if (const int code = find_launch_stream(handle, stream); code != 0) return code;
  Step step;
  step.action = "op";
  step.name = label(plain(name));
  const std::string what = step.name;
  enqueue(stream, what, [owner = std::move(owner), run](Replay*) {
    auto task = std::make_unique<Task>();
    task->work = [owner, run] {
      const int code = run(owner.get());
      release(owner.get());
      return code;
    };
    return task;
  }, std::move(step));
  return 0;
}

void* dagsched_emulator_device(const void* address) {
  const Guard guard(world().lock);
  if (here().executing == nullptr) complain("dagsched_emulator_device is called outside a kernel");
  return view_of(address);
}

void dagsched_emulator_access(const void* address, size_t bytes, int mode) {
  const Guard guard(world().lock);
  touch(here().task != nullptr ? here().task->step : here().step, address, bytes, mode_of(mode));
}

void dagsched_emulator_host_access(const char* name, const void* address, size_t bytes, int mode) {
  const Guard guard(world().lock);
  Step step;
  step.action = "host";
  step.name = plain(name);
  touch_rows(step.touches, static_cast<const char*>(address), bytes, bytes, 1, mode_of(mode));
  add_step(std::move(step));
}

void dagsched_emulator_breathe(void) { breathe(); }

void dagsched_emulator_seed(uint64_t value) {
  const Guard guard(world().lock);
  seed(value);
}

int dagsched_emulator_inject(const char* text) {
  const Guard guard(world().lock);
  World& w = world();
  if (*text == '\0') {
    w.faults.clear();
    if (w.lost != 0) {  // what a lost device had in its queues is never executed, healed or not
      const auto streams = w.streams;
      for (const Stream* stream : streams) wait_until([stream] { return stream->queue.empty() && !stream->flying; });
    }
    w.lost = 0;
    return 0;
  }
  Fault fault;
  if (!parse_fault(text, fault)) return -1;
  w.faults.push_back(fault);
  return 0;
}

void dagsched_emulator_leave_out(int wait, int of) {
  const Guard guard(world().lock);
  world().left_out = wait;
  world().left_out_of = std::max(1, of);
  world().waits = 0;
}

void dagsched_emulator_trace(const char* path) {
  const Guard guard(world().lock);
  world().trace.clear();
  world().tracing = path != nullptr;
  world().trace_path = path == nullptr ? "" : path;
}

void dagsched_emulator_write_trace(void) {
  const Guard guard(world().lock);
  write_trace();
}

int dagsched_emulator_alive(void) {
  const Guard guard(world().lock);
  return alive();
}

int dagsched_emulator_complaints(void) {
  const Guard guard(world().lock);
  return world().complaints;
}

int64_t dagsched_emulator_contents(const char* name, int number, void* to, size_t room) {
  if (name == nullptr || to == nullptr) return -1;
  const Guard guard(world().lock);
  const std::string wanted = plain(name) + "." + std::to_string(number);
  for (const auto& [address, block] : world().blocks) {
    if (block->name != wanted) continue;
    std::memcpy(to, block->view, std::min(room, block->size));
    return static_cast<int64_t>(block->size);
  }
  return -1;
}

void dagsched_emulator_set(void* address, const void* from, size_t bytes, const char* name) {
  dagsched_emulator_host_access(name, address, bytes, DAGSCHED_WRITE);
  void* view = nullptr;
  {
    const Guard guard(world().lock);
    view = view_of(address);
  }
  std::memcpy(view, from, bytes);
}

void dagsched_emulator_get(void* to, const void* address, size_t bytes, const char* name) {
  dagsched_emulator_host_access(name, address, bytes, DAGSCHED_READ);
  const void* view = nullptr;
  {
    const Guard guard(world().lock);
    view = view_of(address);
  }
  std::memcpy(to, view, bytes);
}

void dagsched_emulator_log(const char* line) {
  const Guard guard(world().lock);
  static std::FILE* file = nullptr;
  const char* path = std::getenv("DAGSCHED_EMU_LOG");
  if (file == nullptr && path != nullptr) file = std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%s\n", line);
  std::fflush(file);
}

void dagsched_emulator_start_over(void) {
  const Guard guard(world().lock);
  start_over();
}

}  // extern "C"
