"""From the cases in which a wait is needed to the guard under which it is issued.

A case is a tuple of values, one per variable (the loop index, parameters). ``needed`` and ``domain`` are sets of
cases; a variable that is *open* goes on past its largest value in the cases, the way its last values do. The guards
found hold on a case of the domain exactly where it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from dagsched.plan.expressions import Binary, Comparison, Condition, Expr, Int

Case = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """``expr`` is what the guard says; ``open``: larger values than those in the cases occur.

    ``tail`` is how many of the last values have to bear out what is said of those beyond (two periods of the loops).
    """

    expr: Expr
    open: bool
    tail: int = 2


def find_guards(needed: set[Case], domain: set[Case], variables: tuple[Variable, ...]) -> list[Condition]:
    """Conditions of which exactly one holds where a case is needed, and none elsewhere in the domain."""
    if needed >= domain:
        return [()]
    if not needed:
        return []
    for position in reversed(range(len(variables))):
        if _is_irrelevant(needed, domain, position):
            rest = (*variables[:position], *variables[position + 1 :])
            return find_guards(_drop(needed, position), _drop(domain, position), rest)
    first, rest = variables[0], variables[1:]
    values = sorted({case[0] for case in domain})
    groups: dict[frozenset[Case], list[int]] = {}
    for value in values:
        inside = frozenset(case[1:] for case in needed if case[0] == value)
        groups.setdefault(inside, []).append(value)
    guards: list[Condition] = []
    for inside, members in groups.items():
        if not inside:
            continue
        outside = {case[1:] for case in domain if case[0] in members}
        conditions = _describe(set(members), values, first)
        guards += [a + b for a, b in product(conditions, find_guards(set(inside), outside, rest))]
    return guards


def _drop(cases: set[Case], position: int) -> set[Case]:
    return {(*case[:position], *case[position + 1 :]) for case in cases}


def _is_irrelevant(needed: set[Case], domain: set[Case], position: int) -> bool:
    """Whether the answer never changes with one variable alone."""
    answers: dict[Case, bool] = {}
    for case in domain:
        rest = (*case[:position], *case[position + 1 :])
        answer = case in needed
        if answers.setdefault(rest, answer) != answer:
            return False
    return True


def _describe(members: set[int], values: list[int], variable: Variable) -> list[Condition]:
    """Conditions on one variable that hold for exactly the members among the values."""
    if len(members) == len(values):
        return [()]
    start, period = _find_tail(members, values, variable.tail) if variable.open else (len(values), 1)
    if not variable.open and _runs(members, values) > 2:
        start, period = _find_tail(members, values, 2)
    x = variable.expr
    guards: list[Condition] = []
    if period > 1:
        residues = sorted({value % period for value in values[start:] if value in members})
        floor: Condition = () if start == 0 else (Comparison(x, ">=", Int(values[start])),)
        guards = [(*floor, Comparison(Binary("%", x, Int(period)), "==", Int(residue))) for residue in residues]
        return _ranges(members & set(values[:start]), values, x) + guards
    return _ranges(members, values, x)


def _runs(members: set[int], values: list[int]) -> int:
    return sum(value in members and (n == 0 or values[n - 1] not in members) for n, value in enumerate(values))


def _find_tail(members: set[int], values: list[int], least: int) -> tuple[int, int]:
    """(start, period): from ``values[start]`` on membership repeats; two periods and ``least`` values are seen."""
    inside = [value in members for value in values]
    for period in range(1, len(values) // 2 + 1):
        start = len(values) - period
        while start > 0 and inside[start - 1] == inside[start - 1 + period]:
            start -= 1
        if len(values) - start >= max(2 * period, min(least, len(values))):
            return start, period
    return len(values), 1


def _ranges(members: set[int], values: list[int], x: Expr) -> list[Condition]:
    """One condition per run of neighbouring values."""
    guards: list[Condition] = []
    n = 0
    while n < len(values):
        if values[n] not in members:
            n += 1
            continue
        first = n
        while n + 1 < len(values) and values[n + 1] in members:
            n += 1
        guards.append(_range(first, n, values, x))
        n += 1
    return guards


def _range(first: int, last: int, values: list[int], x: Expr) -> Condition:
    if first == 0 and last == len(values) - 1:
        return ()
    if last == len(values) - 1:
        return (Comparison(x, ">=", Int(values[first])),)
    if first == last:
        return (Comparison(x, "==", Int(values[first])),)
    if first == 0:
        return (Comparison(x, "<=", Int(values[last])),)
    return (Comparison(x, ">=", Int(values[first])), Comparison(x, "<=", Int(values[last])))
