"""Read the ops and loops of a plan file: names, accesses, orders and counts, each with what is wrong with it.

Two walks: the first collects every op's name with the loops around it, since ``after:`` may name a later op; the
second builds the ops.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dagsched.diagnostics import Label, Where
from dagsched.nodes import Node
from dagsched.plan.access import AccessError, check_name, parse_access, read_expression, split_indexed
from dagsched.plan.check_accesses import check_copy, check_modes, check_region
from dagsched.plan.expressions import (
    MAX_MAGNITUDE,
    Expr,
    ExpressionError,
    Int,
    evaluate,
    expression_text,
    find_divisor,
    linear_in,
    names_in,
)
from dagsched.plan.findings import Findings
from dagsched.plan.model import DTYPES, Access, After, Buffer, Loop, Mode, Op, OpKind, Work
from dagsched.plan.plan_file import (
    ComputeEntry,
    CopyEntry,
    FillOpEntry,
    FunctionEntry,
    HostEntry,
    LoopEntry,
    OpEntry,
)
from dagsched.plan.units import UnitError, parse_flop, parse_size, parse_time

Entry = CopyEntry | ComputeEntry | HostEntry | FillOpEntry | LoopEntry

IDENTIFIER = re.compile(r"[^\W\d]\w*\Z")
RESERVED = ("min", "max", "and")
"""Words of the expression language, which cannot name a loop index or a parameter."""


@dataclass(frozen=True, slots=True)
class _Named:
    """An op's name, the indices and identities of the loops around it, and its place."""

    name: str
    loops: tuple[tuple[str, int], ...]
    where: Where


class ItemReader:
    """Reads the items of one plan; ``findings`` gathers what is wrong."""

    def __init__(
        self, buffers: dict[str, Buffer], broken: set[str], params: dict[str, int | None], findings: Findings
    ) -> None:
        self.buffers = buffers
        self.broken = broken
        self.params = params
        self.findings = findings
        self.named: dict[str, _Named] = {}
        self.used: set[str] = set()
        self.used_params: set[str] = set()

    def read(self, entries: Iterable[Entry], node: Node) -> tuple[Op | Loop, ...]:
        """Build all items."""
        entries = list(entries)
        for entry, place, loops in _walk(entries, node, ()):
            self.collect(entry, place, loops)
        self.check_unrolled_names()
        return self.items(entries, node, ())

    # names

    def collect(self, entry: OpEntry, place: Node, loops: tuple[tuple[str, int], ...]) -> None:
        name, where = self.name_of(entry, place)
        if name is None:
            kind = "copy" if isinstance(entry, CopyEntry) else "fill"
            example = "upload" if kind == "copy" else "clear"
            self.findings.report("P102", f"this {kind} lacks the key `name`", where, remedy=f"add `name: {example}`")
            return
        first = self.named.get(name)
        if first is None:
            self.named[name] = _Named(name, loops, where)
            return
        remedy = "give one of them another name" if entry.name is not None else "give it a `name` of its own"
        label = Label(first.where, "the first one")
        self.findings.report("P113", f"two ops are called `{name}`", where, labels=[label], remedy=remedy)

    def name_of(self, entry: OpEntry, place: Node) -> tuple[str | None, Where]:
        """An op's name (that of its function, where it has none) and where it stands."""
        if entry.name is not None:
            node = place.get("name")
            return entry.name, node.where if node else place.where
        for kind in ("compute", "host"):
            node = place.get(kind)
            if node is not None:
                return str(node.value), node.where
        return None, next(iter(place.by_key.values()))[0].where

    def check_unrolled_names(self) -> None:
        """An op ``a`` of an inner loop becomes ``a.0``, ``a.1``, ...; no other op may have such a name."""
        for name, named in self.named.items():
            stem = name
            while (match := re.match(r"(.+)\.[0-9]+\Z", stem, re.DOTALL)) is not None:
                stem = match.group(1)
                other = self.named.get(stem)
                if other is not None and len(other.loops) > 1:
                    label = Label(other.where, f"its instances are called `{stem}.0`, `{stem}.1`, ...")
                    headline = f"the name `{name}` is taken by an op of an inner loop"
                    self.findings.report("P113", headline, named.where, labels=[label], remedy="choose another name")

    # items

    def items(self, entries: Iterable[Entry], node: Node, loops: tuple[tuple[str, int], ...]) -> tuple[Op | Loop, ...]:
        return tuple(
            self.loop(entry, place, loops) if isinstance(entry, LoopEntry) else self.op(entry, place, loops)
            for entry, place in zip(entries, node.items, strict=True)
        )

    def loop(self, entry: LoopEntry, place: Node, loops: tuple[tuple[str, int], ...]) -> Loop:
        index_node, body = place.by_key["loop"][1], place.by_key["ops"][1]
        self.check_index(entry.loop, index_node, [index for index, _ in loops])
        count = self.count(entry, place, loops)
        if not entry.ops:
            headline = f"the loop `{entry.loop}` holds no ops"
            self.findings.report("P116", headline, place.by_key["ops"][0].where, remedy="add ops, or drop the loop")
        inner = (*loops, (entry.loop, id(body)))
        return Loop(entry.loop, count, self.items(entry.ops, body, inner), index_node.where)

    def check_index(self, index: str, node: Node, outer: list[str]) -> None:
        if not IDENTIFIER.match(index) or index in RESERVED:
            self.findings.report(
                "P115", f"`{index}` cannot name a loop index", node.where, remedy="for example `loop: i`"
            )
        elif index in self.params:
            headline = f"the loop index `{index}` hides the parameter of that name"
            self.findings.report("P115", headline, node.where, remedy="rename one of them")
        elif index in outer:
            headline = f"the loop index `{index}` hides that of an outer loop"
            self.findings.report("P115", headline, node.where, remedy="for example `loop: j`")

    def count(self, entry: LoopEntry, place: Node, loops: tuple[tuple[str, int], ...]) -> Expr:
        node = place.by_key["count"][1]
        if isinstance(entry.count, int):
            count: Expr = Int(entry.count)
        else:
            try:
                count = read_expression(entry.count)
            except ExpressionError as error:
                self.findings.report("P105", f"the count of a loop: {error.message}", node.within(error.offset),
                                     remedy="for example `count: frames` or `count: 8`")  # fmt: skip
                return Int(1)
        if not self.known_names(count, node, loops, 0):
            return Int(1)
        if loops and names_in(count):
            self.findings.report(
                "P201",
                f"loop `{entry.loop}` inside a loop has a count that is not a constant",
                node.where,
                notes=["a loop inside a loop is unrolled, so its count must be known when the plan is compiled"],
                remedy="give the inner loop a constant count, or make it a loop of its own at the top level",
            )
            return Int(1)
        return self.checked_count(count, node)

    def checked_count(self, count: Expr, node: Node) -> Expr:
        """Refuse a count that is negative or huge, with the parameters' defaults where there are any."""
        values = {name: value for name, value in self.params.items() if value is not None}
        if not names_in(count) <= set(values):
            return count
        try:
            value = evaluate(count, values)
        except ExpressionError as error:
            self.findings.report("P117", f"the count cannot be computed: {error.message}", node.where)
            return Int(1)
        if value < 0:
            headline = f"a loop cannot run {value} times"
            if names_in(count):
                headline += ", which the default values give"
            self.findings.report("P117", headline, node.where, remedy="write a count from 0 up")
            return Int(1)
        if value > MAX_MAGNITUDE:
            self.findings.report("P117", "the count does not fit into 64 bits", node.where)
            return Int(1)
        return count

    def op(self, entry: OpEntry, place: Node, loops: tuple[tuple[str, int], ...]) -> Op:
        name, where = self.name_of(entry, place)
        name = name or f"unnamed op {len(self.named)}"
        self.check_names(entry, place)
        kind, function, value = _kind_of(entry)
        accesses = self.accesses(entry, name, place, loops)
        return Op(
            name=name,
            kind=kind,
            accesses=accesses,
            function=function,
            args=self.args(entry, place, accesses, name),
            value=value,
            after=self.after(entry, place, name, loops),
            engine=entry.engine,
            stream=entry.stream,
            cores=entry.cores if isinstance(entry, FunctionEntry) else None,
            time=self.time(entry, place),
            work=self.work(entry, place, name),
            priority=entry.priority,
            where=where,
        )

    def check_names(self, entry: OpEntry, place: Node) -> None:
        for key in ("name", "compute", "host", "engine", "stream"):
            node = place.get(key)
            if node is None:
                continue
            try:
                what = {"name": "an op's name", "engine": "an engine's name", "stream": "a stream's name"}
                check_name(str(node.value), what.get(key, "a function's name"))
            except AccessError as error:
                self.findings.report("P105", error.message, node.within(error.offset), remedy=error.remedy)

    def time(self, entry: OpEntry, place: Node) -> float | None:
        if entry.time is None:
            return None
        try:
            return parse_time(entry.time)
        except UnitError as error:
            node = place.by_key["time"][1]
            self.findings.report("P104", error.message, node.within(error.offset), remedy=error.remedy)
            return None

    def work(self, entry: OpEntry, place: Node, name: str) -> Work | None:
        if not isinstance(entry, ComputeEntry) or entry.work is None:
            return None
        key, body = place.by_key["work"]
        if entry.time is not None:
            label = Label(place.by_key["time"][0].where, "the time stands here")
            headline = f"`{name}` has both a `time` and `work`, which gives one"
            self.findings.report("P151", headline, key.where, labels=[label], remedy="drop one of them")
        flop, moved = 0.0, 0
        try:
            node = body.get("flop")
            flop = 0.0 if entry.work.flop is None else parse_flop(entry.work.flop)
            node = body.get("bytes")
            moved = 0 if entry.work.bytes is None else parse_size(entry.work.bytes)
        except UnitError as error:
            where = body.where if node is None else node.within(error.offset)
            self.findings.report("P104", error.message, where, remedy=error.remedy)
        dtype, at = entry.work.dtype, body.get("dtype")
        if dtype is not None and dtype not in DTYPES:
            self.findings.unknown("P122", "dtype", dtype, DTYPES, body.where if at is None else at.where)
        return Work(flop, moved, dtype)

    def after(self, entry: OpEntry, place: Node, name: str, loops: tuple[tuple[str, int], ...]) -> tuple[After, ...]:
        found = (self.one_after(node, name, loops) for node in place.by_key["after"][1].items) if entry.after else ()
        edges = [edge for edge in found if edge is not None]
        return tuple(dict.fromkeys(edges))

    def one_after(self, node: Node, name: str, loops: tuple[tuple[str, int], ...]) -> After | None:
        try:
            other, index = split_indexed(str(node.value))
        except AccessError as error:
            self.findings.report("P105", error.message, node.within(error.offset), remedy=error.remedy)
            return None
        if other not in self.named:
            self.findings.unknown("P111", "op", other, self.named, node.within(0, len(other)))
            return None
        distance = self.distance(index, node, other, loops)
        if distance is None:
            return None
        if other == name and distance == 0:
            headline = f"`{name}` cannot come after itself"
            self.findings.report("P118", headline, node.where, remedy=f"write `{name}@i-1` for the iteration before")
            return None
        return After(other, distance, node.where)

    def distance(self, index: Expr | None, node: Node, other: str, loops: tuple[tuple[str, int], ...]) -> int | None:
        """How many iterations earlier ``op@i-1`` is, or None where it says nothing of the kind."""
        if index is None:
            return 0
        common = [mine for mine, theirs in zip(loops, self.named[other].loops, strict=False) if mine == theirs]
        at = str(node.value).index("@") + 1
        if not common:
            headline = f"`{other}` is in no loop around this op, so it has no iterations to count"
            self.findings.report("P118", headline, node.within(at - 1), remedy=f"write `{other}`")
            return None
        loop = common[-1][0]
        linear = linear_in(index, loop)
        if linear is None or linear[0] != 1 or not isinstance(linear[1], Int) or linear[1].value > 0:
            headline = "an order counts iterations back from the current one"
            remedy = f"write `{other}@{loop}-1`, or `{other}` for the same iteration"
            self.findings.report("P118", headline, node.within(at, len(str(node.value)) - at), remedy=remedy)
            return None
        return -linear[1].value

    # accesses

    def accesses(
        self, entry: OpEntry, name: str, place: Node, loops: tuple[tuple[str, int], ...]
    ) -> tuple[Access, ...]:
        if isinstance(entry, CopyEntry):
            ends = place.by_key["copy"][1]
            source = self.access(ends.by_key["from"][1], Mode.READ, loops)
            target = self.access(ends.by_key["to"][1], Mode.WRITE, loops)
            if source is None or target is None:
                return ()
            check_copy(name, source, target, self.buffers, self.broken, self.findings)
            return (source, target)
        if isinstance(entry, FillOpEntry):
            target = self.access(place.by_key["fill"][1].by_key["to"][1], Mode.WRITE, loops)
            return () if target is None else (target,)
        lists = (
            ("reads", Mode.READ), ("writes", Mode.WRITE), ("updates", Mode.UPDATE), ("accumulates", Mode.ACCUMULATE),
        )  # fmt: skip
        found: list[Access] = []
        for key, mode in lists:
            items = place.get(key)
            for node in items.items if items is not None else ():
                access = self.access(node, mode, loops)
                if access is not None:
                    found.append(access)
        return check_modes(name, found, self.buffers, self.broken, self.findings)

    def access(self, node: Node, mode: Mode, loops: tuple[tuple[str, int], ...]) -> Access | None:
        text = str(node.value)
        try:
            access = parse_access(text, mode, node.where)
        except AccessError as error:
            self.findings.report("P105", error.message, node.within(error.offset), remedy=error.remedy)
            return None
        lead = len(text) - len(text.lstrip())
        if access.buffer not in self.buffers:
            where = node.within(lead, len(access.buffer))
            self.findings.unknown("P110", "buffer", access.buffer, self.buffers, where)
            return None
        self.used.add(access.buffer)
        bounds = [bound for part in access.region for bound in (part.lo, part.hi)]
        known = [
            self.known_names(expr, node, loops, lead + len(access.buffer))
            for expr in (access.version, *bounds)
            if expr is not None
        ]
        if not all(known) or access.buffer in self.broken:
            return access
        return check_region(access, self.buffers[access.buffer], node, self.findings)

    def known_names(self, expr: Expr, node: Node, loops: tuple[tuple[str, int], ...], start: int) -> bool:
        """Whether every name of an expression is a parameter or the index of a loop around it."""
        scope = {index for index, _ in loops}
        used = names_in(expr)
        self.used_params |= used
        unknown = sorted(used - scope - set(self.params))
        for name in unknown:
            text = str(node.value)
            match = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)").search(text, start)
            where = node.within(match.start(), len(name)) if match else node.where
            inner = any(name == index for named in self.named.values() for index, _ in named.loops)
            if inner:
                headline = f"the loop index `{name}` has no value outside its loop"
                self.findings.report("P112", headline, where, remedy="write a number, or an expression over parameters")
            else:
                remedy = f"declare it: `params: {{{name}: null}}`"
                self.findings.unknown("P112", "name", name, sorted(scope) + list(self.params), where, remedy)
        return not unknown and self.number_divisors(expr, node, start)

    def number_divisors(self, expr: Expr, node: Node, start: int) -> bool:
        """Whether an expression divides by numbers only: no count of a loop can make it divide by 0 then."""
        divisor = find_divisor(expr)
        if divisor is None:
            return True
        text = expression_text(divisor)
        match = re.compile(rf"(?:%|//)\s*\(?\s*({re.escape(text)})").search(str(node.value), start)
        where = node.within(match.start(1), len(text)) if match else node.where
        headline = f"`//` and `%` divide by numbers, and `{text}` is none: it may turn out as 0"
        remedy = "write a number there, or compute the whole outside and make it a parameter"
        self.findings.report("P105", headline, where, remedy=remedy)
        return False

    def args(self, entry: OpEntry, place: Node, accesses: tuple[Access, ...], name: str) -> tuple[tuple[str, str], ...]:
        if not isinstance(entry, FunctionEntry) or not entry.args:
            return ()
        node = place.by_key["args"][1]
        touched = dict.fromkeys(access.buffer for access in accesses)
        for parameter, buffer in entry.args.items():
            key, value = node.by_key[parameter]
            try:
                check_name(parameter, "a parameter's name")
            except AccessError as error:
                self.findings.report("P105", error.message, key.within(error.offset), remedy=error.remedy)
            if buffer in touched:
                continue
            bare = re.split(r"[@\[]", buffer)[0]
            if bare in touched:
                headline = "an argument is a buffer, without a version or a region"
                self.findings.report("P150", headline, value.where, remedy=f"write `{bare}`")
            elif buffer in self.buffers:
                headline = f"`{name}` does not touch `{buffer}`"
                self.findings.report("P150", headline, value.where, remedy=f"add `{buffer}` to `reads` or `writes`")
            else:
                self.findings.unknown("P110", "buffer", buffer, touched, value.where)
        return tuple(entry.args.items())


def _walk(
    entries: Iterable[Entry], node: Node, loops: tuple[tuple[str, int], ...]
) -> Iterator[tuple[OpEntry, Node, tuple[tuple[str, int], ...]]]:
    """Every op with its node and the loops around it."""
    for entry, place in zip(entries, node.items, strict=True):
        if isinstance(entry, LoopEntry):
            body = place.by_key["ops"][1]
            yield from _walk(entry.ops, body, (*loops, (entry.loop, id(place.by_key["ops"][1]))))
        else:
            yield entry, place, loops


def _kind_of(entry: OpEntry) -> tuple[OpKind, str | None, int]:
    """Kind, function and fill value."""
    if isinstance(entry, ComputeEntry):
        return OpKind.COMPUTE, entry.compute, 0
    if isinstance(entry, HostEntry):
        return OpKind.HOST, entry.host, 0
    if isinstance(entry, FillOpEntry):
        return OpKind.FILL, None, entry.fill.value
    return OpKind.COPY, None, 0
