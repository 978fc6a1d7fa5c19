// CUDA: capture of streams into graphs, and their replay.
#include <map>

#include "cuda_face.hpp"
#include "graphs.hpp"

using namespace emu;

namespace emu {
namespace {

// Never destroyed: threads may outlive `main`.
auto& graphs = *new std::map<const Graph*, std::shared_ptr<Graph>>;
auto& executables = *new std::map<const void*, std::shared_ptr<Graph>>;

}  // namespace

cudaError_t captured(const Stream* stream, const char* what) {
  stream->capture->broken = true;
  return refuse(cudaErrorStreamCaptureUnsupported, std::string(what) + " of a stream that is being captured");
}

void forget_graphs() {
  graphs.clear();
  executables.clear();
}

}  // namespace emu

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
  CUDA_CALL(work);
  Stream* stream = nullptr;
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) {
    return refuse(cudaErrorInvalidValue, "there is no such mode");
  }
  if (stream->legacy) return refuse(cudaErrorStreamCaptureUnsupported, "the legacy stream cannot be captured");
  if (stream->capture) return refuse(cudaErrorStreamCaptureUnsupported, "the stream is being captured already");
  begin_capture(stream, mode);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* out) {
  CUDA_CALL(plain);
  Stream* stream = nullptr;
  if (const cudaError_t code = require_places({out}); code != cudaSuccess) return code;
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  *out = nullptr;
  const std::shared_ptr<Graph> graph = stream->capture;
  if (!graph) return refuse(cudaErrorInvalidValue, "the stream is not being captured");
  if (graph->sources.front() != stream) return refuse(cudaErrorStreamCaptureUnmatched, "it began on another stream");
  if (graph->mode != cudaStreamCaptureModeRelaxed && graph->owner != std::this_thread::get_id()) {
    return refuse(cudaErrorStreamCaptureWrongThread, "the capture began on another thread");
  }
  end_capture(graph);
  if (graph->broken) return refuse(cudaErrorStreamCaptureInvalidated, "something was called that captures forbid");
  if (const std::string lost = find_unjoined(*graph); !lost.empty()) {
    return refuse(cudaErrorStreamCaptureUnjoined, "stream " + lost + " was not joined to the capturing stream");
  }
  graphs[graph.get()] = graph;
  *out = reinterpret_cast<cudaGraph_t>(graph.get());
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  CUDA_CALL(look);
  if (mode == nullptr || *mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed) {
    return refuse(cudaErrorInvalidValue, "there is no such mode");
  }
  *mode = static_cast<enum cudaStreamCaptureMode>(std::exchange(here().capture_mode, static_cast<int>(*mode)));
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus* status) {
  CUDA_CALL(plain);
  Stream* stream = nullptr;
  if (const cudaError_t code = require_places({status}); code != cudaSuccess) return code;
  if (const cudaError_t code = find_stream(handle, stream); code != cudaSuccess) return code;
  *status = !stream->capture         ? cudaStreamCaptureStatusNone
            : stream->capture->broken ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t handle, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(exec, handle, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t handle, unsigned long long) {
  CUDA_CALL(work);
  const auto at = graphs.find(reinterpret_cast<const Graph*>(handle));
  if (const cudaError_t code = require_places({exec}); code != cudaSuccess) return code;
  if (at == graphs.end()) return refuse(cudaErrorInvalidValue, "that is no graph, or it has been destroyed");
  const auto copy = std::make_shared<Graph>(*at->second);
  executables[copy.get()] = copy;
  *exec = reinterpret_cast<cudaGraphExec_t>(copy.get());
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  CUDA_CALL(work);
  Stream* stream = nullptr;
  const auto at = executables.find(handle);
  if (at == executables.end()) return refuse(cudaErrorInvalidValue, "that is no graph, or it has been destroyed");
  if (const cudaError_t code = find_stream(stream_handle, stream); code != cudaSuccess) return code;
  if (stream->capture) return captured(stream, "a graph's launch as part");
  const std::shared_ptr<Graph> graph = at->second;  // another thread may destroy it meanwhile
  return static_cast<cudaError_t>(replay(graph, stream));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  CUDA_CALL(release);
  const auto at = executables.find(handle);
  if (at == executables.end()) return refuse(cudaErrorInvalidValue, "that is no graph, or it has been destroyed");
  const std::shared_ptr<Graph> graph = at->second;
  executables.erase(at);
  close_graph(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  CUDA_CALL(release);
  if (graphs.erase(reinterpret_cast<const Graph*>(handle)) == 0) return refuse(cudaErrorInvalidValue, "that is no graph");
  return cudaSuccess;
}

}  // extern "C"
