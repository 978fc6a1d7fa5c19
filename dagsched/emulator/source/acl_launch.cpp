// AscendCL: kernels, operators and models, each a CPU function that the program has registered.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

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

auto& kernels = *new std::map<std::string, Kernel>;
auto& operators = *new std::map<std::string, Operator>;
auto& models = *new std::map<uint32_t, Operator>;
int binary;

// Descriptions that the program has made and not destroyed. What is none of them is told of, and never touched.
template <class T>
class Made {
 public:
  T* add(T* made) {
    const Guard guard(world().lock);
    alive_.insert(made);
    return made;
  }
  bool has(const T* one) const { return alive_.count(one) != 0; }
  int destroy(const T* one, const char* what) {
    const Guard guard(world().lock);
    if (alive_.erase(one) == 0) return fail(ACL_ERROR_INVALID_PARAM, std::string("that is no ") + what);
    delete one;
    return ACL_SUCCESS;
  }

 private:
  std::set<const T*> alive_;
};

auto& buffers = *new Made<aclDataBuffer>;
auto& descriptions = *new Made<aclTensorDesc>;
auto& datasets = *new Made<aclmdlDataset>;
auto& attributes = *new Made<aclopAttr>;

// Addresses and sizes of an operator's inputs or outputs, as its CPU function sees them.
struct Spans {
  std::vector<void*> addresses;
  std::vector<size_t> sizes;
  int add(const aclDataBuffer* buffer) {
    if (!buffers.has(buffer)) return fail(ACL_ERROR_INVALID_PARAM, "that is no aclDataBuffer, or it has been destroyed");
    addresses.push_back(buffer->data);
    sizes.push_back(buffer->size);
    return ACL_SUCCESS;
  }
};

std::vector<void*> joined(std::vector<void*> first, const std::vector<void*>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

int run_operator(aclrtStream handle, const std::string& name, const Operator& with, const Spans& inputs,
                 const Spans& outputs) {
  Stream* stream = nullptr;
  if (const int code = find_queue(handle, stream); code != ACL_SUCCESS) return code;
  std::vector<Touch> touches;
  for (const auto& [spans, mode] : {std::pair(&inputs, Mode::read), std::pair(&outputs, Mode::write)}) {
    for (size_t n = 0; n < spans->sizes.size(); ++n) {
      const auto* address = static_cast<const char*>(spans->addresses[n]);
      const BlockPtr block = block_at(address);
      if (!block || block->place != Place::device || block->device != stream->context->device ||
          reaches_outside(block, address, spans->sizes[n])) {
        const std::string which = std::string(mode == Mode::read ? "input " : "output ") + std::to_string(n);
        return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: " + which + " of " + name + " is no memory of the device");
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
  }, std::move(touches), joined(inputs.addresses, outputs.addresses));
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace emu

extern "C" {

void dagsched_emulator_register_kernel(const char* name, dagsched_kernel run, void* user) {
  const Guard guard(world().lock);
  if (name == nullptr || run == nullptr) return complain("a kernel is registered without a name or a function");
  kernels[name] = {name, run, user};
}

void dagsched_emulator_register_operator(const char* op_type, dagsched_operator run, void* user) {
  const Guard guard(world().lock);
  if (op_type == nullptr || run == nullptr) return complain("an operator is registered without a type or a function");
  operators[op_type] = {run, user};
}

void dagsched_emulator_register_model(uint32_t model, dagsched_operator run, void* user) {
  const Guard guard(world().lock);
  if (run == nullptr) return complain("a model is registered without a function");
  models[model] = {run, user};
}

aclError aclrtBinaryLoadFromFile(const char* path, aclrtBinaryLoadOptions*, aclrtBinHandle* handle) {
  ACL_CALL(work);
  if (const int code = require_place(handle, "the binary"); code != ACL_SUCCESS) return code;
  if (path == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: a null pointer instead of a path");
  *handle = &binary;
  return ACL_SUCCESS;
}

aclError aclrtBinaryUnLoad(aclrtBinHandle handle) {
  ACL_CALL(release);
  return handle == &binary ? ACL_SUCCESS : fail(ACL_ERROR_RT_INVALID_HANDLE, "EE1001: that is no binary");
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle handle, const char* name, aclrtFuncHandle* function) {
  ACL_CALL(plain);
  if (const int code = require_place(function, "the function"); code != ACL_SUCCESS) return code;
  if (name == nullptr) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: a null pointer instead of a name");
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
  const auto known = std::find_if(kernels.begin(), kernels.end(), [=](auto& one) { return &one.second == function; });
  if (known == kernels.end()) return fail(ACL_ERROR_RT_INVALID_HANDLE, "EE1001: that is no function of a binary");
  if (blocks == 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: a kernel needs at least one block");
  if (args == nullptr && size != 0) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: a null pointer instead of arguments");
  if (const int code = find_queue(handle, stream); code != ACL_SUCCESS) return code;
  const Kernel kernel = known->second;
  std::vector<unsigned char> copy(size);  // the runtime copies the arguments when it is called
  if (size != 0) std::memcpy(copy.data(), args, size);
  queue_function(stream, kernel.name, [kernel, blocks, copy = std::move(copy)] {
    return kernel.run(kernel.user, blocks, copy.data(), copy.size());
  });
  return ACL_SUCCESS;
}

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) { return buffers.add(new aclDataBuffer{data, size}); }
aclError aclDestroyDataBuffer(const aclDataBuffer* buffer) { return buffers.destroy(buffer, "aclDataBuffer"); }
void* aclGetDataBufferAddr(const aclDataBuffer* buffer) {
  const Guard guard(world().lock);
  return buffers.has(buffer) ? buffer->data : nullptr;
}
size_t aclGetDataBufferSizeV2(const aclDataBuffer* buffer) {
  const Guard guard(world().lock);
  return buffers.has(buffer) ? buffer->size : 0;
}
aclTensorDesc* aclCreateTensorDesc(aclDataType type, int count, const int64_t* dims, aclFormat) {
  const bool wrong = count < 0 || (count > 0 && dims == nullptr);
  return wrong ? nullptr : descriptions.add(new aclTensorDesc{type});
}
void aclDestroyTensorDesc(const aclTensorDesc* description) { descriptions.destroy(description, "aclTensorDesc"); }
aclopAttr* aclopCreateAttr(void) { return attributes.add(new aclopAttr{0}); }
void aclopDestroyAttr(const aclopAttr* attr) { attributes.destroy(attr, "aclopAttr"); }
aclmdlDataset* aclmdlCreateDataset(void) { return datasets.add(new aclmdlDataset); }
aclError aclmdlDestroyDataset(const aclmdlDataset* dataset) { return datasets.destroy(dataset, "aclmdlDataset"); }
aclError aclmdlAddDatasetBuffer(aclmdlDataset* dataset, aclDataBuffer* buffer) {
  const Guard guard(world().lock);
  if (!datasets.has(dataset)) return fail(ACL_ERROR_INVALID_PARAM, "that is no aclmdlDataset");
  if (!buffers.has(buffer)) return fail(ACL_ERROR_INVALID_PARAM, "that is no aclDataBuffer");
  dataset->buffers.push_back(buffer);
  return ACL_SUCCESS;
}
size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset* dataset) {
  const Guard guard(world().lock);
  return datasets.has(dataset) ? dataset->buffers.size() : 0;
}
aclDataBuffer* aclmdlGetDatasetBuffer(const aclmdlDataset* dataset, size_t index) {
  const Guard guard(world().lock);
  return datasets.has(dataset) && index < dataset->buffers.size() ? dataset->buffers[index] : nullptr;
}

aclError aclopExecuteV2(const char* type, int input_count, aclTensorDesc*[], aclDataBuffer* inputs[], int output_count,
                        aclTensorDesc*[], aclDataBuffer* outputs[], aclopAttr*, aclrtStream stream) {
  ACL_CALL(work);
  if (type == nullptr || input_count < 0 || output_count < 0 || (input_count > 0 && inputs == nullptr) ||
      (output_count > 0 && outputs == nullptr)) {
    return fail(ACL_ERROR_INVALID_PARAM, "an operator wants a type, and as many buffers as it is said to have");
  }
  const auto at = operators.find(type);
  if (at == operators.end()) {
    return fail(ACL_ERROR_INVALID_PARAM,
                std::string("dagsched_emulator_register_operator has not been called for `") + type + "`");
  }
  Spans in, out;
  int code = ACL_SUCCESS;
  for (int n = 0; n < input_count && code == ACL_SUCCESS; ++n) code = in.add(inputs[n]);
  for (int n = 0; n < output_count && code == ACL_SUCCESS; ++n) code = out.add(outputs[n]);
  if (code != ACL_SUCCESS) return code;
  return run_operator(stream, type, at->second, in, out);
}

aclError aclmdlExecuteAsync(uint32_t model, const aclmdlDataset* input, aclmdlDataset* output, aclrtStream stream) {
  ACL_CALL(work);
  const auto at = models.find(model);
  if (!datasets.has(input) || !datasets.has(output)) {
    return fail(ACL_ERROR_INVALID_PARAM, "a model wants an aclmdlDataset for its inputs and one for its outputs");
  }
  if (at == models.end()) {
    return fail(ACL_ERROR_INVALID_PARAM,
                "dagsched_emulator_register_model has not been called for model " + std::to_string(model));
  }
  Spans in, out;
  int code = ACL_SUCCESS;
  for (const aclDataBuffer* buffer : input->buffers) code = code == ACL_SUCCESS ? in.add(buffer) : code;
  for (const aclDataBuffer* buffer : output->buffers) code = code == ACL_SUCCESS ? out.add(buffer) : code;
  if (code != ACL_SUCCESS) return code;
  return run_operator(stream, "model." + std::to_string(model), at->second, in, out);
}

}  // extern "C"
