// What the parts of the AscendCL face share.
#ifndef DAGSCHED_EMULATOR_ACL_FACE_HPP
#define DAGSCHED_EMULATOR_ACL_FACE_HPP

#include "acl/acl.h"
#include "call.hpp"

#define ACL_CALL_AT_ANY_TIME(kind)                                         \
  const Call call(__func__, Kind::kind, ACL_ERROR_RT_FEATURE_NOT_SUPPORT); \
  if (call.code != ACL_SUCCESS) return call.code

#define ACL_CALL(kind)        \
  ACL_CALL_AT_ANY_TIME(kind); \
  if (const int early = require_start(__func__, Kind::kind); early != ACL_SUCCESS) return early

namespace emu {

/// Between aclInit and aclFinalize all is well; outside only what releases something.
int require_start(const char* function, Kind kind);
/// This thread's context, where it has one that still is.
int find_context(Context*& context);
/// Whether there is a place for a result.
int require_place(const void* place, const char* what);

/// The stream of a handle, if it may be used by this thread.
int find_stream(aclrtStream handle, Stream*& stream);
/// The same, and its failures may show here: they come back at any later call.
int find_queue(aclrtStream handle, Stream*& stream);
int end_stream(Stream* stream, int32_t timeout, int late);
int end_context(Context* context);
/// The time of a timeout in milliseconds; -1: never.
Time after(int32_t milliseconds);
/// Queues a CPU function that stands for work of the device.
void queue_function(Stream* stream, const std::string& name, std::function<int()> run, std::vector<Touch> touches = {},
                    const std::vector<void*>& used = {});

}  // namespace emu

#endif  // DAGSCHED_EMULATOR_ACL_FACE_HPP
