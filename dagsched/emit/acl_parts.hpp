inline const char* error_name(aclError code) {
  switch (code) {
@ERROR_NAMES@
    default: return "an error that has no name here";
  }
}

/// What the runtime last said in this thread.
inline std::string recent_message(aclError /*code*/) {
  const char* recent = aclGetRecentErrMsg();
  return recent != nullptr ? recent : "";
}

/// Makes this context current for a scope, so that a pipeline may be used from any thread.
class CurrentContext {
 public:
  explicit CurrentContext(aclrtContext wanted) {
    if (aclrtGetCurrentContext(&previous_) != ACL_SUCCESS) previous_ = nullptr;
    if (previous_ != wanted) code_ = aclrtSetCurrentContext(wanted);
    changed_ = previous_ != wanted;
  }
  ~CurrentContext() {
    if (changed_ && previous_ != nullptr) static_cast<void>(aclrtSetCurrentContext(previous_));
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  aclError code() const { return code_; }

 private:
  aclrtContext previous_ = nullptr;
  aclError code_ = ACL_SUCCESS;
  bool changed_ = false;
};

using Stream = Handle<aclrtStream, &aclrtDestroyStream>;
using Event = Handle<aclrtEvent, &aclrtDestroyEvent>;
using DeviceMemory = Handle<void*, &aclrtFree>;
using PinnedMemory = Handle<void*, &aclrtFreeHost>;
using PageableMemory = Handle<void*, &free_pageable>;

/// Waits for what a stream has been given. Its errors have been reported already, or have nobody to be reported to.
inline void drain_stream(const Stream& stream) {
  if (stream != nullptr) static_cast<void>(aclrtSynchronizeStream(stream));
}

inline aclError allocate(DeviceMemory& memory, size_t size) {
  return aclrtMalloc(memory.receive(), size, ACL_MEM_MALLOC_HUGE_FIRST);
}
inline aclError allocate(PinnedMemory& memory, size_t size) { return aclrtMallocHost(memory.receive(), size); }
inline aclError allocate(PageableMemory& memory, size_t size) { return allocate_pageable(memory.receive(), size); }

inline aclError create_stream(Stream& stream) { return aclrtCreateStream(stream.receive()); }
inline aclError create_stream(Stream& stream, uint32_t priority) {
  return aclrtCreateStreamWithConfig(stream.receive(), priority, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC);
}

/// An event whose waits bind to the record that was issued last.
inline aclError create_event(Event& event) { return aclrtCreateEventExWithFlag(event.receive(), ACL_EVENT_SYNC); }
