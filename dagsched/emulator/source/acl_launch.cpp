// AscendCL: kernels, operators and models, each a CPU function that the program has registered.
#include <cstring>
#include <map>

#include "acl_face.hpp"
#include "dagsched_emulator.h"

using namespace emu;

struct aclDataBuffer {
  void* data;
  size_t size;
};
struct aclTensorDesc {
  aclDataType type;
};
struct aclmdlDataset {
  std::vector<aclDataBuffer*> buffers;
};
struct aclopAttr {
  int nothing;
};

namespace emu {
namespace {

struct Kernel {
  std::string name;
  dagsched_kernel run = nullptr;
  void* user = nullptr;
};
struct Operator {
  dagsched_operator run = nullptr;
  void* user = nullptr;
};

std::map<std::string, Kernel> kernels;
std::map<std::string, Operator> operators;
std::map<uint32_t, Operator> models;
int binary;

// Addresses and sizes of an operator's inputs or outputs, as its CPU function sees them.
struct Spans {
  std::vector<void*> addresses;
  std::vector<size_t> sizes;
  void add(const aclDataBuffer* buffer) {
    addresses.push_back(buffer->data);
    sizes.push_back(buffer->size);
  }
};

int run_operator(aclrtStream handle, const std::string& name, const Operator& with, const Spans& inputs,
                 const Spans& outputs) {
  Stream* stream = nullptr;
  if (const int code = find_queue(handle, stream); code != ACL_SUCCESS) return code;
  std::vector<Touch> touches;
  for (const auto& [spans, mode] : {std::pair(&inputs, Mode::read), std::pair(&outputs, Mode::write)}) {
    for (size_t n = 0; n < spans->sizes.size(); ++n) {
      const auto* address = static_cast<const char*>(spans->addresses[n]);
      const BlockPtr block = block_at(address);
      if (!block || block->place != Place::device || reaches_outside(block, address, spans->sizes[n])) {
        return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: " + name + " is given memory that is none of the device's");
      }
      touch_rows(touches, address, spans->sizes[n], spans->sizes[n], 1, mode);
    }
  }
  queue_function(stream, name, [=] {
    Spans in = inputs, out = outputs;
    {
      const Guard guard(world().lock);
      for (void*& address : in.addresses) address = view_of(address);
      for (void*& address : out.addresses) address = view_of(address);
    }
    return with.run(with.user, in.sizes.size(), in.addresses.data(), in.sizes.data(), out.sizes.size(),
                    out.addresses.data(), out.sizes.data());
  }, std::move(touches));
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace emu

extern "C" {

void dagsched_emulator_register_kernel(const char* name, dagsched_kernel run, void* user) {
  const Guard guard(world().lock);
  kernels[name] = {name, run, user};
}

void dagsched_emulator_register_operator(const char* op_type, dagsched_operator run, void* user) {
  const Guard guard(world().lock);
  operators[op_type] = {run, user};
}

void dagsched_emulator_register_model(uint32_t model, dagsched_operator run, void* user) {
  const Guard guard(world().lock);
  models[model] = {run, user};
}

aclError aclrtBinaryLoadFromFile(const char* path, aclrtBinaryLoadOptions*, aclrtBinHandle* handle) {
  ACL_CALL(work);
  if (path == nullptr || handle == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "no path");
  *handle = &binary;
  return ACL_SUCCESS;
}

aclError aclrtBinaryUnLoad(aclrtBinHandle) { return ACL_SUCCESS; }

aclError aclrtBinaryGetFunction(const aclrtBinHandle handle, const char* name, aclrtFuncHandle* function) {
  ACL_CALL(plain);
  const auto at = kernels.find(name);
  if (handle != &binary || at == kernels.end()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                std::string("dagsched_emulator_register_kernel has not been called for `") + name + "`");
  }
  *function = &at->second;
  return ACL_SUCCESS;
}

aclError aclrtLaunchKernel(aclrtFuncHandle function, uint32_t blocks, const void* args, size_t size,
                           aclrtStream handle) {
  ACL_CALL(work);
  Stream* stream = nullptr;
  if (function == nullptr || blocks == 0 || (args == nullptr && size != 0)) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "no function, no blocks or no arguments");
  }
  if (const int code = find_queue(handle, stream); code != ACL_SUCCESS) return code;
  const Kernel kernel = *static_cast<Kernel*>(function);
  std::vector<unsigned char> copy(size);  // the runtime copies the arguments when it is called
  if (size != 0) std::memcpy(copy.data(), args, size);
  queue_function(stream, kernel.name, [kernel, blocks, copy = std::move(copy)] {
    return kernel.run(kernel.user, blocks, copy.data(), copy.size());
  });
  return ACL_SUCCESS;
}

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) { return new aclDataBuffer{data, size}; }
aclError aclDestroyDataBuffer(const aclDataBuffer* buffer) {
  delete buffer;
  return ACL_SUCCESS;
}
void* aclGetDataBufferAddr(const aclDataBuffer* buffer) { return buffer->data; }
size_t aclGetDataBufferSizeV2(const aclDataBuffer* buffer) { return buffer->size; }
aclTensorDesc* aclCreateTensorDesc(aclDataType type, int, const int64_t*, aclFormat) { return new aclTensorDesc{type}; }
void aclDestroyTensorDesc(const aclTensorDesc* description) { delete description; }
aclopAttr* aclopCreateAttr(void) { return new aclopAttr{0}; }
void aclopDestroyAttr(const aclopAttr* attr) { delete attr; }
aclmdlDataset* aclmdlCreateDataset(void) { return new aclmdlDataset; }
aclError aclmdlDestroyDataset(const aclmdlDataset* dataset) {
  delete dataset;
  return ACL_SUCCESS;
}
aclError aclmdlAddDatasetBuffer(aclmdlDataset* dataset, aclDataBuffer* buffer) {
  dataset->buffers.push_back(buffer);
  return ACL_SUCCESS;
}
size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset* dataset) { return dataset->buffers.size(); }
aclDataBuffer* aclmdlGetDatasetBuffer(const aclmdlDataset* dataset, size_t index) {
  return index < dataset->buffers.size() ? dataset->buffers[index] : nullptr;
}

aclError aclopExecuteV2(const char* type, int input_count, aclTensorDesc*[], aclDataBuffer* inputs[], int output_count,
                        aclTensorDesc*[], aclDataBuffer* outputs[], aclopAttr*, aclrtStream stream) {
  ACL_CALL(work);
  const auto at = operators.find(type);
  if (at == operators.end()) {
    return fail(ACL_ERROR_INVALID_PARAM,
                std::string("dagsched_emulator_register_operator has not been called for `") + type + "`");
  }
  Spans in, out;
  for (int n = 0; n < input_count; ++n) in.add(inputs[n]);
  for (int n = 0; n < output_count; ++n) out.add(outputs[n]);
  return run_operator(stream, type, at->second, in, out);
}

aclError aclmdlExecuteAsync(uint32_t model, const aclmdlDataset* input, aclmdlDataset* output, aclrtStream stream) {
  ACL_CALL(work);
  const auto at = models.find(model);
  if (at == models.end() || input == nullptr || output == nullptr) {
    return fail(ACL_ERROR_INVALID_PARAM,
                "dagsched_emulator_register_model has not been called for model " + std::to_string(model));
  }
  Spans in, out;
  for (const aclDataBuffer* buffer : input->buffers) in.add(buffer);
  for (const aclDataBuffer* buffer : output->buffers) out.add(buffer);
  return run_operator(stream, "model." + std::to_string(model), at->second, in, out);
}

}  // extern "C"
