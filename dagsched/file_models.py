"""What a file may hold is said once, in pydantic models; this turns their complaints into messages with places.

Models derive from :class:`FileModel`: unknown keys are refused and nothing is converted silently. A union whose
members are models must pick its member by a discriminator, and names its members' tags in parentheses (``(copy)``),
so that a complaint talks about the member that the user meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from dagsched.diagnostics import Diagnostic, Source, Where, closest
from dagsched.nodes import Node, node_at, place_of

_T = TypeVar("_T")
if TYPE_CHECKING:
    Given: TypeAlias = _T | None
else:
    Given = Annotated[_T, "given"]
"""A key that may be left out but not be null: None in the code where it is absent, no null in the schema."""


def absent() -> Any:
    """The default of a :data:`Given` field."""
    return None


class FormCodes(NamedTuple):
    """The codes of a language's three mistakes of form."""

    unknown_key: str
    missing_key: str
    wrong_value: str


class FileModel(BaseModel):
    """A mapping of a file: no other keys than the fields, no conversions, nothing infinite."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    _models: ClassVar[dict[str, type[FileModel]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        FileModel._models[cls.__name__] = cls


def complaint(
    message: str, *, remedy: str | None = None, key: str | None = None, code: str | None = None
) -> PydanticCustomError:
    """An error for a validator to raise: a headline, a change to type, and the key of a mapping that is at fault."""
    context: dict[str, Any] = {"headline": message, "help": remedy, "key": key, "code": code}
    return PydanticCustomError("complaint", "{headline}", context)


def kind_of(value: Any, kinds: Sequence[str]) -> str | None:
    """The key of a mapping that says what it is, or None."""
    return next((kind for kind in kinds if isinstance(value, dict) and kind in value), None)


def require_kind(
    value: dict[str, Any], kinds: Sequence[str], others: frozenset[str], *, one: str, article: str, example: str
) -> str:
    """The one key of ``kinds`` that a mapping has; raises a complaint where it has none or several.

    ``others`` are the keys that say something else, ``one`` what such a mapping is called, ``example`` a right one.
    """
    found = [kind for kind in kinds if kind in value]
    if len(found) > 1:
        named = " and ".join(f"`{kind}`" for kind in found)
        remedy = f"make them {one}s of their own"
        raise complaint(f"one {one} cannot be {named} at once", remedy=remedy, key=found[1])
    if not found:
        guesses = [(str(key), closest(str(key), kinds)) for key in value if key not in others]
        guess = next(((key, near) for key, near in guesses if near), None)
        listed = ", ".join(f"`{kind}`" for kind in kinds[:-1])
        headline = f"{article} {one} needs one of {listed} or `{kinds[-1]}`"
        remedy = f"write `{guess[1]}` for `{guess[0]}`" if guess else f"for example `{example}`"
        raise complaint(headline, remedy=remedy, key=guess[0] if guess else None)
    return found[0]


def diagnostics_from(error: ValidationError, node: Node, source: Source, code: str | FormCodes) -> list[Diagnostic]:
    """Everything that pydantic found, as messages with places, in the file's order.

    ``node`` is what was validated (as ``to_data(node)``). Complaints of several members of a union about one value
    become one message, and so do a misspelt key and the key that it leaves missing.
    """
    codes = code if isinstance(code, FormCodes) else FormCodes(code, code, code)
    root = FileModel._models.get(error.title)
    groups: dict[tuple[str | int, ...], list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        groups.setdefault(_real_path(node, detail), []).append(detail)
    misspelt = {
        (*path[:-1], _nearest_key(root, details[0]))
        for path, details in groups.items()
        if details[0]["type"] == "extra_forbidden"
    }
    found = [
        _diagnostic(path, details, node, source, codes, root)
        for path, details in groups.items()
        if not (details[0]["type"] == "missing" and path in misspelt)
    ]
    return sorted(found, key=lambda diagnostic: diagnostic.where or Where(1, 1))


def _real_path(node: Node, detail: ErrorDetails) -> tuple[str | int, ...]:
    """The steps of ``loc`` that the file has, and the key that it lacks."""
    path: list[str | int] = []
    loc = detail["loc"]
    for position, step in enumerate(loc):
        if isinstance(step, int) and node.kind == "sequence" and step < len(node.items):
            node = node.items[step]
        elif isinstance(step, str) and step in node.by_key:
            node = node.by_key[step][1]
        elif not (position == len(loc) - 1 and (detail["type"] == "missing" or step == "[key]")):
            continue
        path.append(step)
    return tuple(path)


def _diagnostic(
    path: tuple[str | int, ...],
    details: Sequence[ErrorDetails],
    node: Node,
    source: Source,
    codes: FormCodes,
    root: type[FileModel] | None,
) -> Diagnostic:
    first = details[0]
    if first["type"] == "extra_forbidden":
        return _unknown_key(path, first, node, source, codes, root)
    if first["type"] == "missing":
        return _missing_key(path, first, node, source, codes, root)
    found, key = node_at(node, path)
    custom = next((detail for detail in details if detail["type"] == "complaint"), None)
    if custom is not None:
        context = custom["ctx"]
        at_fault = found.key(context["key"]) if context["key"] is not None else None
        where = at_fault.where if at_fault is not None else place_of(node, path)
        chosen = context["code"] or codes.wrong_value
        return Diagnostic(chosen, context["headline"], where, source, help=context["help"])
    expected = _either(_expected(detail) for detail in details)
    missing_value = found.kind == "scalar" and found.raw == "" and not found.quoted and key is not None
    where = key.where if missing_value and key is not None else place_of(node, path)
    empty = any(detail["type"] == "string_too_short" for detail in details)
    said = "must not be empty" if empty else f"must be {expected}, not {found.describe()}"
    headline = f"{_path_text(path)} {said}"
    return Diagnostic(codes.wrong_value, headline, where, source, help=_help(path, first, found, root))


def _unknown_key(
    path: tuple[str | int, ...],
    detail: ErrorDetails,
    node: Node,
    source: Source,
    codes: FormCodes,
    root: type[FileModel] | None,
) -> Diagnostic:
    name = str(path[-1])
    _, key = node_at(node, path)
    known = _keys(_model_at(root, detail["loc"][:-1]))
    near = _nearest_key(root, detail)
    place = f" in {_path_text(path[:-1])}" if path[:-1] else ""
    notes = (f"known here: {', '.join(f'`{k}`' for k in known)}",) if known else ()
    help_ = f"write `{near}`" if near else f"remove `{name}`"
    where = key.where if key else place_of(node, path)
    return Diagnostic(codes.unknown_key, f"unknown key `{name}`{place}", where, source, (), notes, help_)


def _nearest_key(root: type[FileModel] | None, detail: ErrorDetails) -> str | None:
    """The key that an unknown one is nearest to."""
    return closest(str(detail["loc"][-1]), _keys(_model_at(root, detail["loc"][:-1])))


def _missing_key(
    path: tuple[str | int, ...],
    detail: ErrorDetails,
    node: Node,
    source: Source,
    codes: FormCodes,
    root: type[FileModel] | None,
) -> Diagnostic:
    holder, key = node_at(node, path[:-1])
    where = key.where if key is not None else holder.where
    example = _example(*_walk(root, detail["loc"])[1:])
    help_ = f"add `{path[-1]}: {example}`" if example else f"add `{path[-1]}: ...`"
    headline = f"{_path_text(path[:-1])} lacks the key `{path[-1]}`"
    return Diagnostic(codes.missing_key, headline, where, source, help=help_)


def _path_text(path: Sequence[str | int]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text and step != "[key]" else str(step)
    return f"`{text}`" if text else "the file"


_EXPECTED = {
    "string_type": "a text",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "`true` or `false`",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "nothing",
}
_BOUNDS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def _expected(detail: ErrorDetails) -> str:
    """What a value should have been, as the end of ``must be ...``."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"{words} {context[bound]:,}"
    if kind in ("literal_error", "enum"):
        return str(context["expected"]).replace("'", "`")
    if kind in ("too_short", "too_long"):
        few = kind == "too_short"
        return f"a list of at {'least' if few else 'most'} {context['min_length' if few else 'max_length']}"
    if kind == "string_too_long":
        return f"a text of at most {context['max_length']} characters"
    if kind == "recursion_loop":
        return "less deeply nested"
    return detail["msg"].removeprefix("Input should be ").removeprefix("Value error, ")


def _either(texts: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(texts))
    return distinct[0] if len(distinct) == 1 else f"{', '.join(distinct[:-1])} or {distinct[-1]}"


_MEANT = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


def _help(path: Sequence[str | int], detail: ErrorDetails, found: Node, root: type[FileModel] | None) -> str | None:
    """A change that the user can type."""
    kind = detail["type"]
    if kind == "string_type" and found.kind == "scalar" and found.value is not None and path:
        return f'write "{found.raw}" in quotes if this text is meant'
    if kind == "string_type" and found.kind == "mapping" and any("[" in key for key in found.by_key):
        return "put quotes around an access that holds `: `"
    if kind == "bool_type" and found.raw.lower() in _MEANT:
        return f"write `{_MEANT[found.raw.lower()]}`"
    if kind == "literal_error" and isinstance(found.value, str):
        options = str(detail["ctx"]["expected"]).replace(" or ", ", ").replace("'", "").split(", ")
        near = closest(found.value.lower(), options)
        if near:
            return f"write `{near}`"
    if kind == "list_type" and found.kind == "scalar" and isinstance(found.value, str) and path:
        return f"write `{path[-1]}: [{found.raw}]`"
    named = [step for step in path if isinstance(step, str)]
    example = _example(*_walk(root, detail["loc"])[1:])
    return f"for example `{named[-1]}: {example}`" if example and named else None


def _example(field: FieldInfo | None, entries: int) -> str | None:
    """The field's example, or that of an entry of the mapping that the field holds."""
    if field is None or not field.examples:
        return None
    example = field.examples[0]
    if entries and isinstance(example, dict):
        example = next(iter(example.values()))
    return _flow(example)


def _flow(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return "null" if value is None else str(value)


def _keys(model: type[FileModel] | None) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def _model_at(root: type[FileModel] | None, loc: Sequence[str | int]) -> type[FileModel] | None:
    """The model that describes the mapping at a pydantic ``loc``, or None where it is no model."""
    return _only_model(_walk(root, loc)[0])


def _walk(root: type[FileModel] | None, loc: Sequence[str | int]) -> tuple[Any, FieldInfo | None, int]:
    """What describes the value at a pydantic ``loc``: its type, the field that holds it, and how many keys below it."""
    annotation: Any = root
    field: FieldInfo | None = None
    entries = 0
    for step in loc:
        tagged = _member(annotation, step)
        if tagged is not None:
            annotation = tagged
            continue
        model = _only_model(annotation)
        if model is not None:
            found = next((f for name, f in model.model_fields.items() if step in (name, f.alias)), None)
            if found is None and step != "[key]" and not _is_member(step):
                return None, None, 0
            if found is not None:
                annotation, field, entries = found.annotation, found, 0
            continue
        inner = _inner(annotation, step)
        if inner is not None:
            annotation = inner
            entries += isinstance(step, str)
    return annotation, field, entries


def _is_member(step: str | int) -> bool:
    return isinstance(step, str) and step.startswith("(")


def _members(annotation: Any) -> list[Any]:
    """The members of a union, annotations kept."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        return [member for member in get_args(annotation) if member is not NoneType]
    return [annotation]


def _member(annotation: Any, step: str | int) -> Any | None:
    """The member of a union whose tag is ``step``."""
    for member in _members(annotation):
        if get_origin(member) is Annotated and any(isinstance(m, Tag) and m.tag == step for m in get_args(member)[1:]):
            return get_args(member)[0]
    return None


def _only_model(annotation: Any) -> type[FileModel] | None:
    models = []
    for member in _members(annotation):
        bare = get_args(member)[0] if get_origin(member) is Annotated else member
        if isinstance(bare, type) and issubclass(bare, FileModel):
            models.append(bare)
    return models[0] if len(models) == 1 else None


def _inner(annotation: Any, step: str | int) -> Any | None:
    """The type of a list's items or of a mapping's values."""
    for member in _members(annotation):
        bare = get_args(member)[0] if get_origin(member) is Annotated else member
        if isinstance(step, int) and get_origin(bare) in (list, tuple):
            return get_args(bare)[0]
        if isinstance(step, str) and get_origin(bare) is dict:
            return get_args(bare)[1]
    return None
