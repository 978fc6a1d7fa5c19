// AscendCL: capture of a stream's work into a model, and its replay.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "acl_face.hpp"
#include "graphs.hpp"

using namespace emu;

namespace emu {
namespace {

auto& captured = *new std::map<const Graph*, std::shared_ptr<Graph>>;

bool is_supported() {
  const char* text = std::getenv("DAGSCHED_EMU_CAPTURE");
  return text == nullptr || std::string(text) != "0";
}

int find_model(aclmdlRI handle, std::shared_ptr<Graph>& graph) {
  const auto at = captured.find(static_cast<Graph*>(handle));
  if (at == captured.end()) return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: that is no captured model");
  graph = at->second;
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace emu

extern "C" {

aclError aclmdlRICaptureBegin(aclrtStream handle, aclmdlRICaptureMode mode) {
  ACL_CALL(work);
  Stream* stream = nullptr;
  if (const int code = find_stream(handle, stream); code != ACL_SUCCESS) return code;
  if (stream == stream->context->default_stream) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, "EE1016: the default stream cannot be captured");
  }
  if (!is_supported()) return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006: the device does not support captures");
  if (mode < ACL_MODEL_RI_CAPTURE_MODE_GLOBAL || mode > ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: there is no such mode");
  }
  if (stream->capture) return fail(ACL_ERROR_RT_STREAM_CAPTURED, "EE1016: the stream is being captured already");
  begin_capture(stream, mode);
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureEnd(aclrtStream handle, aclmdlRI* model) {
  ACL_CALL(plain);
  Stream* stream = nullptr;
  if (const int code = require_place(model, "the model"); code != ACL_SUCCESS) return code;
  if (const int code = find_stream(handle, stream); code != ACL_SUCCESS) return code;
  *model = nullptr;
  const std::shared_ptr<Graph> graph = stream->capture;
  if (!graph) return fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "EE1016: the stream is not being captured");
  if (graph->sources.front() != stream) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, "EE1016: the capture began on another stream");
  }
  if (graph->mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED && graph->owner != std::this_thread::get_id()) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD, "EE1016: the capture began on another thread");
  }
  end_capture(graph);
  if (graph->broken) return fail(ACL_ERROR_RT_STREAM_CAPTURED, "EE1016: something was called that a capture forbids");
  if (const std::string lost = find_unjoined(*graph); !lost.empty()) {
    return fail(ACL_ERROR_RT_STREAM_UNJOINED, "EE1016: stream " + lost + " was not joined to the capturing stream");
  }
  captured[graph.get()] = graph;
  *model = graph.get();
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureGetInfo(aclrtStream handle, aclmdlRICaptureStatus* status, aclmdlRI* model) {
  ACL_CALL(plain);
  Stream* stream = nullptr;
  if (const int code = require_place(status, "the status"); code != ACL_SUCCESS) return code;
  if (const int code = find_stream(handle, stream); code != ACL_SUCCESS) return code;
  const Graph* graph = stream->capture.get();
  *status = graph == nullptr  ? ACL_MODEL_RI_CAPTURE_STATUS_NONE
            : graph->broken ? ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED
                              : ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
  if (model != nullptr) *model = const_cast<Graph*>(graph);
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  ACL_CALL(plain);
  if (mode == nullptr || *mode < ACL_MODEL_RI_CAPTURE_MODE_GLOBAL || *mode > ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "EE1001: there is no such mode");
  }
  *mode = static_cast<aclmdlRICaptureMode>(std::exchange(here().capture_mode, static_cast<int>(*mode)));
  return ACL_SUCCESS;
}

aclError aclmdlRIExecuteAsync(aclmdlRI model, aclrtStream handle) {
  ACL_CALL(work);
  Stream* stream = nullptr;
  std::shared_ptr<Graph> graph;
  if (const int code = find_model(model, graph); code != ACL_SUCCESS) return code;
  if (const int code = find_queue(handle, stream); code != ACL_SUCCESS) return code;
  if (stream->capture) return fail(ACL_ERROR_RT_STREAM_CAPTURED, "EE1016: a model cannot be captured into another");
  return replay(graph, stream);
}

aclError aclmdlRIExecute(aclmdlRI model, int32_t timeout) {
  ACL_CALL(work);
  Stream* stream = nullptr;
  std::shared_ptr<Graph> graph;
  if (timeout == 0 || timeout < -1) return fail(ACL_ERROR_RT_PARAM_INVALID, "a timeout is -1 or positive");
  if (const int code = find_model(model, graph); code != ACL_SUCCESS) return code;
  if (const int code = find_stream(nullptr, stream); code != ACL_SUCCESS) return code;
  if (const int code = replay(graph, stream); code != 0) return code;
  return end_stream(stream, timeout, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
}

aclError aclmdlRIDestroy(aclmdlRI handle) {
  ACL_CALL(release);
  std::shared_ptr<Graph> graph;
  if (const int code = find_model(handle, graph); code != ACL_SUCCESS) return code;
  if (is_running(*graph) && world().lost == 0) {
    return fail(ACL_ERROR_RT_MODEL_RUNNING, "EE1016: the model is still being executed");
  }
  captured.erase(graph.get());
  close_graph(*graph);
  return ACL_SUCCESS;
}

}  // extern "C"
