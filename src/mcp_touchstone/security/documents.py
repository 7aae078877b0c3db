"""Contents of files by their suffix: rows of ``security_suite/documents.toml``."""

import functools
import io
import json
import re
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final
from xml.sax.saxutils import escape

from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.samples.from_schema import words

NAME: Final = "documents.toml"

_NAMED: Final = re.compile(r"(?<![\w/}\])])\*?(\.[a-z][a-z0-9]{1,11})(?![\w.(/])", re.IGNORECASE)
"""A suffix as definitions and refusals name it: alone, quoted, or after a star."""

_PLAIN: Final = frozenset({".txt", ".com", ".org", ".net", ".io", ".env", ".git", ".js", ".exe"})
"""Words with a dot that do not indicate the files of a tool."""


@dataclass(frozen=True, slots=True)
class Document:
    """The content of files with one suffix.

    Attributes:
        suffix: the suffix, with its dot, in lower case.
        words: words in a definition that suggest it.
        content: the content; placeholders stand for the text.
        parts: members of a zip archive and their contents; empty for other files.
        values: arguments that fit the content: name -> value.
    """

    suffix: str
    words: frozenset[str] = frozenset()
    content: str = "{text}"
    parts: Mapping[str, str] | None = None
    values: Mapping[str, Any] | None = None

    def holding(self, text: str) -> bytes:
        """Return the content of a file that contains a text."""
        if not self.parts:
            return _filled(self.content, text).encode()
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
            for name, part in self.parts.items():
                archive.writestr(zipfile.ZipInfo(name), _filled(part, text))
        return made.getvalue()


def _filled(template: str, text: str) -> str:
    line = text.split("\n", 1)[0]
    values = {
        "text": text,
        "line": line,
        "json": json.dumps(text)[1:-1],
        "xml": escape(text.rstrip("\n")),
        "length": str(len(line) + len("BT /F1 8 Tf 9 99 Td () Tj ET\n")),
    }
    return re.sub(r"\{(text|line|json|xml|length)\}", lambda found: values[found[1]], template)


@dataclass(frozen=True, slots=True)
class Documents:
    """All rows of the file."""

    rows: tuple[Document, ...] = ()

    def of(self, suffix: str) -> Document:
        """Return the document of a suffix; plain text if the suffix is unknown."""
        return next((row for row in self.rows if row.suffix == suffix.lower()), Document(suffix))

    def holding(self, path: PurePath | SafePath, text: str) -> bytes:
        """Return the content of a file that contains a text, in the format of its suffix."""
        return self.of(path.suffix).holding(text)

    def suggested(self, text: str) -> Iterator[str]:
        """Yield the suffixes that a definition or a refusal names, then those it suggests."""
        named = [found[1].lower() for found in _NAMED.finditer(text)]
        known = [row.suffix for row in self.rows if row.words & {*words(text)}]
        every = {row.suffix for row in self.rows}
        ranked = [*(one for one in named if one in every), *named, *known]
        yield from (one for one in dict.fromkeys(ranked) if one not in _PLAIN)


@functools.cache
def load(folder: Path) -> Documents:
    """Return the documents of a folder; it is read once."""
    rows = tomllib.loads((folder / NAME).read_text(encoding="utf-8"))["document"]
    return Documents(
        tuple(Document(**{**row, "words": frozenset(row.get("words", ()))}) for row in rows)
    )
