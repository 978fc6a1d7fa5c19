// A small AscendCL for tests: every stream is a thread with a queue, events are those of aclrtCreateEventExWithFlag (a
// wait binds to the record issued last, and to nothing where there is none). What would be silent corruption on a
// device ends the program here: freeing memory or destroying a stream while work is queued, and copying out of bounds.
#include "fake_acl.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace {

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "fake_acl: %s\n", what);
  std::abort();
}

// Fulfilled when its record has been executed.
struct Token {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;

  void set() {
    const std::lock_guard<std::mutex> lock(mutex);
    done = true;
    changed.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return done; });
  }
};

struct Event {
  std::shared_ptr<Token> latest;
};

struct Stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<aclError()>> tasks;
  bool busy = false;
  bool closing = false;
  aclError error = ACL_SUCCESS;
  unsigned number = 0;
  std::thread thread;
};

struct Runtime {
  std::mutex mutex;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::map<char*, size_t> device;
  std::map<char*, size_t> pinned;
  std::atomic<bool> armed{false};
  std::string fault;
  int fault_in = 0;
  aclError fault_code = ACL_SUCCESS;
  unsigned seed = 0;
  int left_out = -1;
  int waits = 0;
  int waited = 0;
  bool initialised = false;
};

Runtime& runtime() {
  static Runtime instance;
  return instance;
}

thread_local std::string message;
thread_local std::string shown;
thread_local void* current = nullptr;
int the_context = 0;

// The code to return instead of making the call, where one was asked for. Without a fault nothing is locked: a lock
// would order tasks of different streams, and hide from ThreadSanitizer what the program has left unordered.
aclError enter(const char* function) {
  Runtime& r = runtime();
  if (!r.armed.load(std::memory_order_relaxed)) return ACL_SUCCESS;
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (r.fault != function || r.fault_in == 0 || --r.fault_in != 0) return ACL_SUCCESS;
  message = std::string("EI0001: injected into ") + function;
  return r.fault_code;
}

aclError refuse(aclError code, const char* why) {
  message = why;
  return code;
}

void execute(Stream* stream) {
  std::unique_lock<std::mutex> lock(stream->mutex);
  std::mt19937 random(runtime().seed + stream->number);
  const bool slow = stream->number + 1 == runtime().seed;
  while (true) {
    stream->changed.wait(lock, [stream] { return stream->closing || !stream->tasks.empty(); });
    if (stream->tasks.empty()) return;
    std::function<aclError()> task = std::move(stream->tasks.front());
    stream->tasks.pop_front();
    stream->busy = true;
    lock.unlock();
    if (runtime().seed != 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(slow ? 1000 : random() % 20));
    }
    const aclError injected = enter("task");
    const aclError code = task();
    task = nullptr;
    lock.lock();
    if (stream->error == ACL_SUCCESS) stream->error = injected != ACL_SUCCESS ? injected : code;
    stream->busy = false;
    stream->changed.notify_all();
  }
}

aclError enqueue(aclrtStream handle, std::function<aclError()> task) {
  Stream* stream = static_cast<Stream*>(handle);
  if (current == nullptr) return refuse(107002, "no current context");
  if (stream == nullptr) return refuse(107000, "the default stream is not used by emitted programs");
  const std::lock_guard<std::mutex> lock(stream->mutex);
  stream->tasks.push_back(std::move(task));
  stream->changed.notify_all();
  return ACL_SUCCESS;
}

aclError drain(Stream* stream) {
  std::unique_lock<std::mutex> lock(stream->mutex);
  stream->changed.wait(lock, [stream] { return stream->tasks.empty() && !stream->busy; });
  const aclError code = stream->error;
  stream->error = ACL_SUCCESS;
  if (code != ACL_SUCCESS) message = "a task of the stream failed";
  return code;
}

void require_idle(const char* what) {
  for (Stream* stream : runtime().streams) {
    const std::lock_guard<std::mutex> lock(stream->mutex);
    if (stream->busy || !stream->tasks.empty()) die(what);
  }
}

// Whether [address, address + size) lies in one block.
bool inside(const std::map<char*, size_t>& blocks, const void* address, size_t size) {
  char* first = const_cast<char*>(static_cast<const char*>(address));
  auto next = blocks.upper_bound(first);
  if (next == blocks.begin()) return false;
  --next;
  return first + size <= next->first + next->second;
}

aclError create(aclrtStream* stream) {
  auto* made = new Stream;
  const std::lock_guard<std::mutex> lock(runtime().mutex);
  made->number = static_cast<unsigned>(runtime().streams.size());
  made->thread = std::thread(execute, made);
  runtime().streams.insert(made);
  *stream = made;
  return ACL_SUCCESS;
}

aclError allocate(std::map<char*, size_t>& blocks, void** memory, size_t size) {
  if (size == 0) return refuse(107000, "size 0");
  const std::lock_guard<std::mutex> lock(runtime().mutex);
  *memory = std::aligned_alloc(64, (size + 63) / 64 * 64);
  std::memset(*memory, 0xA5, size);  // memory is never zeroed for anyone
  blocks[static_cast<char*>(*memory)] = size;
  return ACL_SUCCESS;
}

aclError release(std::map<char*, size_t>& blocks, void* memory) {
  const std::lock_guard<std::mutex> lock(runtime().mutex);
  require_idle("memory is freed while work is queued");
  if (blocks.erase(static_cast<char*>(memory)) == 0) die("freed twice, or never allocated");
  std::free(memory);
  return ACL_SUCCESS;
}

// Copies `height` rows; the ends must lie in memory of the direction's kinds.
aclError copy(char* to, size_t to_pitch, const char* from, size_t from_pitch, size_t width, size_t height,
              aclrtMemcpyKind kind, aclrtStream stream) {
  Runtime& r = runtime();
  if (kind == ACL_MEMCPY_HOST_TO_HOST) return refuse(207000, "no asynchronous copies within the host");
  bool pageable = false;
  {
    const std::lock_guard<std::mutex> lock(r.mutex);
    const size_t from_size = from_pitch * (height - 1) + width;
    const size_t to_size = to_pitch * (height - 1) + width;
    const bool from_device = kind != ACL_MEMCPY_HOST_TO_DEVICE;
    const bool to_device = kind != ACL_MEMCPY_DEVICE_TO_HOST;
    if (from_device && !inside(r.device, from, from_size)) die("a copy reads outside device memory");
    if (to_device && !inside(r.device, to, to_size)) die("a copy writes outside device memory");
    if (!from_device) pageable = !inside(r.pinned, from, from_size);
    if (!to_device) pageable = !inside(r.pinned, to, to_size);
  }
  const aclError code = enqueue(stream, [=] {
    for (size_t row = 0; row < height; ++row) std::memcpy(to + row * to_pitch, from + row * from_pitch, width);
    return ACL_SUCCESS;
  });
  if (code != ACL_SUCCESS || !pageable) return code;
  return drain(static_cast<Stream*>(stream));  // pageable memory: the call returns when the copy is done
}

}  // namespace

namespace fake_acl {

aclError launch(aclrtStream stream, std::function<void()> kernel) {
  if (const aclError code = enter("kernel"); code != ACL_SUCCESS) return code;
  return enqueue(stream, [kernel = std::move(kernel)] {
    kernel();
    return ACL_SUCCESS;
  });
}

void fail(const char* function, int number, aclError code) {
  const std::lock_guard<std::mutex> lock(runtime().mutex);
  runtime().fault = function;
  runtime().fault_in = number;
  runtime().fault_code = code;
  runtime().armed = number != 0;
}

int alive() {
  Runtime& r = runtime();
  const std::lock_guard<std::mutex> lock(r.mutex);
  return static_cast<int>(r.streams.size() + r.events.size() + r.device.size() + r.pinned.size());
}

void perturb(unsigned seed) { runtime().seed = seed; }

void leave_out(int wait, int of) {
  runtime().left_out = wait;
  runtime().waits = of;
  runtime().waited = 0;
}

}  // namespace fake_acl

#define ENTER(function) \
  if (const aclError injected = enter(function); injected != ACL_SUCCESS) return injected

extern "C" {

aclError aclInit(const char*) {
  ENTER("aclInit");
  runtime().initialised = true;
  return ACL_SUCCESS;
}

aclError aclFinalize() {
  if (fake_acl::alive() != 0) die("aclFinalize: resources are left");
  runtime().initialised = false;
  return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t) {
  ENTER("aclrtSetDevice");
  if (!runtime().initialised) return refuse(ACL_ERROR_UNINITIALIZE, "aclInit first");
  current = &the_context;
  return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t) {
  current = nullptr;
  return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  ENTER("aclrtGetCurrentContext");
  if (current == nullptr) return refuse(107002, "no current context");
  *context = current;
  return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  ENTER("aclrtSetCurrentContext");
  if (context == nullptr) return refuse(107000, "no context");
  current = context;
  return ACL_SUCCESS;
}

const char* aclGetRecentErrMsg() {
  if (message.empty()) return nullptr;
  shown = std::exchange(message, std::string());
  return shown.c_str();
}

aclError aclrtCreateStream(aclrtStream* stream) {
  ENTER("aclrtCreateStream");
  return create(stream);
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t) {
  ENTER("aclrtCreateStreamWithConfig");
  return priority > 7 ? refuse(107000, "priority") : create(stream);
}

aclError aclrtDestroyStream(aclrtStream handle) {
  Stream* stream = static_cast<Stream*>(handle);
  {
    const std::lock_guard<std::mutex> lock(runtime().mutex);
    require_idle("a stream is destroyed while work is queued");
    if (runtime().streams.erase(stream) == 0) die("a stream is destroyed twice");
  }
  {
    const std::lock_guard<std::mutex> lock(stream->mutex);
    stream->closing = true;
    stream->changed.notify_all();
  }
  stream->thread.join();
  delete stream;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  const aclError injected = enter("aclrtSynchronizeStream");
  if (stream == nullptr) die("the default stream is synchronised");
  const aclError code = drain(static_cast<Stream*>(stream));
  return injected != ACL_SUCCESS ? injected : code;
}

aclError aclrtSynchronizeDevice() {
  ENTER("aclrtSynchronizeDevice");
  aclError code = ACL_SUCCESS;
  for (Stream* stream : runtime().streams) {
    const aclError one = drain(stream);
    if (code == ACL_SUCCESS) code = one;
  }
  return code;
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  ENTER("aclrtCreateEventExWithFlag");
  if (flag != ACL_EVENT_SYNC) return refuse(207000, "flag");
  auto* made = new Event;
  const std::lock_guard<std::mutex> lock(runtime().mutex);
  runtime().events.insert(made);
  *event = made;
  return ACL_SUCCESS;
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  const std::lock_guard<std::mutex> lock(runtime().mutex);
  if (runtime().events.erase(static_cast<Event*>(event)) == 0) die("an event is destroyed twice");
  delete static_cast<Event*>(event);
  return ACL_SUCCESS;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  ENTER("aclrtRecordEvent");
  auto token = std::make_shared<Token>();
  static_cast<Event*>(event)->latest = token;
  return enqueue(stream, [token] {
    token->set();
    return ACL_SUCCESS;
  });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  ENTER("aclrtStreamWaitEvent");
  Runtime& r = runtime();
  if (r.left_out >= 0 && r.waited++ % r.waits == r.left_out) return ACL_SUCCESS;
  const std::shared_ptr<Token> token = static_cast<Event*>(event)->latest;
  if (!token) return ACL_SUCCESS;
  return enqueue(stream, [token] {
    token->wait();
    return ACL_SUCCESS;
  });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  ENTER("aclrtSynchronizeEvent");
  if (static_cast<Event*>(event)->latest) static_cast<Event*>(event)->latest->wait();
  return ACL_SUCCESS;
}

aclError aclrtMalloc(void** memory, size_t size, aclrtMemMallocPolicy) {
  ENTER("aclrtMalloc");
  return allocate(runtime().device, memory, size);
}

aclError aclrtFree(void* memory) { return release(runtime().device, memory); }

aclError aclrtMallocHost(void** memory, size_t size) {
  ENTER("aclrtMallocHost");
  return allocate(runtime().pinned, memory, size);
}

aclError aclrtFreeHost(void* memory) { return release(runtime().pinned, memory); }

aclError aclrtMemcpyAsync(void* to, size_t room, const void* from, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
  ENTER("aclrtMemcpyAsync");
  if (count > room) return refuse(107000, "count exceeds destMax");
  if (count == 0) return ACL_SUCCESS;
  return copy(static_cast<char*>(to), count, static_cast<const char*>(from), count, count, 1, kind, stream);
}

aclError aclrtMemcpy2dAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream) {
  ENTER("aclrtMemcpy2dAsync");
  if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE) return refuse(100000, "not on every product");
  if (width > to_pitch || width > from_pitch || width == 0 || height == 0) return refuse(107000, "pitch");
  return copy(static_cast<char*>(to), to_pitch, static_cast<const char*>(from), from_pitch, width, height, kind, stream);
}

aclError aclrtMemsetAsync(void* memory, size_t room, int32_t value, size_t count, aclrtStream stream) {
  ENTER("aclrtMemsetAsync");
  if (count > room) return refuse(107000, "count exceeds maxCount");
  {
    const std::lock_guard<std::mutex> lock(runtime().mutex);
    if (!inside(runtime().device, memory, count)) die("a fill writes outside device memory");
  }
  return enqueue(stream, [=] {
    std::memset(memory, value, count);
    return ACL_SUCCESS;
  });
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void* argument) {
  ENTER("aclrtLaunchHostFunc");
  return enqueue(stream, [=] {
    function(argument);
    return ACL_SUCCESS;
  });
}

}  // extern "C"
