// What the parts of the AscendCL face share.
#ifndef DAGSCHED_EMULATOR_ACL_FACE_HPP
#define DAGSCHED_EMULATOR_ACL_FACE_HPP

#include "acl/acl.h"
#include "call.hpp"

#define ACL_CALL(kind)                                                            \
  const Call call(__func__, Kind::kind, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);        \
  if (call.code != ACL_SUCCESS) return call.code

namespace emu {

/// The stream of a handle, if it may be used by this thread.
int find_stream(aclrtStream handle, Stream*& stream);
/// The same, and its failures may show here: they come back at any later call.
int find_queue(aclrtStream handle, Stream*& stream);
int end_stream(Stream* stream, int32_t timeout, int late);
int end_context(Context* context);
/// The time of a timeout in milliseconds; -1: never.
Time after(int32_t milliseconds);
/// Queues a CPU function that stands for work of the device.
void queue_function(Stream* stream, const std::string& name, std::function<int()> run, std::vector<Touch> touches = {});

}  // namespace emu

#endif  // DAGSCHED_EMULATOR_ACL_FACE_HPP
