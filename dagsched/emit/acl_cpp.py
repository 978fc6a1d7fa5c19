"""Target ``acl-cpp``: the pipeline in terms of AscendCL.

Between host and device, rows of bytes are one aclrtMemcpy2dAsync; within the device, where that call is not supported
on every product, they are one aclrtMemcpyAsync a row.
"""

from __future__ import annotations

from dagsched.compiled import Compiled
from dagsched.emit.acl_errors import ERROR_NAMES
from dagsched.emit.calls import Direction
from dagsched.emit.cpp_program import emit_cpp
from dagsched.emit.cpp_runtime import Home, Runtime, Words
from dagsched.emit.cpp_text import Invocation
from dagsched.emit.lower import list_calls
from dagsched.emit.nests import Level
from dagsched.plan.expressions import Expr, Int

MAX_WIDTH = 5_000_000
MAX_HEIGHT = 5 * 1024 * 1024
"""Limits of aclrtMemcpy2dAsync, in bytes and rows (CANN's documentation of the call)."""


def emit_acl_cpp(compiled: Compiled) -> dict[str, str]:
    """File names and texts; raises :class:`PlanError` for what AscendCL cannot express."""
    return emit_cpp(list_calls(compiled), ASCENDCL)


def _as_rows(direction: Direction, run: Expr, level: Level) -> bool:
    """Whether rows are one 2-D copy: between host and device, and known to be within the limits."""
    if direction not in ("host to device", "device to host"):
        return False
    if not isinstance(run, Int) or not isinstance(level.count, Int):
        return False
    return run.value <= MAX_WIDTH and level.count.value <= MAX_HEIGHT


ASCENDCL = Runtime(
    name="an AscendCL",
    suffix="",
    main=".cpp",
    include=("#include <acl/acl.h>",),
    parts="acl_parts.hpp",
    compile_hint="Compile as C++17 with -I $ASCEND_HOME_PATH/include -L $ASCEND_HOME_PATH/lib64 -lascendcl",
    words=Words(
        error="aclError",
        success="ACL_SUCCESS",
        invalid="ACL_ERROR_INVALID_PARAM",
        uninitialised="ACL_ERROR_UNINITIALIZE",
        bad_alloc="ACL_ERROR_BAD_ALLOC",
        failure="ACL_ERROR_FAILURE",
        stream="aclrtStream",
        event="aclrtEvent",
        calling="",
        host="aclrtLaunchHostFunc",
    ),
    home=Home(
        type="aclrtContext",
        name="context",
        none="nullptr",
        find="aclrtGetCurrentContext",
        current="CurrentContext",
        text=(
            "It lives in the context that is current in `init`: release it before that context, the device or AscendCL."
        ),
    ),
    kinds={
        "host to device": "ACL_MEMCPY_HOST_TO_DEVICE",
        "device to host": "ACL_MEMCPY_DEVICE_TO_HOST",
        "device to device": "ACL_MEMCPY_DEVICE_TO_DEVICE",
    },
    record=lambda event, stream: Invocation("aclrtRecordEvent", (event, stream)),
    wait=lambda stream, event: Invocation("aclrtStreamWaitEvent", (stream, event)),
    copy=lambda *arguments: Invocation("aclrtMemcpyAsync", arguments),
    copy_rows=lambda *arguments: Invocation("aclrtMemcpy2dAsync", arguments),
    as_rows=_as_rows,
    fill=lambda to, size, value, stream: Invocation("aclrtMemsetAsync", (to, size, value, size, stream)),
    fill_rows=None,
    sync_stream="aclrtSynchronizeStream",
    sync_event="aclrtSynchronizeEvent",
    sync_device="aclrtSynchronizeDevice",
    hook_rule="they must not call AscendCL",
    start=(
        "  aclError code = aclInit(nullptr);",
        "  if (code != ACL_SUCCESS) {",
        '    std::fprintf(stderr, "aclInit: error %d\\n", code);',
        "    return 1;",
        "  }",
        "  code = aclrtSetDevice(0);",
        "  if (code == ACL_SUCCESS) {",
    ),
    finish=(
        "    aclrtResetDevice(0);",
        "  } else {",
        '    std::fprintf(stderr, "aclrtSetDevice: error %d\\n", code);',
        "  }",
        "  aclFinalize();",
    ),
    indent="    ",
    graph_parts="acl_graph_parts.hpp",
    fills={"ERROR_NAMES": "\n".join(f'    case {code}: return "{name}";' for code, name in ERROR_NAMES.items())},
)
