"""The functions that a program's user fills in: one per name and shape of call, with named parameters.

Ops that call one function with the same parameter names bind them by name; ops whose accesses merely agree in kind and
order (``relu`` on ``a, b`` here and on ``c, d`` there) bind them by position, and parameters whose names differ are
called ``input_0``, ``output_1``, .... Anything else is an overload of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dagsched.emit.blocks import Block
from dagsched.plan.model import Mode, Op, OpKind


@dataclass(frozen=True, slots=True)
class Parameter:
    """A view: read-only or not, of elements of a known type or of bytes, with ``axes`` strided axes (0: contiguous)."""

    name: str
    mode: Mode
    dtype: str | None
    axes: int

    @property
    def shape(self) -> tuple[bool, int]:
        """What tells two overloads apart."""
        return self.mode is Mode.READ, self.axes


@dataclass(frozen=True, slots=True)
class Function:
    """A compute or host function: its views, and the loop indices that it is told (the outer loop's first)."""

    name: str
    kind: OpKind
    parameters: tuple[Parameter, ...]
    indices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """An op's call as its plan states it: parameters with their blocks, in the order of the op's accesses."""

    op: Op
    parameters: tuple[Parameter, ...]
    blocks: tuple[Block, ...]
    indices: tuple[str, ...]


def name_parameters(op: Op) -> tuple[str, ...]:
    """A name for each access: from ``args``, else the buffer's; a buffer that an op touches twice is numbered."""
    free: dict[str, list[str]] = {}
    for parameter, buffer in op.args:
        free.setdefault(buffer.split("@")[0].split("[")[0], []).append(parameter)
    taken = {parameter for parameter, _ in op.args}
    names = []
    for access in op.accesses:
        if free.get(access.buffer):
            names.append(free[access.buffer].pop(0))
            continue
        name, number = access.buffer, 2
        while name in taken:
            name, number = f"{access.buffer}_{number}", number + 1
        taken.add(name)
        names.append(name)
    return tuple(names)


def bind_functions(uses: Sequence[Use]) -> dict[str, tuple[Function, tuple[Block, ...]]]:
    """For each op its function, and its blocks in the order of the function's parameters."""
    groups: dict[tuple[object, ...], list[Use]] = {}
    for use in uses:
        shape = tuple(parameter.shape for parameter in use.parameters)
        key = (use.op.function, use.op.kind, tuple(sorted(shape)), len(use.indices))
        groups.setdefault(key, []).append(use)
    bound: dict[str, tuple[Function, tuple[Block, ...]]] = {}
    for members in groups.values():
        first = members[0]
        named = {(parameter.name, parameter.shape) for parameter in first.parameters}
        if all({(parameter.name, parameter.shape) for parameter in use.parameters} == named for use in members):
            bound |= _bind([_reorder(use, first) for use in members])
            continue
        by_position: dict[tuple[tuple[bool, int], ...], list[Use]] = {}
        for use in members:
            by_position.setdefault(tuple(parameter.shape for parameter in use.parameters), []).append(use)
        for same in by_position.values():
            bound |= _bind(same)
    return bound


def _reorder(use: Use, first: Use) -> Use:
    """The same call with its parameters in the order of another."""
    place = {parameter.name: n for n, parameter in enumerate(use.parameters)}
    order = [place[parameter.name] for parameter in first.parameters]
    return replace(use, parameters=tuple(use.parameters[n] for n in order), blocks=tuple(use.blocks[n] for n in order))


def _bind(uses: Sequence[Use]) -> dict[str, tuple[Function, tuple[Block, ...]]]:
    """One function for calls that agree in kind and order."""
    parameters = tuple(_join(n, column) for n, column in enumerate(zip(*(use.parameters for use in uses), strict=True)))
    first = uses[0]
    function = Function(first.op.function or first.op.name, first.op.kind, parameters, first.indices)
    return {use.op.name: (function, use.blocks) for use in uses}


def _join(number: int, column: Sequence[Parameter]) -> Parameter:
    """One parameter for all calls: what differs between them is left open."""
    first = column[0]
    modes = {parameter.mode for parameter in column}
    mode = first.mode if len(modes) == 1 else Mode.UPDATE
    name = first.name
    if any(parameter.name != name for parameter in column):
        name = f"{'input' if mode is Mode.READ else 'output' if mode is Mode.WRITE else 'inout'}_{number}"
    dtype = first.dtype if all(parameter.dtype == first.dtype for parameter in column) else None
    return Parameter(name, mode, dtype, first.axes)
