"""From a file's bytes to nodes with places, for both languages: what neither YAML nor JSON says is refused here.

Bytes become a :class:`Source` (``decode_source``), a source becomes a tree of nodes (``load_node``), and the tree
becomes plain data (``to_data``) for the models at the border. Opens no file itself.
Invariant: whatever the bytes, the result is a tree or a ``DagschedError``, in time linear in their number.
"""

from __future__ import annotations

import re

from dagsched.diagnostics import DagschedError, Diagnostic, PlanError, Source, UsageError, Where
from dagsched.file_models import FileModel, FormCodes, diagnostics_from
from dagsched.json_nodes import compose_json
from dagsched.nodes import Lines, Node, node_at, place_of, to_data
from dagsched.yaml_nodes import compose_yaml

__all__ = [
    "FileModel",
    "FormCodes",
    "Node",
    "decode_source",
    "diagnostics_from",
    "load_node",
    "node_at",
    "place_of",
    "read_source",
    "to_data",
]

MAX_BYTES = 64 * 2**20
"""Larger files are refused."""

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OTHER_ENCODINGS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def decode_source(data: bytes, name: str) -> Source:
    """The text of a file's bytes; raises :class:`UsageError` where they are too many, binary or not UTF-8."""
    if len(data) > MAX_BYTES:
        headline = f"the file has {len(data):,} bytes; at most {MAX_BYTES // 2**20} MiB are read"
        raise UsageError([Diagnostic("P009", headline, None, Source(name, ""))])
    encoding = _OTHER_ENCODINGS.get(data[:2])
    if encoding is not None:
        headline = f"the file is encoded in {encoding}, not in UTF-8"
        raise UsageError([Diagnostic("P001", headline, None, Source(name, ""), help="save it as UTF-8")])
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        where = Lines(before).where(len(before), len(before) + 1)
        if b"\0" in data:
            raise UsageError([_binary(name)]) from None
        headline = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        shown = Source(name, data.decode("utf-8", "replace"))
        raise UsageError([Diagnostic("P001", headline, where, shown, help="save the file as UTF-8")]) from None
    return read_source(text, name)


def read_source(text: str, name: str) -> Source:
    """A source from a text, without its byte order mark; raises :class:`UsageError` for text that no editor writes."""
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_BYTES:
        headline = f"the text has {len(text):,} characters; at most {MAX_BYTES // 2**20} MiB are read"
        raise UsageError([Diagnostic("P009", headline, None, Source(name, ""))])
    strange = _UNPRINTABLE.search(text)
    if strange is not None:
        where = Lines(text).where(strange.start(), strange.end())
        code = ord(strange.group())
        if code == 0:
            raise UsageError([_binary(name)])
        headline = f"the control character U+{code:04X} is not allowed"
        help_ = f'remove it, or write "\\u{code:04x}" in a quoted text'
        shown = Source(name, _UNPRINTABLE.sub("\ufffd", text))
        raise UsageError([Diagnostic("P001", headline, where, shown, help=help_)])
    return Source(name, text)


def _binary(name: str) -> Diagnostic:
    return Diagnostic("P001", "this is a binary file, not a text", None, Source(name, ""))


def load_node(source: Source, error: type[DagschedError] = PlanError) -> Node:
    """The root node of a YAML or JSON source; raises ``error`` with everything that is wrong with its form.

    A name that ends in ``.json`` is read as JSON; other names as YAML, of which JSON is a part.
    """
    if source.name.lower().endswith(".json"):
        root, findings = compose_json(source)
    else:
        root, findings = (None, []) if not source.text.lstrip().startswith("{") else compose_json(source)
        if root is None:
            root, findings = compose_yaml(source)
    if findings:
        raise error(sorted(findings, key=lambda finding: finding.where or Where(1, 1)))
    if root is None or (root.kind == "scalar" and root.value is None and not root.raw):
        help_ = "`dagsched init` writes a starter"
        raise error([Diagnostic("P002", "the file is empty", Where(1, 1), source, help=help_)])
    return root
