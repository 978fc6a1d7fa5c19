// AscendCL: memory, copies and fills.
#include <cstring>

#include "acl_face.hpp"

using namespace emu;

namespace emu {
namespace {

enum class Where { device, pinned, pageable };

Where where_is(const BlockPtr& block) {
  if (!block) return Where::pageable;
  return block->place == Place::device ? Where::device : Where::pinned;
}

// One end of a copy, and whether it is what the kind says.
struct End {
  BlockPtr block;
  Where where = Where::pageable;
  bool on_device() const { return where == Where::device; }
};

int look_at(const void* address, size_t size, End& end) {
  if (address == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: a null pointer");
  end.block = block_at(address);
  end.where = where_is(end.block);
  if (!end.block || !reaches_outside(end.block, address, size)) return ACL_SUCCESS;
  complain("a copy or fill reaches beyond the end of " + end.block->name);
  return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: beyond the end of " + end.block->name);
}

int check_kind(aclrtMemcpyKind kind, const End& to, const End& from) {
  const bool wrong = (kind == ACL_MEMCPY_HOST_TO_HOST && (to.on_device() || from.on_device())) ||
                     (kind == ACL_MEMCPY_HOST_TO_DEVICE && (!to.on_device() || from.on_device())) ||
                     (kind == ACL_MEMCPY_DEVICE_TO_HOST && (to.on_device() || !from.on_device())) ||
                     (kind == ACL_MEMCPY_DEVICE_TO_DEVICE && (!to.on_device() || !from.on_device())) ||
                     kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_DEFAULT;
  if (!wrong) return ACL_SUCCESS;
  complain("a copy of kind " + std::to_string(kind) + " between memory of other kinds");
  return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: the memory is not of the copy's kind");
}

struct Ends {
  End to, from;
};

int check_copy(const Rows& rows, aclrtMemcpyKind kind, Ends& ends) {
  size_t to_size = 0, from_size = 0;
  if (!extent(rows.to_pitch, rows.width, rows.height, to_size) ||
      !extent(rows.from_pitch, rows.width, rows.height, from_size)) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: the rows are longer than any memory");
  }
  if (const int code = look_at(rows.to, to_size, ends.to); code != ACL_SUCCESS) return code;
  if (const int code = look_at(rows.from, from_size, ends.from); code != ACL_SUCCESS) return code;
  return check_kind(kind, ends.to, ends.from);
}

int check_device(const End& end, const Context* context) {
  if (!end.on_device() || end.block->device == context->device) return ACL_SUCCESS;
  const std::string why = end.block->name + " is memory of device " + std::to_string(end.block->device) +
                          ", and the current context is of device " + std::to_string(context->device);
  complain(why);
  return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: " + why);
}

// Calls that block cannot be made while a capture forbids them (aclmdlRICaptureBegin has the modes).
int check_mode(const char* what, int code) {
  return forbid_in_capture() ? fail(code, std::string("EE1016: ") + what + " during a capture whose mode forbids it")
                             : ACL_SUCCESS;
}

std::vector<Touch> touches_of(const Rows& rows) {
  std::vector<Touch> touches;
  touch_rows(touches, rows.from, rows.from_pitch, rows.width, rows.height, Mode::read);
  touch_rows(touches, rows.to, rows.to_pitch, rows.width, rows.height, Mode::write);
  return touches;
}

const char* direction(const Ends& ends) {
  if (ends.to.on_device()) return ends.from.on_device() ? "copy_d2d" : "copy_h2d";
  return ends.from.on_device() ? "copy_d2h" : "copy_h2h";
}

int copy_async(const Rows& rows, aclrtMemcpyKind kind, aclrtStream handle) {
  Stream* stream = nullptr;
  if (const int code = find_queue(handle, stream); code != ACL_SUCCESS) return code;
  Ends ends;
  if (const int code = check_copy(rows, kind, ends); code != ACL_SUCCESS) return code;
  for (const End* end : {&ends.to, &ends.from}) {
    if (const int code = check_device(*end, stream->context); code != ACL_SUCCESS) return code;
  }
  if (!ends.to.on_device() && !ends.from.on_device()) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006: asynchronous copies within the host are not supported");
  }
  const size_t alignment = world().options.alignment;
  if (ends.to.on_device() && ends.from.on_device() &&
      (reinterpret_cast<uintptr_t>(rows.to) % alignment != 0 || reinterpret_cast<uintptr_t>(rows.from) % alignment != 0)) {
    return fail(ACL_ERROR_RT_ADDR_UNALIGNED, "an address is not aligned to " + std::to_string(alignment) + " bytes");
  }
  const bool pageable = ends.to.where == Where::pageable || ends.from.where == Where::pageable;
  if (pageable && stream->capture) {
    stream->capture->broken = true;
    return fail(ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC,
                "EE1016: memory that is not page-locked cannot be copied in a capture");
  }
  if (pageable) {
    const char* what = "a copy of memory that is not page-locked is made";
    if (const int code = check_mode(what, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC); code != ACL_SUCCESS) return code;
  }
  Step step;
  step.action = "op";
  step.name = label(direction(ends));
  step.touches = touches_of(rows);
  const std::string what = step.name;
  enqueue(stream, what, copy_in_pieces(rows), std::move(step));
  if (!pageable) return ACL_SUCCESS;
  // The runtime synchronises the stream and copies then and there. Programs must not rely on it, so that no order is
  // told of: the host merely waits.
  if (!wait_until([stream] { return stream->queue.empty(); })) {
    return fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "a copy of pageable memory never comes to its turn");
  }
  const int code = world().lost != 0 ? world().lost : take_error(stream);
  return code == 0 ? ACL_SUCCESS : fail(code, "EE9999: a task of stream " + stream->name + " has failed");
}

int copy_sync(const Rows& rows, aclrtMemcpyKind kind) {
  Context* context = nullptr;
  if (const int code = find_context(context); code != ACL_SUCCESS) return code;
  if (const int code = check_mode("aclrtMemcpy is called", ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT); code != ACL_SUCCESS) {
    return code;
  }
  Ends ends;
  if (const int code = check_copy(rows, kind, ends); code != ACL_SUCCESS) return code;
  for (const End* end : {&ends.to, &ends.from}) {
    if (const int code = check_device(*end, context); code != ACL_SUCCESS) return code;
  }
  Step step;
  step.action = "host";
  step.name = label(direction(ends));
  step.touches = touches_of(rows);
  add_step(std::move(step));
  const Away away(world().lock);
  copy_now(rows);
  return ACL_SUCCESS;
}

Rows plain_rows(void* to, const void* from, size_t count) {
  return {static_cast<char*>(to), count, static_cast<const char*>(from), count, count, 1};
}

int check_sizes(const void* to, size_t room, const void* from, size_t count, bool& nothing) {
  nothing = count == 0 || (to == from && to != nullptr);
  return count > room ? fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: more bytes than destMax or maxCount") : ACL_SUCCESS;
}

int check_pitches(size_t to_pitch, size_t from_pitch, size_t width, size_t height) {
  if (width != 0 && height != 0 && width <= to_pitch && width <= from_pitch) return ACL_SUCCESS;
  return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: rows are wider than their pitch, or none");
}

int release_memory(void* address, Place place, bool synchronise) {
  const auto at = world().blocks.find(static_cast<char*>(address));
  if (at == world().blocks.end() || at->second->place != place) {
    const std::string why = explain_release(address, place);
    if (address != nullptr) complain(why);
    return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: " + why);
  }
  const BlockPtr block = at->second;
  if (synchronise && here().context != nullptr) {
    if (const int code = end_context(here().context); code != ACL_SUCCESS) return code;
    if (block->released) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: " + explain_release(address, place));
  }
  Step step;
  step.action = "free";
  step.name = block->name;
  if (place != Place::registered) add_step(std::move(step));
  release_block(block);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace emu

extern "C" {

aclError aclrtMalloc(void** address, size_t size, aclrtMemMallocPolicy) {
  ACL_CALL(work);
  Context* context = nullptr;
  if (const int code = require_place(address, "the address"); code != ACL_SUCCESS) return code;
  if (const int code = find_context(context); code != ACL_SUCCESS) return code;
  if (size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: a size of 0");
  const BlockPtr block = allocate(Place::device, size, numbered(label("device")));
  if (!block) {
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                "EL0004: the device has no memory left for " + std::to_string(size) + " bytes");
  }
  *address = block->host;
  return ACL_SUCCESS;
}

aclError aclrtMallocHost(void** address, size_t size) {
  ACL_CALL(work);
  if (const int code = require_place(address, "the address"); code != ACL_SUCCESS) return code;
  if (size == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: a size of 0");
  const BlockPtr block = allocate(Place::pinned, size, numbered(label("host")));
  if (!block) {
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                "EL0004: the host has no memory left for " + std::to_string(size) + " bytes");
  }
  *address = block->host;
  return ACL_SUCCESS;
}

aclError aclrtFree(void* address) {
  ACL_CALL(release);
  return release_memory(address, Place::device, false);
}

aclError aclrtFreeWithDevSync(void* address) {
  ACL_CALL(release);
  return release_memory(address, Place::device, true);
}

aclError aclrtFreeHost(void* address) {
  ACL_CALL(release);
  return release_memory(address, Place::pinned, false);
}

aclError aclrtFreeHostWithDevSync(void* address) {
  ACL_CALL(release);
  return release_memory(address, Place::pinned, true);
}

aclError aclrtHostRegisterV2(void* address, uint64_t size, uint32_t flag) {
  ACL_CALL(work);
  if (address == nullptr || size == 0 || (flag & ~(ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED)) != 0 || flag == 0) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: no memory, or no such flag");
  }
  if (overlaps_block(address, size)) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: the memory, or a part of it, is registered already");
  }
  if ((flag & ACL_HOST_REG_PINNED) != 0) adopt(static_cast<char*>(address), size, numbered(label("registered")));
  return ACL_SUCCESS;
}

aclError aclrtHostUnregister(void* address) {
  ACL_CALL(release);
  return release_memory(address, Place::registered, false);
}

aclError aclrtMemcpy(void* to, size_t room, const void* from, size_t count, aclrtMemcpyKind kind) {
  ACL_CALL(work);
  bool nothing = false;
  const int code = check_sizes(to, room, from, count, nothing);
  return code != ACL_SUCCESS || nothing ? code : copy_sync(plain_rows(to, from, count), kind);
}

aclError aclrtMemcpyAsync(void* to, size_t room, const void* from, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
  ACL_CALL(work);
  bool nothing = false;
  const int code = check_sizes(to, room, from, count, nothing);
  return code != ACL_SUCCESS || nothing ? code : copy_async(plain_rows(to, from, count), kind, stream);
}

aclError aclrtMemcpy2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                       aclrtMemcpyKind kind) {
  ACL_CALL(work);
  const int code = check_pitches(to_pitch, from_pitch, width, height);
  if (code != ACL_SUCCESS) return code;
  return copy_sync({static_cast<char*>(to), to_pitch, static_cast<const char*>(from), from_pitch, width, height}, kind);
}

aclError aclrtMemcpy2dAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream) {
  ACL_CALL(work);
  const int code = check_pitches(to_pitch, from_pitch, width, height);
  if (code != ACL_SUCCESS) return code;
  if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE || kind == ACL_MEMCPY_HOST_TO_HOST) {
    return fail(ACL_ERROR_INVALID_PARAM, "EE1001: rows are copied between host and device only");
  }
  return copy_async({static_cast<char*>(to), to_pitch, static_cast<const char*>(from), from_pitch, width, height}, kind,
                    stream);
}

aclError aclrtMemset(void* address, size_t room, int32_t value, size_t count) {
  ACL_CALL(work);
  End end;
  bool nothing = false;
  if (const int code = check_sizes(address, room, nullptr, count, nothing); code != ACL_SUCCESS || nothing) return code;
  Context* context = nullptr;
  if (const int code = find_context(context); code != ACL_SUCCESS) return code;
  if (const int code = look_at(address, count, end); code != ACL_SUCCESS) return code;
  if (const int code = check_device(end, context); code != ACL_SUCCESS) return code;
  if (const int code = check_mode("aclrtMemset is called", ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT); code != ACL_SUCCESS) {
    return code;
  }
  Step step;
  step.action = "host";
  step.name = label("fill");
  touch_rows(step.touches, static_cast<char*>(address), count, count, 1, Mode::write);
  add_step(std::move(step));
  char* view = view_of(address);
  const Away away(world().lock);
  std::memset(view, value, count);
  return ACL_SUCCESS;
}

aclError aclrtMemsetAsync(void* address, size_t room, int32_t value, size_t count, aclrtStream handle) {
  ACL_CALL(work);
  End end;
  Stream* stream = nullptr;
  bool nothing = false;
  if (const int code = check_sizes(address, room, nullptr, count, nothing); code != ACL_SUCCESS || nothing) return code;
  if (const int code = find_queue(handle, stream); code != ACL_SUCCESS) return code;
  if (const int code = look_at(address, count, end); code != ACL_SUCCESS) return code;
  if (const int code = check_device(end, stream->context); code != ACL_SUCCESS) return code;
  if (!end.on_device()) {
    complain("aclrtMemsetAsync on memory of the host");
    return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: only device memory can be filled so");
  }
  Step step;
  step.action = "op";
  step.name = label("fill");
  touch_rows(step.touches, static_cast<char*>(address), count, count, 1, Mode::write);
  const std::string what = step.name;
  enqueue(stream, what, fill_in_pieces(static_cast<char*>(address), value, count), std::move(step));
  return ACL_SUCCESS;
}

}  // extern "C"
