"""What the emulator says to programs that misuse the runtime, and what capture and replay do; called through ctypes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dagsched.cli.main import main

OPENING = """
import ctypes, sys
from ctypes import byref, c_void_p, c_size_t, c_uint32
from dagsched.emulator.build import build_emulator
rt = ctypes.CDLL(str(build_emulator(LIBRARY).path))
def handle(name, *arguments):
    place = c_void_p()
    code = getattr(rt, name)(byref(place), *arguments)
    assert code == 0, (name, code)
    return place
Kernel = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p)
kept = []
def launch(stream, name):
    kept.append(Kernel(lambda _: print(name, flush=True) or 0))
    return rt.dagsched_emulator_launch(stream, name.encode(), kept[-1], None, None)
"""
ACL = "\nassert rt.aclInit(None) == 0 and rt.aclrtSetDevice(0) == 0\n"


def run_python(text: str, library: str = "ascendcl", **variables: str) -> tuple[int, list[str], str]:
    """The exit status of a program, its lines, and what was said."""
    opening = OPENING.replace("LIBRARY", repr(library)) + (ACL if library == "ascendcl" else "")
    import os

    done = subprocess.run(
        [sys.executable, "-c", opening + text], env={**os.environ, **variables}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout.split(), done.stderr


def test_the_host_may_not_touch_device_memory() -> None:
    status, _, said = run_python("d = handle('aclrtMalloc', c_size_t(100), 0)\nctypes.memset(d, 1, 4)")
    assert status == 86
    assert "the host touched device memory: only the device can" in said
    assert "byte 0 of device.0, a device block of 100 bytes" in said


def test_a_kernel_may_not_touch_freed_or_other_memory() -> None:
    text = """
s = handle('aclrtCreateStream'); d = handle('aclrtMalloc', c_size_t(64), 0)
rt.dagsched_emulator_device.restype = c_void_p
kernel = Kernel(lambda _: ctypes.memset(rt.dagsched_emulator_device(d) + {}, 1, 64) and 0)
rt.dagsched_emulator_launch(s, b'k', kernel, None, None)
rt.aclrtSynchronizeStream(s)
"""
    status, _, said = run_python(text.replace("{}", "64"))
    assert (status, "a task touched memory beyond the end of a block" in said) == (86, True)


def test_copies_get_to_freed_memory() -> None:
    text = """
s = handle('aclrtCreateStream')
d = handle('aclrtMalloc', c_size_t(64), 0); h = handle('aclrtMallocHost', c_size_t(64))
rt.aclrtMemcpyAsync(d, c_size_t(64), h, c_size_t(64), 1, s)
rt.aclrtFree(d)
rt.aclrtSynchronizeStream(s)
"""
    status, _, said = run_python(text, DAGSCHED_EMU_SEED="1")
    assert status == 86
    assert "memory device.0 is released, and `copy_h2d` of stream stream is still going to use it" in said
    assert "copy_h2d gets to device.0, which has been freed" in said


def test_leaks_and_early_ends_are_told() -> None:
    status, _, said = run_python("s = handle('aclrtCreateStream'); e = handle('aclrtCreateEvent'); rt.aclFinalize()")
    assert status == 0
    assert "aclFinalize: not released:\n  stream stream\n  event event@0" in said


def test_a_program_that_waits_for_ever_is_ended() -> None:
    text = """
s = handle('aclrtCreateStream'); e = handle('aclrtCreateEventWithFlag', c_uint32(1))
rt.aclrtStreamWaitEvent(s, e); launch(s, 'never'); rt.aclrtSynchronizeStream(s)
"""
    status, lines, said = run_python(text)
    assert (status, lines) == (87, [])
    assert "stream stream stands at `wait event@0`, with 2 more behind it" in said


def test_pageable_memory_deadlocks_where_the_stream_waits_for_what_is_not_issued() -> None:
    text = """
s = handle('aclrtCreateStream'); d = handle('aclrtMalloc', c_size_t(8), 0)
e = handle('aclrtCreateEventWithFlag', c_uint32(1))
rt.aclrtStreamWaitEvent(s, e)
rt.aclrtMemcpyAsync(d, c_size_t(8), ctypes.create_string_buffer(8), c_size_t(8), 1, s)
"""
    assert run_python(text)[0] == 87


def test_a_full_queue_blocks_the_host() -> None:
    text = """
s = handle('aclrtCreateStream')
for n in range(6): launch(s, str(n)); print('issued', n, sep='', flush=True)
rt.aclrtSynchronizeStream(s)
"""
    _, lines, _ = run_python(text, DAGSCHED_EMU_SEED="1", DAGSCHED_EMU_QUEUE_DEPTH="2")
    assert lines.index("0") < lines.index("issued2")
    assert lines.index("issued1") < lines.index("0")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("rt.aclrtSynchronizeStream(c_void_p(77))", 107017),
        ("rt.aclrtSynchronizeStream([handle('aclrtCreateStream'), handle('aclrtCreateContext', 0)][0])", 107003),
        ("rt.aclrtSynchronizeStreamWithTimeout(handle('aclrtCreateStream'), 0)", 107000),
        ("rt.aclrtMalloc(byref(c_void_p()), c_size_t(1 << 50), 0)", 207001),
        ("rt.aclrtFree(None)", 107000),
        ("rt.aclrtCreateEventExWithFlag(byref(c_void_p()), c_uint32(0))", 107000),
        ("[handle('aclrtCreateStream') for _ in range(3)] and rt.aclrtCreateStream(byref(c_void_p()))", 207008),
        ("[rt.aclrtCreateEventWithFlag(byref(c_void_p()), c_uint32(1)) for _ in range(5)][-1]", 207007),
        ("rt.aclmdlRICaptureBegin(None, 0)", 107031),
        ("rt.aclrtProcessReport(5)", 107012),
        ("rt.aclrtLaunchCallback(Kernel(lambda _: 0), None, 1, handle('aclrtCreateStream'))", 107015),
    ],
)  # fmt: skip
def test_error_codes(text: str, code: int) -> None:
    _, lines, said = run_python(f"print({text})", DAGSCHED_EMU_STREAMS="3", DAGSCHED_EMU_EVENTS="4")
    assert lines == [str(code)], said


CAPTURE = """
a, b = handle('aclrtCreateStream'), handle('aclrtCreateStream')
fork, join = handle('aclrtCreateEventExWithFlag', c_uint32(1)), handle('aclrtCreateEventExWithFlag', c_uint32(1))
assert rt.aclmdlRICaptureBegin(a, 0) == 0
launch(a, 'first'); rt.aclrtRecordEvent(fork, a); rt.aclrtStreamWaitEvent(b, fork); launch(b, 'side')
JOIN
launch(a, 'last')
model = c_void_p()
print(rt.aclmdlRICaptureEnd(a, byref(model)), flush=True)
"""


def test_a_capture_is_replayed_in_its_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    joined = CAPTURE.replace("JOIN", "rt.aclrtRecordEvent(join, b); rt.aclrtStreamWaitEvent(a, join)")
    text = joined + "for n in range(3): assert rt.aclmdlRIExecuteAsync(model, a) == 0\n"
    text += "print(rt.aclrtSynchronizeStream(a), rt.aclmdlRIDestroy(model), rt.aclFinalize() * 0)"
    for seed in ("0", "1", "2", "3"):
        trace = tmp_path / f"{seed}.json"
        _, lines, _ = run_python(text, DAGSCHED_EMU_SEED=seed, DAGSCHED_EMU_TRACE=str(trace))
        assert lines == ["0", *["first", "side", "last"] * 3, "0", "0", "0"]
        assert main(["check", str(trace)]) == 0
    assert "race" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("join", "code"),
    [
        ("", "107025"),
        ("assert rt.aclrtSynchronizeStream(a) == 107027", "107027"),
        ("assert rt.aclrtSynchronizeEvent(fork) == 107028", "107027"),
        ("assert rt.aclrtStreamWaitEvent(a, handle('aclrtCreateEventExWithFlag', c_uint32(1))) == 107024", "107027"),
    ],
)
def test_what_a_capture_forbids(join: str, code: str) -> None:
    _, lines, said = run_python(CAPTURE.replace("JOIN", join))
    assert lines == [code], said


def test_callbacks_are_run_by_the_thread_that_is_subscribed() -> None:
    text = """
import threading
s = handle('aclrtCreateStream')
stop = []
def serve():
    while not stop: rt.aclrtProcessReport(10)
server = threading.Thread(target=serve); server.start()
assert rt.aclrtSubscribeReport(ctypes.c_uint64(server.ident), s) == 0
own = lambda: threading.get_ident() == server.ident
callback = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: print('callback', own(), flush=True))
launch(s, 'before'); rt.aclrtLaunchCallback(callback, None, 1, s); launch(s, 'after')
rt.aclrtSynchronizeStream(s); stop.append(1); server.join()
"""
    for seed in ("0", "1", "2"):
        _, lines, said = run_python(text, DAGSCHED_EMU_SEED=seed)
        assert lines == ["before", "callback", "True", "after"], said


def test_the_legacy_default_stream_orders_blocking_streams() -> None:
    text = """
s = c_void_p(); rt.cudaStreamCreateWithFlags(byref(s), c_uint32(FLAGS))
launch(s, 'before')
h = handle('cudaMallocHost', c_size_t(8)); d = handle('cudaMalloc', c_size_t(8))
rt.cudaMemcpyAsync(d, h, c_size_t(8), 1, None)
fn = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: print('default', flush=True))
rt.cudaLaunchHostFunc(None, fn, None)
launch(s, 'behind')
print(rt.cudaDeviceSynchronize())
"""
    seen = {flags: set() for flags in "01"}  # type: dict[str, set[tuple[str, ...]]]
    for flags in "01":
        for seed in range(2, 9):
            _, lines, said = run_python(text.replace("FLAGS", flags), "cudart", DAGSCHED_EMU_SEED=str(seed))
            assert lines[-1] == "0", said
            seen[flags].add(tuple(lines[:-1]))
    assert seen["0"] == {("before", "default", "behind")}
    assert len(seen["1"]) > 1
