"""URIs as attacks: what a caller may write where a server reads files as resources.

A URI is a path in another coat: it has a host, a query and a fragment, and every character may be
written by its number. What is checked and what is opened have to be the same reading of it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import quote

from mcp_touchstone.attack import reach
from mcp_touchstone.attack.aimer import Shot
from mcp_touchstone.attack.bindings import Binding, Operation
from mcp_touchstone.attack.payload import Payload
from mcp_touchstone.attack.siege import Siege

FILE: Final = "file:"


def _every(text: str) -> str:
    return quote(text, safe="")


def _twice(text: str) -> str:
    return quote(quote(text, safe=""), safe="")


def _dots(text: str) -> str:
    return text.replace(".", "%2e")


WRITTEN: Final[tuple[Callable[[str], str], ...]] = (str, _every, _dots, _twice)
"""Ways to write a path into a URI: as it is, every character but the plain ones by its number,
the dots, and all of it a second time. The usual way is fired with the paths of tools."""


class Uris:
    """Resources, under attack."""

    def __init__(self, siege: Siege) -> None:
        self._siege = siege
        self._field = siege.field

    def name_files(self, threat: str, *groups: str) -> None:
        """Read ``file:`` URIs of every form, whatever the resources of the server are called."""
        rows = [row for row in self._rows(*groups, via="uri") if row.expect == "deny"]
        named = [row for row in rows if not row.is_fetched]
        self._siege.judge_shots(threat, self._verbatim(named))

    def fill_templates(self, threat: str, *groups: str) -> None:
        """Put paths that lead outside where a resource has its path, written in every way."""
        self._siege.judge_shots(threat, self._filled(self._rows(*groups)))

    def name_denied(self, threat: str, *groups: str) -> None:
        """Read denied files by URIs, written in every way."""
        self._siege.deny()
        self._siege.judge_shots(threat, self._filled(self._rows(*groups)))

    def _rows(self, *groups: str, via: str = "path") -> list[Payload]:
        rows = self._siege.payloads(*groups, via=via)
        return [row for row in rows if row.operation == "read"]

    def _resources(self) -> list[Binding]:
        return [b for b in self._siege.bindings.of(Operation.READ) if b.uri]

    def _verbatim(self, rows: Iterable[Payload]) -> Iterator[Shot]:
        for row, text in self._field.each(rows):
            live = reach.aim(row, text, self._field) is not None
            for binding in self._resources()[:1]:
                yield Shot(row, text, binding, ("resources/read", {"uri": text}), live)

    def _filled(self, rows: Iterable[Payload]) -> Iterator[Shot]:
        for row, text in self._field.each(rows):
            if reach.aim(row, text, self._field) is None:
                continue
            for binding in self._resources():
                if text.startswith(FILE):
                    yield Shot(row, text, binding, ("resources/read", {"uri": text}), live=True)
                    continue
                spelled = binding.spelled(text, str(self._field.root))
                for uri in dict.fromkeys(binding.uri + write(spelled) for write in WRITTEN):
                    yield Shot(row, text, binding, ("resources/read", {"uri": uri}), live=True)
