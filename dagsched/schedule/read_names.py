"""Names, indices and expressions of a schedule file: what every other part of its reader reads texts with."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dagsched.nodes import Node
from dagsched.plan.access import MAX_EXPRESSION, MAX_NAME, AccessError, check_name, read_expression, shorten
from dagsched.plan.expressions import (
    Condition,
    Expr,
    ExpressionError,
    Int,
    names_in,
    names_in_condition,
    parse_condition,
)
from dagsched.plan.findings import Findings
from dagsched.schedule.model import Indexed

MAX_LONG_NAME = 1_000
"""Characters of a name of anything but a buffer: compiled schedules name ops and events after the plan's ops."""

MAX_GUARD = 4_000
"""Characters of a guard; each of its comparisons has at most ``MAX_EXPRESSION``."""

Scope = tuple[str, ...]
"""The names that have a value: parameters, and the indices of the loops around."""


class NameReader:
    """Reads texts of one file; ``findings`` gathers what is wrong, ``indices`` are those of all its loops."""

    def __init__(self, findings: Findings, indices: Iterable[str]) -> None:
        self.findings = findings
        self.indices = frozenset(indices)

    def name(self, node: Node, what: str) -> str:
        """A name of anything but a buffer."""
        text = str(node.value)
        try:
            _check_long(text, what)
        except AccessError as error:
            self.findings.report("S105", error.message, node.within(error.offset), remedy=error.remedy)
        return text

    def line(self, node: Node | None, what: str) -> str | None:
        """A text that is only shown, or None: any characters that fit into a line."""
        if node is None:
            return None
        text = str(node.value)
        if re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", text) or len(text) > MAX_LONG_NAME:
            headline = f"{what} must be one line of at most {MAX_LONG_NAME:,} characters"
            self.findings.report("S105", headline, node.where, remedy="write a short name")
        return text

    def indexed(self, node: Node, what: str, scope: Scope | None) -> Indexed:
        """``NAME`` or ``NAME@EXPR``; without a scope any names will do."""
        text = str(node.value)
        at = text.find("@")
        name = (text if at < 0 else text[:at]).strip()
        try:
            _check_long(name, what)
        except AccessError as error:
            lead = len(text) - len(text.lstrip())
            self.findings.report("S105", error.message, node.within(error.offset + lead), remedy=error.remedy)
        if at < 0:
            return Indexed(name)
        if not text[at + 1 :].strip():
            remedy = f"for example `{name}@{scope[-1] if scope else 0}`"
            self.findings.report("S105", "an expression must follow `@`", node.within(at), remedy=remedy)
            return Indexed(name)
        return Indexed(name, self.expression(node, at + 1, scope))

    def expression(self, node: Node, start: int, scope: Scope | None) -> Expr:
        """The expression that a text holds from ``start`` on."""
        try:
            expr = read_expression(str(node.value)[start:])
        except ExpressionError as error:
            self.findings.report("S105", error.message, node.within(start + error.offset))
            return Int(0)
        if scope is not None:
            self.check_scope(names_in(expr), node, start, scope)
        return expr

    def guard(self, node: Node | None, scope: Scope) -> Condition:
        """What ``when:`` says."""
        if node is None:
            return ()
        text = str(node.value)
        try:
            condition = _condition(text)
        except ExpressionError as error:
            remedy = "for example `when: i >= 1`"
            self.findings.report("S105", error.message, node.within(error.offset), remedy=remedy)
            return ()
        self.check_scope(names_in_condition(condition), node, 0, scope)
        return condition

    def check_scope(self, used: Iterable[str], node: Node, start: int, scope: Scope) -> None:
        """Report the names that have no value here, at their first place behind ``start``."""
        for name in sorted(set(used) - set(scope)):
            match = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)").search(str(node.value), start)
            where = node.within(match.start(), len(name)) if match else node.where
            if name in self.indices:
                headline = f"the loop index `{name}` has no value outside its loop"
                self.findings.report("S112", headline, where, remedy="write a number, or move the step into the loop")
            else:
                self.findings.unknown("S112", "name", name, scope, where, f"declare it: `params: {{{name}: null}}`")


def _check_long(name: str, what: str) -> None:
    if MAX_NAME < len(name) <= MAX_LONG_NAME and shorten(name, MAX_LONG_NAME) == name:
        return
    check_name(name, what)


def _condition(text: str) -> Condition:
    if len(text) > MAX_GUARD:
        raise ExpressionError(f"a guard must not have more than {MAX_GUARD:,} characters")
    start = 0
    for part in re.split(r"\band\b", text):
        if len(part) > MAX_EXPRESSION:
            raise ExpressionError(f"a comparison must not have more than {MAX_EXPRESSION} characters", start)
        start += len(part) + len("and")
    return parse_condition(text)
