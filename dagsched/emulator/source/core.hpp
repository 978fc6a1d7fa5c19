// The emulated device: streams that are threads, memory of its own, events, faults and a trace. It knows no runtime's
// names; the faces in front of it (acl_*.cpp, cuda_*.cpp) turn calls into tasks and results into codes.
//
// One lock guards everything here. Tasks run without it, on their stream's thread, when the scheduler lets them: after
// every call of the host it draws, from the seed, how many steps the device may make and which stream makes each. One
// step is one task, or a piece of a copy. So a seed gives one interleaving, and another seed another.
#ifndef DAGSCHED_EMULATOR_CORE_HPP
#define DAGSCHED_EMULATOR_CORE_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sync.hpp"

namespace emu {

constexpr int64_t kNoIteration = -1;

// ---------------------------------------------------------------------------------------------------------- tasks

/// Set once: a record that has been executed, or anything else that somebody waits for.
struct Token {
  bool done = false;
  Time when{};
};
using TokenPtr = std::shared_ptr<Token>;

/// What a task's work comes to. Above zero: the error code that it failed with.
constexpr int kDone = 0, kMore = -1;

/// Something that a stream executes in its turn.
struct Task {
  std::string what;                // for people: "record upload.done"
  std::function<bool()> ready;     // with the lock: may it run? Empty: it may
  std::function<void()> begun;     // with the lock, when it has been chosen: it may take what it was ready for
  std::function<int()> work;       // without the lock: kDone, kMore (to be called again) or an error
  std::function<void()> finished;  // with the lock, once it is done, failed or dropped
  std::vector<std::shared_ptr<struct Block>> uses;  // blocks that it is going to touch, as far as the runtime knows
  bool essential = false;          // runs even where a failure drops what comes after it: records and waits tell
                                   // ThreadSanitizer what has ended
  int step = -1;                   // its step in the trace
  int fault = 0;                   // fails with this code instead of running
};
using TaskPtr = std::unique_ptr<Task>;

/// The tokens of one replay of a graph, by the number of the record.
using Replay = std::vector<TokenPtr>;
/// Makes a task: once for a stream, or anew for every replay of a graph.
using Recipe = std::function<TaskPtr(Replay*)>;

/// Work that was captured: lanes are the streams that took part, entries their tasks in the order of the calls.
struct Graph {
  struct Entry {
    size_t lane = 0;
    Recipe recipe;
    bool marker = false;     // a record: nothing to be joined
    int64_t waits_for = -1;  // the entry whose record it waits for
    std::string op = "";     // whose it is, in the iteration that was captured
    int64_t iteration = kNoIteration;
    int fault = 0;  // of its next task
  };
  int64_t began = kNoIteration;  // the iteration that was noted when the capture began
  std::vector<Entry> entries;
  std::vector<struct Stream*> sources;  // the streams captured, the capturing one first
  std::vector<struct Stream*> lanes;    // what runs them in a replay
  size_t records = 0;
  int mode = 0;
  std::thread::id owner;
  bool broken = false;  // something was called that a capture forbids
};

// -------------------------------------------------------------------------------------------------------- objects

struct Context {
  int device = 0;
  bool primary = false;
  bool destroyed = false;
  int stopped = 0;  // the code of a failure after which nothing more is executed
  bool (*breaks_on)(int code) = nullptr;  // whether a task's failure with this code leaves nothing that can be used
  struct Stream* default_stream = nullptr;
};

struct Stream {
  int number = 0;
  std::string name;
  Context* context = nullptr;
  bool blocking = false;  // CUDA: synchronises with the legacy default stream
  bool legacy = false;    // is that stream
  bool internal = false;  // a lane of a graph
  Stream* launched_on = nullptr;  // whose failure a failure in this lane is
  uint32_t flags = 0;
  int priority = 0;
  bool stops_on_failure = false;
  bool has_callbacks = false, has_host_functions = false;
  int error = 0;  // not reported yet
  std::shared_ptr<Graph> capture;
  size_t lane = 0;
  size_t unfinished = 0;

  std::deque<TaskPtr> queue;
  bool flying = false;   // its head is being executed
  bool overdue = false;  // for so long that nobody waits for it any more
  bool paused = false;   // its head is in the middle and may go on
  bool go = false;
  bool leaving = false;  // somebody destroys it: no call finds it any more
  bool closing = false;
  Gate gate;
  std::thread thread;
};

/// ExWithFlag and CUDA; aclrtCreateEvent; aclrtCreateEventWithFlag; aclrtCreateNotify.
enum class EventKind { latest, counted, flag, notify };

struct Event {
  int number = 0;
  std::string name;
  EventKind kind = EventKind::latest;
  uint32_t flags = 0;
  Context* context = nullptr;
  TokenPtr latest;  // latest, counted: the newest record. flag: the record that has set the flag
  bool set = false;
  bool recorded = false;  // flag: recorded and not reset since, in the order of the calls
  int ahead = 0;          // notify: records without a wait, in the order of the calls
  int generation = 0;     // records so far, for the trace
  int waits_pending = 0;
  std::vector<int> waiters;  // flag: the streams that wait since the last reset
  std::shared_ptr<Graph> capture;  // its newest record is part of this capture
  size_t record = 0;
  size_t at = 0;
};
using EventPtr = std::shared_ptr<Event>;

enum class Place { device, pinned, registered };

/// A block of memory. `host` is the address that the program knows; on device blocks only `view` may be touched.
struct Block {
  Place place = Place::device;
  char* host = nullptr;
  char* view = nullptr;
  size_t size = 0;
  std::string name;
  uint64_t at = 0;  // its address in the trace, where no address is used twice
  int device = 0;
  bool leaving = false;   // a free of it has been queued
  bool released = false;  // tasks that still use it keep its bytes, and the program is ended when they are executed
  char* mapping = nullptr;
  char* second = nullptr;
  size_t mapped = 0;
  int64_t offset = 0;
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();
};
using BlockPtr = std::shared_ptr<Block>;

enum class Mode { read, write, update, accumulate };

struct Touch {
  const char* address = nullptr;
  size_t size = 0;
  Mode mode = Mode::read;
  BlockPtr block;
};

/// One step of the trace.
struct Step {
  std::string action;  // op, record, wait, reset, host, free, sync
  std::string stream;
  std::string name;  // of an op, an event, a buffer
  EventPtr event;
  int generation = 0;
  int replay = 0;  // of a captured step: which one
  std::vector<Touch> touches;
};

// ----------------------------------------------------------------------------------------------------- the world

struct Options {
  uint64_t seed = 0;
  size_t streams = 1984, events = 65536, depth = 2013;
  uint64_t memory = uint64_t{64} << 30;
  size_t alignment = 1;  // of addresses in copies on the device
  bool strict = false;   // the first complaint ends the program
  bool returns = false;  // a program that waits for ever gets an error code instead of being ended
  std::string trace, inject;
};

struct Fault {
  std::string target;  // an op's or a function's name
  int64_t iteration = kNoIteration;
  bool by_number = false;
  int64_t number = 0;
  int code = 0;
  enum class How { call, task, lost } how = How::call;
};

/// What has been destroyed. Its address is given to nothing else for a while, so that whoever still uses it is told.
struct Gone {
  const void* handle = nullptr;
  std::string what;
  std::shared_ptr<void> kept;
};

/// Everything there is; never destroyed, so that late threads find it alive.
struct World {
  Lock lock;
  Options options;
  Gate quiet;
  std::vector<Stream*> streams;
  std::vector<EventPtr> events;
  std::vector<std::unique_ptr<Context>> contexts, ended;
  std::map<char*, BlockPtr> blocks;
  std::map<char*, BlockPtr> freed;
  std::deque<BlockPtr> freed_in_order;
  std::deque<Gone> gone;
  std::map<std::string, int> names;  // how often each has been given
  std::vector<Step> trace;
  std::vector<Fault> faults;
  bool tracing = false;
  std::string event_model;
  std::string trace_path;
  std::map<std::string, bool> traced_streams;  // and whether they are non-blocking
  bool legacy = false;

  int64_t credits = 0;  // steps that the device may make; below zero: any number
  int flying = 0;
  int waiting = 0;  // the step is for a host that waits
  uint64_t random = 1;
  uint64_t calls = 0;
  int host_threads = 0, servers = 0;  // servers: those of them that run callbacks
  bool ticking = false;
  Gate tick;

  int stream_number = 0, event_number = 0, replays = 0;
  size_t flag_events = 0, pending_records = 0;
  uint64_t allocated = 0, next_at[3] = {4096, 4096, uint64_t{1} << 40};
  int memory_file = -1;
  int64_t memory_end = 0;
  int64_t tasks_executed = 0;
  int lost = 0;  // the code that everything returns once the device is gone
  int complaints = 0;
  int left_out = -1, left_out_of = 1, waits = 0;
};

World& world();

/// What this thread is doing.
struct ThreadState {
  Context* context = nullptr;
  std::string op;
  int64_t iteration = kNoIteration;
  Stream* executing = nullptr;  // the stream whose task it runs
  Task* task = nullptr;
  int step = -1;  // the trace's step of the callback that it runs
  int next_fault = 0;
  std::string message, shown;
  int last_error = 0;
  bool counted = false;
  bool in_callback = false;
  bool serves = false;  // it has asked for callbacks to run
  Stream* own_stream = nullptr;  // CUDA: the default stream of this thread
  int capture_mode = 0;
  ~ThreadState();
};
ThreadState& here();

// ----------------------------------------------------------------------------------------- scheduling (schedule.cpp)

Options read_options();
/// Numbers, names, faults and the trace begin anew, and the options are read again; for one process, many programs.
void start_over();
uint64_t draw(uint64_t below);
void seed(uint64_t value);
/// Lets the device make some steps after a call of the host.
void advance();
/// Lets the device work until something holds. False: the time has come, or it can never hold.
/// `patient`: somebody else may make it hold at any time, so that waiting for long is no deadlock.
bool wait_until(const std::function<bool()>& holds, Time until = Time::max(), bool patient = false);
/// In a task: others may make their steps before it goes on.
void breathe();

/// The stream of a handle that a kernel is queued on; each face has its own rules. Returns its error code.
int find_launch_stream(void* handle, Stream*& stream);
Stream* open_stream(Context* context, const std::string& name);
/// Waits for its end and destroys it; nothing where somebody else does so already.
void close_stream(Stream* stream);
/// Queues a task, or adds it to what is being captured. Waits where the queue is full.
void enqueue(Stream* stream, const std::string& what, Recipe recipe, Step step = {});
void push(Stream* stream, TaskPtr task);
/// A token that is set when all that is queued now has been executed.
TokenPtr mark_end(Stream* stream);
/// Waits until a stream has come to its end; false: in time it has not.
bool drain(Stream* stream, Time until = Time::max());
/// The stream's error, once.
int take_error(Stream* stream);
std::vector<Stream*> streams_of(const Context* context);

// --------------------------------------------------------------------------------------------- events (events.cpp)

EventPtr open_event(Context* context, EventKind kind, uint32_t flags, const std::string& name);
EventPtr find_event(const void* handle);
void close_event(const void* handle);
void record_event(const EventPtr& event, Stream* stream);
/// The stream waits for the newest record, or for the flag.
void wait_event(Stream* stream, const EventPtr& event);
void reset_event(const EventPtr& event, Stream* stream);
bool is_complete(const EventPtr& event);
void set_notify(const EventPtr& notify, Stream* stream);
/// The stream waits until the notify is set, and clears it.
void take_notify(const EventPtr& notify, Stream* stream);
/// Its kind and name, for people.
std::string describe(const Event& event);
/// A step of the trace that records or waits for an event.
Step event_step(const char* action, const EventPtr& event);
/// `stream` waits for what `other` has been given so far.
void join_streams(Stream* stream, Stream* other);

// --------------------------------------------------------------------------------------------- graphs (graphs.cpp)

/// Whether a capture forbids this thread to make a call that is unsafe in its mode; if so, that capture is lost.
bool forbid_in_capture();

// --------------------------------------------------------------------------------------------- memory (memory.cpp)

BlockPtr allocate(Place place, size_t size, const std::string& name);
BlockPtr adopt(char* address, size_t size, const std::string& name);
void release_block(const BlockPtr& block);
/// The block that holds all of [address, address + size), or null. `block_at` finds the block of the first byte.
BlockPtr block_at(const void* address);
bool reaches_outside(const BlockPtr& block, const void* address, size_t size);
/// Whether any byte is part of a block already, or the end is beyond all addresses.
bool overlaps_block(const void* address, size_t size);
/// The task is going to touch the blocks of these addresses.
void hold(Task& task, std::initializer_list<const void*> addresses);
void hold(Task& task, const std::vector<void*>& addresses);
/// Ends the program where a block that the task uses has been released.
void require_held(const Task& task);
/// Where a device address can be touched; other addresses are returned as they are.
char* view_of(const void* address);
/// Ends the program where the memory behind an address has been freed, or overrun, when a task gets to it.
void require_alive(const void* address, size_t size, const char* what);
void catch_bad_accesses();

/// The bytes from the first row's begin to the last row's end; false where nothing is that long.
bool extent(size_t pitch, size_t width, size_t height, size_t& size);

/// Rows to be copied; `height` 1 is a plain copy.
struct Rows {
  char* to = nullptr;
  size_t to_pitch = 0;
  const char* from = nullptr;
  size_t from_pitch = 0, width = 0, height = 1;
};
void copy_now(const Rows& rows);
/// The recipe of a copy that takes effect piece by piece, in an order drawn from the seed.
Recipe copy_in_pieces(const Rows& rows);
Recipe fill_in_pieces(char* to, int value, size_t size);

/// Why a block cannot be released so: it never was one, has been released, or is of another place.
std::string explain_release(const void* address, Place place);

// ------------------------------------------------------------------------------------------- reports (reports.cpp)

/// Keeps what has been destroyed, for a while.
void bury(const void* handle, const std::string& what, std::shared_ptr<void> kept);
/// Why a handle is none of the wanted kind: null, destroyed, or of another kind.
std::string explain_handle(const void* handle, const std::string& wanted);
[[noreturn]] void end_program(int status, const std::string& why);
void complain(const std::string& why);
std::string describe_stuck();
std::string list_leaks();
int alive();
bool parse_fault(const std::string& text, Fault& fault);
/// The code to return instead of making a call, where a fault says so. `works`: the call is an op's own.
int enter(const char* function, bool works);
int fail(int code, const std::string& why);
/// From now on every call but those that release fails with this code; what was being captured is lost as well.
void lose_device(int code);

// ---------------------------------------------------------------------------------------------- trace (trace.cpp)

int add_step(Step step);
void touch(int step, const void* address, size_t size, Mode mode);
void touch_rows(std::vector<Touch>& touches, const char* address, size_t pitch, size_t width, size_t height, Mode mode);
void write_trace();
std::string label(const std::string& otherwise);
/// Names that nothing else of its kind has: `NAME.0`, `NAME.1`, and so on; or NAME first and numbers then.
std::string numbered(const std::string& name, const char* separator = ".");
std::string unique(const std::string& name);
/// What can be a name in a schedule.
std::string plain(const std::string& text);

}  // namespace emu

#endif  // DAGSCHED_EMULATOR_CORE_HPP
