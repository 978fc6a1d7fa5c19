"""Programs that misuse a runtime get a documented code and a message, or are ended with one; none crashes or hangs.

The cases of a library run in one process, each in a fork of its own, since most of the time goes into starting Python.
A case is Python that appends to ``out``; ``rt`` is the library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest

from tests.emulator.misuse import OPENING, TWICE, Case, calls

NULLS = [
    "aclrtGetDeviceCount(None)", "aclrtGetDevice(None)", "aclrtCreateContext(None, 0)", "aclrtGetCurrentContext(None)",
    "aclrtCtxGetCurrentDefaultStream(None)", "aclrtCreateStream(None)", "aclrtStreamQuery(None, None)",
    "aclrtStreamGetId(None, None)", "aclrtGetStreamAvailableNum(None)", "aclrtCreateEvent(None)",
    "aclrtCreateEventExWithFlag(None, 1)", "aclrtQueryEventStatus(plain(), None)", "aclrtQueryEvent(plain(), None)",
    "aclrtQueryEventWaitStatus(plain(), None)", "aclrtGetEventAvailNum(None)", "aclrtMalloc(None, c_size_t(8), 0)",
    "aclrtMallocHost(None, c_size_t(8))", "aclrtFree(None)", "aclrtFreeHost(None)", "aclrtHostUnregister(None)",
    "aclrtMemcpy(None, c_size_t(8), None, c_size_t(8), 1)", "aclrtMemset(None, c_size_t(8), 0, c_size_t(8))",
    "aclrtMemcpyAsync(None, c_size_t(8), None, c_size_t(8), 1, None)", "aclrtDestroyStream(None)",
    "aclrtMemsetAsync(None, c_size_t(8), 0, c_size_t(8), None)", "aclrtHostRegisterV2(None, c_uint64(8), 0x10000000)",
    "aclrtLaunchHostFunc(None, None, None)", "aclrtLaunchCallback(None, None, 1, None)",
    "aclrtBinaryLoadFromFile(None, None, byref(place))", "aclrtBinaryGetFunction(None, None, byref(place))",
    "aclrtBinaryGetFunction(None, b'x', None)", "aclmdlRICaptureEnd(None, None)", "aclrtDestroyContext(None)",
    "aclmdlRICaptureGetInfo(None, None, None)", "aclmdlRICaptureThreadExchangeMode(None)", "aclmdlRIDestroy(None)",
    "aclmdlRIExecuteAsync(None, None)", "aclrtEventElapsedTime(None, plain(), plain())",
]  # fmt: skip
"""Calls on null pointers that are invalid parameters (107000)."""

DESCRIPTIONS = """
rt.aclCreateDataBuffer.restype = rt.aclmdlCreateDataset.restype = c_void_p
buffer = c_void_p(rt.aclCreateDataBuffer(None, c_size_t(3))); data = c_void_p(rt.aclmdlCreateDataset())
out += [rt.aclmdlAddDatasetBuffer(data, buffer), rt.aclmdlAddDatasetBuffer(data, data), rt.aclDestroyDataBuffer(buffer),
        rt.aclDestroyDataBuffer(buffer), rt.aclDestroyDataBuffer(None), rt.aclGetDataBufferAddr(buffer),
        rt.aclmdlExecuteAsync(1, data, data, None), rt.aclmdlExecuteAsync(1, None, None, None),
        rt.aclopExecuteV2(None, 0, None, None, 0, None, None, None, None),
        rt.aclopExecuteV2(b"X", -1, None, None, 0, None, None, None, None),
        rt.aclopExecuteV2(b"X", 1, None, None, 0, None, None, None, None),
        rt.aclmdlDestroyDataset(data), rt.aclmdlDestroyDataset(data), rt.aclmdlGetDatasetNumBuffers(data)]
"""
COPY = """
seed(1); h, d, s = pinned(), device(), stream()
copy = lambda: rt.aclrtMemcpyAsync(d, c_size_t(64), h, c_size_t(64), 1, s)
"""
CALLBACK = """
s = stream(); stop = []
def serve():
    while not stop: rt.aclrtProcessReport(10)
server = threading.Thread(target=serve); server.start()
assert rt.aclrtSubscribeReport(c_uint64(server.ident), s) == 0
INSIDE
rt.aclrtSynchronizeStream(s); stop.append(1); server.join()
"""
OTHER_THREAD = """
context = handle("aclrtCreateContext", 0); ready, go = threading.Event(), threading.Event()
def other():
    out.append(rt.aclrtSetCurrentContext(context)); ready.set(); go.wait()
    out.append(rt.aclrtCreateStream(byref(place))); out.append(message())
thread = threading.Thread(target=other); thread.start(); ready.wait()
out.append(rt.aclrtDestroyContext(context)); go.set(); thread.join(); out.append(rt.aclrtSetCurrentContext(context))
"""
OWN_CONTEXTS = """
def work(number):
    context = handle("aclrtCreateContext", number); h, d, s = pinned(), device(), stream()
    ctypes.memset(h, number + 1, 64)
    done = [rt.aclrtMemcpyAsync(d, c_size_t(64), h, c_size_t(64), 1, s), rt.aclrtSynchronizeStream(s)]
    ctypes.memset(h, 0, 64)
    done += [rt.aclrtMemcpyAsync(h, c_size_t(64), d, c_size_t(64), 2, s), rt.aclrtSynchronizeStream(s)]
    done.append(ctypes.string_at(h, 64) == bytes([number + 1]) * 64)
    done += [rt.aclrtDestroyStream(s), rt.aclrtFree(d), rt.aclrtFreeHost(h), rt.aclrtDestroyContext(context)]
    out.append(done)
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
out.append(rt.dagsched_emulator_alive())
"""

ACL = {
    "nulls": Case(calls(*(f"rt.{call}" for call in NULLS)), [107000] * len(NULLS)),
    "before aclInit": Case(
        calls("rt.aclrtSetDevice(0)", "rt.aclrtCreateContext(byref(place), 0)", "rt.aclrtCreateStream(byref(place))",
              "rt.aclrtMallocHost(byref(place), c_size_t(8))", "rt.aclrtSynchronizeDevice()", "message()",
              "rt.aclrtSynchronizeStream(None)", "rt.aclrtFree(None)", "rt.aclFinalize()", "message()"),
        [100001] * 5 + ["aclrtSynchronizeDevice is called before aclInit", 100001, 107000, 100001,
                        "aclInit has not been called"], unstarted=True),
    "after aclFinalize": Case(
        "s = stream(); " + calls("rt.aclFinalize()", "rt.aclrtCreateStream(byref(place))", "message()",
                                 "rt.aclrtDestroyStream(s)", "rt.aclFinalize()"),
        [0, 100001, "aclrtCreateStream is called after aclFinalize", 0, 100037],
        "aclFinalize: not released:\n  stream stream"),
    "aclInit is counted": Case(
        "left = c_uint64(9); " + calls("rt.aclInit(None)", "rt.aclFinalizeReference(byref(left))", "left.value",
                                       "rt.aclrtDestroyStream(stream())", "rt.aclFinalizeReference(None)",
                                       "rt.aclFinalizeReference(None)", "rt.aclInit(None)", "rt.aclFinalize()"),
        [100002, 0, 1, 0, 0, 100037, 0, 0]),
    "a stream after its end": Case(
        "s = stream(); rt.aclrtDestroyStream(s); t = stream(); " +
        calls("rt.aclrtSynchronizeStream(s)", "message()", "rt.aclrtDestroyStream(s)", "launch(s)", "launch(t)"),
        [107017, "EE1001: stream stream has been destroyed", 107017, 107017, 0]),
    "an event after its end": Case(
        "s = stream(); e = event(); rt.aclrtDestroyEvent(e); f = event(); " +
        calls("rt.aclrtRecordEvent(e, s)", "message()", "rt.aclrtStreamWaitEvent(s, e)", "rt.aclrtDestroyEvent(e)"),
        [107017, "EE1001: event event@0 has been destroyed", 107017, 107017]),
    "arguments in the wrong order": Case(
        "s = stream(); e = event(); " + calls("rt.aclrtRecordEvent(s, e)", "message()", "rt.aclrtStreamWaitEvent(e, s)",
                                              "rt.aclrtSynchronizeStream(e)", "message()"),
        [107017, "EE1001: that is stream stream, no event", 107017, 107017,
         "EE1001: that is event event@0, no stream"]),
    "the default stream is not the program's": Case(
        "rt.aclrtCtxGetCurrentDefaultStream(byref(place)); " +
        calls("rt.aclrtDestroyStream(place)", "rt.aclrtDestroyStreamForce(place)", "launch(None)", "launch(place)",
              "rt.aclmdlRICaptureBegin(place, 0)", "rt.aclrtSynchronizeDevice()"),
        [107000, 107000, 0, 0, 107031, 0]),
    "memory is freed twice, or otherwise": Case(
        "d = device(); h = pinned(); inside = c_void_p(d.value + 8); " +
        calls("rt.aclrtFreeHost(d)", "message()", "rt.aclrtFree(h)", "rt.aclrtFree(inside)", "message()",
              "rt.aclrtFree(d)", "rt.aclrtFree(d)", "message()", "rt.aclrtFreeHost(h)", "rt.aclrtFreeHost(h)",
              "rt.aclrtHostUnregister(h)"),
        [107000, "EE1001: device.0, device memory, is released as page-locked memory", 107000, 107000,
         "EE1001: an address inside device.0 is released: give its first byte", 0, 107000,
         "EE1001: device.0 is released a second time", 0, 107000, 107000], "device.0 is released a second time"),
    "page-locked memory goes while it is copied": Case(
        COPY + "copy(); rt.aclrtFreeHost(h); rt.aclrtSynchronizeStream(s)",
        [], "copy_h2d gets to host.0, which has been freed", 86),
    "registered memory goes while it is copied": Case(
        "seed(1); h = ctypes.create_string_buffer(64); d, s = device(), stream(); "
        "copy = lambda: rt.aclrtMemcpyAsync(d, c_size_t(64), h, c_size_t(64), 1, s); "
        "rt.aclrtHostRegisterV2(h, c_uint64(64), 0x10000000); "
        "copy(); rt.aclrtHostUnregister(h); "
        "rt.aclrtSynchronizeStream(s)",
        [], "copy_h2d gets to registered.0, which has been unregistered", 86),
    "freed after the stream has ended": Case(
        COPY + "copy(); " +
        calls("rt.aclrtSynchronizeStream(s)", "rt.aclrtFree(d)", "rt.aclrtFreeHost(h)",
              "rt.dagsched_emulator_complaints()"), [0, 0, 0, 0]),
    "sizes": Case(
        "h, d, s = pinned(4096), device(4096), stream(); half, row = c_size_t(2**63), c_size_t(8); " +
        calls("rt.aclrtMalloc(byref(place), HUGE, 0)", "rt.aclrtMallocHost(byref(place), HUGE)",
              "rt.aclrtMallocHost(byref(place), c_size_t(1 << 60))", "rt.aclrtMalloc(byref(place), c_size_t(0), 0)",
              "rt.aclrtMemcpyAsync(d, HUGE, h, HUGE, 1, s)", "rt.aclrtMemset(d, HUGE, 0, HUGE)",
              "rt.aclrtMemcpyAsync(d, c_size_t(8), h, c_size_t(9), 1, s)",
              "rt.aclrtMemcpyAsync(c_void_p(d.value + 4090), c_size_t(8), h, c_size_t(8), 1, s)",
              "rt.aclrtMemcpy2dAsync(d, half, h, half, row, c_size_t(3), 1, s)", "message()",
              "rt.aclrtMemcpy2d(d, half, h, half, row, c_size_t(3), 1)",
              "rt.aclrtMemcpy2d(d, c_size_t(4), h, c_size_t(4), row, c_size_t(3), 1)",
              "rt.aclrtHostRegisterV2(c_void_p(4096), c_uint64(2**64 - 1), 0x10000000)",
              "rt.aclrtMemcpyAsync(None, c_size_t(0), None, c_size_t(0), 1, s)"),
        [207001, 207001, 207001, *[107000] * 6, "EE1001: the rows are longer than any memory", *[107000] * 3, 0],
        "reaches beyond the end of device.0"),
    "memory is registered twice in part": Case(
        "b = ctypes.create_string_buffer(8192); at = ctypes.addressof(b); "
        "register = lambda where, size: rt.aclrtHostRegisterV2(c_void_p(where), c_uint64(size), 0x10000000); " +
        calls("register(at + 4096, 4096)",
              "register(at, 4097)", "register(at, 4096)"),
        [0, 107000, 0]),
    "devices": Case(
        calls("rt.aclrtSetDevice(-1)", "rt.aclrtSetDevice(8)", "message()", "rt.aclrtResetDevice(3)", "message()",
              "rt.aclrtCreateContext(byref(place), 99)", "rt.aclrtResetDeviceForce(-5)"),
        [107001, 107001, "EE1003: there is no device 8: they are 0 to 7", 107001, "EE1003: device 3 has not been set",
         107001, 107001]),
    "a device's default context stays": Case(
        "rt.aclrtGetCurrentContext(byref(place)); " + calls("rt.aclrtDestroyContext(place)"), [107000]),
    "a context that another thread has destroyed": Case(
        OTHER_THREAD, [0, 0, 107002, "EE1002: this thread's context has been destroyed", 107002]),
    "a context goes before its stream": Case(
        "c = handle('aclrtCreateContext', 0); s = stream(); " +
        calls("rt.aclrtDestroyContext(c)", "rt.aclrtSynchronizeStream(s)", "rt.aclrtSetDevice(0)",
              "rt.aclrtSynchronizeStream(s)", "rt.aclrtDestroyContext(c)", "message()"),
        [0, 107002, 0, 107003, 107000, "EE1001: the context has been destroyed"],
        "the context of stream stream is destroyed before the stream is"),
    "threads without a context": Case(
        calls("in_thread(lambda: rt.aclrtMalloc(byref(place), c_size_t(8), 0))",
              "in_thread(lambda: rt.aclrtSynchronizeDevice())", "in_thread(lambda: rt.aclrtGetDevice(byref(c_int())))"),
        [107002, 107002, 107002]),
    "threads with contexts of their own": Case(OWN_CONTEXTS, [[0, 0, 0, 0, True, 0, 0, 0, 0]] * 4 + [0]),
    "memory and kernels of another device": Case(
        "d, s = device(), stream(); c = handle('aclrtCreateContext', 1); h, t = pinned(), stream(); " +
        calls("rt.aclrtMemcpyAsync(d, c_size_t(64), h, c_size_t(64), 1, t)", "message()", "launch(s)",
              "rt.aclrtMemset(d, c_size_t(64), 0, c_size_t(64))"),
        [107000, "EE1001: device.0 is memory of device 0, and the current context is of device 1", 107003, 107000],
        "device.0 is memory of device 0"),
    "descriptions": Case(DESCRIPTIONS, [0, 100000, 0, 100000, 100000, 0, *[100000] * 5, 0, 100000, 0]),
    "a kernel that is none": Case(
        "s = stream(); " + calls("rt.aclrtLaunchKernel(None, 1, None, c_size_t(0), s)",
                                 "rt.aclrtLaunchKernel(s, 1, None, c_size_t(0), s)",
                                 "rt.dagsched_emulator_launch(s, b'x', None, None, None)", "rt.aclrtBinaryUnLoad(s)"),
        [107017, 107017, 107000, 107017]),
    "waits before any record": Case(
        "s = stream(); " + calls("rt.aclrtStreamWaitEvent(s, event())", "rt.aclrtStreamWaitEvent(s, plain())",
                                 "message()", "rt.aclrtSynchronizeStream(s)", "rt.aclrtStreamWaitEvent(s, flag())",
                                 "rt.aclrtSynchronizeStream(s)"),
        [], "stream stream stands at `wait event@2`", 87),
    "resets": Case(
        "s, t = stream(), stream(); e, f, g = event(), plain(), flag(); seed(1); " +
        calls("rt.aclrtResetEvent(e, s)", "rt.aclrtResetEvent(f, s)", "rt.aclrtRecordEvent(g, s)",
              "rt.aclrtStreamWaitEvent(t, g)", "rt.aclrtResetEvent(g, s)"),
        [207000, 0, 0, 0, 0], "event@2 is reset on stream stream, which has not waited for it"),
    "a flag that is recorded before its reset": Case(
        "s, t = stream(), stream(); g = flag(); seed(1); " +
        calls("rt.aclrtRecordEvent(g, s)", "rt.aclrtStreamWaitEvent(t, g)", "rt.aclrtRecordEvent(g, s)"),
        [0, 0, 0], "event event@0 is recorded again before its reset"),
    "two waiters of a flag": Case(
        "s, t, u = stream(), stream(), stream(); g = flag(); rt.aclrtRecordEvent(g, s); "
        "rt.aclrtStreamWaitEvent(t, g); rt.aclrtStreamWaitEvent(u, g)",
        [], "a second stream waits for event event@0, which one of them will reset"),
    "a stream goes with work to do": Case(
        "seed(1); s = stream(); launch(s); " + calls("rt.aclrtDestroyStream(s)"), [0],
        "stream stream is destroyed with 1 unfinished tasks"),
    "a queue that nothing can empty": Case(
        "s, g = stream(), flag(); rt.aclrtStreamWaitEvent(s, g)\nfor _ in range(3000): launch(s)",
        [], "the program waits for ever: nothing on the device can run", 87),
    "blocking calls in a capture": Case(
        "h, d, s = pinned(), device(), stream(); own = ctypes.create_string_buffer(64); "
        "copy = lambda: rt.aclrtMemcpy(d, c_size_t(64), h, c_size_t(64), 1); rt.aclmdlRICaptureBegin(s, 0); " +
        calls("copy()", "message()", "in_thread(lambda: (rt.aclrtSetDevice(0), copy())[1])",
              "rt.aclrtMemset(d, c_size_t(64), 0, c_size_t(64))",
              "rt.aclrtMemcpyAsync(d, c_size_t(64), own, c_size_t(64), 1, stream())",
              "rt.aclrtMemcpyAsync(d, c_size_t(64), own, c_size_t(64), 1, s)",
              "rt.aclmdlRICaptureEnd(s, byref(place))"),
        [107030, "EE1016: aclrtMemcpy is called during a capture whose mode forbids it", 107030, 107030, 107041, 107041,
         107027]),
    "modes of captures": Case(
        "h, d, s = pinned(), device(), stream(); mode = c_int(2); exchange = rt.aclmdlRICaptureThreadExchangeMode; "
        "copy = lambda: rt.aclrtMemcpy(d, c_size_t(64), h, c_size_t(64), 1); rt.aclmdlRICaptureBegin(s, 1); " +
        calls("in_thread(lambda: (rt.aclrtSetDevice(0), copy())[1])", "exchange(byref(mode))", "mode.value", "copy()",
              "in_thread(lambda: (rt.aclrtSetDevice(0), rt.aclmdlRICaptureEnd(s, byref(place)))[1])",
              "exchange(byref(c_int(7)))", "rt.aclmdlRICaptureEnd(s, byref(place))"),
        [0, 0, 0, 0, 107038, 107000, 0]),
    "a model that runs": Case(
        "seed(1); s = stream(); rt.aclmdlRICaptureBegin(s, 0); launch(s); rt.aclmdlRICaptureEnd(s, byref(place)); " +
        calls("rt.aclmdlRIExecuteAsync(place, s)", "rt.aclmdlRIDestroy(place)", "rt.aclrtSynchronizeStream(s)",
              "rt.aclmdlRIDestroy(place)", "rt.aclmdlRIDestroy(place)", "rt.aclmdlRIExecuteAsync(place, s)"),
        [0, 107037, 0, 0, 107000, 107000]),
    "two captures meet": Case(
        "s, t, e = stream(), stream(), event(); rt.aclmdlRICaptureBegin(s, 0); rt.aclmdlRICaptureBegin(t, 0); " +
        calls("rt.aclrtRecordEvent(e, s)", "rt.aclrtStreamWaitEvent(t, e)", "rt.aclmdlRICaptureBegin(t, 0)",
              "rt.aclrtDestroyStream(s)", "rt.aclrtDestroyStreamForce(s)"), [0, 107032, 107027, 107027, 107027]),
    "what callbacks may do": Case(
        CALLBACK.replace("INSIDE", "rt.aclrtLaunchCallback(function(lambda: out.extend(["
                         "rt.aclrtMalloc(byref(c_void_p()), c_size_t(8), 0), rt.aclrtSynchronizeStream(s), launch(s), "
                         "rt.aclrtSetCurrentContext(None)])), None, 1, s)"),
        [207000, 207000, 207000, 107002], "aclrtMalloc is called by a callback"),
    "what host functions may do": Case(
        "s = stream(); rt.aclrtLaunchHostFunc(s, function(lambda: out.extend([rt.aclrtFree(None), "
        "rt.aclrtSynchronizeDevice(), rt.aclrtGetDevice(byref(c_int()))])), None); rt.aclrtSynchronizeStream(s)",
        [207000, 207000, 107002], "aclrtFree is called by a task"),
    "callbacks and host functions on one stream": Case(
        CALLBACK.replace("INSIDE", "f = function(lambda: 0); rt.aclrtLaunchCallback(f, None, 1, s); "
                         "rt.aclrtLaunchHostFunc(s, f, None)"),
        [], "stream stream is given callbacks and host functions"),
    "the end comes while a thread runs callbacks": Case(
        CALLBACK.split("INSIDE", maxsplit=1)[0] + "ctypes.CDLL(None).exit(5)", [], "", 5),
    "one thread synchronises what another destroys": Case(
        "seed(1); s = stream(); launch(s, lambda: time.sleep(0.2)); rt.aclrtGetCurrentContext(byref(place))\n"
        "def wait(): rt.aclrtSetCurrentContext(place); out.append(rt.aclrtSynchronizeStream(s))\n"
        "thread = threading.Thread(target=wait); thread.start(); time.sleep(0.05); " +
        calls("rt.aclrtDestroyStream(s)") + "; thread.join()", [0, 0], "stream stream is destroyed with"),
    "two threads destroy the same": Case(
        TWICE.replace("MESSAGE", "True") +
        calls("twice(s, lambda: rt.aclrtDestroyStream(s))", "handle('aclrtCreateContext', 0).value and 0", "share()",
              "twice(None, lambda: rt.aclrtDestroyContext(shared))", "out_of_thread"),
        [107017, "EE1001: stream stream is being destroyed", 0, 0, 107000, "EE1001: the context has been destroyed",
         [0, 0]], "stream stream is destroyed with"),
    "a lost device": Case(
        "s, e = stream(), event(); rt.dagsched_emulator_inject(b'aclrtRecordEvent#1:507899:lost'); " +
        calls("rt.aclrtRecordEvent(e, s)", "rt.aclrtSynchronizeStream(s)", "message()",
              "rt.aclrtMalloc(byref(place), c_size_t(8), 0)", "rt.aclrtDestroyEvent(e)", "rt.aclrtDestroyStream(s)",
              "rt.aclrtResetDevice(0)", "rt.aclFinalize()", "rt.dagsched_emulator_complaints()"),
        [507899, 507899, "the device is lost", 507899, 0, 0, 0, 0, 0]),
    "notifies": Case(
        "s, e, n = stream(), event(), handle('aclrtCreateNotify', c_uint64(0)); " +
        calls("rt.aclrtCreateNotify(None, c_uint64(0))", "rt.aclrtCreateNotify(byref(place), c_uint64(2))",
              "rt.aclrtRecordNotify(e, s)", "message()", "rt.aclrtRecordEvent(n, s)", "message()",
              "rt.aclrtRecordNotify(s, n)", "rt.aclrtRecordNotify(n, s)", "rt.aclrtRecordNotify(n, s)",
              "rt.aclrtWaitAndResetNotify(n, s, 0)", "rt.aclrtSynchronizeStream(s)", "rt.aclrtGetNotifyId(n, None)",
              "rt.aclrtDestroyNotify(n)", "rt.aclrtRecordNotify(n, s)", "message()"),
        [107000, 107000, 107017, "EE1001: that is event event@0, no notify", 107017,
         "EE1001: that is notify notify.0, no event", 107017, 0, 0, 0, 0, 107000, 0, 107017,
         "EE1001: notify notify.0 has been destroyed"],
        "notify notify.0 is recorded again before anything waits for it"),
    "a notify that nobody records": Case(
        "s, n = stream(), handle('aclrtCreateNotify', c_uint64(0)); rt.aclrtWaitAndResetNotify(n, s, 0); "
        "rt.aclrtSynchronizeStream(s)", [], "stream stream stands at `wait notify.0`", 87),
    "values": Case(
        "s, d, h = stream(), device(), pinned(); beyond = c_void_p(d.value + 64); odd = c_void_p(d.value + 4); "
        "write = lambda at, flag=0: rt.aclrtValueWrite(at, c_uint64(5), flag, s); "
        "wait = lambda at, how, value: rt.aclrtValueWait(at, c_uint64(value), how, s); " +
        calls("write(None)", "write(h)", "write(beyond)", "write(odd)", "write(d, 1)", "wait(d, 4, 0)", "write(d)",
              "wait(d, 0, 4)", "wait(d, 1, 5)", "wait(d, 2, 7)", "wait(d, 3, 6)", "rt.aclrtSynchronizeStream(s)"),
        [107000, 107000, 107000, 107008, 107000, 107000, 0, 0, 0, 0, 0, 0]),
    "a value that never comes": Case(
        "s, d = stream(), device(); rt.aclrtMemset(d, c_size_t(64), 0, c_size_t(64)); "
        "rt.aclrtValueWait(d, c_uint64(1), 1, s); rt.aclrtSynchronizeStream(s)",
        [], "stream stream stands at `wait for a value`", 87),
    "the host touches device memory": Case(
        "d = device(); ctypes.memset(d.value + 5, 1, 4)", [], "byte 5 of device.0, a device block of 64 bytes", 86),
}  # fmt: skip

CUDA_NULLS = [
    "cudaGetDeviceCount(None)", "cudaGetDevice(None)", "cudaStreamCreate(None)", "cudaEventCreate(None)",
    "cudaEventElapsedTime(None, event(), event())", "cudaMalloc(None, c_size_t(8))", "cudaFreeAsync(None, None)",
    "cudaMallocAsync(None, c_size_t(8), None)", "cudaHostRegister(None, c_size_t(8), 0)", "cudaHostUnregister(None)",
    "cudaMemcpyAsync(None, None, c_size_t(8), 1, None)", "cudaMemset(None, 0, c_size_t(8))",
    "cudaLaunchHostFunc(None, None, None)", "cudaStreamEndCapture(stream(), None)", "cudaGraphDestroy(None)",
    "cudaStreamIsCapturing(None, None)", "cudaGraphInstantiate(None, None, c_uint64(0))", "cudaGraphLaunch(None, None)",
    "cudaGraphExecDestroy(None)", "cudaThreadExchangeStreamCaptureMode(None)",
    "cudaStreamCreateWithFlags(byref(place), 7)",
]  # fmt: skip

CUDA = {
    "nulls": Case(calls(*(f"rt.{call}" for call in CUDA_NULLS)), [1] * len(CUDA_NULLS)),
    "null handles": Case(
        calls("rt.cudaStreamDestroy(None)", "rt.cudaEventDestroy(None)", "rt.cudaEventRecord(None, None)",
              "rt.cudaFree(None)", "rt.cudaFreeHost(None)", "rt.cudaSetDevice(1)"), [400, 400, 400, 0, 0, 101]),
    "handles after their end": Case(
        "s, e = stream(), event(); rt.cudaStreamDestroy(s); rt.cudaEventDestroy(e); stream(); event(); " +
        calls("rt.cudaStreamSynchronize(s)", "rt.cudaStreamDestroy(s)", "rt.cudaEventSynchronize(e)",
              "rt.cudaEventDestroy(e)", "launch(s)"), [400] * 5),
    "sizes": Case(
        "h, d, s = pinned(4096), device(4096), stream(); half, row = c_size_t(2**63), c_size_t(8); " +
        calls("rt.cudaMemcpy2DAsync(d, half, h, half, row, c_size_t(3), 1, s)",
              "rt.cudaMemset2DAsync(d, half, 0, row, c_size_t(3), s)", "rt.cudaMalloc(byref(place), HUGE)",
              "rt.cudaMemcpyAsync(d, h, HUGE, 1, s)"), [1, 1, 2, 1], "reaches beyond the end of device.0"),
    "default streams": Case(
        calls("launch(None)", "launch(c_void_p(1))", "launch(c_void_p(2))", "rt.cudaStreamSynchronize(c_void_p(2))",
              "rt.cudaStreamDestroy(c_void_p(1))", "rt.cudaStreamDestroy(c_void_p(2))", "rt.cudaDeviceSynchronize()",
              "rt.dagsched_emulator_alive()"), [0, 0, 0, 0, 400, 400, 0, 0]),
    "blocking calls in a capture": Case(
        "h, d, s = pinned(), device(), stream(); rt.cudaStreamBeginCapture(s, 0); " +
        calls("rt.cudaMemcpy(d, h, c_size_t(64), 1)", "rt.cudaMalloc(byref(place), c_size_t(8))", "rt.cudaFreeHost(h)",
              "in_thread(lambda: rt.cudaMallocHost(byref(c_void_p()), c_size_t(8)))",
              "rt.cudaStreamEndCapture(s, byref(place))"), [900, 900, 900, 900, 901]),
    "modes of captures": Case(
        "h, d, s = pinned(), device(), stream(); mode = c_int(2); rt.cudaStreamBeginCapture(s, 1); "
        "copy = lambda: rt.cudaMemcpy(d, h, c_size_t(64), 1); " +
        calls("in_thread(copy)", "rt.cudaThreadExchangeStreamCaptureMode(byref(mode))", "mode.value", "copy()",
              "in_thread(lambda: rt.cudaStreamEndCapture(s, byref(place)))",
              "rt.cudaStreamEndCapture(s, byref(place))"),
        [0, 0, 0, 0, 908, 0]),
    "the legacy stream in a capture": Case(
        "s, d = stream(0), device(); rt.cudaStreamBeginCapture(s, 2); " +
        calls("rt.cudaMemsetAsync(d, 0, c_size_t(64), None)", "launch(None)", "rt.cudaEventRecord(event(), None)",
              "rt.cudaStreamEndCapture(s, byref(place))"), [906, 906, 906, 901]),
    "memory goes while it is copied": Case(
        "seed(1); h, d, s, t = pinned(), device(), stream(), stream(); rt.cudaMemcpyAsync(d, h, c_size_t(64), 1, s); "
        "rt.cudaFreeAsync(d, t); rt.cudaStreamSynchronize(t); rt.cudaStreamSynchronize(s)",
        [], "copy_h2d gets to device.0, which has been freed", 86),
    "memory is freed twice": Case(
        "seed(1); d, s = device(), stream(); " +
        calls("rt.cudaFreeAsync(d, s)", "rt.cudaFreeAsync(d, s)", "rt.cudaFree(d)", "rt.cudaStreamSynchronize(s)"),
        [0, 1, 1, 0], "device.0 is released a second time"),
    "two threads destroy the same": Case(
        TWICE.replace("MESSAGE", "False") +
        "rt.cudaStreamBeginCapture(t, 0); launch(t, lambda: time.sleep(0.2)); "
        "rt.cudaStreamEndCapture(t, byref(place)); graph, d = c_void_p(), device(); "
        "rt.cudaGraphInstantiate(byref(graph), place, c_uint64(0)); " +
        calls("twice(s, lambda: rt.cudaStreamDestroy(s))", "rt.cudaGraphLaunch(graph, t)",
              "twice(t, lambda: rt.cudaGraphExecDestroy(graph))") +
        "; twice(t, lambda: rt.cudaFree(d)); out[5:] = [sorted(out[5:] + out_of_thread[2:])]; " +
        calls("out_of_thread[:2]"), [400, "", 0, 1, "", [0, 1], [0, 0]]),
    "a device that is reset": Case(
        "d, s = device(), stream(); launch(c_void_p(2)); " +
        calls("rt.cudaDeviceReset()", "rt.cudaStreamSynchronize(s)", "rt.cudaFree(d)", "launch(c_void_p(2))",
              "launch(None)", "rt.dagsched_emulator_alive()"), [0, 400, 1, 0, 0, 0],
        "cudaDeviceReset: not released:\n  stream stream\n  64 bytes of device memory, device.0"),
    "what host functions may do": Case(
        "s = stream(); f = function(lambda: out.append(rt.cudaMalloc(byref(place), c_size_t(8)))); "
        "rt.cudaLaunchHostFunc(s, f, None); rt.cudaStreamSynchronize(s)", [800], "cudaMalloc is called by a task"),
}  # fmt: skip

LIBRARIES = {"ascendcl": ACL, "cudart": CUDA}
Ended = tuple[int, list[object], str]


@pytest.fixture(scope="module")
def ended() -> dict[tuple[str, str], Ended]:
    """How each case ended: the status, what was returned, what was said."""
    found: dict[tuple[str, str], Ended] = {}
    variables = {name: text for name, text in os.environ.items() if not name.startswith("DAGSCHED_EMU")}
    for library, cases in LIBRARIES.items():
        opening = OPENING.replace("LIBRARY", repr(library)).replace("ACL", str(library == "ascendcl"))
        given = json.dumps([asdict(case) for case in cases.values()])
        command = [sys.executable, "-c", opening]
        done = subprocess.run(
            command, input=given, env=variables, capture_output=True, text=True, check=False, timeout=300
        )
        lines = done.stdout.splitlines()
        assert len(lines) == len(cases), done.stderr
        for name, line in zip(cases, lines, strict=True):
            status, returned, said = json.loads(line)
            found[library, name] = (status, returned, said)
    return found


@pytest.mark.parametrize(("library", "name"), [(library, name) for library in LIBRARIES for name in LIBRARIES[library]])
def test_misuse_is_told(library: str, name: str, ended: dict[tuple[str, str], Ended]) -> None:
    case = LIBRARIES[library][name]
    status, returned, said = ended[library, name]
    assert status == case.status, said
    if case.status == 0:
        assert returned == case.returns, said
    assert case.said in said
    if not case.said:
        assert said == ""
