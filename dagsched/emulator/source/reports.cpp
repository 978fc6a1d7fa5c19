// What the emulator says: misuse, leaks, deadlocks; and the faults that it was asked to inject.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "core.hpp"

namespace emu {
namespace {

constexpr size_t kBuried = 4096;  // destroyed handles that are remembered

const std::set<int> kLost = {507010, 507899, 100046, 719};

// Errors that a device finds while it executes come back at a later call; all others come from the call itself.
Fault::How usual_way(int code) {
  if (kLost.count(code) != 0) return Fault::How::lost;
  const bool on_device = (code >= 507000 && code <= 507899) || (code >= 700 && code <= 720);
  return on_device ? Fault::How::task : Fault::How::call;
}

bool matches(const Fault& fault, const char* function, bool works) {
  const ThreadState& state = here();
  if (fault.by_number) return fault.target == function;
  return works && fault.target == state.op && fault.iteration == state.iteration;
}

}  // namespace

void bury(const void* handle, const std::string& what, std::shared_ptr<void> kept) {
  auto& gone = world().gone;
  gone.push_back({handle, what, std::move(kept)});
  if (gone.size() > kBuried) gone.pop_front();
}

std::string explain_handle(const void* handle, const std::string& wanted) {
  World& w = world();
  if (handle == nullptr) return "a null pointer is no " + wanted;
  for (const Gone& one : w.gone) {
    if (one.handle == handle) return one.what + " has been destroyed";
  }
  std::string found;
  for (const Stream* stream : w.streams) {
    if (stream == handle && stream->leaving) return "stream " + stream->name + " is being destroyed";
    if (stream == handle) found = "stream " + stream->name;
  }
  if (const EventPtr event = find_event(handle)) found = describe(*event);
  for (const auto* contexts : {&w.contexts, &w.ended}) {
    for (const auto& context : *contexts) {
      if (context.get() == handle && context->destroyed) return "the context has been destroyed";
      if (context.get() == handle) found = "a context";
    }
  }
  if (found.empty() && block_at(handle)) found = "memory";
  return found.empty() ? "that is no " + wanted : "that is " + found + ", no " + wanted;
}

void end_program(int status, const std::string& why) {
  std::fprintf(stderr, "emulator: %s\n", why.c_str());
  std::fflush(stderr);
  write_trace();
  _exit(status);
}

void complain(const std::string& why) {
  World& w = world();
  ++w.complaints;
  const ThreadState& state = here();
  std::string place;
  if (!state.op.empty()) place = " (during " + state.op;
  if (!state.op.empty() && state.iteration != kNoIteration) place += "@" + std::to_string(state.iteration);
  if (!place.empty()) place += ")";
  if (w.options.strict) end_program(86, why + place);
  std::fprintf(stderr, "emulator: %s%s\n", why.c_str(), place.c_str());
}

std::string describe_stuck() {
  std::string text = "the program waits for ever: nothing on the device can run";
  for (const Stream* stream : world().streams) {
    if (stream->queue.empty()) continue;
    text += "\n  stream " + stream->name + " stands at `" + stream->queue.front()->what + "`";
    if (stream->queue.size() > 1) text += ", with " + std::to_string(stream->queue.size() - 1) + " more behind it";
  }
  return text;
}

int alive() {
  World& w = world();
  int count = static_cast<int>(w.events.size() + w.blocks.size());
  for (const Stream* stream : w.streams) {
    if (!stream->internal && (stream->context == nullptr || stream->context->default_stream != stream)) ++count;
  }
  return count;
}

std::string list_leaks() {
  World& w = world();
  std::string text;
  for (const Stream* stream : w.streams) {
    if (stream->internal || (stream->context != nullptr && stream->context->default_stream == stream)) continue;
    text += "\n  stream " + stream->name;
  }
  for (const EventPtr& event : w.events) text += "\n  " + describe(*event);
  for (const auto& [address, block] : w.blocks) {
    const char* kind = block->place == Place::device ? "device" : block->place == Place::pinned ? "host" : "registered";
    text += "\n  " + std::to_string(block->size) + " bytes of " + kind + " memory, " + block->name;
  }
  return text;
}

// TARGET[@I]:CODE[:call|task|lost], where TARGET is an op, or FUNCTION#N for its N-th call from now on.
bool parse_fault(const std::string& text, Fault& fault) {
  fault = Fault();
  std::string rest = text, how;
  size_t colon = rest.rfind(':');
  if (colon == std::string::npos) return false;
  how = rest.substr(colon + 1);
  const bool named = how == "call" || how == "task" || how == "lost";
  if (named) {
    rest.resize(colon);
    colon = rest.rfind(':');
    if (colon == std::string::npos) return false;
  }
  char* end = nullptr;
  fault.code = static_cast<int>(std::strtol(rest.c_str() + colon + 1, &end, 10));
  if (*end != '\0' || fault.code <= 0) return false;
  rest.resize(colon);
  const size_t at = rest.rfind('@'), hash = rest.rfind('#');
  if (hash != std::string::npos) {
    fault.by_number = true;
    fault.number = std::strtoll(rest.c_str() + hash + 1, &end, 10);
    if (*end != '\0' || fault.number <= 0) return false;
    rest.resize(hash);
  } else if (at != std::string::npos) {
    fault.iteration = std::strtoll(rest.c_str() + at + 1, &end, 10);
    if (*end != '\0') return false;
    rest.resize(at);
  }
  fault.target = rest;
  fault.how = fault.by_number ? Fault::How::call : usual_way(fault.code);
  if (how == "call") fault.how = Fault::How::call;
  if (how == "task") fault.how = Fault::How::task;
  if (how == "lost") fault.how = Fault::How::lost;
  return !rest.empty();
}

int enter(const char* function, bool works) {
  World& w = world();
  ThreadState& state = here();
  state.next_fault = 0;
  if (w.lost != 0) return fail(w.lost, "the device is lost");
  for (size_t n = 0; n < w.faults.size(); ++n) {
    Fault& fault = w.faults[n];
    if (!matches(fault, function, works)) continue;
    if (fault.by_number && (fault.number == 0 || --fault.number != 0)) continue;
    const Fault found = fault;
    w.faults.erase(w.faults.begin() + static_cast<std::ptrdiff_t>(n));
    if (found.how == Fault::How::task) {
      state.next_fault = found.code;
      return 0;
    }
    if (found.how == Fault::How::lost) lose_device(found.code);
    return fail(found.code, std::string("EI0001: injected into ") + function);
  }
  return 0;
}

int fail(int code, const std::string& why) {
  ThreadState& state = here();
  state.message = why;
  state.last_error = code;
  return code;
}

}  // namespace emu
