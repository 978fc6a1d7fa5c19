"""Random plans as users write them: copies, functions and fills on host and device, loops, rings, versions, regions."""

from __future__ import annotations

from random import Random

from dagsched.diagnostics import PlanError
from dagsched.plan.expressions import Int, Name, parse_expression
from dagsched.plan.model import (
    Access,
    Buffer,
    Loop,
    Mode,
    Op,
    OpKind,
    Place,
    Plan,
    Ring,
    Slice,
    StreamOptions,
)
from tests.emit.pipelines import Pipeline, emit

ROWS, COLUMNS = 4, 6


def _buffers(random: Random) -> dict[str, Buffer]:
    found = {}
    for n in range(random.randint(3, 6)):
        place = random.choice([Place.HOST, Place.DEVICE, Place.DEVICE])
        ring = random.choice([Ring(), Ring(None), Ring(None)])
        pageable = place is Place.HOST and random.random() < 0.2
        name = f"b{n}"
        size = ROWS * COLUMNS
        found[name] = Buffer(
            name, place, size, (ROWS, COLUMNS), "uint8", ring, pageable, input=True, output=random.random() < 0.8
        )
    return found


def _region(random: Random) -> tuple[Slice, ...]:
    kind = random.randint(0, 5)
    if kind == 0:
        lo = random.randint(0, ROWS - 1)
        return (Slice(Int(lo), Int(random.randint(lo + 1, ROWS))),)
    if kind == 1:
        lo = random.randint(0, COLUMNS - 1)
        return (Slice(), Slice(Int(lo), Int(random.randint(lo + 1, COLUMNS))))
    return ()


def _version(random: Random, buffer: Buffer, index: str | None) -> str | None:
    if index is None or buffer.ring.depth == 1 or random.random() < 0.75:
        return None
    return random.choice([f"{index} - 1", f"{index}"])


def _access(random: Random, buffer: Buffer, mode: Mode, index: str | None, region: tuple[Slice, ...]) -> Access:
    version = _version(random, buffer, index) if mode is Mode.READ else None
    return Access(buffer.name, mode, parse_expression(version) if version else None, region)


def _op(random: Random, number: int, known: dict[str, Buffer], index: str | None) -> Op:
    kind = random.choice([OpKind.COPY, OpKind.COPY, OpKind.COMPUTE, OpKind.COMPUTE, OpKind.HOST, OpKind.FILL])
    region = _region(random)
    if kind is OpKind.COPY:
        source, target = random.sample(sorted(known), 2)
        return Op(
            f"op{number}",
            kind,
            (
                _access(random, known[source], Mode.READ, index, region),
                _access(random, known[target], Mode.WRITE, index, region),
            ),
        )
    if kind is OpKind.FILL:
        target = random.choice(sorted(known))
        access = _access(random, known[target], Mode.WRITE, index, region)
        return Op(f"op{number}", kind, (access,), value=random.randint(0, 255))
    place = Place.HOST if kind is OpKind.HOST else Place.DEVICE
    names = [name for name, buffer in known.items() if buffer.place is place]
    chosen = random.sample(names, min(len(names), random.randint(1, 3)))
    modes = [Mode.READ, Mode.READ, Mode.WRITE, Mode.UPDATE, Mode.ACCUMULATE]
    accesses = tuple(_access(random, known[name], random.choice(modes), index, _region(random)) for name in chosen)
    return Op(f"op{number}", kind, accesses, function=f"f{number}")


def random_plan(seed: int) -> Plan:
    """A plan that may well be wrong: the compiler says."""
    random = Random(seed)
    known = _buffers(random)
    items: list[Op | Loop] = []
    number = 0
    for _ in range(random.randint(1, 4)):
        if random.random() < 0.6:
            body: list[Op | Loop] = []
            for _ in range(random.randint(1, 5)):
                op = _op(random, number, known, "i")
                body.append(Loop("j", Int(2), (op,)) if random.random() < 0.15 else op)
                number += 1
            items.append(Loop("i", Name("n") if random.random() < 0.7 else Int(random.randint(0, 4)), tuple(body)))
        else:
            items.append(_op(random, number, known, None))
            number += 1
    policy = random.choice(["concurrent", "engine", "single"])
    return Plan(f"random_{seed}", known, tuple(items), params={"n": None}, streams=StreamOptions(policy=policy))


def random_pipelines(first: int, count: int) -> list[Pipeline]:
    """The first so many plans, from a seed on, that compile."""
    from dagsched.compiler import compile_plan

    found: list[Pipeline] = []
    seed = first
    while len(found) < count:
        plan = random_plan(seed)
        seed += 1
        try:
            compiled = compile_plan(plan)
        except PlanError:
            continue
        found.append(emit(plan, compiled))
    return found
