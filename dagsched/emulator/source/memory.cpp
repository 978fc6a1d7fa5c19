// Memory. Device memory is one file mapped twice: the addresses that the program knows cannot be touched, and the
// device's own threads use the second mapping. Blocks end at the end of a page, so that what runs over them is caught.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "core.hpp"

namespace emu {
namespace {

constexpr size_t kAlignment = 64;
constexpr int kPieces = 4;
constexpr size_t kFilled = size_t{1} << 26;  // larger blocks begin with zeros: filling them takes too long
constexpr size_t kQuarantine = 4096;  // freed blocks whose addresses are remembered

size_t round_up(size_t size, size_t to) { return (size + to - 1) / to * to; }

struct sigaction previous_segv, previous_bus;

void say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

// The handler runs in the thread that touched the address, outside the lock: reading the maps may meet a change, and
// the program is lost either way.
void on_bad_access(int signal, siginfo_t* info, void* context) {
  const char* address = static_cast<const char*>(info->si_addr);
  const bool on_device = here().executing != nullptr;
  static char text[512];
  for (const auto* blocks : {&world().blocks, &world().freed}) {
    for (const auto& [start, block] : *blocks) {
      const bool by_host = block->mapping <= address && address < block->mapping + block->mapped;
      const bool by_view = block->second && block->second <= address && address < block->second + block->mapped;
      if (!by_host && !by_view) continue;
      const char* from = by_host ? block->host : block->view;
      const bool freed = blocks == &world().freed;
      const char* who = on_device ? "a task" : "the host";
      const char* what = freed ? "touched memory that has been freed"
                         : address < from || address >= from + block->size ? "touched memory beyond the end of a block"
                         : on_device ? "touched device memory by its host address: ask dagsched_emulator_device for it"
                                     : "touched device memory: only the device can";
      std::snprintf(text, sizeof text, "emulator: %s %s\n  address %p is byte %td of %s, a device block of %zu bytes\n",
                    who, what, static_cast<const void*>(address), address - from, block->name.c_str(), block->size);
      say(text);
      if (here().iteration != kNoIteration || !here().op.empty()) {
        std::snprintf(text, sizeof text, "  during %s, iteration %lld\n", here().op.c_str(),
                      static_cast<long long>(here().iteration));
        say(text);
      }
      _exit(86);
    }
  }
  const struct sigaction& next = signal == SIGSEGV ? previous_segv : previous_bus;
  if ((next.sa_flags & SA_SIGINFO) != 0 && next.sa_sigaction != nullptr) return next.sa_sigaction(signal, info, context);
  sigaction(signal, &next, nullptr);  // the access is made again, and ends the program
}

bool map_device(const BlockPtr& block) {
  World& w = world();
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t inside = round_up(block->size, page);
  if (w.memory_file < 0) w.memory_file = memfd_create("dagsched-emulator", MFD_CLOEXEC);
  if (w.memory_file < 0) return false;
  block->offset = w.memory_end;
  if (ftruncate(w.memory_file, block->offset + static_cast<int64_t>(inside)) != 0) return false;
  w.memory_end += static_cast<int64_t>(inside);
  block->mapped = inside + 2 * page;  // a page that nobody may touch on each side
  const auto reserve = [&] {
    void* found = mmap(nullptr, block->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return found == MAP_FAILED ? nullptr : static_cast<char*>(found);
  };
  block->mapping = reserve();
  block->second = reserve();
  if (block->mapping == nullptr || block->second == nullptr) return false;
  void* view = mmap(block->second + page, inside, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, w.memory_file,
                    block->offset);
  if (view == MAP_FAILED) return false;
  const size_t shift = inside - round_up(block->size, kAlignment);
  block->host = block->mapping + page + shift;
  block->view = block->second + page + shift;
  return true;
}

// The addresses stay reserved for a while, so that whoever still uses them is told.
void unmap_device(const BlockPtr& block) {
  World& w = world();
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t inside = block->mapped - 2 * page;
  mmap(block->second, block->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  fallocate(w.memory_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, block->offset, static_cast<off_t>(inside));
  w.freed[block->host] = block;
  w.freed_in_order.push_back(block);
  if (w.freed_in_order.size() <= kQuarantine) return;
  const BlockPtr oldest = w.freed_in_order.front();
  w.freed_in_order.pop_front();
  w.freed.erase(oldest->host);
  munmap(oldest->mapping, oldest->mapped);
  munmap(oldest->second, oldest->mapped);
}

// Whom a release takes a block from: the first task that has not been executed, or "".
std::string find_user(const BlockPtr& block) {
  for (const Stream* stream : world().streams) {
    if (stream->context != nullptr && stream->context->stopped != 0) continue;  // it drops what it has
    for (const TaskPtr& task : stream->queue) {
      if (std::find(task->uses.begin(), task->uses.end(), block) == task->uses.end()) continue;
      return "`" + task->what + "` of stream " + stream->name;
    }
  }
  return "";
}

BlockPtr find_in(const std::map<char*, BlockPtr>& blocks, const void* address) {
  auto next = blocks.upper_bound(const_cast<char*>(static_cast<const char*>(address)));
  if (next == blocks.begin()) return nullptr;
  const BlockPtr& block = std::prev(next)->second;
  const char* end = block->host + std::max<size_t>(block->size, 1);
  return static_cast<const char*>(address) < end ? block : nullptr;
}

void add_block(const BlockPtr& block) {
  World& w = world();
  uint64_t& next = w.next_at[block->place == Place::device ? 0 : 1];
  block->at = next;
  next += round_up(block->size, 4096) + 4096;
  w.blocks[block->host] = block;
}

// Boundaries of the pieces, and the order in which they take effect.
std::vector<std::pair<size_t, size_t>> cut(size_t size) {
  const size_t most = size < 2 ? 1 : 1 + draw(kPieces);
  std::vector<size_t> ends{0, size};
  for (size_t n = 1; n < most; ++n) ends.push_back(1 + draw(size));
  std::sort(ends.begin(), ends.end());
  std::vector<std::pair<size_t, size_t>> pieces;
  for (size_t n = 1; n < ends.size(); ++n) {
    if (ends[n] > ends[n - 1]) pieces.emplace_back(ends[n - 1], ends[n]);
  }
  for (size_t n = pieces.size(); n > 1; --n) std::swap(pieces[n - 1], pieces[draw(n)]);
  return pieces;
}

}  // namespace

BlockPtr allocate(Place place, size_t size, const std::string& name) {
  World& w = world();
  if (size > w.options.memory || (place == Place::device && w.allocated > w.options.memory - size)) return nullptr;
  auto block = std::make_shared<Block>();
  block->place = place;
  block->device = here().context == nullptr ? 0 : here().context->device;
  block->size = size;
  block->name = name;
  if (place == Place::device) {
    if (!map_device(block)) return nullptr;
    w.allocated += size;
  } else {
    block->host = static_cast<char*>(std::aligned_alloc(kAlignment, round_up(size, kAlignment)));
    if (block->host == nullptr) return nullptr;
    block->view = block->host;
  }
  if (size <= kFilled) std::memset(block->view, 0xA5, size);  // memory is never zeroed for anyone
  add_block(block);
  return block;
}

BlockPtr adopt(char* address, size_t size, const std::string& name) {
  auto block = std::make_shared<Block>();
  block->place = Place::registered;
  block->size = size;
  block->name = name;
  block->host = block->view = address;
  add_block(block);
  return block;
}

void release_block(const BlockPtr& block) {
  World& w = world();
  const std::string user = w.lost != 0 ? "" : find_user(block);
  if (!user.empty()) complain("memory " + block->name + " is released, and " + user + " is still going to use it");
  w.blocks.erase(block->host);
  block->released = true;
  if (block->place != Place::device) return;
  w.allocated -= block->size;
  unmap_device(block);
}

Block::~Block() {
  if (place == Place::pinned) std::free(host);
}

BlockPtr block_at(const void* address) { return find_in(world().blocks, address); }

bool reaches_outside(const BlockPtr& block, const void* address, size_t size) {
  const size_t start = static_cast<size_t>(static_cast<const char*>(address) - block->host);
  return size > block->size || start > block->size - size;
}

bool overlaps_block(const void* address, size_t size) {
  char* start = const_cast<char*>(static_cast<const char*>(address));
  if (size > UINTPTR_MAX - reinterpret_cast<uintptr_t>(start)) return true;
  const auto& blocks = world().blocks;
  const auto next = blocks.lower_bound(start);
  return block_at(start) || (next != blocks.end() && next->first < start + size);
}

void hold(Task& task, std::initializer_list<const void*> addresses) {
  for (const void* address : addresses) {
    if (BlockPtr block = block_at(address)) task.uses.push_back(std::move(block));
  }
}

void hold(Task& task, const std::vector<void*>& addresses) {
  for (const void* address : addresses) hold(task, {address});
}

void require_held(const Task& task) {
  for (const BlockPtr& block : task.uses) {
    if (!block->released) continue;
    const char* how = block->place == Place::registered ? "unregistered" : "freed";
    end_program(86, task.what + " gets to " + block->name + ", which has been " + how);
  }
}

bool extent(size_t pitch, size_t width, size_t height, size_t& size) {
  size_t above = 0;
  return !__builtin_mul_overflow(height - 1, pitch, &above) && !__builtin_add_overflow(above, width, &size);
}

char* view_of(const void* address) {
  char* given = const_cast<char*>(static_cast<const char*>(address));
  const BlockPtr block = block_at(address);
  return block && block->place == Place::device ? block->view + (given - block->host) : given;
}

void require_alive(const void* address, size_t size, const char* what) {
  const BlockPtr block = block_at(address);
  if (block) {
    if (reaches_outside(block, address, size)) {
      end_program(86, std::string(what) + " reaches beyond the end of " + block->name);
    }
    return;
  }
  if (const BlockPtr gone = find_in(world().freed, address)) {
    end_program(86, std::string(what) + " gets to " + gone->name + ", which has been freed");
  }
}

std::string explain_release(const void* address, Place place) {
  static const char* const places[] = {"device memory", "page-locked memory", "registered memory"};
  if (address == nullptr) return "a null pointer is released";
  if (const BlockPtr gone = find_in(world().freed, address)) return gone->name + " is released a second time";
  const BlockPtr block = block_at(address);
  if (!block) return "memory is released that the runtime did not allocate, or that has been released";
  if (block->host != address) return "an address inside " + block->name + " is released: give its first byte";
  const auto of = [](Place which) { return places[static_cast<int>(which)]; };
  return block->name + ", " + of(block->place) + ", is released as " + of(place);
}

void catch_bad_accesses() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  struct sigaction action {};
  action.sa_sigaction = on_bad_access;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_segv);
  sigaction(SIGBUS, &action, &previous_bus);
}

void copy_now(const Rows& rows) {
  Rows seen = rows;
  {
    const Guard guard(world().lock);
    require_alive(rows.to, (rows.height - 1) * rows.to_pitch + rows.width, "a copy");
    require_alive(rows.from, (rows.height - 1) * rows.from_pitch + rows.width, "a copy");
    seen.to = view_of(rows.to);
    seen.from = view_of(rows.from);
  }
  for (size_t row = 0; row < rows.height; ++row) {
    std::memmove(seen.to + row * rows.to_pitch, seen.from + row * rows.from_pitch, rows.width);
  }
}

Recipe copy_in_pieces(const Rows& rows) {
  return [rows](Replay*) {
    auto task = std::make_unique<Task>();
    hold(*task, {rows.to, rows.from});
    const bool by_rows = rows.height > 1;
    auto pieces = cut(by_rows ? rows.height : rows.width);
    task->work = [rows, by_rows, pieces = std::move(pieces), next = size_t{0}]() mutable {
      const auto [from, to] = pieces[next++];
      Rows part = rows;
      if (by_rows) {
        part.to += from * rows.to_pitch;
        part.from += from * rows.from_pitch;
        part.height = to - from;
      } else {
        part.to += from;
        part.from += from;
        part.width = to - from;
      }
      copy_now(part);
      return next < pieces.size() ? kMore : kDone;
    };
    return task;
  };
}

Recipe fill_in_pieces(char* to, int value, size_t size) {
  return [=](Replay*) {
    auto task = std::make_unique<Task>();
    hold(*task, {to});
    task->work = [=, pieces = cut(size), next = size_t{0}]() mutable {
      const auto [from, end] = pieces[next++];
      char* view = nullptr;
      {
        const Guard guard(world().lock);
        require_alive(to + from, end - from, "a fill");
        view = view_of(to + from);
      }
      std::memset(view, value, end - from);
      return next < pieces.size() ? kMore : kDone;
    };
    return task;
  };
}

}  // namespace emu
