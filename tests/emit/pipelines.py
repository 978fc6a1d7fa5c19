"""The plans that the tests of emitted programs run, compiled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dagsched.compiled import Compiled
from dagsched.compiler import compile_plan
from dagsched.diagnostics import Source
from dagsched.emit.acl_cpp import emit_acl_cpp
from dagsched.emit.cpp_names import name_everything
from dagsched.emit.cuda_cpp import CUDA, emit_cuda_cpp
from dagsched.emit.lower import list_calls
from dagsched.plan.model import Plan
from dagsched.plan.reader import read_plan
from tests.emit.driver import Emitted

PLANS = Path(__file__).parent / "plans"
EXAMPLES = Path(__file__).parents[2] / "examples"

LARGEST = {"mixed": 3, "regions": 7, "shifted": 64}
"""Above these counts a region leaves its buffer."""


@dataclass(frozen=True)
class Pipeline:
    """A plan as written, what it compiles to, and what is emitted for it."""

    plan: Plan
    compiled: Compiled
    emitted: Emitted

    @property
    def cuda(self) -> Emitted:
        """What is emitted for CUDA."""
        calls = self.emitted.calls
        return Emitted(calls, name_everything(calls, CUDA.suffix), emit_cuda_cpp(self.compiled), CUDA)

    def counts(self, count: int) -> dict[str, int]:
        """A value for every parameter, within what the plan's regions allow."""
        return dict.fromkeys(self.plan.params, min(count, LARGEST.get(self.plan.name, count)))

    def command(self, number: int, count: int, seed: int = 0, fault: str = "- 0 0") -> str:
        """A line for the driver."""
        return " ".join(map(str, [number, seed, fault, *self.counts(count).values()]))


def read(path: Path) -> Plan:
    return read_plan(Source(str(path), path.read_text(encoding="utf-8")))


def compile_file(path: Path) -> Pipeline:
    plan = read(path)
    return emit(plan, compile_plan(plan))


def compile_all() -> dict[str, Pipeline]:
    """Every plan of the tests by its file's name."""
    return {path.stem: compile_file(path) for path in sorted(PLANS.glob("*.yaml"))}


def emit(plan: Plan, compiled: Compiled) -> Pipeline:
    """A pipeline with everything that can be emitted for it."""
    calls = list_calls(compiled)
    return Pipeline(plan, compiled, Emitted(calls, name_everything(calls), emit_acl_cpp(compiled)))
