"""``dagsched explain CODE`` and ``dagsched explain FILE A@i B@j``: what a diagnostic means; why A precedes B.

An instance is ``upload@3``, ``upload@i-1`` with a loop's own index, or ``upload@n-1`` with a parameter: then the
question is asked for several numbers one after another, and the answer says for which.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagsched.cli.arguments import Parser
from dagsched.cli.console import Console
from dagsched.cli.graph import picture_format
from dagsched.cli.report import print_json
from dagsched.diagnostics import Diagnostic, UsageError, closest
from dagsched.view.codes import CODES
from dagsched.view.terminal import escape, pad, width_of

if TYPE_CHECKING:
    from dagsched.proof.check_paths import Chain
    from dagsched.proof.check_relate import Relation

_CODE = re.compile(r"[A-Za-z]\d{3}\Z")


def add_arguments(parser: Parser) -> None:
    """Operands and options of the command."""
    parser.add_argument(
        "operands", metavar="CODE|FILE A@i B@j", nargs="*",
        help="codes such as P101 (default: all of them), or a plan or schedule and two op instances",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="also draw the answer for two instances: ends in .svg, .png or .dot"
    )
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
    if args.output is not None:
        raise UsageError([Diagnostic("U002", "`-o` draws how two op instances stand", help="name FILE A@i B@j too")])
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
    from dagsched.cli.instances import read_pairs
    from dagsched.proof.check_relate import relate

    output = Path(args.output) if args.output else None
    format = picture_format(output) if output else ""
    file, first, second = words
    schedule, _ = schedule_of(file, console)
    pairs, span = read_pairs(schedule, first, second)
    relations = []
    asked = (first, second)
    for pair in pairs:
        relations.append(relate(schedule, pair.first, pair.second, pair.params))
        if relations[-1].verdict != "before":
            asked, span = (pair.first, pair.second), ""
            break
    relation = relations[0] if span else relations[-1]
    headline = _headline(asked, relation)
    if output is not None:
        _draw(output, format, relation, headline, console)
    if args.format == "json":
        print_json(console, _relation_data(asked, relation))
    else:
        about = f" (asked for {escape(span)}; the chain is that of the first)" if span else ""
        console.write(f"{headline}{about}\n{_picture_text(console, relation)}")
    return 0


def _draw(output: Path, format: str, relation: Relation, headline: str, console: Console) -> None:
    """Write the picture, whole or not at all."""
    from dagsched.output import write_files
    from dagsched.view.relation_graph import relation_dot
    from dagsched.view.render import draw_picture

    picture = draw_picture(relation_dot(relation, headline), format)
    for note in picture.notes:
        console.say(f"{console.talk('note', 'blue')}: {escape(note)}")
    write_files(output.parent, {output.name: picture.data})
    console.say(f"wrote {escape(str(output))}")


def _headline(asked: tuple[str, str], relation: Relation) -> str:
    """The answer in words."""
    one, other = map(escape, asked)
    first, second = map(escape, (relation.first, relation.second))
    if relation.verdict == "before":
        return f"{one} comes before {other}"
    if relation.verdict == "after":
        return f"{one} does not come before {other}: {other} comes first"
    if relation.verdict == "mixed":
        late, early = map(escape, relation.other or ("", ""))
        return (
            f"{one} and {other} are ordered, but not all instances in the same way:\n"
            f"{first} comes before {second}, and {early} before {late}"
        )
    collision = relation.collision
    assert collision is not None
    if collision.overlap and collision.runs:
        return f"nothing orders {first} and {second}: here they run at the same time"
    if collision.runs:
        return f"nothing orders {first} and {second}: they never run at the same time, but either may come first"
    return f"nothing orders {first} and {second}, as far as the interleavings were explored"


def _picture_text(console: Console, relation: Relation) -> str:
    return _collision_text(console, relation) if relation.collision else _chain_text(console, relation.chain)


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
    """A run that shows it, and why that matters."""
    from dagsched.view.collision import collision_picture

    collision = relation.collision
    assert collision is not None
    picture = collision_picture(collision, console.width, console.glyphs, console.paint)
    if collision.conflicts:
        matters = f"both touch {escape('; '.join(collision.conflicts))}: a race\n"
    else:
        matters = "they touch no bytes in common that either changes: no race\n"
    return f"\n{picture}\n{matters}" if picture else matters


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
