// Capture and replay: the tasks of a capture are kept as recipes by stream and made anew for each replay.
#include <algorithm>

#include "graphs.hpp"

namespace emu {
namespace {

// A launch makes the captured iterations again, each as far on as the launch says that it is: a fault in one of them is
// met by the launch, which is the only call, or by the task in it.
int meet_faults(Graph& graph) {
  World& w = world();
  const int64_t on = here().iteration - graph.began;
  for (size_t n = w.faults.size(); n-- > 0;) {
    const Fault fault = w.faults[n];
    const auto met = std::find_if(graph.entries.begin(), graph.entries.end(), [&](const Graph::Entry& entry) {
      return !fault.by_number && entry.op == fault.target && entry.iteration + on == fault.iteration;
    });
    if (met == graph.entries.end()) continue;
    w.faults.erase(w.faults.begin() + static_cast<std::ptrdiff_t>(n));
    if (fault.how == Fault::How::lost) lose_device(fault.code);
    if (fault.how != Fault::How::task) return fail(fault.code, "EI0001: injected into the launch of a graph");
    met->fault = fault.code;
  }
  return 0;
}

}  // namespace

void lose_device(int code) {
  World& w = world();
  w.lost = code;
  for (Stream* stream : w.streams) {
    if (const std::shared_ptr<Graph> graph = stream->capture) end_capture(graph);
  }
}

std::shared_ptr<Graph> begin_capture(Stream* stream, int mode) {
  auto graph = std::make_shared<Graph>();
  graph->mode = mode;
  graph->owner = std::this_thread::get_id();
  graph->began = here().iteration;
  graph->sources.push_back(stream);
  stream->capture = graph;
  stream->lane = 0;
  return graph;
}

void end_capture(const std::shared_ptr<Graph>& graph) {
  World& w = world();
  for (Stream* stream : w.streams) {
    if (stream->capture == graph) stream->capture = nullptr;
  }
  for (const EventPtr& event : w.events) {
    if (event->capture == graph) event->capture = nullptr;
  }
}

// Going back from the capturing stream's end over waits: what is not met there was never joined.
std::string find_unjoined(const Graph& graph) {
  std::vector<size_t> joined(graph.sources.size(), 0);
  joined[0] = graph.entries.size();
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t n = 0; n < graph.entries.size(); ++n) {
      const Graph::Entry& entry = graph.entries[n];
      if (entry.waits_for < 0 || n >= joined[entry.lane]) continue;
      const auto record = static_cast<size_t>(entry.waits_for);
      size_t& reached = joined[graph.entries[record].lane];
      if (record + 1 > reached) {
        reached = record + 1;
        changed = true;
      }
    }
  }
  for (size_t n = 0; n < graph.entries.size(); ++n) {
    const Graph::Entry& entry = graph.entries[n];
    if (!entry.marker && n >= joined[entry.lane]) return graph.sources[entry.lane]->name;
  }
  return "";
}

int replay(const std::shared_ptr<Graph>& graph, Stream* stream) {
  if (const int code = meet_faults(*graph); code != 0) return code;
  while (graph->lanes.size() < std::max<size_t>(1, graph->sources.size())) {
    Stream* lane = open_stream(stream->context, unique(stream->name + ".replay"));
    lane->internal = true;
    graph->lanes.push_back(lane);
  }
  const std::vector<Stream*> lanes = graph->lanes;  // another thread may close the graph while a queue is full
  for (Stream* lane : lanes) join_traced(lane, stream);
  ++world().replays;
  Replay tokens(graph->records);
  for (Graph::Entry& entry : graph->entries) {
    Stream* lane = lanes[entry.lane];
    lane->launched_on = stream;
    here().next_fault = std::exchange(entry.fault, 0);
    TaskPtr task = entry.recipe(&tokens);
    if (task->step >= 0) world().trace[static_cast<size_t>(task->step)].stream = lane->name;
    push(lane, std::move(task));
  }
  for (Stream* lane : lanes) join_traced(stream, lane);
  return 0;
}

void join_traced(Stream* stream, Stream* other) {
  Step step;
  step.action = "wait_stream";
  step.stream = stream->name;
  step.name = other->name;
  add_step(std::move(step));
  join_streams(stream, other);
}

bool is_running(const Graph& graph) {
  return std::any_of(graph.lanes.begin(), graph.lanes.end(), [](const Stream* lane) { return !lane->queue.empty(); });
}

// The modes of both runtimes: 0 global, 1 of the capturing thread, 2 relaxed. A thread has one of its own, too.
bool forbid_in_capture() {
  const int own = here().capture_mode;
  bool forbidden = false;
  for (const Stream* stream : world().streams) {
    const std::shared_ptr<Graph>& graph = stream->capture;
    if (!graph || graph->mode == 2 || own == 2) continue;
    const bool mine = graph->owner == std::this_thread::get_id();
    if (!mine && (graph->mode != 0 || own != 0)) continue;
    forbidden = graph->broken = true;
  }
  return forbidden;
}

void close_graph(Graph& graph) {
  for (Stream* lane : std::exchange(graph.lanes, {})) close_stream(lane);
}

}  // namespace emu
