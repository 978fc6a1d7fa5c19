// A program that runs detector_cuda.hpp, with hooks to be filled in.
//
// Compile with `nvcc -std=c++17`, or with `hipcc -std=c++17 -x hip` for AMD devices.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "detector_cuda.hpp"

namespace {

namespace plan = dagsched::detector_cuda;

class MyHooks final : public plan::Hooks {
 public:
  cudaError_t decode_frame(plan::View<void> /*frame*/, int64_t /*i*/) override {
    // TODO: do the work of decode_frame
    return cudaSuccess;
  }

  cudaError_t resize(plan::View<const void> /*image*/, plan::View<uint16_t> /*tensor*/, int64_t /*i*/,
                     cudaStream_t /*stream*/) override {
    // TODO: enqueue on the stream the work of resize
    return cudaSuccess;
  }

  cudaError_t detector(plan::View<const uint16_t> /*tensor*/, plan::View<const void> /*weights*/,
                       plan::View<void> /*boxes*/, int64_t /*i*/, cudaStream_t /*stream*/) override {
    // TODO: enqueue on the stream the work of detector
    return cudaSuccess;
  }

  cudaError_t draw_boxes(plan::View<const void> /*result*/, int64_t /*i*/) override {
    // TODO: do the work of draw_boxes
    return cudaSuccess;
  }
};

// A whole number that is not negative, or -1.
int64_t parse_count(const char* text) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' && value >= 0 ? value : -1;
}

cudaError_t run_pipeline(int64_t frames) {
  plan::Pipeline pipeline;
  MyHooks hooks;
  cudaError_t code = pipeline.init();
  if (code == cudaSuccess) {
    // TODO: fill the inputs: pipeline.weights_file().
    const auto start = std::chrono::steady_clock::now();
    code = pipeline.run(hooks, frames);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (code == cudaSuccess) std::printf("%s: %.6f s\n", "detector", took.count());
  }
  if (code != cudaSuccess) std::fprintf(stderr, "%s\n", pipeline.failure().message().c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t frames = argc > 1 ? parse_count(argv[1]) : -1;
  if (argc > 2 || frames < 0) {
    std::fprintf(stderr, "usage: %s%s\n", argc > 0 ? argv[0] : "", " frames");
    return 2;
  }

  cudaError_t code = cudaSetDevice(0);
  if (code == cudaSuccess) {
    code = run_pipeline(frames);
  } else {
    std::fprintf(stderr, "cudaSetDevice: %s\n", cudaGetErrorString(code));
  }
  return code == cudaSuccess ? 0 : 1;
}
