"""Target ``cuda-cpp``: the pipeline in terms of the CUDA runtime, and of HIP through a small prefix header.

Streams are non-blocking, events have no timing, host memory is page-locked, host functions are cudaLaunchHostFunc.
Rows of bytes are one cudaMemcpy2DAsync or cudaMemset2DAsync wherever their pitch is known and allowed.
"""

from __future__ import annotations

from importlib import resources

from dagsched.compiled import Compiled
from dagsched.emit.calls import Direction
from dagsched.emit.cpp_program import emit_cpp
from dagsched.emit.cpp_runtime import Home, Runtime, Words
from dagsched.emit.cpp_text import Invocation
from dagsched.emit.lower import list_calls
from dagsched.emit.nests import Level
from dagsched.plan.expressions import Expr, Int

MAX_PITCH = 2**31 - 1
"""The largest pitch of 2-D copies (``cudaDeviceProp::memPitch`` of every device so far), in bytes."""

PREFIX = "dagsched_hip.h"


def emit_cuda_cpp(compiled: Compiled) -> dict[str, str]:
    """File names and texts; raises :class:`PlanError` for what the CUDA runtime cannot express."""
    return with_prefix(emit_cpp(list_calls(compiled), CUDA))


def with_prefix(files: dict[str, str]) -> dict[str, str]:
    """The files of a program, and the header through which it builds for HIP."""
    text = resources.files("dagsched.emit").joinpath(PREFIX).read_text(encoding="utf-8")
    return {**files, PREFIX: text}


def _as_rows(_: Direction, run: Expr, level: Level) -> bool:
    """Whether rows are one 2-D copy: pitches must be known, and no smaller than a row."""
    pitches = [level.source, level.target]
    return isinstance(run, Int) and all(
        isinstance(pitch, Int) and run.value <= pitch.value <= MAX_PITCH for pitch in pitches
    )


def _fill_rows(to: str, pitch: str, value: str, width: str, height: str, stream: str) -> Invocation:
    return Invocation("cudaMemset2DAsync", (to, pitch, value, width, height, stream))


CUDA = Runtime(
    name="a CUDA",
    suffix="_cuda",
    main=".cu",
    include=(
        "#if defined(__HIP_PLATFORM_AMD__)",
        f'#include "{PREFIX}"',
        "#else",
        "#include <cuda_runtime.h>",
        "#endif",
    ),
    parts="cuda_parts.hpp",
    compile_hint="Compile with `nvcc -std=c++17`, or with `hipcc -std=c++17 -x hip` for AMD devices.",
    words=Words(
        error="cudaError_t",
        success="cudaSuccess",
        invalid="cudaErrorInvalidValue",
        uninitialised="cudaErrorInitializationError",
        bad_alloc="cudaErrorMemoryAllocation",
        failure="cudaErrorUnknown",
        stream="cudaStream_t",
        event="cudaEvent_t",
        calling="CUDART_CB ",
        host="cudaLaunchHostFunc",
    ),
    home=Home(
        type="int",
        name="device",
        none="-1",
        find="cudaGetDevice",
        current="CurrentDevice",
        text="It lives on the device that is current in `init`: release it before that device is reset.",
    ),
    kinds={
        "host to device": "cudaMemcpyHostToDevice",
        "device to host": "cudaMemcpyDeviceToHost",
        "device to device": "cudaMemcpyDeviceToDevice",
    },
    record=lambda event, stream: Invocation("cudaEventRecord", (event, stream)),
    wait=lambda stream, event: Invocation("cudaStreamWaitEvent", (stream, event, "0")),
    copy=lambda to, _, source, size, kind, stream: Invocation("cudaMemcpyAsync", (to, source, size, kind, stream)),
    copy_rows=lambda *arguments: Invocation("cudaMemcpy2DAsync", arguments),
    as_rows=_as_rows,
    fill=lambda to, size, value, stream: Invocation("cudaMemsetAsync", (to, value, size, stream)),
    fill_rows=_fill_rows,
    sync_stream="cudaStreamSynchronize",
    sync_event="cudaEventSynchronize",
    sync_device="cudaDeviceSynchronize",
    hook_rule="they must not call the CUDA runtime",
    start=(
        "  cudaError_t code = cudaSetDevice(0);",
        "  if (code == cudaSuccess) {",
    ),
    finish=(
        "  } else {",
        '    std::fprintf(stderr, "cudaSetDevice: %s\\n", cudaGetErrorString(code));',
        "  }",
    ),
    indent="    ",
    graph_parts="cuda_graph_parts.hpp",
)
