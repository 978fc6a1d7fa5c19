"""Kernels, operators and models by registered CPU functions, failure modes, graphs of CUDA, and hostile programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagsched.cli.main import main
from tests.emulator.test_runtime import run_python

MEMORY = """
s = handle('aclrtCreateStream')
d, e = handle('aclrtMalloc', c_size_t(64), 0), handle('aclrtMalloc', c_size_t(64), 0)
h = handle('aclrtMallocHost', c_size_t(64))
Sizes, Places = ctypes.POINTER(c_size_t), ctypes.POINTER(c_void_p)
Registered = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, c_size_t, Places, Sizes, c_size_t, Places, Sizes)
rt.aclCreateDataBuffer.restype = rt.aclmdlCreateDataset.restype = c_void_p
def double(user, inputs, given, sizes, outputs, places, rooms):
    values = ctypes.string_at(given[0], sizes[0])
    ctypes.memmove(places[0], bytes(2 * value % 256 for value in values), rooms[0])
    return 0
kept.append(Registered(double))
ctypes.memset(h, 21, 64)
assert rt.aclrtMemcpyAsync(d, c_size_t(64), h, c_size_t(64), 1, s) == 0
"""
SHOW = """
assert rt.aclrtMemcpyAsync(h, c_size_t(64), e, c_size_t(64), 2, s) == 0
print(rt.aclrtSynchronizeStream(s), set(ctypes.string_at(h, 64)) == {42}, flush=True)
"""


@pytest.mark.parametrize("seed", ["0", "1", "5"])
def test_a_registered_kernel_gets_a_copy_of_its_arguments(seed: str) -> None:
    text = """
s = handle('aclrtCreateStream')
Registered = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, c_uint32, c_void_p, c_size_t)
kept.append(Registered(lambda user, blocks, args, size: print(blocks, ctypes.string_at(args, size).decode()) or 0))
rt.dagsched_emulator_register_kernel(b'add', kept[-1], None)
binary = c_void_p()
assert rt.aclrtBinaryLoadFromFile(b'kernels.o', None, byref(binary)) == 0
function = c_void_p()
print(*(rt.aclrtBinaryGetFunction(binary, name, byref(function)) for name in (b'sub', b'add')))
arguments = ctypes.create_string_buffer(b'abc')
print(rt.aclrtLaunchKernel(function, c_uint32(0), arguments, c_size_t(3), s))
print(rt.aclrtLaunchKernel(function, c_uint32(8), arguments, c_size_t(3), s), flush=True)
arguments[0:3] = b'xyz'
rt.aclrtSynchronizeStream(s)
"""
    _, lines, said = run_python(text, DAGSCHED_EMU_SEED=seed)
    assert sorted(lines) == sorted(["107000", "0", "107000", "0", "8", "abc"]), said


@pytest.mark.parametrize("seed", ["0", "3"])
def test_operators_and_models_are_registered_functions(seed: str, tmp_path: Path) -> None:
    text = """
rt.dagsched_emulator_register_operator(b'Double', kept[-1], None)
rt.dagsched_emulator_register_model(c_uint32(7), kept[-1], None)
buffers = [(c_void_p * 1)(rt.aclCreateDataBuffer(place, c_size_t(64))) for place in (d, e)]
print(rt.aclopExecuteV2(b'Halve', 1, None, buffers[0], 1, None, buffers[1], None, s))
print(rt.aclopExecuteV2(b'Double', 1, None, buffers[0], 1, None, buffers[1], None, s))
SHOW
sets = [c_void_p(rt.aclmdlCreateDataset()) for _ in buffers]
for one, buffer in zip(sets, buffers): rt.aclmdlAddDatasetBuffer(one, c_void_p(buffer[0]))
rt.aclrtMemsetAsync(e, c_size_t(64), 0, c_size_t(64), s)
print(rt.aclmdlExecuteAsync(c_uint32(8), *sets, s), rt.aclmdlExecuteAsync(c_uint32(7), *sets, s))
SHOW
host = (c_void_p * 1)(rt.aclCreateDataBuffer(h, c_size_t(64)))
print(rt.aclopExecuteV2(b'Double', 1, None, host, 1, None, buffers[1], None, s))
rt.aclFinalize()
"""
    trace = tmp_path / "trace.json"
    _, lines, said = run_python(
        MEMORY + text.replace("SHOW", SHOW), DAGSCHED_EMU_SEED=seed, DAGSCHED_EMU_TRACE=str(trace)
    )
    assert lines == ["100000", "0", "0", "True", "100000", "0", "0", "True", "107000"], said
    text = trace.read_text(encoding="utf-8")
    assert '"Double' in text and '"model.7' in text
    assert main(["check", str(trace)]) == 0


FAILING = """
a, b = handle('aclrtCreateStream'), handle('aclrtCreateStream')
if STOP: assert rt.aclrtSetStreamFailureMode(a, ctypes.c_uint64(1)) == 0
kept.append(Kernel(lambda _: 507015))
rt.dagsched_emulator_launch(a, b'bad', kept[-1], None, None)
launch(a, 'behind'); launch(b, 'beside')
print(rt.aclrtSynchronizeStream(a), rt.aclrtSynchronizeStream(b), rt.aclrtSynchronizeStream(a))
print(launch(b, 'later'), rt.aclrtSynchronizeStream(b))
rt.aclrtDestroyStream(a); rt.aclrtDestroyStream(b)
print(rt.dagsched_emulator_alive())
"""


def test_by_default_what_comes_after_a_failure_runs() -> None:
    _, lines, said = run_python(FAILING.replace("STOP", "False"), DAGSCHED_EMU_SEED="1")
    assert sorted(lines[:2]) == ["behind", "beside"], said
    assert lines[2:] == ["507015", "0", "0", "later", "0", "0", "0"]


def test_a_context_that_stops_on_failure_executes_nothing_more() -> None:
    _, lines, said = run_python(FAILING.replace("STOP", "True"), DAGSCHED_EMU_SEED="1")
    assert "behind" not in lines, said
    assert [line for line in lines if line != "beside"] == ["507015"] * 5 + ["0"]


def test_callbacks_end_with_the_subscription() -> None:
    text = """
import threading
s = handle('aclrtCreateStream'); stop = []
def serve():
    while not stop: rt.aclrtProcessReport(10)
server = threading.Thread(target=serve); server.start()
ident = ctypes.c_uint64(server.ident)
kept.append(ctypes.CFUNCTYPE(None, c_void_p)(lambda _: print('callback', flush=True)))
print(rt.aclrtSubscribeReport(ident, s), rt.aclrtSubscribeReport(ident, s), flush=True)
rt.aclrtLaunchCallback(kept[-1], None, 1, s); rt.aclrtSynchronizeStream(s)  # 1: the stream waits for it
print(rt.aclrtUnSubscribeReport(ident, s), rt.aclrtLaunchCallback(kept[-1], None, 1, s), flush=True)
print(rt.aclrtUnSubscribeReport(ident, s))
stop.append(1); server.join()
"""
    _, lines, said = run_python(text, DAGSCHED_EMU_SEED="2")
    assert lines[0] == "0", said
    assert lines.count("callback") == 1
    assert lines[-2] == "107015", lines


CUDA_GRAPH = """
def stream():
    place = c_void_p(); assert rt.cudaStreamCreateWithFlags(byref(place), c_uint32(1)) == 0; return place
def event():
    place = c_void_p(); assert rt.cudaEventCreateWithFlags(byref(place), c_uint32(2)) == 0; return place
a, b, fork, join = stream(), stream(), event(), event()
assert rt.cudaStreamBeginCapture(a, MODE) == 0
launch(a, 'first'); rt.cudaEventRecord(fork, a); rt.cudaStreamWaitEvent(b, fork, 0); launch(b, 'side')
status = ctypes.c_int(); rt.cudaStreamIsCapturing(b, byref(status)); assert status.value == 1
INSIDE
launch(a, 'last')
graph, exec_ = c_void_p(), c_void_p()
print(rt.cudaStreamEndCapture(a, byref(graph)), flush=True)
"""


@pytest.mark.parametrize("seed", ["0", "1", "4"])
def test_a_cuda_graph_is_replayed_in_its_order(seed: str, tmp_path: Path) -> None:
    inside = "rt.cudaEventRecord(join, b); rt.cudaStreamWaitEvent(a, join, 0)"
    text = CUDA_GRAPH.replace("MODE", "0").replace("INSIDE", inside)
    text += """
assert rt.cudaGraphInstantiate(byref(exec_), graph, ctypes.c_ulonglong(0)) == 0
assert rt.cudaGraphDestroy(graph) == 0
for _ in range(3): assert rt.cudaGraphLaunch(exec_, a) == 0
launch(a, 'behind')
print(rt.cudaStreamSynchronize(a), rt.cudaGraphExecDestroy(exec_), rt.cudaGraphExecDestroy(exec_))
for s in (a, b): rt.cudaStreamDestroy(s)
for e in (fork, join): rt.cudaEventDestroy(e)
print(rt.dagsched_emulator_alive(), rt.cudaDeviceReset())
"""
    trace = tmp_path / "trace.json"
    _, lines, said = run_python(text, "cudart", DAGSCHED_EMU_SEED=seed, DAGSCHED_EMU_TRACE=str(trace))
    assert lines == ["0", *["first", "side", "last"] * 3, "behind", "0", "0", "1", "0", "0"], said
    assert main(["check", str(trace)]) == 0


MISPLACED = """
assert rt.cudaStreamBeginCapture(a, 0) == 900
assert rt.cudaStreamEndCapture(b, byref(c_void_p())) == 903
rt.cudaEventRecord(join, b); rt.cudaStreamWaitEvent(a, join, 0)
"""


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        ("", "904"),
        ("assert rt.cudaStreamSynchronize(a) == 900", "901"),
        ("assert rt.cudaStreamQuery(b) == 900", "901"),
        ("assert rt.cudaEventSynchronize(fork) == 907", "901"),
        ("e = event(); rt.cudaEventRecord(e, stream()); assert rt.cudaStreamWaitEvent(a, e, 0) == 905", "901"),
        (MISPLACED, "0"),
    ],
)  # fmt: skip
def test_what_a_cuda_capture_forbids(inside: str, code: str) -> None:
    _, lines, said = run_python(CUDA_GRAPH.replace("MODE", "0").replace("INSIDE", inside), "cudart")
    assert lines == [code], said


@pytest.mark.parametrize(("code", "broken"), [(700, True), (719, True), (1, False)])
def test_an_error_of_the_device_breaks_a_cuda_context(code: int, broken: bool) -> None:
    text = f"""
s = c_void_p(); rt.cudaStreamCreateWithFlags(byref(s), c_uint32(1)); d = handle('cudaMalloc', c_size_t(8))
kept.append(Kernel(lambda _: {code}))
rt.dagsched_emulator_launch(s, b'bad', kept[-1], None, None)
print(rt.cudaStreamSynchronize(s), rt.cudaGetLastError(), rt.cudaGetLastError(), rt.cudaDeviceSynchronize(),
      rt.cudaMemsetAsync(d, 0, c_size_t(8), s), launch(s, 'later') , rt.cudaStreamSynchronize(s), flush=True)
rt.cudaFree(d); rt.cudaStreamDestroy(s); print(rt.dagsched_emulator_alive())
"""
    _, lines, said = run_python(text, "cudart", DAGSCHED_EMU_SEED="1")
    bad = str(code)
    expected = [bad] * 7 if broken else ["later", bad, bad, "0", "0", "0", "0", "0"]
    assert lines == [*expected, "0"], said
