"""The device of docs/cost.md once more, as processes that are polled: files in, times out.

It reads what the files say (a schedule's, a plan's and a profile's data) and nothing of ``dagsched.cost``: costs,
loops, handles, queues and engines are worked out here a second time, in the plainest way. The issuing thread is a
generator that yields what it waits for, a stream is a list of commands of which the first unfinished one may run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any

UNITS = {"s": 1, "ms": 10**-3, "us": 10**-6, "ns": 10**-9}
TICKS = 10**12


@dataclass
class Cost:
    """What an op takes: ticks on so many units of an engine that has ``capacity`` of them."""

    engine: str
    capacity: int
    ticks: int
    share: int = 1
    blocks: bool = False


@dataclass(eq=False)
class Command:
    """One entry of a stream's queue; ``cost`` is None for records, waits and the like, which take no time there."""

    number: int
    cost: Cost | None = None
    op: tuple[str, int | None, str] | None = None
    after: list[Command] = field(default_factory=list)
    ready: int | None = None
    start: int | None = None
    end: int | None = None

    @property
    def done(self) -> bool:
        return self.end is not None


class Endless(Exception):
    """Something waits that nothing will ever wake."""


def value(text: Any, env: Mapping[str, int]) -> int:
    return int(eval(str(text), {"__builtins__": {}, "min": min, "max": max}, dict(env)))  # the tests' own files


def ticks_of(text: str | None) -> int:
    if text is None:
        return 0
    number, unit = re.fullmatch(r"\s*([0-9.e+-]+)\s*([a-z]+)\s*", text).groups()  # type: ignore[union-attr]
    return round(Fraction(number) * Fraction(UNITS[unit]).limit_denominator(10**9) * TICKS)


class PlainDevice:
    """One run: make it, call :meth:`run`, look at ``commands`` and ``makespan``."""

    def __init__(
        self, schedule: Mapping[str, Any], costs: Mapping[str, Cost], profile: Mapping[str, Any], counts: dict[str, int]
    ) -> None:
        self.schedule, self.costs = schedule, costs
        calls = profile.get("calls", {})
        self.issue, self.record, self.wait = (ticks_of(calls.get(name)) for name in ("issue", "record", "wait"))
        self.depth = profile.get("limits", {}).get("queue_depth")
        self.env = {name: at for name, at in {**schedule.get("params", {}), **counts}.items() if at is not None}
        self.now = 0
        self.streams: dict[str, list[Command]] = {}
        self.commands: list[Command] = []
        self.newest: dict[tuple[str, int], Command] = {}  # per handle: its newest record
        self.unset: dict[tuple[str, int], list[Command]] = {}  # waits for a bit that nobody has set so far
        self.sets: dict[tuple[str, int], list[Command]] = {}
        self.takes: dict[tuple[str, int], int] = {}
        self.held: Command | None = None  # a copy of pageable memory, which the next call waits for
        self.host = self.walk(schedule["steps"], self.env, None)
        self.until: Callable[[], bool] | int | None = 0
        self.makespan = 0

    # The issuing thread: yields the instant, or the condition, that it goes on at.

    def walk(self, steps: list[Any], env: dict[str, int], iteration: int | None) -> Iterator[Callable[[], bool] | int]:
        for step in steps:
            if "when" in step and not eval(step["when"], {"__builtins__": {}}, env):
                continue
            if "loop" in step:
                lo, hi = step.get("range", [0, step.get("count")])
                for at in range(value(lo, env), value(hi, env)):
                    yield from self.walk(step["steps"], {**env, step["loop"]: at}, at)
            else:
                yield from self.step(step, env, iteration)

    def step(self, step: Any, env: dict[str, int], iteration: int | None) -> Iterator[Callable[[], bool] | int]:
        stream = self.name(step["stream"], env) if "stream" in step else None
        if "op" in step:
            op, _, own = step["op"].partition("@")
            assert stream is not None
            cost = self.costs[op]
            named = (op, value(own, env) if own else iteration, stream)
            command = yield from self.call(stream, self.issue, Command(0, cost, named))
            self.held = command if cost.blocks else None
        elif "host" in step:
            command = Command(len(self.commands), op=(step["host"], iteration, "host"))
            self.commands.append(command)
            yield from self.ready_for_a_call()
            command.ready = command.start = self.now
            yield self.now + (self.costs[step["host"]].ticks if step["host"] in self.costs else 0)
            command.end = self.now
        elif "record" in step:
            handle = self.handle(step["record"], env)
            command = yield from self.call(stream, self.record)
            self.bind(handle, command)
        elif "wait" in step:
            handle = self.handle(step["wait"], env)
            yield from self.call(stream, self.wait, self.waiter(handle))
        elif "reset" in step:
            handle = self.handle(step["reset"], env)
            if self.schedule["event_model"] == "flag":
                self.newest.pop(handle, None)
            yield from self.call(stream, self.record)
        elif "wait_stream" in step:
            assert stream is not None
            record = yield from self.call(self.name(step["wait_stream"], env), self.record)
            yield from self.call(stream, self.wait, Command(0, after=[record]))
        elif "sync" in step:
            yield from self.ready_for_a_call()
            waited = self.synced(step["sync"], env)
            yield lambda: all(command.done for command in waited)
        elif "set" in step:
            flag = self.handle(step["set"], env)
            command = yield from self.call(stream, self.record)
            self.sets.setdefault(flag, []).append(command)
        elif "take" in step:
            flag = self.handle(step["take"], env)
            number = self.takes[flag] = self.takes.get(flag, 0) + 1
            yield from self.call(stream, self.wait, Taker(0, line=self.sets.setdefault(flag, []), place=number - 1))
        else:
            assert "free" in step
            yield from self.ready_for_a_call()

    def ready_for_a_call(self) -> Iterator[Callable[[], bool] | int]:
        held, self.held = self.held, None
        if held is not None:
            yield lambda: held.done

    def call(self, stream: str | None, takes: int, command: Command | None = None) -> Any:
        """One call: a place in the queue, the call's own time, then the command is there."""
        command = command or Command(0)
        command.number = len(self.commands)
        self.commands.append(command)
        yield from self.ready_for_a_call()
        if stream is None:
            yield lambda: self.lacks_nothing(command)
            yield self.now + takes
            command.ready = command.start = command.end = self.now
            return command
        queue = self.streams.setdefault(stream, [])
        if self.schedule.get("default_stream") == "legacy":
            command.after += self.barrier(stream)
        if self.depth is not None:
            yield lambda: sum(not each.done for each in queue) < self.depth
        yield self.now + takes
        queue.append(command)
        return command

    def barrier(self, stream: str) -> list[Command]:
        """CUDA's legacy default stream and the blocking ones wait for each other."""
        declared = self.schedule.get("streams", {})
        blocking = {name for name in self.streams if not declared.get(name, {}).get("nonblocking")}
        if stream == "default":
            return [self.streams[name][-1] for name in blocking if self.streams[name]]
        return self.streams.get("default", [])[-1:] if stream in blocking else []

    def waiter(self, handle: tuple[str, int]) -> Command:
        command = Command(0, after=[self.newest[handle]] if handle in self.newest else [])
        if handle not in self.newest and self.schedule["event_model"] == "flag":
            self.unset.setdefault(handle, []).append(command)
            command.after.append(Command(-1))  # never done
        return command

    def bind(self, handle: tuple[str, int], record: Command) -> None:
        self.newest[handle] = record
        for command in self.unset.pop(handle, []):
            command.after = [each if each.number >= 0 else record for each in command.after]

    def synced(self, what: Any, env: dict[str, int]) -> list[Command]:
        if what == "device":
            return [queue[-1] for queue in self.streams.values() if queue]
        if "stream" in what:
            return self.streams.get(self.name(what["stream"], env), [])[-1:]
        handle = self.handle(what["event"], env)
        return [self.newest[handle]] if handle in self.newest else []

    def name(self, text: str, env: dict[str, int]) -> str:
        name, at, index = text.partition("@")
        return f"{name}@{value(index, env)}" if at else name

    def handle(self, text: str, env: dict[str, int]) -> tuple[str, int]:
        name, _, index = text.partition("@")
        at = value(index, env) if index else 0
        ring = self.schedule.get("events", {}).get(name, {}).get("ring")
        return name, at % ring if ring else at

    # The device.

    def run(self) -> PlainDevice:
        while True:
            while self.step_host() or self.step_streams() or self.start_ops():
                pass
            coming = [c.start + c.cost.ticks for c in self.commands if c.cost and c.start is not None and not c.done]
            if isinstance(self.until, int):
                coming.append(self.until)
            if not coming:
                break
            self.now = min(coming)
        if self.until is not None or any(not command.done for command in self.commands):
            raise Endless
        self.makespan = self.now
        return self

    def step_host(self) -> bool:
        if self.until is None:
            return False
        if not (self.until <= self.now if isinstance(self.until, int) else self.until()):
            return False
        self.until = next(self.host, None)
        return True

    def step_streams(self) -> bool:
        """What can happen now without an engine: ops end, heads of queues lack nothing any more."""
        moved = False
        for queue in self.streams.values():
            for command in queue:
                if command.done:
                    continue
                if command.ready is None and self.lacks_nothing(command):
                    command.ready, moved = self.now, True
                    if command.cost is None:
                        command.start = command.end = self.now
                if command.cost and command.start is not None and command.start + command.cost.ticks <= self.now:
                    command.end, moved = self.now, True
                if not command.done:
                    break
        return moved

    def lacks_nothing(self, command: Command) -> bool:
        if isinstance(command, Taker) and not (len(command.line) > command.place and command.line[command.place].done):
            return False
        return all(each.done for each in command.after)

    def start_ops(self) -> bool:
        """Every engine takes the ready ops in order for as long as the first of them fits."""
        started = False
        on_device = [c for c in self.commands if c.cost and c.ready is not None and not c.done]
        for engine in {c.cost.engine for c in on_device if c.cost}:
            own = [(c, c.cost) for c in on_device if c.cost and c.cost.engine == engine]
            taken = sum(cost.share for c, cost in own if c.start is not None)
            line = [(c, cost) for c, cost in own if c.start is None]
            for command, cost in sorted(line, key=lambda pair: (self.urgency(pair[0]), pair[0].ready, pair[0].number)):
                if taken + cost.share > cost.capacity:
                    break
                command.start, started = self.now, True
                taken += cost.share
        return started

    def urgency(self, command: Command) -> int:
        assert command.op is not None
        declared = self.schedule.get("streams", {})
        stream = command.op[2]
        entry = declared.get(stream) or declared.get(stream.partition("@")[0], {})
        return int(entry.get("priority") or 0)

    def ops(self) -> list[tuple[str, int | None, str, int, int]]:
        """(op, iteration, stream, start, end) in issue order."""
        return [(*c.op, c.start, c.end) for c in self.commands if c.op and c.start is not None and c.end is not None]


@dataclass(eq=False)
class Taker(Command):
    """Takes the flag's ``place``-th set."""

    line: list[Command] = field(default_factory=list)
    place: int = 0


KINDS = {("host", "device"): "h2d", ("device", "host"): "d2h", ("device", "device"): "d2d", ("host", "host"): "host"}


def plain_costs(plan: Mapping[str, Any], profile: Mapping[str, Any]) -> dict[str, Cost]:
    """What each op of a plan without nested loops costs on a device, from the files' data."""
    ops = [op for item in plan["ops"] for op in (item["ops"] if "loop" in item else [item])]
    return {name_of(op): cost_of(op, plan, profile["engines"]) for op in ops}


def name_of(op: Mapping[str, Any]) -> str:
    return str(op.get("name") or op.get("compute") or op.get("host"))


def cost_of(op: Mapping[str, Any], plan: Mapping[str, Any], engines: Mapping[str, Any]) -> Cost:
    kind = "compute" if "compute" in op else "host"
    touched: list[str] = []
    if "copy" in op:
        touched = [op["copy"]["from"], op["copy"]["to"]]
        kind = KINDS[place(touched[0], plan), place(touched[1], plan)]
    elif "fill" in op:
        touched = [op["fill"]["to"]]
        kind = "d2d" if place(touched[0], plan) == "device" else "host"
    names = [op["engine"]] if "engine" in op else [name for name, entry in engines.items() if entry["kind"] == kind]
    if not names and "fill" in op and kind == "d2d":
        names = [name for name, entry in engines.items() if entry["kind"] == "compute"]
    name = names[0] if names else kind
    entry = engines[name] if names else {}
    lanes, cores = entry.get("lanes", 1), entry.get("cores")
    share = 1 if cores is None else op.get("cores", cores // lanes)
    blocks = "copy" in op and any(plan["buffers"][split(text)[0]].get("pageable") for text in touched)
    return Cost(name, cores or lanes, duration(op, touched, plan, entry), share, blocks)


def duration(op: Mapping[str, Any], touched: list[str], plan: Mapping[str, Any], entry: Mapping[str, Any]) -> int:
    if "time" in op:
        return ticks_of(op["time"])
    if not touched or "bandwidth" not in entry:
        return 0
    rate = Fraction(re.fullmatch(r"([0-9.]+) GB/s", entry["bandwidth"])[1]) * 10**9  # type: ignore[index]
    return ticks_of(entry.get("latency")) + round(bytes_of(touched[0], plan) / rate * TICKS)


def split(access: str) -> tuple[str, str]:
    """The buffer and the region of an access."""
    found = re.fullmatch(r"([^@\[]+)(?:@[^\[]*)?(?:\[(.*)\])?", access)
    assert found
    return found[1], found[2] or ""


def place(access: str, plan: Mapping[str, Any]) -> str:
    return str(plan["buffers"][split(access)[0]]["place"])


def size_of(written: int | str) -> int:
    number, unit = re.fullmatch(r"([0-9]+) ?([kKMG]?i?B)?", str(written)).groups()  # type: ignore[union-attr]
    step = 1024 if unit and "i" in unit else 1000
    power: int = "kMG".index(unit[0].replace("K", "k")) + 1 if unit and unit != "B" else 0
    return int(number) * int(step**power)


def bytes_of(access: str, plan: Mapping[str, Any]) -> int:
    """Bytes of the access in iteration 0 (of plain buffers: no tensors)."""
    name, region = split(access)
    size = size_of(plan["buffers"][name]["size"])
    if not region:
        return size
    lo, hi = region.split(":")
    zero = dict.fromkeys(set(re.findall(r"[a-z_]+\w*", region)) - {"min", "max"}, 0)
    zero |= dict.fromkeys(plan.get("params", {}), 1 << 40)
    return prod([max(0, min(value(hi, zero) if hi else size, size) - (value(lo, zero) if lo else 0))])
