"""The values of a JSON, TOML or YAML text, with their places in it. Pure.

Whoever edits these places leaves all other bytes of the text as they are.
"""

import json
import re
import tomllib
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.config.client_files import plain
from mcp_touchstone.runtime.input_file import DEEPEST, LARGEST_TOML, parsed_toml


@dataclass(slots=True)
class Node:
    """A value.

    Attributes:
        start: the place of its first character.
        end: the place after its last character.
        value: members by name, items, a string; None for all else.
        inline: whether its members are in brackets, with commas.
    """

    start: int
    end: int
    value: Any
    inline: bool = True

    @property
    def members(self) -> dict[str, "Node"]:
        """Its members; empty if it is no mapping."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list["Node"]:
        """Its items; empty if it is no list."""
        return self.value if isinstance(self.value, list) else []


def parse(text: str, syntax: str, where: str, cure: str) -> Node:
    """Return the values of a text.

    Args:
        syntax: ``json`` (with comments and trailing commas), ``toml`` or ``yaml``.
        where: name of the file.
        cure: what to do if it cannot be read.

    Raises:
        InputError: it cannot be read.
    """
    try:
        if syntax == "toml":
            return _toml(text, parsed_toml(text, where, cure))
        return _yaml(text) if syntax == "yaml" else _json(text)
    except InputError:
        raise
    except RecursionError:
        raise InputError(f"{where}: it is nested too deeply; {cure}") from None
    except (ValueError, IndexError) as error:
        why = str(error) or "it ends too early"
        raise InputError(f"{where}: invalid {syntax.upper()}: {why}; {cure}") from error


# --- JSON

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_SCALAR: Final = json.JSONDecoder(parse_int=len, parse_float=len)
"""Reads strings and words; the values of numbers are not needed."""


def _json(text: str) -> Node:
    text = plain(text)
    found = _json_value(text, _past(_SPACE, text, 0), 0)
    end = _past(_SPACE, text, found.end)
    if end != len(text):
        raise json.JSONDecodeError("there is more after the value", text, end)
    return found


def _json_value(text: str, start: int, depth: int) -> Node:
    if depth > DEEPEST:
        raise RecursionError
    close = {"{": "}", "[": "]"}.get(text[start : start + 1])
    if close is None:
        value, end = _SCALAR.raw_decode(text, start)
        return Node(start, end, value if isinstance(value, str) else None)
    members: dict[str, Node] = {}
    items: list[Node] = []
    at = _past(_SPACE, text, start + 1)
    while text[at] != close:
        name = ""
        if close == "}":
            name, at = _SCALAR.raw_decode(text, at)
            at = _past(_SPACE, text, at)
            if not isinstance(name, str) or text[at] != ":":
                raise json.JSONDecodeError("no name and colon", text, at)
            at = _past(_SPACE, text, at + 1)
        one = _json_value(text, at, depth + 1)
        members[name] = one
        items.append(one)
        at = _past(_SPACE, text, one.end)
        if text[at] == ",":
            at = _past(_SPACE, text, at + 1)
        elif text[at] != close:
            raise json.JSONDecodeError("no comma", text, at)
    return Node(start, at + 1, members if close == "}" else items)


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


# --- TOML (https://toml.io/en/v1.0.0): `tomllib` knows no places

_BETWEEN: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_DOT: Final = re.compile(r"[ \t]*\.[ \t]*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRING: Final = re.compile(
    r'"""(?:\\[\s\S]|[^\\])*?"""(?!")'
    r"|'''[\s\S]*?'''(?!')"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
)
_OTHER: Final = re.compile(r"[^,\]}#\r\n]+")


def _toml(text: str, document: dict[str, Any]) -> Node:
    top = table = Node(0, len(text), {}, inline=False)
    at = _past(_BETWEEN, text, 0)
    while at < len(text):
        if text[at] == "[":
            brackets = 2 if text[at + 1] == "[" else 1
            names, at = _toml_key(text, _past(_BETWEEN, text, at + brackets))
            at = _past(_BETWEEN, text, at) + brackets
            table = _toml_table(top, names)
            if brackets == 2:  # noqa: PLR2004  (the last one of an array is open)
                table.value = {}
        else:
            names, at = _toml_key(text, at)
            at = _past(_BETWEEN, text, _past(_BETWEEN, text, at) + 1)
            one = _toml_value(text, at, 0)
            _toml_table(table, names[:-1]).value[names[-1]] = one
            at = one.end
        at = _past(_BETWEEN, text, at)
    if not _agree(top, document):
        raise ValueError("its tables are not understood")
    return top


def _toml_table(top: Node, names: list[str]) -> Node:
    for name in names:
        top = top.value.setdefault(name, Node(0, 0, {}, inline=False))
    return top


def _toml_key(text: str, at: int) -> tuple[list[str], int]:
    names: list[str] = []
    while True:
        found = _STRING.match(text, at) or _BARE.match(text, at)
        if found is None:
            raise ValueError(f"no key at character {at}")
        names.append(_toml_text(found[0]) if found[0][0] in "\"'" else found[0])
        at = found.end()
        dot = _DOT.match(text, at)
        if dot is None:
            return names, at
        at = dot.end()


def _toml_text(literal: str) -> str:
    found: str = tomllib.loads(f"v = {literal}")["v"]
    return found


def _toml_value(text: str, start: int, depth: int) -> Node:
    if depth > DEEPEST:
        raise RecursionError
    string = _STRING.match(text, start)
    if string is not None:
        return Node(start, string.end(), _toml_text(string[0]))
    close = {"{": "}", "[": "]"}.get(text[start])
    if close is None:
        return Node(start, _past(_OTHER, text, start), None)
    found = Node(start, start, {} if close == "}" else [])
    at = _past(_BETWEEN, text, start + 1)
    while text[at] != close:
        names: list[str] = []
        if close == "}":
            names, at = _toml_key(text, at)
            at = _past(_BETWEEN, text, _past(_BETWEEN, text, at) + 1)
        one = _toml_value(text, at, depth + 1)
        if close == "}":
            _toml_table(found, names[:-1]).value[names[-1]] = one
        else:
            found.value.append(one)
        at = _past(_BETWEEN, text, one.end)
        at = _past(_BETWEEN, text, at + 1) if text[at] == "," else at
    found.end = at + 1
    return found


def _agree(node: Node, value: Any) -> bool:
    """Return whether the values that were found are those of the real parser."""
    if isinstance(node.value, dict):
        value = value[-1] if isinstance(value, list) else value
        return node.value.keys() == value.keys() and all(
            _agree(one, value[name]) for name, one in node.value.items()
        )
    if isinstance(node.value, list):
        return len(node.value) == len(value) and all(map(_agree, node.value, value))
    return node.value is None or node.value == value


# --- YAML


def _yaml(text: str) -> Node:
    try:
        import yaml  # noqa: PLC0415  (an extra)
    except ImportError:
        raise ValueError("the extra `yaml` reads it: pip install 'mcp-touchstone[yaml]'") from None
    known: dict[int, Node] = {}  # an alias is the same object again

    def node(found: yaml.Node) -> Node:
        one = known.get(id(found))
        if one is None:
            one = Node(found.start_mark.index, found.end_mark.index, None)
            known[id(found)] = one
            if isinstance(found, yaml.MappingNode):
                pairs = [(key, node(value)) for key, value in found.value]
                one.value = {key.value: value for key, value in pairs if _is_scalar(key)}
            elif isinstance(found, yaml.SequenceNode):
                one.value = [node(item) for item in found.value]
            elif found.tag == "tag:yaml.org,2002:str":
                one.value = found.value
            one.inline = getattr(found, "flow_style", None) is True
        return one

    def _is_scalar(key: yaml.Node) -> bool:
        return isinstance(key, yaml.ScalarNode)

    if len(text) > LARGEST_TOML:
        raise ValueError(f"it has more than {LARGEST_TOML:,} characters")
    brackets = (1 if one in "[{" else -1 for one in re.findall(r"[\[\]{}]", text))
    if max(accumulate(brackets), default=0) > DEEPEST:  # PyYAML takes long to notice
        raise RecursionError
    try:
        found = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    if found is None:
        raise ValueError("it is empty")
    return node(found)
