// Events of three kinds: two whose waits are bound to the newest record when they are called, and one that is a flag.
#include <algorithm>

#include "core.hpp"

namespace emu {
namespace {

TaskPtr record_task(const TokenPtr& token) {
  auto task = std::make_unique<Task>();
  task->essential = true;
  task->work = [token] {
    release(token.get());
    return kDone;
  };
  task->finished = [token] {
    token->done = true;
    token->when = Clock::now();
    --world().pending_records;
  };
  ++world().pending_records;
  return task;
}

TaskPtr wait_task(const TokenPtr& token, const EventPtr& event = nullptr) {
  auto task = std::make_unique<Task>();
  task->essential = true;
  task->ready = [token] { return token->done; };
  task->work = [token] {
    acquire(token.get());
    return kDone;
  };
  if (event) {
    ++event->waits_pending;
    task->finished = [event] { --event->waits_pending; };
  }
  return task;
}

void note_kind(EventKind kind) {
  if (kind == EventKind::notify) return;
  std::string& model = world().event_model;
  const std::string own = kind == EventKind::flag ? "flag" : "latch";
  if (model.empty()) model = own;
  if (model != own) model = "both";
}

void record_in_capture(const EventPtr& event, Stream* stream) {
  const std::shared_ptr<Graph>& graph = stream->capture;
  event->capture = graph;
  event->record = graph->records++;
  event->at = graph->entries.size();
  const size_t number = event->record;
  enqueue(stream, "record " + event->name, [number](Replay* replay) {
    replay->at(number) = std::make_shared<Token>();
    return record_task(replay->at(number));
  }, event_step("record", event));
  graph->entries.back().marker = true;
}

void wait_in_capture(Stream* stream, const EventPtr& event) {
  const std::shared_ptr<Graph> graph = event->capture;
  if (!stream->capture) {  // a fork: the stream becomes part of the capture
    stream->capture = graph;
    stream->lane = graph->sources.size();
    graph->sources.push_back(stream);
  }
  const size_t number = event->record;
  enqueue(stream, "wait " + event->name, [number](Replay* replay) { return wait_task(replay->at(number)); },
          event_step("wait", event));
  graph->entries.back().waits_for = static_cast<int64_t>(event->at);
}

void set_flag(const EventPtr& event, Stream* stream, Step step) {
  if (std::exchange(event->recorded, true)) complain("event " + event->name + " is recorded again before its reset");
  enqueue(stream, "record " + event->name, [event](Replay*) {
    const auto token = std::make_shared<Token>();
    TaskPtr task = record_task(token);
    auto finish = std::move(task->finished);
    task->finished = [event, token, finish] {
      finish();
      if (event->set) return;  // set already: waits go on the record that set it
      event->set = true;
      event->latest = token;
    };
    return task;
  }, std::move(step));
}

void wait_flag(Stream* stream, const EventPtr& event) {
  const auto& waiters = event->waiters;
  if (std::find(waiters.begin(), waiters.end(), stream->number) == waiters.end()) {
    if (!waiters.empty()) complain("a second stream waits for event " + event->name + ", which one of them will reset");
    event->waiters.push_back(stream->number);
  }
  enqueue(stream, "wait " + event->name, [event](Replay*) {
    auto task = std::make_unique<Task>();
    task->essential = true;
    task->ready = [event] { return event->set; };
    task->work = [event] {
      if (event->latest) acquire(event->latest.get());
      return kDone;
    };
    ++event->waits_pending;
    task->finished = [event] { --event->waits_pending; };
    return task;
  }, event_step("wait", event));
}

}  // namespace

Step event_step(const char* action, const EventPtr& event) {
  note_kind(event->kind);
  Step step;
  step.action = action;
  step.event = event;
  step.generation = event->generation;
  return step;
}

EventPtr open_event(Context* context, EventKind kind, uint32_t flags, const std::string& name) {
  World& w = world();
  auto event = std::make_shared<Event>();
  event->number = w.event_number++;
  event->kind = kind;
  event->flags = flags;
  event->context = context;
  event->name = name;
  if (kind == EventKind::flag) ++w.flag_events;
  w.events.push_back(event);
  return event;
}

EventPtr find_event(const void* handle) {
  for (const EventPtr& event : world().events) {
    if (event.get() == handle) return event;
  }
  return nullptr;
}

void close_event(const void* handle) {
  World& w = world();
  const auto at = std::find_if(w.events.begin(), w.events.end(), [=](const EventPtr& e) { return e.get() == handle; });
  if (at == w.events.end()) return;
  if ((*at)->kind == EventKind::flag) --w.flag_events;
  bury(handle, describe(**at), *at);
  w.events.erase(at);
}

void record_event(const EventPtr& event, Stream* stream) {
  World& w = world();
  // Every record takes a hardware id until it has been executed; without one the host waits.
  wait_until([&w] { return w.pending_records < w.options.events; });
  ++event->generation;
  if (stream->capture) return record_in_capture(event, stream);
  event->capture = nullptr;
  Step step = event_step("record", event);
  if (event->kind == EventKind::flag) return set_flag(event, stream, std::move(step));
  const auto token = std::make_shared<Token>();
  event->latest = token;
  enqueue(stream, "record " + event->name, [token](Replay*) { return record_task(token); }, std::move(step));
}

void wait_event(Stream* stream, const EventPtr& event) {
  World& w = world();
  if (w.left_out >= 0 && w.waits++ % w.left_out_of == w.left_out) return;
  if (event->capture) return wait_in_capture(stream, event);
  if (event->kind == EventKind::flag) return wait_flag(stream, event);
  if (!event->latest) return;
  const TokenPtr token = event->latest;
  enqueue(stream, "wait " + event->name, [=](Replay*) { return wait_task(token, event); }, event_step("wait", event));
}

void reset_event(const EventPtr& event, Stream* stream) {
  const auto& waiters = event->waiters;
  if (std::find(waiters.begin(), waiters.end(), stream->number) == waiters.end()) {
    complain("event " + event->name + " is reset on stream " + stream->name + ", which has not waited for it");
  }
  event->recorded = false;
  event->waiters.clear();
  enqueue(stream, "reset " + event->name, [event](Replay*) {
    auto task = std::make_unique<Task>();
    task->essential = true;
    task->finished = [event] { event->set = false; };
    return task;
  }, event_step("reset", event));
}

void set_notify(const EventPtr& notify, Stream* stream) {
  if (++notify->ahead > 1) complain("notify " + notify->name + " is recorded again before anything waits for it");
  enqueue(stream, "record " + notify->name, [notify](Replay*) {
    const auto token = std::make_shared<Token>();
    TaskPtr task = record_task(token);
    task->finished = [notify, token, finish = std::move(task->finished)] {
      finish();
      notify->set = true;
      notify->latest = token;
    };
    return task;
  }, event_step("set", notify));
}

void take_notify(const EventPtr& notify, Stream* stream) {
  --notify->ahead;
  const auto taken = std::make_shared<TokenPtr>();
  enqueue(stream, "wait " + notify->name, [=](Replay*) {
    auto task = std::make_unique<Task>();
    task->essential = true;
    task->ready = [notify] { return notify->set; };
    task->begun = [=] {
      notify->set = false;
      *taken = notify->latest;
    };
    task->work = [taken] {
      if (*taken) acquire(taken->get());
      return kDone;
    };
    return task;
  }, event_step("take", notify));
}

std::string describe(const Event& event) {
  return (event.kind == EventKind::notify ? "notify " : "event ") + event.name;
}

bool is_complete(const EventPtr& event) {
  if (event->kind == EventKind::flag) return event->set;
  return event->latest && event->latest->done;
}

void join_streams(Stream* stream, Stream* other) {
  const TokenPtr token = mark_end(other);
  TaskPtr task = wait_task(token);
  task->what = "wait for " + other->name;
  push(stream, std::move(task));
}

}  // namespace emu
