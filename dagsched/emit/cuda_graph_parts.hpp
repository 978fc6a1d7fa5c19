/// A captured piece of the program that can be launched as often as one likes; its launches follow each other.
class Graph {
 public:
  Graph() = default;
  ~Graph() { release(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  cudaError_t begin(cudaStream_t stream) { return cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal); }
  cudaError_t end(cudaStream_t stream) {
    cudaGraph_t captured = nullptr;
    cudaError_t code = cudaStreamEndCapture(stream, &captured);
    if (code == cudaSuccess) code = cudaGraphInstantiateWithFlags(&exec_, captured, 0);
    if (captured != nullptr) static_cast<void>(cudaGraphDestroy(captured));
    return code;
  }
  cudaError_t launch(cudaStream_t stream) { return cudaGraphLaunch(exec_, stream); }

  /// To be called when no launch is under way.
  void release() {
    if (exec_ != nullptr) static_cast<void>(cudaGraphExecDestroy(std::exchange(exec_, nullptr)));
  }

 private:
  cudaGraphExec_t exec_ = nullptr;
};
