"""The user's functions: found by name, their parameters matched with what an op touches, faults told all at once.

A parameter is called like a buffer that the op touches (or as ``args:`` says), like a loop index (``i`` is always the
outer one), or ``item`` for what a source yields. Parameters that only have a position get the accesses in order.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dagsched.diagnostics import Diagnostic, UsageError, closest
from dagsched.emit.functions import name_parameters
from dagsched.plan.access import access_text
from dagsched.plan.model import Loop, Op, OpKind, Plan

ITEM = "item"
"""The parameter that gets what a source yields for the iteration."""

Functions = Mapping[str, Callable[..., Any]] | object
"""Functions by name: a mapping, or anything that has them as attributes (a module)."""


@dataclass(frozen=True, slots=True)
class Plug:
    """How an op's function is called.

    ``positional`` are accesses by number, ``named`` (parameter, access number) pairs; ``indices`` (parameter, loop
    index) pairs: the value of an unrolled loop's index, or None for the op's own loop; ``item``: whether it takes one;
    ``handle``: the parameter that gets the queue to enqueue on. ``ordered`` says that all named parameters can be
    passed by position, in the order of ``named``.
    """

    function: Callable[..., Any]
    positional: tuple[int, ...]
    named: tuple[tuple[str, int], ...]
    indices: tuple[tuple[str, int | None], ...]
    item: bool
    ordered: bool
    handle: str | None = None


def plug_functions(plan: Plan, functions: Functions, handle: str | None = None) -> dict[str, Plug]:
    """For every compute and host op its call; raises :class:`UsageError` with all that does not fit (R120, R121)."""
    if isinstance(functions, str | bytes | list | tuple | set | frozenset) or inspect.isroutine(functions):
        headline = f"`functions` is of type `{type(functions).__name__}`, and functions are found by name"
        help_ = 'give a mapping, {"NAME": function}, or an imported module'
        raise UsageError([Diagnostic("R120", headline, help=help_)])
    plugs: dict[str, Plug] = {}
    faults: dict[Diagnostic, None] = {}
    missing: set[str] = set()
    known = _names(functions)
    for op, loop in _ops_with_loops(plan):
        if op.kind not in (OpKind.COMPUTE, OpKind.HOST):
            continue
        name = op.function or op.name
        function = _find(functions, name)
        if function is None:
            if name not in missing:
                faults.setdefault(_missing(plan, op, name, known))
            missing.add(name)
            continue
        found = _plug(plan, op, loop, function, name, handle if op.kind is OpKind.COMPUTE else None)
        if isinstance(found, Plug):
            plugs[op.name] = found
        else:
            faults |= dict.fromkeys(found)
    if faults:
        raise UsageError(faults)
    return plugs


def _ops_with_loops(plan: Plan) -> Iterable[tuple[Op, Loop | None]]:
    for item in plan.items:
        if isinstance(item, Op):
            yield item, None
        else:
            yield from ((op, item) for op in item.body if isinstance(op, Op))


def _names(functions: Functions) -> list[str]:
    if isinstance(functions, Mapping):
        return [str(name) for name in functions]
    return [name for name in dir(functions) if not name.startswith("_")]


def _find(functions: Functions, name: str) -> Callable[..., Any] | None:
    found = functions.get(name) if isinstance(functions, Mapping) else getattr(functions, name, None)
    return found if callable(found) else None


def _missing(plan: Plan, op: Op, name: str, known: list[str]) -> Diagnostic:
    if name in known:
        headline = f"`{name}`, which op `{op.name}` calls, is no function"
        help_ = f"write `def {name}({', '.join(name_parameters(op))}): ...`"
        return Diagnostic("R120", headline, op.where, plan.source, help=help_)
    near = closest(name, known)
    headline = f"there is no function `{name}`, which op `{op.name}` calls"
    help_ = (
        f"did you mean `{near}`?"
        if near
        else f"add `def {name}({', '.join(name_parameters(op))}): ...` to the functions"
    )
    return Diagnostic("R120", headline, op.where, plan.source, help=help_)


def _plug(
    plan: Plan, op: Op, loop: Loop | None, function: Callable[..., Any], name: str, handle: str | None
) -> Plug | list[Diagnostic]:
    texts = ", ".join(f"`{access_text(access)}`" for access in op.accesses) or "nothing"

    def fault(headline: str, help_: str | None) -> Diagnostic:
        note = f"`{op.name}` touches {texts}"
        return Diagnostic("R121", headline, op.where, plan.source, notes=(note,), help=help_)

    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        headline = f"function `{name}` is a coroutine or a generator, and a stream only calls plain functions"
        return [fault(headline, "run the coroutine inside a plain function")]
    accesses = name_parameters(op)
    numbers = {parameter: number for number, parameter in enumerate(accesses)}
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C do not say
        return Plug(function, tuple(range(len(accesses))), (), (), False, True)
    inner = dict(op.indices)
    indices: dict[str, int | None] = {**({loop.index: None, "i": None} if loop else {}), **inner}
    known = [*accesses, *indices, ITEM, *([handle] if handle else [])]
    positional: list[int] = []
    named: list[tuple[str, int]] = []
    told: list[tuple[str, int | None]] = []
    item = everything = False
    wanted: str | None = None
    faults: list[Diagnostic] = []
    ordered = True
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            everything = True
        elif parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            if len(positional) < len(accesses):
                positional.append(len(positional))
            elif parameter.default is inspect.Parameter.empty:
                headline = f"function `{name}` takes more than the {len(accesses)} views that `{op.name}` has for it"
                faults.append(fault(headline, f"drop `{parameter.name}`"))
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            positional += range(len(positional), len(accesses))
        elif parameter.name in numbers:
            named.append((parameter.name, numbers[parameter.name]))
            ordered = ordered and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and not told and not item
        elif parameter.name in indices:
            told.append((parameter.name, indices[parameter.name]))
        elif parameter.name == ITEM and loop is not None:
            item = True
        elif handle is not None and parameter.name == handle:
            wanted = handle
        elif parameter.default is inspect.Parameter.empty:
            faults.append(_unknown(name, op, parameter.name, known, fault))
        else:
            ordered = False
    given = {number for _, number in named} | set(positional)
    rest = [(parameter, number) for parameter, number in numbers.items() if number not in given]
    if everything:
        named += rest
        ordered = ordered and not rest
    elif rest and not faults:
        for missing, _ in rest:
            headline = f"function `{name}` has no parameter `{missing}`, which `{op.name}` touches"
            faults.append(fault(headline, f"write `def {name}({', '.join(accesses)})`"))
    if faults:
        return faults
    return Plug(function, tuple(positional), tuple(named), tuple(told), item, ordered, wanted)


def _unknown(
    name: str, op: Op, parameter: str, known: list[str], fault: Callable[[str, str | None], Diagnostic]
) -> Diagnostic:
    headline = f"function `{name}` asks for `{parameter}`, which `{op.name}` does not have"
    near = closest(parameter, known)
    if near in known[: len(op.accesses)]:
        return fault(headline, f"call the parameter `{near}`, or write `args: {{{parameter}: {near}}}` in the plan")
    return fault(headline, f"its parameters can be {', '.join(f'`{n}`' for n in dict.fromkeys(known))}")
