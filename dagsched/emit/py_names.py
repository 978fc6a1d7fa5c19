"""The Python identifiers of one program, scope by scope, as ``cpp_names`` has them for C++."""

from __future__ import annotations

from dagsched.emit.calls import CallList, Repeat
from dagsched.emit.cpp_names import Names, sized_buffers
from dagsched.emit.names import PYTHON, file_stem, identifiers

MODULE = frozenset(
    """
    ACL_CALLBACK_BLOCK ACL_ERROR_FAILURE ACL_ERROR_INVALID_PARAM ACL_ERROR_UNINITIALIZE ACL_EVENT_SYNC
    ACL_MEMCPY_DEVICE_TO_DEVICE ACL_MEMCPY_DEVICE_TO_HOST ACL_MEMCPY_HOST_TO_DEVICE ACL_MEM_MALLOC_HUGE_FIRST
    ACL_STREAM_FAST_LAUNCH_AND_SYNC ACL_SUCCESS Any Buffer Buffers Callable ERROR_NAMES EventRing Events Hooks
    HostCalls Iterator Pipeline PipelineError Resources Streams Strided View buffers call check_copy check_count
    check_proved check_region contextlib copy_bytes copy_rows create dataclass events fill_bytes hooks host_memory
    numpy_type on_host own prod require_host slot step0 step1 step2 step3 step4 step5 step6 step7 stream streams
    threading time
    """.split()  # noqa: SIM905
)
"""What emitted modules and their functions define or import."""

METHODS = frozenset({"MAX_COUNT", "close", "run"})


def name_python(calls: CallList, suffix: str) -> Names:
    """Identifiers for a whole program; its module is ``STEM_suffix``."""
    stem = identifiers([file_stem(calls.name).replace(".", "_").replace("-", "_")], (), PYTHON)
    module = f"{next(iter(stem.values())).rstrip('_')}_{suffix}"
    functions = identifiers((function.name for function in calls.functions), (), PYTHON)
    sized = {f"size_of_{buffer}": buffer for buffer in sized_buffers(calls)}
    sizes = identifiers(sized, functions.values(), PYTHON)
    ends = [buffer.name for buffer in calls.buffers if buffer.input or buffer.output]
    loops = [call.index for call in calls.walk() if isinstance(call, Repeat)]
    return Names(
        stem=module,
        namespace=module,
        guard="",
        streams=identifiers((queue.name for queue in calls.queues), (), PYTHON),
        events=identifiers((group.name for group in calls.handles), (), PYTHON),
        buffers=identifiers((buffer.name for buffer in calls.buffers), (), PYTHON),
        functions=functions,
        sizes={buffer: sizes[text] for text, buffer in sized.items()},
        accessors=identifiers(ends, METHODS, PYTHON),
        locals=identifiers([*calls.params, *loops], MODULE, PYTHON),
        reserved=MODULE,
        language=PYTHON,
    )
