"""What a gateway is meant to change, as ``--expects`` says it; all else must arrive."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.parts.second import SECOND
from mcp_touchstone.parts.upstream import DATA, Upstream
from mcp_touchstone.wire.framing import value_in

KINDS: Final = ("prefix", "uris", "hides", "adds", "drops", "revision")
"""What a gateway may be meant to do, each with a value."""

PLACES: Final = re.compile(r"\{(?:uri|scheme|rest)\}")
"""The places for a URI of our server in that of a gateway."""

FORMS: Final = (["{uri}"], ["{rest}", "{scheme}"])
"""The places that one text has."""

URIS: Final = ("uri", "uriTemplate")
"""Members with the URI of a resource."""

KNOWN: Final[Mapping[str, Sequence[str]]] = {
    "hides": [one["name"] for one in (*DATA["tools"], *DATA["further"])],
    "drops": [*Upstream.capabilities, "tasks"],
    "revision": rev.ALL,
}
"""Kind -> its values: the tools and the capabilities of our server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a gateway is meant to change.

    Attributes:
        prefix: what it puts before the names of tools and prompts.
        uris: what it makes of the URIs of resources: a text with ``{uri}``, or with ``{scheme}``
            and ``{rest}``; empty if they stay.
        further: the same for those of further servers.
        foreign: the beginnings of the names of all that further servers have.
        hides: tools that it does not pass on.
        adds: tools of its own.
        drops: capabilities that it does not pass on.
        revision: the only revision that it speaks; empty for any.
        transparent: whether nothing else may change: a change is then a failure.
    """

    prefix: str = ""
    uris: str = ""
    further: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    hides: frozenset[str] = frozenset()
    adds: frozenset[str] = frozenset()
    drops: frozenset[str] = frozenset()
    revision: str = ""
    transparent: bool = False

    @classmethod
    def read(cls, words: Iterable[str]) -> "Expected":
        """Read the words of ``--expects``.

        Raises:
            ValueError: a word is unknown.
        """
        found = cls()
        for word in words:
            name, sign, value = word.partition("=")
            if word == "transparent":
                found = replace(found, transparent=True)
            elif not (sign and value) or name not in KINDS:
                known = ", ".join(f"{one}=..." for one in KINDS)
                raise ValueError(f"{word!r} is none of {known}, transparent")
            elif name in KNOWN and value not in KNOWN[name]:
                raise ValueError(f"{word!r}: {value!r} is none of {', '.join(KNOWN[name])}")
            elif name == "uris" and sorted(PLACES.findall(value)) not in FORMS:
                raise ValueError(f"{word!r} has neither {{uri}} once, nor {{scheme}} and {{rest}}")
            elif name == "prefix" and found.prefix:
                found = replace(found, further=(*found.further, value))
            elif name in {"prefix", "uris", "revision"}:
                found = replace(found, **dict[str, Any]([(name, value)]))
            else:
                found = replace(found, **dict[str, Any]([(name, getattr(found, name) | {value})]))
        return found

    def uri(self, own: str) -> str:
        """Return a URI of our server as the gateway has it."""
        scheme, _, rest = own.partition("://")
        parts = {"{uri}": own, "{scheme}": scheme, "{rest}": rest}
        return PLACES.sub(lambda found: parts[found[0]], self.uris) or own

    def ours(self, value: Any) -> Any:
        """Return what the gateway says with the URIs of our server."""
        if not self.uris:
            return value
        if isinstance(value, list):
            return [self.ours(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {
            name: self._own_uri(one) if name in URIS and isinstance(one, str) else self.ours(one)
            for name, one in value.items()
        }

    def _own_uri(self, uri: str) -> str:
        pattern = PLACES.sub(lambda found: f"\0{found[0][1:-1]}\0", self.uris)
        texts = pattern.split("\0")
        whole = "".join(f"(?P<{t}>.*?)" if n % 2 else re.escape(t) for n, t in enumerate(texts))
        found = re.fullmatch(whole, uri, re.DOTALL)
        if found is None:
            return uri
        parts = found.groupdict()
        return parts.get("uri") or f"{parts['scheme']}://{parts['rest']}"

    @property
    def second_prefix(self) -> str:
        """What the names of the second server begin with."""
        return self.further[0] if self.further else SECOND

    def kept(self, items: list[Any]) -> list[Any]:
        """Return the items of a list of our server that must arrive."""
        return [one for one in items if value_in(one, "name") not in self.hides]

    def own(self, items: list[Any]) -> list[Any]:
        """Return the items of a list of the gateway that are ours, by our names."""
        found = []
        for one in items:
            name = value_in(one, "name")
            if not isinstance(name, str):
                found.append(one)
            elif name not in self.adds and not name.startswith(tuple(self.foreign)):
                found.append({**one, "name": name.removeprefix(self.prefix)})
        return found
