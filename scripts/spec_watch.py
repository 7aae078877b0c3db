"""Say what the specification has that this project lacks: ``python scripts/spec_watch.py [PLACE]``.

It reads the changelog of the draft, the list of revisions, the list of extensions and the sentences
of all revisions (``sentences.py``), from GitHub or from a checkout of
modelcontextprotocol/modelcontextprotocol. Exit status 1 if something is new,
2 if a file cannot be read.
"""

import re
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import EXTENSIONS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import sentences

GITHUB: Final = "https://raw.githubusercontent.com/modelcontextprotocol/modelcontextprotocol/main"
PATIENCE: Final = 20.0
"""Seconds for one file."""

LEFT_OUT: Final = {
    "auth/overview": "an overview",
}
"""Page of an extension -> the reason it has no chapter."""


def news(read: Callable[[str], str]) -> Iterator[str]:
    """Find what is new; ``read`` returns a file of the specification's repository.

    Yields:
        A sentence for each new thing.
    """
    changes = re.findall(
        r"^ *(?:\d+\.|[-*]) (.+)$", read("docs/specification/draft/changelog.mdx"), re.MULTILINE
    )
    yield from (f"the draft changes: {change}" for change in changes)
    named = re.findall(r"specification/(\d{4}-\d\d-\d\d)", read("docs/docs.json"))
    yield from (f"a new revision: {one}" for one in sorted({*named} - {*rev.ALL}))
    listed = re.findall(r"\]\(/extensions/([a-z/-]+)\)", read("docs/extensions/overview.mdx"))
    chapters = {name.removeprefix("ext-") for name in EXTENSIONS}
    known = {one if "/" in one else f"{one}/overview" for one in chapters} | {*LEFT_OUT}
    yield from (f"a new extension: {one}" for one in sorted({*listed} - known))
    yield from sentences.changes(read)


def _reader(place: str) -> Callable[[str], str]:
    def read(path: str) -> str:
        if not place.startswith("https://"):
            return Path(place, path).read_text("utf-8")
        with urllib.request.urlopen(f"{place}/{path}", timeout=PATIENCE) as answer:  # noqa: S310  (checked above)
            return str(answer.read().decode())

    return read


def main(words: list[str]) -> int:
    """Print what is new."""
    place = words[0] if words else GITHUB
    try:
        found = list(news(_reader(place)))
    except (OSError, UnicodeDecodeError) as error:
        print(f"spec_watch: nothing was compared: {place} cannot be read ({error})")
        return 2
    print("\n".join(found or ["nothing new"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
