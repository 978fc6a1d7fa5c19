"""What the cases of ``test_misuse.py`` are made of: a case, and the program that runs each in a fork of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

OPENING = """
import ctypes, json, os, signal, sys, tempfile, threading, time
from ctypes import byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from dagsched.emulator.build import build_emulator
rt = ctypes.CDLL(str(build_emulator(LIBRARY).path))
Kernel, Function = ctypes.CFUNCTYPE(c_int, c_void_p), ctypes.CFUNCTYPE(None, c_void_p)
kept, place, HUGE = [], c_void_p(), c_size_t(2**64 - 1)
def handle(name, *arguments):
    made = c_void_p()
    code = getattr(rt, name)(byref(made), *arguments)
    assert code == 0, (name, code)
    return made
def launch(stream, run=lambda: 0):
    kept.append(Kernel(lambda _: run() or 0))
    return rt.dagsched_emulator_launch(stream, b"kernel", kept[-1], None, None)
def function(run):
    kept.append(Function(lambda _: run() and None))
    return kept[-1]
def message():
    rt.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return (rt.aclGetRecentErrMsg() or b"").decode()
def in_thread(run):
    out = []
    thread = threading.Thread(target=lambda: out.append(run()))
    thread.start(); thread.join()
    return out[0]
def pinned(size=64): return handle("aclrtMallocHost" if ACL else "cudaMallocHost", c_size_t(size))
def device(size=64):
    return handle("aclrtMalloc", c_size_t(size), 0) if ACL else handle("cudaMalloc", c_size_t(size))
def stream(flags=1):
    return handle("aclrtCreateStream") if ACL else handle("cudaStreamCreateWithFlags", c_uint32(flags))
def event(): return handle("aclrtCreateEventExWithFlag", 1) if ACL else handle("cudaEventCreateWithFlags", 2)
def plain(): return handle("aclrtCreateEvent")
def flag(): return handle("aclrtCreateEventWithFlag", 1)
shared = c_void_p()
def share(): return ACL and rt.aclrtGetCurrentContext(byref(shared))
def take(): return ACL and rt.aclrtSetCurrentContext(shared)
def beside(run):
    thread = threading.Thread(target=lambda: out_of_thread.append(take() or run()))
    thread.start(); time.sleep(0.05)
    return thread
out_of_thread = []
def seed(value): rt.dagsched_emulator_seed(c_uint64(value))
def started():
    assert rt.aclInit(None) == 0 and rt.aclrtSetDevice(0) == 0
def run(case, pipe):
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            scope = {**globals(), "out": []}
            try:
                if ACL and not case["unstarted"]: started()
                exec(case["text"], scope)
                os.write(pipe, json.dumps(scope["out"]).encode())
            except BaseException as error:
                print("raised", repr(error), file=sys.stderr, flush=True)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        said.seek(0)
        return status, said.read().decode()
for case in json.load(sys.stdin):
    get, put = os.pipe()
    status, said = run(case, put)
    os.close(put)
    with os.fdopen(get) as file: text = file.read()
    print(json.dumps([os.waitstatus_to_exitcode(status), json.loads(text or "[]"), said]), flush=True)
"""


@dataclass(frozen=True)
class Case:
    """What is done, what the calls return (``None``: any), the end of the process, and what is said."""

    text: str
    returns: list[object] = field(default_factory=list)
    said: str = ""
    status: int = 0
    unstarted: bool = False


def calls(*texts: str) -> str:
    """Each call's code, in order."""
    return "; ".join(f"out.append({text})" for text in texts)


TWICE = """
seed(1); s, t = stream(), stream(); share()
def twice(busy, run):
    launch(busy, lambda: time.sleep(0.2))
    thread = beside(run)
    out.append(run()); said = message() if MESSAGE else ""
    thread.join()
    return said
"""
