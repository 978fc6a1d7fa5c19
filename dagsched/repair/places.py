"""Where a record and a wait have to stand to order two op instances that race.

Both are lifted into the innermost loop body that holds both, so that one record serves a whole inner loop. Two
instances in different iterations of one loop keep a distance; the wait then names an earlier value of the index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dagsched.plan.expressions import Binary, Expr, Int, Name, add, combine, names_in, substitute
from dagsched.proof.check_expand import Node
from dagsched.schedule.model import AnyStep, Indexed, LoopStep, OpStep, Schedule


@dataclass(frozen=True, slots=True)
class Family:
    """Who holds whom: by number, the loop around each step (-1: none), how many steps it is, and its place in its body;
    ``bodies`` has the steps of each loop."""

    steps: tuple[AnyStep, ...]
    parents: tuple[int, ...]
    sizes: tuple[int, ...]
    ranks: tuple[int, ...]
    bodies: dict[int, tuple[int, ...]]

    def loops_around(self, number: int) -> tuple[int, ...]:
        """The loops around a step, outermost first."""
        found: list[int] = []
        while self.parents[number] >= 0:
            number = self.parents[number]
            found.append(number)
        return tuple(reversed(found))

    def indices_around(self, number: int) -> frozenset[str]:
        """The indices that have a value at a step."""
        loops = (self.steps[loop] for loop in self.loops_around(number))
        return frozenset(loop.index for loop in loops if isinstance(loop, LoopStep))

    def within(self, number: int, holder: int) -> bool:
        """Whether a step is ``holder`` or stands in it."""
        return holder <= number < holder + self.sizes[holder]

    def siblings(self, number: int) -> Sequence[int]:
        """The steps of the body that a step stands in, in order."""
        return self.bodies[self.parents[number]]

    def before(self, number: int) -> Iterator[int]:
        """The steps in front of one in its body, the nearest first."""
        body = self.siblings(number)
        return (body[at] for at in range(self.ranks[number] - 1, -1, -1))

    def behind(self, number: int) -> Iterator[int]:
        """The steps behind one in its body, the nearest first."""
        body = self.siblings(number)
        return (body[at] for at in range(self.ranks[number] + 1, len(body)))


def family_of(schedule: Schedule) -> Family:
    """The family of a schedule."""
    steps: list[AnyStep] = []
    parents: list[int] = []
    sizes: list[int] = []
    ranks: list[int] = []
    bodies: dict[int, tuple[int, ...]] = {}

    def visit(body: tuple[AnyStep, ...], parent: int) -> None:
        mine: list[int] = []
        for step in body:
            number = len(steps)
            ranks.append(len(mine))
            mine.append(number)
            steps.append(step)
            parents.append(parent)
            sizes.append(1)
            if isinstance(step, LoopStep):
                visit(step.steps, number)
                sizes[number] = len(steps) - number
        bodies[parent] = tuple(mine)

    visit(schedule.steps, -1)
    return Family(tuple(steps), tuple(parents), tuple(sizes), tuple(ranks), bodies)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two racing instances and what would order them.

    ``record_after`` and ``wait_before`` are the steps to stand beside, ``loop`` the innermost loop around both places
    (None: none), ``distance`` how many of its iterations the record lies back. ``newest``: how far back the newest
    record is when the wait is issued (0: earlier in the same iteration). ``nested``: the loop runs more than once.
    """

    first: Node
    second: Node
    record_after: int
    wait_before: int
    loop: int | None
    distance: int
    newest: int
    nested: bool

    @property
    def ring(self) -> int:
        """How many handles the event needs."""
        return self.distance - self.newest + 1 if self.loop is not None else 1


def place_pair(family: Family, first: Node, second: Node) -> Pair:
    """The places for two nodes of work, ``first`` issued before ``second``."""
    common = 0
    distance = 0
    for (loop, value), (other_loop, other) in zip(first.path, second.path, strict=False):
        if loop != other_loop:
            break
        common += 1
        distance = other - value
        if distance:
            break
    level = common
    record_after = first.path[level][0] if len(first.path) > level else first.static
    wait_before = second.path[level][0] if len(second.path) > level else second.static
    stream = stream_of(second)
    inner = family.indices_around(second.static) - family.indices_around(wait_before)
    if stream is not None and stream.index is not None and names_in(stream.index) & inner:
        wait_before = second.static  # Each iteration has a stream of its own.
    later = family.within(wait_before, record_after) or wait_before < record_after
    around = first.path[level - 1][0] if level else None
    return Pair(first, second, record_after, wait_before, around, distance, int(later), level > 1)


def stream_of(node: Node) -> Indexed | None:
    """The stream that a node of work is issued to, None for the issuing thread."""
    step = node.step
    return step.stream if isinstance(step, OpStep) else None


def index_name(family: Family, pair: Pair) -> str:
    """The index of the loop around both places."""
    assert pair.loop is not None
    loop = family.steps[pair.loop]
    assert isinstance(loop, LoopStep)
    return loop.index


def back(expr: Expr, index: str, distance: int) -> Expr:
    """An expression of an index, ``distance`` iterations earlier."""
    return _fold_moduli(substitute(expr, {index: add(Name(index), -distance)})) if distance else expr


def _fold_moduli(expr: Expr) -> Expr:
    """``((i-1)%3+2)%3`` is ``(i+1)%3``."""
    if isinstance(expr, Binary) and expr.op == "%" and isinstance(expr.right, Int):
        return combine("%", _strip(expr.left, expr.right.value), expr.right)
    return expr


def _strip(expr: Expr, modulus: int) -> Expr:
    """An expression that is equal modulo ``modulus``, without inner moduli that change nothing."""
    if not isinstance(expr, Binary):
        return expr
    if expr.op == "%" and isinstance(expr.right, Int) and expr.right.value and expr.right.value % modulus == 0:
        return _strip(expr.left, modulus)
    if expr.op in ("+", "-"):
        left, right = _strip(expr.left, modulus), _strip(expr.right, modulus)
        if isinstance(right, Int):
            return add(left, right.value if expr.op == "+" else -right.value)
        return combine(expr.op, left, right)
    return expr


def lowest(family: Family, loop: int) -> Expr:
    """Where a loop's index starts."""
    step = family.steps[loop]
    return step.lo if isinstance(step, LoopStep) else Int(0)
