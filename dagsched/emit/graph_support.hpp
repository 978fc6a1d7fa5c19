/// Captures what is issued to a stream, and to the streams that it forks, until it is finished. One that is not
/// finished is given up, so that the streams can be used again.
class Capture {
 public:
  Capture(Graph& graph, @Stream@ stream) : graph_(graph), stream_(stream) {}
  ~Capture() {
    if (!open_) return;
    static_cast<void>(graph_.end(stream_));
    graph_.release();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  @Error@ begin() {
    const @Error@ code = graph_.begin(stream_);
    open_ = code == @Success@;
    return code;
  }
  @Error@ finish() {
    open_ = false;
    return graph_.end(stream_);
  }

 private:
  Graph& graph_;
  @Stream@ stream_;
  bool open_ = false;
};

/// Host functions in graphs: each runs once a launch, for an index that grows by the same step every time. They must
/// outlive the launches.
class RepeatedCalls {
 public:
  using Body = std::function<@Error@(int64_t)>;

  @Error@ launch(HostCalls& host, @Stream@ stream, const Place& place, Body body, int64_t index, int64_t step) {
    calls_.push_back(Call{&host, place, std::move(body), index, step});
    return @LaunchHostFunc@(stream, &RepeatedCalls::run, &calls_.back());
  }
  void clear() { calls_.clear(); }

 private:
  struct Call {
    HostCalls* owner = nullptr;
    Place place;
    Body body;
    int64_t index = 0;
    int64_t step = 0;
  };

  static void @Calling@run(void* argument) noexcept {
    Call* call = static_cast<Call*>(argument);
    call->owner->execute(call->place, [call] { return call->body(call->index); });
    call->place.iteration += call->step;
    call->index += call->step;
  }

  std::deque<Call> calls_;
};
