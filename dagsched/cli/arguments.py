"""argparse with errors as diagnostics: misspelt options and choices get the closest name, and nothing exits."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from dagsched.diagnostics import Diagnostic, UsageError, closest

DIAGNOSTIC_FORMATS = ("text", "json", "github", "sarif")
EFFORTS = ("fast", "normal", "max")


class HelpShown(Exception):
    """``--help`` was given; ``text`` is what to print."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Parser(argparse.ArgumentParser):
    """The parser of one command; raises :class:`UsageError` (U002) and :class:`HelpShown`."""

    def __init__(self, command: str, description: str) -> None:
        super().__init__(f"dagsched {command}", description=description, allow_abbrev=False, add_help=False)
        self.add_argument("-h", "--help", action="store_true", help="show this help")

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """The options and operands among the words."""
        options = [word for word in (words[: words.index("--")] if "--" in words else words) if len(word) > 1]
        if {"-h", "--help"} & set(options):
            raise HelpShown(self.format_help())
        known = [option for action in self._actions for option in action.option_strings]
        for word in options:
            name = word.partition("=")[0]
            if name.startswith("--") and name not in known:
                self._refuse_option(name, known)
        args, extra = self.parse_known_args(words)
        for word in extra:
            if word.startswith("-"):
                self._refuse_option(word, known)
        if extra:
            self.error(f"`{extra[0]}` is one operand too many")
        return args

    def _refuse_option(self, name: str, known: Iterable[str]) -> NoReturn:
        near = closest(name, [option for option in known if option.startswith("--")])
        help_ = f"did you mean `{near}`?" if near else f"`{self.prog} --help` lists the options"
        raise UsageError([Diagnostic("U002", f"`{self.prog}` has no option `{name}`", help=help_)])

    def error(self, message: str) -> NoReturn:
        """Called by argparse for all that it refuses."""
        text = message.replace("the following arguments are required:", "missing:").replace("argument ", "", 1)
        usage = self.format_usage().removeprefix("usage: ").strip()
        raise UsageError([Diagnostic("U002", text, help=" ".join(usage.split()))])

    def add_format(self, formats: Sequence[str] = DIAGNOSTIC_FORMATS) -> None:
        """``--format``, the first being what is used without it."""
        self.add_argument(
            "--format", default=formats[0], type=choice("format", formats), metavar="|".join(formats),
            help=f"how to print (default {formats[0]})",
        )  # fmt: skip

    def add_effort(self) -> None:
        """``--effort``, for commands that compile plans."""
        self.add_argument(
            "--effort", default="normal", type=choice("effort", EFFORTS), metavar="|".join(EFFORTS),
            help="how hard to look for a quick schedule; max asks OR-tools too, if it is installed (default normal)",
        )  # fmt: skip


def choice(what: str, names: Sequence[str]) -> Callable[[str], str]:
    """A type for argparse that takes one of ``names`` and else says which is meant."""

    def check(text: str) -> str:
        if text in names:
            return text
        near = closest(text, names)
        hint = f"did you mean `{near}`?" if near else f"there are {', '.join(names)}"
        raise argparse.ArgumentTypeError(f"there is no {what} `{text}`; {hint}")

    return check


def with_ending(output: Path, ending: str = ".svg") -> str:
    """A picture's name as it should have been; ``.`` and ``..`` have none that could get another ending."""
    return str(output.with_suffix(ending) if output.name.strip(".") else output / f"picture{ending}")
