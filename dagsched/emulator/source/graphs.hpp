// Capture and replay, for both faces.
#ifndef DAGSCHED_EMULATOR_GRAPHS_HPP
#define DAGSCHED_EMULATOR_GRAPHS_HPP

#include "core.hpp"

namespace emu {

std::shared_ptr<Graph> begin_capture(Stream* stream, int mode);
/// No stream and no event is part of it any more.
void end_capture(const std::shared_ptr<Graph>& graph);
/// The name of a stream whose work the capturing stream has not waited for, or "".
std::string find_unjoined(const Graph& graph);
/// Queues all of it between what the stream has been given and what it will be given; or the code of a fault.
int replay(const std::shared_ptr<Graph>& graph, Stream* stream);
/// `join_streams`, as a step of the trace.
void join_traced(Stream* stream, Stream* other);
void close_graph(Graph& graph);
/// Whether replays of it have not been executed to their end.
bool is_running(const Graph& graph);

}  // namespace emu

#endif  // DAGSCHED_EMULATOR_GRAPHS_HPP
