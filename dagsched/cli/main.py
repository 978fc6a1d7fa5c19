"""The entry point: find the command, import its module and nothing else, run it, turn failures into exit statuses.

0: fine. 1: the file is wrong, or races. 2: usage, a file that cannot be read or written, a device limit.
3: a bug in dagsched. 130: interrupted; 141: nobody read the output to its end.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module

from dagsched import __version__
from dagsched.cli.arguments import HelpShown, Parser
from dagsched.cli.console import Console, open_console, stdout_fault
from dagsched.cli.report import print_failure
from dagsched.diagnostics import DagschedError, Diagnostic, ProofError, UsageError, closest
from dagsched.view.terminal import escape

COMMANDS = {
    "compile": "write a plan's schedule, its proof and the program for a device",
    "check": "say whether plans or schedules are right: races, deadlocks, needless waits",
    "fix": "write a schedule without its races, deadlocks and needless waits",
    "prove": "let an adversary run a plan or a schedule, and show what goes wrong without each wait",
    "run": "run a plan, or see what overlaps in a dry run",
    "calibrate": "write the times of a measured run into a plan",
    "matrix": "show the dependency matrix of a plan",
    "graph": "draw the dependency graph of a plan or a schedule",
    "timeline": "show when each op would run: text, SVG, HTML, or a trace for Perfetto",
    "diff": "say what changed between two schedules",
    "explain": "say what a code such as P101 means, or why one op comes before another",
    "init": "write a commented plan to start from",
    "schema": "print the JSON schema of plans, schedules or device profiles",
    "devices": "list the device profiles, or show one",
}
"""Each command is a module of this package with ``add_arguments(parser)`` and ``run(args, console) -> int``."""

INTERNAL, INTERRUPTED, BROKEN_PIPE = 3, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (without the program's name) and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    console = open_console()
    try:
        with few_collections():
            status = _run(words, console)
        console.stdout.flush()
        return status
    except KeyboardInterrupt:
        console.progress("")
        return INTERRUPTED
    except BrokenPipeError:
        _drop_stdout()
        return BROKEN_PIPE
    except (UsageError, OSError) as error:  # from writing what a command had to say, a failure's report included
        _drop_stdout()
        fault = error if isinstance(error, UsageError) else stdout_fault(error)
        with suppress(OSError):
            print_failure(console, fault, "text")
        return fault.exit_status


@contextmanager
def few_collections() -> Iterator[None]:
    """Let the garbage collector run seldom.

    Plans are trees of small objects that live to the end: looking for dead ones as often as Python does by itself takes
    almost half of the time in which a plan of 20,000 ops is read.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(1_000_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _run(words: list[str], console: Console) -> int:
    format = "text"
    try:
        if not words or words[0] in ("-h", "--help", "help"):
            return _help(words, console)
        if words[0] in ("-V", "--version"):
            console.write(f"dagsched {__version__}\n")
            return 0
        name = _known_command(words[0])
        module = import_module(f"dagsched.cli.{name}")
        parser = Parser(name, f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.")
        module.add_arguments(parser)
        args = parser.read(words[1:])
        format = getattr(args, "format", None) or "text"
        status = module.run(args, console)
        return int(status)
    except HelpShown as help_:
        console.write(help_.text)
        return 0
    except DagschedError as error:
        console.progress("")
        print_failure(console, error, format)
        if isinstance(error, ProofError):
            _say_report(console, words)
        return error.exit_status
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever went wrong inside is ours, and the user is told so
        console.progress("")
        if os.environ.get("DAGSCHED_DEBUG") == "1":
            import traceback

            traceback.print_exc(file=console.stderr)
        console.say(f"{console.talk('internal error', 'red')}: {escape(_describe(error))}")
        _say_report(console, words)
        return INTERNAL


def _help(words: list[str], console: Console) -> int:
    if len(words) > 1 and words[0] == "help":
        return _run([words[1], "--help"], console)
    width = max(map(len, COMMANDS))
    lines = [
        "usage: dagsched COMMAND ...",
        "",
        "Streams, events and proofs for asynchronous copies and kernels.",
        "",
        *(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()),
        "",
        "`dagsched COMMAND --help` says more; `dagsched --version` prints the version.",
    ]
    text = "\n".join(lines) + "\n"
    if words:
        console.write(text)
        return 0
    console.stderr.write(text)
    return 2


def _known_command(word: str) -> str:
    if word in COMMANDS:
        return word
    option = word.startswith("-")
    near = closest(word, ("--version", "--help") if option else COMMANDS)
    help_ = f"did you mean `dagsched {near}`?" if near else "`dagsched --help` lists the commands"
    what = "option" if option else "command"
    raise UsageError([Diagnostic("U003", f"there is no {what} `{word}`", help=help_)])


def _describe(error: Exception) -> str:
    """The error and the innermost line that it came from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})" if trace else ""  # noqa: PTH119
    return f"{type(error).__name__}: {error}{place}"


def _say_report(console: Console, words: Sequence[str]) -> None:
    python = ".".join(map(str, sys.version_info[:3]))
    command = escape(" ".join(words))
    console.say("This is a bug in dagsched. Please report it with the input file and these lines:")
    console.say(f"  dagsched {__version__}, Python {python}, {sys.platform}: dagsched {command}")
    if os.environ.get("DAGSCHED_DEBUG") != "1":
        console.say("  (DAGSCHED_DEBUG=1 shows the traceback)")


def _drop_stdout() -> None:
    """Nobody reads stdout any more: send the rest nowhere, so that the interpreter's last flush does not complain."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        if sys.stdout is not None:
            os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        return
