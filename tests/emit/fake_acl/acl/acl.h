// The declarations that emitted programs need, in our own words, over the runtime of fake_acl.cpp. For tests only:
// nothing here is the real header, and programs that compile against it must be compiled against that one too.
#ifndef FAKE_ACL_H
#define FAKE_ACL_H

#include <cstddef>
#include <cstdint>

using aclError = int;
using aclrtContext = void*;
using aclrtStream = void*;
using aclrtEvent = void*;
using aclrtHostFunc = void (*)(void*);

static const int ACL_SUCCESS = 0;
static const int ACL_ERROR_INVALID_PARAM = 100000;
static const int ACL_ERROR_UNINITIALIZE = 100001;
static const int ACL_ERROR_BAD_ALLOC = 200000;
static const int ACL_ERROR_FAILURE = 500001;

#define ACL_EVENT_SYNC 0x00000001U
#define ACL_STREAM_FAST_LAUNCH 0x00000001U
#define ACL_STREAM_FAST_SYNC 0x00000002U

enum aclrtMemcpyKind {
  ACL_MEMCPY_HOST_TO_HOST,
  ACL_MEMCPY_HOST_TO_DEVICE,
  ACL_MEMCPY_DEVICE_TO_HOST,
  ACL_MEMCPY_DEVICE_TO_DEVICE,
};
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST };

extern "C" {
aclError aclInit(const char* config);
aclError aclFinalize();
aclError aclrtSetDevice(int32_t device);
aclError aclrtResetDevice(int32_t device);
aclError aclrtGetCurrentContext(aclrtContext* context);
aclError aclrtSetCurrentContext(aclrtContext context);
const char* aclGetRecentErrMsg();

aclError aclrtCreateStream(aclrtStream* stream);
aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtSynchronizeDevice();

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
aclError aclrtSynchronizeEvent(aclrtEvent event);

aclError aclrtMalloc(void** memory, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtFree(void* memory);
aclError aclrtMallocHost(void** memory, size_t size);
aclError aclrtFreeHost(void* memory);

aclError aclrtMemcpyAsync(void* to, size_t room, const void* from, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream);
aclError aclrtMemcpy2dAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream);
aclError aclrtMemsetAsync(void* memory, size_t room, int32_t value, size_t count, aclrtStream stream);
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void* argument);
}

#endif  // FAKE_ACL_H
