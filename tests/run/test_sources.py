"""Counts, sequences and sources; results in order, with back-pressure; ends that nobody knows beforehand."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dagsched
from dagsched.diagnostics import UsageError
from tests.run.plans import FUNCTIONS, OUTPUT, PIPELINE, read, schedule_of, show, work


@pytest.mark.parametrize("count", [0, 1, 2, 7, 50])
@pytest.mark.parametrize("kind", ["list", "iterator", "array"])
def test_items_reach_their_iteration(count: int, kind: str) -> None:
    items = list(range(3, 3 + count))
    source: Any = {"list": items, "iterator": iter(items), "array": np.array(items)}[kind]
    seen: list[tuple[int, int]] = []
    functions: dict[str, Any] = {**FUNCTIONS, "show": lambda b, i: seen.append(show(b, i))}
    with schedule_of(PIPELINE).executor(functions) as executor:
        result = executor.run(n=source)
        assert result.counts == {"n": count} and result.iterations == count
        assert seen == [(i, 10 * item) for i, item in enumerate(items)]


@pytest.mark.parametrize("count", [0, 1, 5, 40])
def test_a_stream_yields_what_the_last_host_op_returns(count: int) -> None:
    with schedule_of(PIPELINE).executor(FUNCTIONS) as executor:
        for _ in range(2):  # an executor is used again
            assert list(executor.stream(iter(range(count)))) == [(i, 10 * i) for i in range(count)]


def test_a_stream_may_yield_another_ops_results() -> None:
    functions: dict[str, Any] = {**FUNCTIONS, "work": lambda x, y: int(x[0])}
    with schedule_of(PIPELINE).executor(functions) as executor:
        assert list(executor.stream(n=[5, 6, 7], sink="work")) == [5, 6, 7]
        with pytest.raises(UsageError, match=r"R108.*`wirk`"):
            next(executor.stream(n=[5], sink="wirk"))


def test_a_stream_without_host_ops_yields_the_outputs() -> None:
    def scale(t: Any, sums: Any, i: int) -> None:
        sums[:] = t * i

    table = np.array([1, 2, 3], np.float32)
    with schedule_of(OUTPUT).executor({"scale": scale}) as executor:
        results = list(executor.stream(n=5, inputs={"table": table}))
        assert [result["out"].tolist() for result in results] == [[i, 2 * i, 3 * i] for i in range(5)]
        assert executor.run(n=4).outputs["out"].tolist() == [3, 6, 9]  # the input is kept from run to run


def test_the_source_is_asked_for_no_more_than_the_rings_hold() -> None:
    asked = 0

    def source() -> Iterator[int]:
        nonlocal asked
        while asked < 1000:
            asked += 1
            yield asked

    with schedule_of(PIPELINE).executor(FUNCTIONS) as executor:
        for fetched, _ in enumerate(executor.stream(source()), 1):
            time.sleep(0.002)
            # results that wait: 2; slots of a and b: 2 each; x, y: 2 each; one in each hand, and one item ahead
            assert asked <= fetched + 16
            if fetched == 40:
                break
        assert executor.run(n=[1, 2]).iterations == 2


def test_an_endless_source_is_stopped() -> None:
    requests: queue.Queue[int] = queue.Queue()
    answers: list[tuple[int, int]] = []

    def serve() -> None:
        answers.extend(executor.stream(iter(requests.get, None)))

    with schedule_of(PIPELINE).executor(FUNCTIONS) as executor:
        server = threading.Thread(target=serve)
        server.start()
        for number in range(20):
            requests.put(number)
        while len(answers) < 20 and server.is_alive():
            time.sleep(0.001)
        executor.stop()  # the source is asleep in `get`, and nobody need wake it
        server.join(5)
        assert not server.is_alive()
    assert answers == [(i, 10 * i) for i in range(20)]
    requests.put(-1)  # what a source yields after that is dropped, and its thread ends
    while any(thread.name == "dagsched:n" for thread in threading.enumerate()):
        time.sleep(0.001)


def test_a_source_that_raises_ends_the_run() -> None:
    def source() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("the camera is gone")

    with schedule_of(PIPELINE).executor(FUNCTIONS) as executor:
        with pytest.raises(dagsched.ExecutionError, match="asked for item 2, raised OSError: the camera is gone") as e:
            executor.run(n=source())
        assert isinstance(e.value.__cause__, OSError)
        assert executor.run(n=[1]).iterations == 1


def test_leaving_a_stream_early_stops_the_run() -> None:
    with schedule_of(PIPELINE).executor(FUNCTIONS) as executor:
        for result in executor.stream(iter(range(10**9))):
            if result[0] == 5:
                break
        assert executor.run(n=[1]).iterations == 1


def test_a_plans_only_parameter_may_be_given_by_position() -> None:
    with schedule_of(PIPELINE).executor(FUNCTIONS) as executor:
        assert executor.run([1, 2]).counts == {"n": 2}
        with pytest.raises(UsageError, match=r"R107.*`n`"):
            executor.run(1, 2)
    with schedule_of(PIPELINE).executor(backend="simulate") as simulator:
        assert simulator.run(3).counts == {"n": 3}


def test_a_function_that_returns_what_it_should_write_is_told_so_once(caplog: pytest.LogCaptureFixture) -> None:
    returns: dict[str, Any] = {**FUNCTIONS, "work": lambda x, y: x * 10}
    with schedule_of(PIPELINE).executor(returns) as executor:
        executor.run([1, 2, 3])
        assert [line.count("`y[:] = ...`") for line in caplog.messages] == [1]
        executor.run([1])
        list(executor.stream([1, 2], sink="work"))  # there it is what is wanted
    assert len(caplog.messages) == 1
    with schedule_of(PIPELINE).executor({**FUNCTIONS, "work": lambda x, y: np.multiply(x, 10, out=y)}) as executor:
        executor.run([1, 2, 3])  # the array that it was given
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("functions", "options", "text"),
    [
        ("my.module", {}, "R120.*`str`"),
        ([read, work, show], {}, "R120.*`list`"),
        (work, {}, "R120.*`function`"),
        (FUNCTIONS, {"trace": -1}, "R107.*-1"),
        (FUNCTIONS, {"grace": "10 s"}, "R107.*'10 s'"),
    ],
)
def test_executors_that_cannot_be_made(functions: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        schedule_of(PIPELINE).executor(functions, **options)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "R105.*`n`"),
        ({"m": 3}, "R103.*`m`"),
        ({"n": -1}, "R104.*-1"),
        ({"n": True}, "R104.*bool"),
        ({"n": 2.5}, "R104.*float"),
        ({"n": "3"}, "R104.*`str`"),
        ({"n": queue.Queue()}, "R104.*`Queue`"),
        ({"n": lambda: [1]}, "R104.*`function`"),
        ({"n": [1], "counts": 5}, "R107.*`int`"),
        ({"n": [1], "on_stall": 5}, "R107.*`int`"),
        ({"n": [1], "trace": "all"}, "R107.*'all'"),
        ({"n": 3}, "R114.*`read`"),  # its function takes an item
        ({"n": [1], "inputs": {"a": [1]}}, "R109.*`a`"),
    ],
)
def test_arguments_that_do_not_fit(given: dict[str, Any], text: str) -> None:
    with schedule_of(PIPELINE).executor(FUNCTIONS) as executor:
        with pytest.raises(UsageError, match=text):
            executor.run(**given)
        assert executor.run(n=[1]).iterations == 1


CLASH = PIPELINE.replace("{n: null}", "{timeout: null}").replace("count: n", "count: timeout")


def test_parameters_may_be_called_like_options() -> None:
    with schedule_of(CLASH).executor() as executor:
        assert executor.run(counts={"timeout": 3}, timeout=20).iterations == 3


def test_inputs_are_needed_and_checked() -> None:
    with schedule_of(OUTPUT).executor({"scale": lambda t, sums: None}) as executor:
        with pytest.raises(UsageError, match=r"R112.*`table`"):
            executor.run(n=1)
        with pytest.raises(UsageError, match=r"R110.*shape"):
            executor.run(n=1, inputs={"table": [1, 2]})
        executor.run(n=1, inputs={"table": [1, 2, 3]})  # of the same kind: converted
        with pytest.raises(UsageError, match=r"R110.*masked"):
            executor.run(n=1, inputs={"table": np.ma.array([1, 2, 3], mask=[False, True, False])})
        executor.run(n=1, inputs={"table": bytes(12)})
        executor.run(n=1, inputs={"table": bytearray(12)})  # as many bytes as it holds: taken as they are
