// What the program did, as a schedule: one step for every call that issues or orders something, in the order of calls.
//
// Buffers are the blocks that were allocated, at addresses of a `space` in which none is used twice; memory that the
// emulator did not hand out appears as far as it was touched. Latched events keep their names; where a program uses
// flags as well, every record of a latched event gets a handle of its own, which means the same.
#include <algorithm>
#include <cstdio>
#include <set>

#include "core.hpp"

namespace emu {
namespace {

std::string quote(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      out += std::string("\\") + letter;
    } else if (code < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      out += escape;
    } else {
      out += letter;
    }
  }
  return out + "\"";
}

struct Region {
  uint64_t lo = 0, hi = 0;
  std::string name;
};

// Memory of the program's own, as disjoint regions of the addresses that were touched.
std::vector<Region> own_memory() {
  std::vector<Region> found;
  for (const Step& step : world().trace) {
    for (const Touch& touch : step.touches) {
      const auto lo = reinterpret_cast<uint64_t>(touch.address);
      if (!touch.block) found.push_back({lo, lo + touch.size, ""});
    }
  }
  std::sort(found.begin(), found.end(), [](const Region& a, const Region& b) { return a.lo < b.lo; });
  std::vector<Region> merged;
  for (const Region& region : found) {
    if (!merged.empty() && region.lo <= merged.back().hi) {
      merged.back().hi = std::max(merged.back().hi, region.hi);
    } else {
      merged.push_back(region);
      merged.back().name = "pageable." + std::to_string(merged.size() - 1);
    }
  }
  return merged;
}

std::string access_text(const Touch& touch, const std::vector<Region>& own) {
  uint64_t lo = 0;
  size_t size = 0;
  std::string name;
  if (touch.block) {
    lo = static_cast<uint64_t>(touch.address - touch.block->host);
    size = touch.block->size;
    name = touch.block->name;
  } else {
    const auto address = reinterpret_cast<uint64_t>(touch.address);
    const auto at = std::find_if(own.begin(), own.end(), [=](const Region& r) { return address < r.hi; });
    lo = address - at->lo;
    size = at->hi - at->lo;
    name = at->name;
  }
  if (lo == 0 && touch.size == size) return quote(name);
  return quote(name + "[" + std::to_string(lo) + ":" + std::to_string(lo + touch.size) + "]");
}

std::string accesses(const Step& step, const std::vector<Region>& own) {
  static const std::pair<Mode, const char*> kinds[] = {
      {Mode::read, "reads"}, {Mode::write, "writes"}, {Mode::update, "updates"}, {Mode::accumulate, "accumulates"}};
  std::string text;
  for (const auto& [mode, key] : kinds) {
    std::set<std::string> found;  // a strided access has thousands of rows
    std::string list;
    for (const Touch& touch : step.touches) {
      std::string one = touch.mode == mode && touch.size != 0 ? access_text(touch, own) : "";
      if (one.empty() || !found.insert(one).second) continue;
      list += (list.empty() ? "" : ", ") + one;
    }
    if (!list.empty()) text += std::string(", \"") + key + "\": [" + list + "]";
  }
  return text;
}

std::string event_text(const Step& step) {
  const Event& event = *step.event;
  if (world().event_model != "both" || event.kind == EventKind::flag || event.kind == EventKind::notify) {
    return event.name;
  }
  std::string name = event.name;
  std::replace(name.begin(), name.end(), '@', '.');
  if (step.replay != 0) name += ".replay." + std::to_string(step.replay);  // each sets handles of its own
  return name + "@" + std::to_string(step.generation);
}

std::string step_text(const Step& step, const std::vector<Region>& own) {
  const std::string stream = step.stream.empty() ? "" : "\"stream\": " + quote(step.stream) + ", ";
  if (step.action == "op") return "{" + stream + "\"op\": " + quote(step.name) + accesses(step, own) + "}";
  if (step.action == "host") return "{\"host\": " + quote(step.name) + accesses(step, own) + "}";
  if (step.action == "wait_stream") return "{" + stream + "\"wait_stream\": " + quote(step.name) + "}";
  if (step.action == "free") return "{\"free\": " + quote(step.name) + "}";
  if (step.action != "sync") return "{" + stream + quote(step.action) + ": " + quote(event_text(step)) + "}";
  if (step.event) return "{\"sync\": {\"event\": " + quote(event_text(step)) + "}}";
  if (!step.stream.empty()) return "{\"sync\": {\"stream\": " + quote(step.stream) + "}}";
  return "{\"sync\": \"device\"}";
}

// Buffers by their names: blocks that the steps touch or free.
std::map<std::string, BlockPtr> used_blocks() {
  std::map<std::string, BlockPtr> found;
  for (const Step& step : world().trace) {
    for (const Touch& touch : step.touches) {
      if (touch.block) found.emplace(touch.block->name, touch.block);
    }
  }
  return found;
}

std::string buffer_text(const std::string& name, const char* place, uint64_t lo, uint64_t size) {
  return "  " + quote(name) + ": {\"place\": \"" + place + "\", \"space\": \"" + place + "\", \"at\": [" +
         std::to_string(lo) + ", " + std::to_string(lo + size) + "]}";
}

}  // namespace

int add_step(Step step) {
  World& w = world();
  if (!w.tracing) return -1;
  w.trace.push_back(std::move(step));
  return static_cast<int>(w.trace.size()) - 1;
}

void touch(int step, const void* address, size_t size, Mode mode) {
  World& w = world();
  if (!w.tracing || step < 0 || static_cast<size_t>(step) >= w.trace.size()) return;
  const char* start = static_cast<const char*>(address);
  w.trace[static_cast<size_t>(step)].touches.push_back({start, size, mode, block_at(start)});
}

void touch_rows(std::vector<Touch>& touches, const char* address, size_t pitch, size_t width, size_t height,
                Mode mode) {
  if (!world().tracing) return;
  const BlockPtr block = block_at(address);
  if (pitch == width || height == 1) {
    touches.push_back({address, width * height, mode, block});
    return;
  }
  for (size_t row = 0; row < height; ++row) touches.push_back({address + row * pitch, width, mode, block});
}

void write_trace() {
  World& w = world();
  if (!w.tracing || w.trace_path.empty()) return;
  const std::string part = w.trace_path + ".part";
  std::FILE* file = std::fopen(part.c_str(), "w");
  if (file == nullptr) {
    std::fprintf(stderr, "emulator: %s cannot be written\n", part.c_str());
    return;
  }
  const std::vector<Region> own = own_memory();
  const auto used = used_blocks();
  std::vector<const Step*> steps;  // to free what nothing has touched is not worth a step
  for (const Step& step : w.trace) {
    if (step.action == "free" && used.count(step.name) == 0) continue;
    if (step.action == "wait" && !step.event) continue;  // for a value that no call has written
    steps.push_back(&step);
  }
  const char* model = w.event_model == "flag" || w.event_model == "both" ? "flag" : "latch";
  std::fprintf(file, "{\n \"dagsched-schedule\": 1,\n \"name\": \"trace\",\n \"event_model\": \"%s\",\n", model);
  if (w.legacy) std::fprintf(file, " \"default_stream\": \"legacy\",\n");
  std::vector<std::string> lines;
  for (const auto& [name, block] : used) {
    lines.push_back(buffer_text(name, block->place == Place::device ? "device" : "host", block->at, block->size));
  }
  for (const Region& region : own) {
    // Far away from the blocks, each region where it is: what overlaps in memory overlaps here.
    const uint64_t at = w.next_at[2] + region.lo - own.front().lo;
    lines.push_back(buffer_text(region.name, "host", at, region.hi - region.lo));
  }
  std::fprintf(file, " \"buffers\": {");
  for (size_t n = 0; n < lines.size(); ++n) std::fprintf(file, "%s\n%s", n ? "," : "", lines[n].c_str());
  std::fprintf(file, "\n },\n \"streams\": {");
  bool first = true;
  for (const auto& [name, nonblocking] : w.traced_streams) {
    std::fprintf(file, "%s\n  %s: {\"nonblocking\": %s}", first ? "" : ",", quote(name).c_str(),
                 nonblocking ? "true" : "false");
    first = false;
  }
  std::fprintf(file, "\n },\n \"steps\": [");
  for (size_t n = 0; n < steps.size(); ++n) {
    std::fprintf(file, "%s\n  %s", n ? "," : "", step_text(*steps[n], own).c_str());
  }
  std::fprintf(file, "\n ]\n}\n");
  const bool written = std::ferror(file) == 0 && std::fclose(file) == 0;
  if (!written || std::rename(part.c_str(), w.trace_path.c_str()) != 0) {
    std::fprintf(stderr, "emulator: %s cannot be written\n", w.trace_path.c_str());
  }
}

// What the program says that it is doing names what it makes or does.
std::string label(const std::string& otherwise) {
  const ThreadState& state = here();
  for (const char* kind : {"buffer ", "stream ", "event ", "graph "}) {
    if (state.op.rfind(kind, 0) == 0) return plain(state.op.substr(std::char_traits<char>::length(kind)));
  }
  if (state.op.empty() || state.op == "init" || state.op == "run") return otherwise;
  return plain(state.op) + (state.iteration == kNoIteration ? "" : "." + std::to_string(state.iteration));
}

std::string numbered(const std::string& name, const char* separator) {
  return name + separator + std::to_string(world().names[name]++);
}

std::string unique(const std::string& name) {
  const int taken = world().names[name]++;
  return taken == 0 ? name : name + "." + std::to_string(taken);
}

std::string plain(const std::string& text) {
  std::string found;
  for (const char letter : text) {
    const bool refused = letter == '@' || letter == '[' || letter == ']' || static_cast<unsigned char>(letter) < 0x20;
    found += refused ? '.' : letter;
  }
  return found.empty() ? "unnamed" : found;
}

}  // namespace emu
