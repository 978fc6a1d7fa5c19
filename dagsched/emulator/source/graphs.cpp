// Capture and replay: the tasks of a capture are kept as recipes by stream and made anew for each replay.
#include <algorithm>

#include "graphs.hpp"

namespace emu {

std::shared_ptr<Graph> begin_capture(Stream* stream, int mode) {
  auto graph = std::make_shared<Graph>();
  graph->mode = mode;
  graph->owner = std::this_thread::get_id();
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

void replay(const std::shared_ptr<Graph>& graph, Stream* stream) {
  while (graph->lanes.size() < std::max<size_t>(1, graph->sources.size())) {
    Stream* lane = open_stream(stream->context, unique(stream->name + ".replay"));
    lane->internal = true;
    graph->lanes.push_back(lane);
  }
  for (Stream* lane : graph->lanes) join_traced(lane, stream);
  Replay tokens(graph->records);
  for (const Graph::Entry& entry : graph->entries) {
    Stream* lane = graph->lanes[entry.lane];
    TaskPtr task = entry.recipe(&tokens);
    if (task->step >= 0) world().trace[static_cast<size_t>(task->step)].stream = lane->name;
    push(lane, std::move(task));
  }
  for (Stream* lane : graph->lanes) join_traced(stream, lane);
}

void join_traced(Stream* stream, Stream* other) {
  Step step;
  step.action = "wait_stream";
  step.stream = stream->name;
  step.name = other->name;
  add_step(std::move(step));
  join_streams(stream, other);
}

void close_graph(Graph& graph) {
  for (Stream* lane : graph.lanes) close_stream(lane);
  graph.lanes.clear();
}

}  // namespace emu
