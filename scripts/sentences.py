"""The normative sentences of the specification, and what becomes of each: ``sentences.csv``.

A row has the digest of a sentence and no word of it; ``scripts/spec_watch.py`` names the sentences
of a checkout that have no row. A sentence is normative if it has a key word of BCP 14 in capitals.
An item of a list is one if the sentence that introduces the list has a key word; the two are one
sentence then.
"""

import csv
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from mcp_touchstone.catalog import revision as rev

DATA: Final = Path(__file__).with_name("sentences.csv")
LEFT_OUT: Final = ("changelog", "schema")
"""Pages that repeat what other pages, or the schemas, say."""

_WORD: Final = re.compile(
    r"\b((?:MUST|SHALL|SHOULD)(?: NOT)?|REQUIRED|(?:NOT )?RECOMMENDED|MAY|OPTIONAL)\b"
)
_HEADING: Final = re.compile(r"#{1,6} +(.+)")
_ITEM: Final = re.compile(r"( *)(?:[-*+]|\d+\.) +(.*)")
_END: Final = re.compile(r"(?<=[.!?]) +(?=[A-Z`(\"])(?<!e\.g\. )(?<!i\.e\. )")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One normative sentence: its section (``page#anchor``), its first key word, its words."""

    section: str
    keyword: str
    words: str

    @property
    def digest(self) -> str:
        """The first characters of the SHA-256 of its section and its words."""
        return hashlib.sha256(f"{self.section}\n{self.words}".encode()).hexdigest()[:10]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """What becomes of one sentence.

    Attributes:
        digest: `Sentence.digest`.
        keyword: its first key word.
        binds: ``server``, ``client``, ``both``, or ``neither`` (hosts, authorization servers).
        fate: ids of the clauses that speak of it, one or more in each of its revisions, or one
            word: ``hidden`` (no message shows it), ``apart`` (it permits something, or other
            programs must keep it), ``open`` (a message shows it, and no clause judges it).
        section: ``page#anchor``.
        places: revision -> its number in the section, among the normative sentences, from 1.
    """

    digest: str
    keyword: str
    binds: str
    fate: tuple[str, ...]
    section: str
    places: dict[str, int]


def rows() -> list[Row]:
    """Read the rows, in the order of the pages."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return [
            Row(digest, keyword, binds, tuple(fate.split()), section, _places(places))
            for digest, keyword, binds, fate, section, places in itertools.islice(
                csv.reader(file), 1, None
            )
        ]


def _places(cell: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for place in cell.split():
        span, number = place.split(":")
        first, last = span.split("..")[0], span.split("..")[-1]
        found |= {one: int(number) for one in rev.ALL if first <= one <= last}
    return found


def changes(read: Callable[[str], str]) -> Iterator[str]:
    """Compare the pages of the released revisions with the rows.

    ``read`` returns a file of the specification's repository.

    Yields:
        A line for each sentence without a row, and for each row without its sentence.
    """
    known = {(revision, row.digest): row for row in rows() for revision in row.places}
    listed = re.findall(r'"specification/([\d-]+)/([a-z/-]+)"', read("docs/docs.json"))
    for revision, page in listed:
        if revision in rev.ALL and page not in LEFT_OUT:
            text = read(f"docs/specification/{revision}/{page}.mdx")
            for one in sentences(page, text):
                if not known.pop((revision, one.digest), None):
                    yield f"{revision} {one.section} has a new sentence ({one.digest}): {one.words}"
    for (revision, digest), row in known.items():
        yield f"{revision} {row.section} lacks sentence {row.places[revision]} ({digest})"


def sentences(page: str, text: str) -> Iterator[Sentence]:
    """Find the normative sentences of a page, in its order."""
    section, seen, known = page, Counter[str](), set[Sentence]()
    leads: list[tuple[int, str, str]] = []
    blocks = [*_blocks(text), _Block("fence", 0, "")]
    for block, after in itertools.pairwise(blocks):
        if block.kind == "heading":
            slug = _slug(block.words)
            section = f"{page}#{slug}" + (f"-{seen[slug] + 1}" if seen[slug] else "")
            seen[slug] += 1
        level = block.indent if block.kind == "item" else block.indent - 1
        leads = [one for one in leads if one[0] < level] if block.kind != "heading" else []
        _, context, inherited = leads[-1] if leads and block.kind == "item" else (0, "", "")
        parts = _END.split(block.words)
        for n, part in enumerate(parts):
            own = _WORD.search(part)
            keyword = own[0] if own else "" if n else inherited
            words = f"{context} {part}".strip()
            if part is parts[-1] and part.endswith(":") and after.kind == "item":
                leads.append((level, words, keyword))
            elif keyword and (found := Sentence(section, keyword, words)) not in known:
                known.add(found)
                yield found


@dataclass(frozen=True, slots=True)
class _Block:
    kind: str
    indent: int
    words: str


def _blocks(text: str) -> Iterator[_Block]:
    """Split a page into headings, items, rows of tables, paragraphs, and fences of code."""
    text = re.sub(r"\A---\n.*?\n---\n|\{/\*.*?\*/\}", "", text, flags=re.DOTALL)
    text = re.sub(r"^( *)```.*?^ *```$", r"\1```", text, flags=re.DOTALL | re.MULTILINE)
    kind, indent, lines = "", 0, list[str]()

    def ended() -> Iterator[_Block]:
        if words := _plain(" ".join(lines)):
            yield _Block(kind, indent, words)
        lines.clear()

    for line in text.splitlines():
        bare = line.strip()
        item = _ITEM.fullmatch(line)
        heading = _HEADING.fullmatch(line)
        row, fence = bare.startswith("|"), bare.startswith("```")
        if (
            not bare
            or item
            or heading
            or row
            or fence
            or re.fullmatch(r"</?\w[^<]*>|\[.*\]: .*", bare)
        ):
            yield from ended()
            kind, indent = "paragraph", len(line) - len(line.lstrip())
        if item:
            kind, bare = "item", item[2]
        if heading or row:
            yield _Block(
                "heading" if heading else "row", 0, _plain(heading[1] if heading else bare)
            )
        elif fence:
            yield _Block("fence", indent, "")
        elif bare and not re.fullmatch(r"</?\w[^<]*>|\[.*\]: .*", bare):
            if not lines and kind == "paragraph":
                indent = len(line) - len(line.lstrip())
            lines.append(bare)
    yield from ended()


def _plain(words: str) -> str:
    words = re.sub(
        r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", re.sub(r"</?\w[^<>]*>", "", words)
    )
    words = re.sub(r"\*\*|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)", "", words.replace("|", " "))
    return " ".join(words.split())


def _slug(heading: str) -> str:
    heading = heading.strip("`").lower().replace("'", "")
    if heading.endswith("://"):
        return quote(heading, safe="")
    return re.sub(r"[^a-z0-9_]+", "-", heading).strip("-_")
