"""Find the hazards of a resolved plan: which op must precede which, why, and at what distance."""

from __future__ import annotations

from dagsched.hazards.history import KINDS, Dependencies
from dagsched.hazards.model import Hazard, Hazards
from dagsched.hazards.sweep import Clocks, Sweep, choose_samples, measure_loops
from dagsched.plan.model import Plan


def find_hazards(plan: Plan, sweep: Sweep | None = None) -> Hazards:
    """All hazards, in the order of their ops; of one pair, buffer and kind only the smallest distance.

    Linear in the number of accesses of the instances that tell all (see ``dagsched.hazards.sweep``). ``sweep`` is the
    plan's, without shifts, where the caller has it.
    """
    sweep = sweep or Sweep(plan)
    samples = choose_samples(sweep, measure_loops(sweep, Clocks()))
    found: dict[tuple[int, int, str, int], int | None] = {}
    for sample in samples:
        place: list[tuple[int, int]] = []

        def visit(
            number: int,
            segment: int,
            iteration: int,
            sequence: int,
            needs: Dependencies,
            place: list[tuple[int, int]] = place,
        ) -> None:
            place.append((number, iteration))
            for (earlier, buffer), kinds in needs.items():
                other, before = place[earlier]
                loop = sweep.segments[segment].loop
                common = loop is not None and sweep.segment_of[other] == segment
                distance = iteration - before if common else None
                for bit in KINDS:
                    if kinds & bit:
                        key = (other, number, buffer, bit)
                        known = found.get(key, distance)
                        found[key] = distance if known is None or distance is None else min(known, distance)

        sweep.run(sample, visit)
    entries = [
        Hazard(sweep.ops[a].name, sweep.ops[b].name, buffer or None, KINDS[bit], distance)  # type: ignore[arg-type]
        for (a, b, buffer, bit), distance in sorted(
            found.items(), key=lambda item: (item[0][1], item[0][0], item[0][2:])
        )
    ]
    return Hazards(tuple(op.name for op in sweep.ops), tuple(entries))
