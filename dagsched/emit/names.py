"""Names from a file are data: identifiers, literals, comments and file names that cannot break, or break out of, code.

What C++ and Python refuse differs: a :class:`Language` says which texts cannot stand as they are. Invariants: distinct
texts get distinct identifiers within one scope; the same texts in the same order get the same identifiers; whatever the
text holds, the result is ASCII on one line (comments keep printable Unicode).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

MAX_LENGTH = 64
"""Identifiers and file names are cut here; compilers and file systems have limits, and readers too."""

KEYWORDS: frozenset[str] = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
    co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
    double dynamic_cast else enum explicit export extern false final float for friend goto if import inline int long
    module mutable namespace new noexcept not not_eq nullptr operator or or_eq override private protected public
    register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile
    wchar_t while xor xor_eq
    """.split()  # noqa: SIM905  (a list of 97 quoted words would be harder to read)
)
"""Keywords of C++ up to C++26, with the words that have a meaning in some places only."""

_WORDS = frozenset(
    """
    alloca assert dim3 errno far fileno getc huge i386 interface isfinite isinf isnan issubnormal linux major makedev
    max min minor near offsetof putc sched_priority signbit small stderr stdin stdout std unix vector
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t intptr_t uintptr_t main
    """.split()  # noqa: SIM905
)
"""Names that headers define as macros, or that emitted code itself uses unqualified."""

_FAMILIES = re.compile(
    r"acl|ACL|cuda|CUDA|hip|HIP|ASCEND|DAGSCHED|GE_|INC_|ATOMIC_|CLOCK|CLONE_|CPU_|CSIGNAL|EXIT_|FD_|FP_|HUGE_|LC_|"
    r"L_(ctermid|cuserid|tmpnam)|M_|MATH_|PTHREAD_|RENAME_|SCHED_|SEEK_|SIG|SNAN|STA_|TIMER_|TIME_UTC|MOD_|ADJ_|[hlb]e(16|32|64)toh|"
    r"hto[bl]e|strdupa|strndupa|pthread_|(E[A-Z0-9]{2,}|W[A-Z]+|[A-Z0-9_]*_(MAX|MIN|WIDTH|ENDIAN)|BUFSIZ|BYTE_ORDER|"
    r"DOMAIN|ERROR|FALSE|I|IN|INFINITY|MAXFLOAT|NAN|NFDBITS|NULL|OPTIONAL|OUT|OVERFLOW|P_tmpdir|TRUE|U?INT\w*_C|"
    r"UNDERFLOW|WIN32)$"
)
"""Names that begin like the runtime's own, and families of macros of the C library, Linux and Windows."""

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Language:
    """Texts that are no identifiers of a language, or unwise ones: words, and families by their beginning."""

    words: frozenset[str]
    families: re.Pattern[str]


CPP = Language(KEYWORDS | _WORDS, _FAMILIES)
PYTHON = Language(
    frozenset(
        """
        False None True and as assert async await break case class cls continue def del elif else except finally for
        from global if import in is lambda match mro nonlocal not or pass raise return self try type while with yield
        acl bool bytes ctypes dict float int isinstance len list max memoryview min object range str super tuple
        """.split()  # noqa: SIM905
    ),
    re.compile(r"(?!)"),  # no Python name is reserved by how it begins: underscores are spelt away
)


def is_safe_identifier(text: str, reserved: frozenset[str] = frozenset(), language: Language = CPP) -> bool:
    """Whether a text can stand in the language as it is: no keyword, no macro, nothing that is reserved."""
    return (
        _PLAIN.fullmatch(text) is not None
        and len(text) <= MAX_LENGTH
        and text not in language.words
        and text not in reserved
        and language.families.match(text) is None
    )


def identifiers(texts: Iterable[str], reserved: Iterable[str] = (), language: Language = CPP) -> dict[str, str]:
    """An identifier for each text of one scope, in which ``reserved`` are taken.

    Texts that are identifiers keep their own name wherever they stand; the others are spelt in ASCII
    (``a b`` becomes ``a_b``, ``class`` becomes ``class_``) and numbered where that name is taken.
    """
    wanted = list(dict.fromkeys(texts))
    unusable = frozenset(reserved)
    names = {text: text for text in wanted if is_safe_identifier(text, unusable, language)}
    taken = set(names)
    for text in wanted:
        if text in names:
            continue
        base = _spell(text, unusable, language)
        name, number = base, 2
        while name in taken or name in unusable:
            name, number = f"{base.rstrip('_')}_{number}", number + 1
        names[text] = name
        taken.add(name)
    return {text: names[text] for text in wanted}


def _spell(text: str, reserved: frozenset[str], language: Language) -> str:
    """The nearest safe identifier; a letter outside ASCII becomes its code point."""
    letters = []
    for letter in unicodedata.normalize("NFKD", text)[: 4 * MAX_LENGTH]:
        if letter.isascii():
            letters.append(letter if letter.isalnum() else "_")
        elif not unicodedata.combining(letter):
            letters.append(f"_u{ord(letter):x}_" if letter.isalnum() else "_")
    name = re.sub(r"_+", "_", "".join(letters)).strip("_")[: MAX_LENGTH - 8].strip("_")
    if not name:
        name = "unnamed"
    if name[0].isdigit():
        name = f"n{name}"
    if is_safe_identifier(name, reserved, language):
        return name
    # A longer name may leave a macro family (``EOF_`` does, ``aclInit_`` does not).
    return f"{name}_" if language.families.match(f"{name}_") is None else f"x_{name}"


def file_stem(name: str) -> str:
    """A file name without its ending: letters, digits, ``.``, ``_``, ``-``; never hidden, a path or an option."""
    ascii_name = unicodedata.normalize("NFKD", name)
    kept = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else _stem_letter(letter)
        for letter in ascii_name[: 4 * MAX_LENGTH]
    )
    stem = re.sub(r"_+", "_", kept).strip("._-")[:MAX_LENGTH].rstrip("._-")
    if not stem:
        return "unnamed"
    if re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", stem):  # devices on Windows
        return f"{stem.replace('.', '_')}_plan"
    return stem


def _stem_letter(letter: str) -> str:
    if unicodedata.combining(letter):
        return ""
    return f"_u{ord(letter):x}_" if letter.isalnum() and not letter.isascii() else "_"


def cpp_string(text: str) -> str:
    """A string literal that holds the text as UTF-8, quotes included (octal escapes: they end after three digits)."""
    parts = []
    for byte in text.encode("utf-8", "backslashreplace"):
        letter = chr(byte)
        if letter in '"\\':
            parts.append(f"\\{letter}")
        elif letter == "?" and parts and parts[-1] in ("?", "\\?"):  # no trigraph
            parts.append("\\?")
        elif 0x20 <= byte < 0x7F:
            parts.append(letter)
        else:
            parts.append(f"\\{byte:03o}")
    return '"' + "".join(parts) + '"'


def printable(text: str) -> str:
    """The text on one line; what is not printable becomes ``<U+000A>``."""
    return "".join(letter if letter.isprintable() else f"<U+{ord(letter):04X}>" for letter in text)


def cpp_comment(text: str) -> str:
    """The text on one line, fit for ``//`` and ``/* */``; what is not printable becomes ``<U+000A>``.

    Nothing ends the comment early (``*/``), opens another (``/*``), or takes the next line into it (a backslash, or
    the trigraph for one, at the end).
    """
    shown = printable(text).replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")
    return f"{shown}." if shown.rstrip().endswith("\\") else shown
