// A program that runs detector.hpp, with hooks to be filled in.
//
// Compile as C++17 with -I $ASCEND_HOME_PATH/include -L $ASCEND_HOME_PATH/lib64 -lascendcl
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "detector.hpp"

namespace {

namespace plan = dagsched::detector;

class MyHooks final : public plan::Hooks {
 public:
  aclError decode_frame(plan::View<void> /*frame*/, int64_t /*i*/) override {
    // TODO: do the work of decode_frame
    return ACL_SUCCESS;
  }

  aclError resize(plan::View<const void> /*image*/, plan::View<uint16_t> /*tensor*/, int64_t /*i*/,
                  aclrtStream /*stream*/) override {
    // TODO: enqueue on the stream the work of resize
    return ACL_SUCCESS;
  }

  aclError detector(plan::View<const uint16_t> /*tensor*/, plan::View<const void> /*weights*/,
                    plan::View<void> /*boxes*/, int64_t /*i*/, aclrtStream /*stream*/) override {
    // TODO: enqueue on the stream the work of detector
    return ACL_SUCCESS;
  }

  aclError draw_boxes(plan::View<const void> /*result*/, int64_t /*i*/) override {
    // TODO: do the work of draw_boxes
    return ACL_SUCCESS;
  }
};

// A whole number that is not negative, or -1.
int64_t parse_count(const char* text) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' && value >= 0 ? value : -1;
}

aclError run_pipeline(int64_t frames) {
  plan::Pipeline pipeline;
  MyHooks hooks;
  aclError code = pipeline.init();
  if (code == ACL_SUCCESS) {
    // TODO: fill the inputs: pipeline.weights_file().
    const auto start = std::chrono::steady_clock::now();
    code = pipeline.run(hooks, frames);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (code == ACL_SUCCESS) std::printf("%s: %.6f s\n", "detector", took.count());
  }
  if (code != ACL_SUCCESS) std::fprintf(stderr, "%s\n", pipeline.failure().message().c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t frames = argc > 1 ? parse_count(argv[1]) : -1;
  if (argc > 2 || frames < 0) {
    std::fprintf(stderr, "usage: %s%s\n", argc > 0 ? argv[0] : "", " frames");
    return 2;
  }

  aclError code = aclInit(nullptr);
  if (code != ACL_SUCCESS) {
    std::fprintf(stderr, "aclInit: error %d\n", code);
    return 1;
  }
  code = aclrtSetDevice(0);
  if (code == ACL_SUCCESS) {
    code = run_pipeline(frames);
    aclrtResetDevice(0);
  } else {
    std::fprintf(stderr, "aclrtSetDevice: error %d\n", code);
  }
  aclFinalize();
  return code == ACL_SUCCESS ? 0 : 1;
}
