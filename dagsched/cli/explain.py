"""``dagsched explain CODE`` and ``dagsched explain FILE A@i B@j``: what a diagnostic means; why A precedes B.

An instance is ``upload@3``, or ``upload@i-1`` with a loop's own index: then the question is asked for several
iterations one after another, and the answer says for which.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagsched.cli.arguments import Parser
from dagsched.cli.console import Console
from dagsched.cli.report import print_json
from dagsched.diagnostics import Diagnostic, UsageError, closest
from dagsched.view.codes import CODES
from dagsched.view.terminal import escape, pad, width_of

if TYPE_CHECKING:
    from dagsched.proof.check_paths import Chain
    from dagsched.proof.check_relate import Relation
    from dagsched.schedule.model import Schedule

_CODE = re.compile(r"[A-Za-z]\d{3}\Z")
_SYMBOLIC = re.compile(r"(?P<op>.+)@\s*(?P<index>[A-Za-z_]\w*)\s*(?P<offset>[+-]\s*\d+)?\s*\Z", re.DOTALL)
ITERATIONS = 6
"""How many iterations an instance with a loop's index is asked about."""


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument(
        "operands", metavar="CODE|FILE A@i B@j", nargs="*",
        help="codes such as P101 (default: all of them), or a plan or schedule and two op instances",
    )  # fmt: skip
    parser.add_format(("text", "json"))


def run(args: argparse.Namespace, console: Console) -> int:
    """Print a line for each code, or the chain between two op instances."""
    words: list[str] = args.operands
    about_file = len(words) == 3 and not all(map(_CODE.match, words))
    if about_file:
        return _explain_order(args, words, console)
    if words and not _CODE.match(words[0]) and (words[0] == "-" or Path(words[0]).exists()):
        headline = f"two op instances are needed after `{words[0]}`"
        raise UsageError([Diagnostic("U002", headline, help=f"dagsched explain {words[0]} A@i B@i+1")])
    return _explain_codes(words, args.format, console)


def _explain_codes(words: list[str], format: str, console: Console) -> int:
    codes = [word.upper() for word in words] or sorted(CODES)
    unknown = [code for code in codes if code not in CODES]
    if unknown:
        raise UsageError([_unknown(code) for code in unknown])
    if format == "json":
        from dagsched.view.code_page import page_data

        print_json(console, {code: page_data(code) for code in codes})
    elif words:
        from dagsched.view.code_page import page_text

        console.write("\n".join(page_text(code, paint=console.paint, width=console.width) for code in codes))
    else:
        for code in codes:
            console.write(f"{console.paint(code, 'bold')}  {CODES[code]}\n")
    return 0


def _unknown(code: str) -> Diagnostic:
    near = closest(code, CODES)
    help_ = f"did you mean `dagsched explain {near}`?" if near else "`dagsched explain` lists them"
    return Diagnostic("U007", f"there is no code `{code}`", help=help_)


def _explain_order(args: argparse.Namespace, words: list[str], console: Console) -> int:
    """Ask for each pair of instances; the first pair that is not in the order asked for decides."""
    from dagsched.cli.inputs import schedule_of
    from dagsched.proof.check_relate import relate

    file, first, second = words
    schedule, _ = schedule_of(file, console)
    pairs, span = _instances(schedule, first, second)
    answers = []
    for one, other in pairs:
        relation = relate(schedule, one, other)
        if relation.verdict != "before":
            return _say(console, args.format, (one, other), relation, "")
        answers.append(relation)
    return _say(console, args.format, (first, second), answers[0], span)


def _instances(schedule: Schedule, first: str, second: str) -> tuple[list[tuple[str, str]], str]:
    """The pairs of concrete instances to ask about, and what to say of the iterations they stand for."""
    from dagsched.plan.expressions import Int
    from dagsched.schedule.model import LoopStep, OpStep

    names = {step.op for step in schedule.walk() if isinstance(step, OpStep)}
    parts = [None if text in names else _SYMBOLIC.match(text) for text in (first, second)]
    indices = sorted({part["index"] for part in parts if part})
    if not indices:
        return [(first, second)], ""
    loops = {step.index: step for step in schedule.walk() if isinstance(step, LoopStep)}
    for index in indices:
        if index not in loops:
            near = closest(index, loops) or next(iter(loops), None)
            help_ = f"the schedule's loop has the index `{near}`" if near else "the schedule has no loop"
            raise UsageError([Diagnostic("U002", f"no loop has the index `{index}`", help=help_)])
    if len(indices) > 1:
        headline = f"`{indices[0]}` and `{indices[1]}` are the indices of different loops"
        raise UsageError([Diagnostic("U002", headline, help="write numbers: `A@3 B@0`")])
    loop = loops[indices[0]]
    offsets = [int((part["offset"] or "0").replace(" ", "")) if part else 0 for part in parts]
    lowest = loop.lo.value if isinstance(loop.lo, Int) else 0
    start = lowest - min(offsets)
    end = start + ITERATIONS
    if isinstance(loop.hi, Int):
        end = max(start + 1, min(end, loop.hi.value - max(offsets)))

    def concrete(text: str, part: re.Match[str] | None, offset: int, value: int) -> str:
        return f"{part['op']}@{value + offset}" if part else text

    pairs = [
        (concrete(first, parts[0], offsets[0], value), concrete(second, parts[1], offsets[1], value))
        for value in range(start, end)
    ]
    return pairs, f"{loop.index} = {start} to {end - 1}" if len(pairs) > 1 else f"{loop.index} = {start}"


def _say(console: Console, format: str, pair: tuple[str, str], relation: Relation, span: str) -> int:
    if format == "json":
        print_json(console, _relation_data(pair, relation))
        return 0
    one, other = escape(pair[0]), escape(pair[1])
    if relation.verdict == "before":
        asked = f" (asked for {escape(span)}; the chain is that of the first)" if span else ""
        console.write(f"{one} comes before {other}{asked}\n{_chain_text(console, relation.chain)}")
    elif relation.verdict == "after":
        console.write(f"{one} does not come before {other}: {other} comes first\n")
        console.write(_chain_text(console, relation.chain))
    elif relation.verdict == "mixed":
        first, second = map(escape, (relation.first, relation.second))
        late, early = map(escape, relation.other or ("", ""))
        console.write(f"{one} and {other} are ordered, but not all instances in the same way:\n")
        console.write(f"{first} comes before {second}, and {early} before {late}\n")
        console.write(_chain_text(console, relation.chain))
    else:
        console.write(_collision_text(console, relation))
    return 0


def _relation_data(pair: tuple[str, str], relation: Relation) -> dict[str, Any]:
    """``path`` is the chain asked for, ``reversed`` one the other way round, ``collision`` a run without order."""
    path = [link.as_data() for link in relation.chain or ()]
    return {
        "dagsched": "explain/1",
        "first": pair[0],
        "second": pair[1],
        "ordered": relation.verdict == "before",
        "path": path if relation.verdict == "before" else [],
        "reversed": path if relation.verdict == "after" else None,
        "collision": relation.collision.as_data() if relation.collision else None,
    }


def _collision_text(console: Console, relation: Relation) -> str:
    """What collides, a run that shows it, and why that matters."""
    from dagsched.view.collision import collision_picture

    collision = relation.collision
    assert collision is not None
    one, other = escape(relation.first), escape(relation.second)
    if collision.overlap and collision.runs:
        headline = f"nothing orders {one} and {other}: here they run at the same time"
    elif collision.runs:
        headline = f"nothing orders {one} and {other}: they never run at the same time, but either may come first"
    else:
        headline = f"nothing orders {one} and {other}, as far as the interleavings were explored"
    picture = collision_picture(collision, console.width, console.glyphs, console.paint)
    if collision.conflicts:
        matters = f"both touch {escape('; '.join(collision.conflicts))}: a race\n"
    else:
        matters = "they touch no bytes in common that either changes: no race\n"
    return f"{headline}\n\n{picture}\n{matters}" if picture else f"{headline}\n{matters}"


def _chain_text(console: Console, chain: Chain | None) -> str:
    """The chain as a picture, then link by link with the reasons."""
    from dagsched.view.chain import chain_picture

    if not chain:
        return ""
    rows = [
        (escape(link.text), f"on {escape(link.stream)}" if link.stream is not None else "on the host", escape(link.by))
        for link in chain
    ]
    widths = [max(width_of(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"  {pad(text, widths[0])}  {pad(place, widths[1])}  {by}".rstrip() for text, place, by in rows]
    words = "\n".join(lines) + "\n"
    return f"\n{chain_picture(chain, console.width, console.glyphs)}\n{words}" if len(chain) > 1 else words
