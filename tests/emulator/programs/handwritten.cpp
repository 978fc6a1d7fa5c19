// A pipeline as people write them on AscendCL: three streams, all kinds of events, a notify, a value in device memory,
// an operator, a model, callbacks on a thread of the program's own, and a captured tail. It knows nothing of the
// emulator but for the CPU functions that stand for what would be an operator and a model.
#include <acl/acl.h>
#include <acl/acl_mdl.h>
#include <acl/acl_op.h>
#include <dagsched_emulator.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define CHECK(call)                                                                          \
  do {                                                                                       \
    const aclError code = (call);                                                            \
    if (code != ACL_SUCCESS) {                                                               \
      const char* why = aclGetRecentErrMsg();                                                \
      std::fprintf(stderr, "%s: %d: %s\n", #call, code, why != nullptr ? why : "no message"); \
      std::exit(1);                                                                          \
    }                                                                                        \
  } while (false)

namespace {

constexpr int kFrames = 6, kSlots = 2;
constexpr size_t kSize = 256;

// Adds `*user` to each byte.
int add(void* user, size_t, const void* const* input, const size_t* sizes, size_t, void* const* output, const size_t*) {
  const auto* from = static_cast<const unsigned char*>(input[0]);
  auto* to = static_cast<unsigned char*>(output[0]);
  for (size_t n = 0; n < sizes[0]; ++n) to[n] = static_cast<unsigned char>(from[n] + *static_cast<int*>(user));
  return 0;
}

struct Frame {
  const unsigned char* result = nullptr;
  std::vector<int>* seen = nullptr;
};

void look(void* argument) {
  const auto* frame = static_cast<Frame*>(argument);
  frame->seen->push_back(frame->result[kSize - 1]);
}

}  // namespace

int main(int argc, char** argv) {
  const bool lacks_wait = argc > 1 && std::strcmp(argv[1], "lacks-wait") == 0;
  int one = 1, ten = 10;
  dagsched_emulator_register_operator("Add", add, &one);
  dagsched_emulator_register_model(7, add, &ten);

  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtContext context = nullptr;
  CHECK(aclrtCreateContext(&context, 0));
  aclrtStream up = nullptr, work = nullptr, down = nullptr;
  CHECK(aclrtCreateStream(&up));
  CHECK(aclrtCreateStreamWithConfig(&work, 0, ACL_STREAM_FAST_LAUNCH));
  CHECK(aclrtCreateStream(&down));
  aclrtEvent uploaded[kSlots], used = nullptr, computed = nullptr, seen_event[kSlots];
  aclrtNotify done[kSlots];
  for (int n = 0; n < kSlots; ++n) {
    CHECK(aclrtCreateNotify(&done[n], ACL_NOTIFY_DEFAULT));
    CHECK(aclrtCreateEventExWithFlag(&uploaded[n], ACL_EVENT_SYNC));
    CHECK(aclrtCreateEventExWithFlag(&seen_event[n], ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  }
  CHECK(aclrtCreateEvent(&used));
  CHECK(aclrtCreateEventWithFlag(&computed, ACL_EVENT_SYNC));

  void *host[kSlots], *input[kSlots], *middle = nullptr, *output[kSlots], *result[kSlots], *counter = nullptr;
  for (int n = 0; n < kSlots; ++n) {
    CHECK(aclrtMallocHost(&host[n], kSize));
    CHECK(aclrtMallocHost(&result[n], kSize));
    CHECK(aclrtMalloc(&input[n], kSize, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMalloc(&output[n], kSize, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  CHECK(aclrtMalloc(&middle, kSize, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMalloc(&counter, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
  CHECK(aclrtMemset(counter, 64, 0, 64));

  std::atomic<bool> stop{false};
  std::thread server([&] {
    while (!stop) aclrtProcessReport(10);
  });
  const auto thread = static_cast<uint64_t>(server.native_handle());
  CHECK(aclrtSubscribeReport(thread, down));

  std::vector<int> seen;
  Frame frames[kFrames];
  aclDataBuffer *op_in[kSlots], *op_out = aclCreateDataBuffer(middle, kSize), *model_out[kSlots];
  aclmdlDataset *model_in_set = aclmdlCreateDataset(), *model_out_set[kSlots];
  CHECK(aclmdlAddDatasetBuffer(model_in_set, op_out));
  for (int n = 0; n < kSlots; ++n) {
    op_in[n] = aclCreateDataBuffer(input[n], kSize);
    model_out[n] = aclCreateDataBuffer(output[n], kSize);
    model_out_set[n] = aclmdlCreateDataset();
    CHECK(aclmdlAddDatasetBuffer(model_out_set[n], model_out[n]));
  }

  for (int i = 0; i < kFrames; ++i) {
    const int slot = i % kSlots;
    if (i >= kSlots) CHECK(aclrtSynchronizeEvent(seen_event[slot]));  // the host writes to what the callback has seen
    std::memset(host[slot], i, kSize);
    if (i > 0) CHECK(aclrtStreamWaitEvent(up, used));
    CHECK(aclrtMemcpyAsync(input[slot], kSize, host[slot], kSize, ACL_MEMCPY_HOST_TO_DEVICE, up));
    CHECK(aclrtRecordEvent(uploaded[slot], up));

    if (!lacks_wait) CHECK(aclrtStreamWaitEvent(work, uploaded[slot]));
    if (i >= kSlots) CHECK(aclrtWaitAndResetNotify(done[slot], work, 0));  // the output of this slot has been downloaded
    CHECK(aclopExecuteV2("Add", 1, nullptr, &op_in[slot], 1, nullptr, &op_out, nullptr, work));
    CHECK(aclrtRecordEvent(used, work));
    CHECK(aclmdlExecuteAsync(7, model_in_set, model_out_set[slot], work));
    if (i % 2 == 0) {  // every other frame tells of its end by a flag, the others by a value
      CHECK(aclrtRecordEvent(computed, work));
      CHECK(aclrtStreamWaitEvent(down, computed));
      CHECK(aclrtResetEvent(computed, down));
    } else {
      CHECK(aclrtValueWrite(counter, static_cast<uint64_t>(i), 0, work));
      CHECK(aclrtValueWait(counter, static_cast<uint64_t>(i), ACL_STREAM_WAIT_VALUE_GEQ, down));
    }
    CHECK(aclrtMemcpyAsync(result[slot], kSize, output[slot], kSize, ACL_MEMCPY_DEVICE_TO_HOST, down));
    if (i + kSlots < kFrames) CHECK(aclrtRecordNotify(done[slot], down));
    frames[i] = {static_cast<unsigned char*>(result[slot]), &seen};
    CHECK(aclrtLaunchCallback(look, &frames[i], ACL_CALLBACK_BLOCK, down));
    CHECK(aclrtRecordEvent(seen_event[slot], down));
  }
  CHECK(aclrtSynchronizeDevice());
  float milliseconds = 0;
  CHECK(aclrtEventElapsedTime(&milliseconds, seen_event[0], seen_event[1]));

  // The tail is captured once and replayed: out = out + 1, over middle.
  aclmdlRI tail = nullptr;
  CHECK(aclmdlRICaptureBegin(work, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  CHECK(aclopExecuteV2("Add", 1, nullptr, &model_out[0], 1, nullptr, &op_out, nullptr, work));
  CHECK(aclrtRecordEvent(uploaded[0], work));
  CHECK(aclrtStreamWaitEvent(up, uploaded[0]));
  CHECK(aclrtMemcpyAsync(output[0], kSize, middle, kSize, ACL_MEMCPY_DEVICE_TO_DEVICE, up));
  CHECK(aclrtRecordEvent(uploaded[1], up));
  CHECK(aclrtStreamWaitEvent(work, uploaded[1]));
  CHECK(aclmdlRICaptureEnd(work, &tail));
  for (int n = 0; n < 3; ++n) CHECK(aclmdlRIExecuteAsync(tail, work));
  CHECK(aclrtMemcpyAsync(result[0], kSize, output[0], kSize, ACL_MEMCPY_DEVICE_TO_HOST, work));
  CHECK(aclrtSynchronizeStream(work));
  for (const int value : seen) std::printf("%d ", value);
  std::printf("%d\n", static_cast<unsigned char*>(result[0])[0]);
  CHECK(aclmdlRIDestroy(tail));

  CHECK(aclrtUnSubscribeReport(thread, down));
  stop = true;
  server.join();
  CHECK(aclmdlDestroyDataset(model_in_set));
  CHECK(aclDestroyDataBuffer(op_out));
  for (int n = 0; n < kSlots; ++n) {
    CHECK(aclmdlDestroyDataset(model_out_set[n]));
    CHECK(aclDestroyDataBuffer(op_in[n]));
    CHECK(aclDestroyDataBuffer(model_out[n]));
    CHECK(aclrtDestroyNotify(done[n]));
    CHECK(aclrtDestroyEvent(uploaded[n]));
    CHECK(aclrtDestroyEvent(seen_event[n]));
    for (void* memory : {host[n], result[n]}) CHECK(aclrtFreeHost(memory));
    for (void* memory : {input[n], output[n]}) CHECK(aclrtFree(memory));
  }
  for (void* memory : {middle, counter}) CHECK(aclrtFree(memory));
  for (const aclrtEvent event : {used, computed}) CHECK(aclrtDestroyEvent(event));
  for (const aclrtStream stream : {up, work, down}) CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtDestroyContext(context));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return 0;
}
