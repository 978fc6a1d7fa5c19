/// A captured piece of the program that can be launched as often as one likes; its launches follow each other.
class Graph {
 public:
  Graph() = default;
  ~Graph() { release(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  aclError begin(aclrtStream stream) { return aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL); }
  aclError end(aclrtStream stream) { return aclmdlRICaptureEnd(stream, &model_); }
  aclError launch(aclrtStream stream) { return aclmdlRIExecuteAsync(model_, stream); }

  /// To be called when no launch is under way.
  void release() {
    if (model_ != nullptr) static_cast<void>(aclmdlRIDestroy(std::exchange(model_, nullptr)));
  }

 private:
  aclmdlRI model_ = nullptr;
};
