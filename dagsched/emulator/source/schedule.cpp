// Streams and the scheduler: which stream's head makes the next step, and when.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "core.hpp"

namespace emu {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(50);  // then a step counts as long, and nobody waits for it
constexpr auto kTick = std::chrono::milliseconds(20);      // a host that makes no calls does not stop the device
constexpr auto kDeadlock = std::chrono::seconds(60);       // nothing moves, and other threads of the host might help
constexpr auto kServed = std::chrono::seconds(2);          // the same where the others only run callbacks

bool ready(const Stream& stream) {
  if (stream.flying || stream.queue.empty()) return false;
  const Task& head = *stream.queue.front();
  return stream.paused || world().lost != 0 || !head.ready || head.ready();
}

// The stream that an even seed starves works only while the host waits and no other can: say, a slow copy engine.
Stream* pick() {
  World& w = world();
  std::vector<Stream*> found;
  for (Stream* stream : w.streams) {
    if (ready(*stream)) found.push_back(stream);
  }
  if (found.empty()) return nullptr;
  const uint64_t seed = w.options.seed;
  if (seed >= 2 && seed % 2 == 0 && (found.size() > 1 || w.waiting == 0)) {
    const Stream* victim = w.streams[(seed / 2 - 1) % w.streams.size()];
    const auto at = std::find(found.begin(), found.end(), victim);
    if (at != found.end()) found.erase(at);
    if (found.empty()) return nullptr;
  }
  return found[draw(found.size())];
}

void dispatch() {
  World& w = world();
  while (w.credits != 0 && w.flying < 1) {
    Stream* stream = pick();
    if (stream == nullptr) return;
    if (w.credits > 0) --w.credits;
    if (const Task& head = *stream->queue.front(); head.begun && !stream->paused) head.begun();
    stream->flying = stream->go = true;
    ++w.flying;
    stream->gate.wake();
  }
}

void land(Stream* stream) {
  World& w = world();
  if (!stream->overdue) --w.flying;
  stream->overdue = stream->flying = false;
  dispatch();
  w.quiet.wake();
}

// Waits for the steps that are being made; one that takes long is left to itself.
void settle(Time until) {
  World& w = world();
  const Time patience = Clock::now() + kPatience;
  while (w.flying > 0) {
    w.quiet.wait(w.lock, std::min(until, patience));
    if (Clock::now() < patience) {
      if (Clock::now() >= until) return;
      continue;
    }
    for (Stream* stream : w.streams) {
      if (stream->flying) stream->overdue = true;
    }
    w.flying = 0;
  }
}

void fail_stream(Stream* stream, int code) {
  if (stream->launched_on != nullptr) stream = stream->launched_on;
  const Context* context = stream->context;
  if (context != nullptr && context->breaks_on != nullptr && context->breaks_on(code)) {
    if (world().lost == 0) lose_device(code);
    return;
  }
  if (stream->error == 0) stream->error = code;
  if (!stream->stops_on_failure || stream->context == nullptr) return;
  stream->context->stopped = code;
}

bool is_dropped(const Stream* stream, const Task& task) {
  if (task.essential) return false;
  return world().lost != 0 || (stream->context != nullptr && stream->context->stopped != 0);
}

// One step of the head of the queue: all of it, or a piece.
void make_step(Stream* stream) {
  World& w = world();
  Task* task = stream->queue.front().get();
  int code = kDone;
  if (!is_dropped(stream, *task)) {
    if (!stream->paused) ++w.tasks_executed;
    for (Fault& fault : w.faults) {
      if (!stream->paused && fault.by_number && fault.target == "task" && fault.number != 0 && --fault.number == 0) {
        task->fault = fault.code;
      }
    }
    stream->paused = false;
    code = task->fault;
    if (code == kDone) require_held(*task);
    if (code == kDone && task->work) {
      ThreadState& state = here();
      state.task = task;
      const Away away(w.lock);
      acquire(task);
      code = task->work();
    }
  }
  if (code == kMore) {
    stream->paused = true;
    return;
  }
  stream->paused = false;
  if (code != kDone) fail_stream(stream, code);
  if (task->finished) task->finished();
  TaskPtr done = std::move(stream->queue.front());
  stream->queue.pop_front();
  const Away away(w.lock);  // what the program gave with it is released outside
  done.reset();
}

void execute(Stream* stream) {
  World& w = world();
  here().executing = stream;
  const Guard guard(w.lock);
  while (true) {
    while (!stream->go && !stream->closing) stream->gate.wait(w.lock);
    if (!stream->go) return;
    stream->go = false;
    make_step(stream);
    land(stream);
  }
}

// A program may compute, or spin on a flag, for long without a call: the device works all the same.
[[noreturn]] void tick() {
  World& w = world();
  const Guard guard(w.lock);
  uint64_t seen = w.calls;
  while (true) {
    w.tick.wait(w.lock, w.streams.empty() ? Time::max() : Clock::now() + kTick);
    if (w.calls == seen && w.flying == 0) {
      w.credits = 1;
      ++w.waiting;
      dispatch();
      --w.waiting;
    }
    seen = w.calls;
  }
}

void start_ticking() {
  World& w = world();
  if (!std::exchange(w.ticking, true)) std::thread(tick).detach();
  w.tick.wake();
}

uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string text_from(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

World* instance_of_world = nullptr;

}  // namespace

World& world() {
  if (instance_of_world != nullptr) return *instance_of_world;
  static World* const instance = [] {
    instance_of_world = new World;
    start_over();
    return instance_of_world;
  }();
  return *instance;
}

ThreadState::~ThreadState() {
  if (!counted) return;
  const Guard guard(world().lock);
  --world().host_threads;
  if (serves) --world().servers;
}

ThreadState& here() {
  thread_local ThreadState state;
  return state;
}

Options read_options() {
  Options options;
  options.seed = number_from("DAGSCHED_EMU_SEED", 0);
  options.streams = number_from("DAGSCHED_EMU_STREAMS", options.streams);
  options.events = number_from("DAGSCHED_EMU_EVENTS", options.events);
  options.depth = std::max<uint64_t>(2, number_from("DAGSCHED_EMU_QUEUE_DEPTH", options.depth));
  options.memory = number_from("DAGSCHED_EMU_MEMORY", options.memory);
  options.alignment = std::max<uint64_t>(1, number_from("DAGSCHED_EMU_D2D_ALIGN", 1));
  options.strict = number_from("DAGSCHED_EMU_STRICT", 0) != 0;
  options.returns = text_from("DAGSCHED_EMU_DEADLOCK") == "return";
  options.trace = text_from("DAGSCHED_EMU_TRACE");
  options.inject = text_from("DAGSCHED_EMU_INJECT");
  return options;
}

void seed(uint64_t value) {
  World& w = world();
  w.options.seed = value;
  w.random = value * 0x9E3779B97F4A7C15u + 1;
}

void start_over() {
  World& w = world();
  w.options = read_options();
  seed(w.options.seed);
  w.names.clear();
  w.trace.clear();
  w.event_model.clear();
  w.traced_streams.clear();
  w.faults.clear();
  w.stream_number = w.event_number = w.replays = 0;
  w.lost = w.complaints = w.waits = 0;
  w.left_out = -1;
  w.next_at[0] = w.next_at[1] = 4096;
  w.tracing = !w.options.trace.empty();
  w.trace_path = w.options.trace;
  Fault fault;
  if (w.options.inject.empty()) return;
  if (!parse_fault(w.options.inject, fault)) end_program(2, "DAGSCHED_EMU_INJECT: what is `" + w.options.inject + "`?");
  w.faults.push_back(fault);
}

uint64_t draw(uint64_t below) {
  uint64_t& state = world().random;
  state += 0x9E3779B97F4A7C15u;
  uint64_t value = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return (value ^ (value >> 31)) % below;
}

// Seed 0: a device that finishes everything at once. Seed 1: one that works only while the host waits. Others: between.
void advance() {
  World& w = world();
  ++w.calls;
  const uint64_t seed = w.options.seed;
  if (seed == 0) {
    w.credits = -1;
  } else if (seed == 1) {
    w.credits = 0;
  } else {
    const uint64_t usual = 1 + seed / 2 % 4;
    w.credits = static_cast<int64_t>(draw(2) == 0 ? draw(usual + 1) : draw(8) == 0 ? draw(16) : 0);
  }
  dispatch();
  settle(Time::max());
  w.credits = 0;
  w.quiet.wake();
}

bool wait_until(const std::function<bool()>& holds, Time until, bool patient) {
  World& w = world();
  Time moved = Clock::now();
  const int waits = patient ? 0 : 1;  // who only looks for callbacks to run does not drive the device to its end
  while (!holds()) {
    w.calls += static_cast<uint64_t>(waits);
    if (Clock::now() >= until) return false;
    const int64_t before = w.tasks_executed;
    if (w.flying == 0) {
      w.credits = 1;
      w.waiting += waits;
      dispatch();
      w.waiting -= waits;
    }
    if (w.flying > 0) {
      settle(until);
      moved = Clock::now();
      continue;
    }
    w.credits = 0;
    const bool busy = std::any_of(w.streams.begin(), w.streams.end(), [](Stream* s) { return s->overdue; });
    const bool alone = w.host_threads <= 1 && !busy;
    if (alone && until != Time::max()) return false;  // time passes, and nothing else does
    if (busy || w.tasks_executed != before) moved = Clock::now();
    const auto patience = w.host_threads - w.servers <= 1 ? kServed : kDeadlock;
    if (!patient && (alone || Clock::now() - moved > patience)) {
      if (!w.options.returns) end_program(87, describe_stuck());
      return false;
    }
    w.quiet.wait(w.lock, std::min(until, Clock::now() + kTick));
  }
  return true;
}

void breathe() {
  World& w = world();
  Stream* stream = here().executing;
  if (stream == nullptr) return;
  const Guard guard(w.lock);
  if (stream->overdue) return;
  stream->paused = true;
  land(stream);
  while (!stream->go && !stream->closing) stream->gate.wait(w.lock);
  stream->go = stream->paused = false;
}

Stream* open_stream(Context* context, const std::string& name) {
  World& w = world();
  start_ticking();
  auto* stream = new Stream;
  stream->number = w.stream_number++;
  stream->context = context;
  stream->name = name;
  w.streams.push_back(stream);
  w.traced_streams.emplace(name, true);
  stream->thread = std::thread(execute, stream);
  return stream;
}

void close_stream(Stream* stream) {
  World& w = world();
  if (std::exchange(stream->leaving, true)) return;
  wait_until([stream] { return stream->queue.empty() && !stream->flying; });
  w.streams.erase(std::find(w.streams.begin(), w.streams.end(), stream));
  stream->closing = true;
  stream->gate.wake();
  {
    const Away away(w.lock);
    stream->thread.join();
  }
  bury(stream, "stream " + stream->name, std::shared_ptr<Stream>(stream));
}

void push(Stream* stream, TaskPtr task) {
  World& w = world();
  task->fault = std::exchange(here().next_fault, 0);
  if (stream->queue.size() >= w.options.depth) {
    wait_until([stream, &w] { return stream->queue.size() < w.options.depth; });
  }
  release(task.get());
  stream->queue.push_back(std::move(task));
}

// CUDA's legacy default stream: what it is given comes after all that blocking streams have been given, and before what
// they will be given.
static void order_by_legacy(Stream* stream) {
  for (Stream* other : world().streams) {
    const bool related = stream->legacy ? other->blocking : stream->blocking && other->legacy;
    if (related && other->context == stream->context && !other->capture) join_streams(stream, other);
  }
}

void enqueue(Stream* stream, const std::string& what, Recipe recipe, Step step) {
  if ((stream->legacy || stream->blocking) && !stream->capture) order_by_legacy(stream);
  step.stream = stream->name;
  if (stream->capture) {
    auto traced = [what, recipe = std::move(recipe), step](Replay* replay) mutable {
      TaskPtr task = recipe(replay);
      task->what = what;
      step.replay = world().replays;
      if (!step.action.empty()) task->step = add_step(step);
      return task;
    };
    ThreadState& state = here();
    const int fault = std::exchange(state.next_fault, 0);
    stream->capture->entries.push_back({stream->lane, std::move(traced), false, -1, state.op, state.iteration, fault});
    return;
  }
  TaskPtr task = recipe(nullptr);
  task->what = what;
  if (!step.action.empty()) task->step = add_step(std::move(step));
  push(stream, std::move(task));
}

TokenPtr mark_end(Stream* stream) {
  auto token = std::make_shared<Token>();
  auto task = std::make_unique<Task>();
  task->what = "end of what was queued";
  task->essential = true;
  task->work = [token] {
    release(token.get());
    return kDone;
  };
  task->finished = [token] { token->done = true; };
  const int fault = std::exchange(here().next_fault, 0);
  push(stream, std::move(task));
  here().next_fault = fault;
  return token;
}

bool drain(Stream* stream, Time until) {
  const TokenPtr token = mark_end(stream);
  if (!wait_until([&token] { return token->done; }, until)) return false;
  acquire(token.get());
  return true;
}

int take_error(Stream* stream) { return std::exchange(stream->error, 0); }

std::vector<Stream*> streams_of(const Context* context) {
  std::vector<Stream*> found;
  for (Stream* stream : world().streams) {
    if (stream->context == context) found.push_back(stream);
  }
  return found;
}

}  // namespace emu
