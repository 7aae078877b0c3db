"""Resources that are files of the server's folder. Judges nothing."""

from pathlib import Path
from typing import Final

from mcp_touchstone.judging.talk import Talk

READS: Final = 8
"""Resources read to find one that is a file of the tree."""


def served(talk: Talk, uris: list[str]) -> tuple[str, Path] | None:
    """Read listed resources until one is a file of the folder; return its URI and the file."""
    texts = {
        file.read_text(encoding="utf-8"): file
        for file in sorted(talk.root.rglob("*"))
        if file.is_file()
    }
    for uri in sorted(uris)[:READS]:
        reply = talk.request("resources/read", {"uri": uri}, required=False)
        contents = (reply.result or {}).get("contents")
        for item in contents if isinstance(contents, list) else ():
            if isinstance(item, dict) and item.get("text") in texts:
                return uri, texts[item["text"]]
    return None


def edit(file: Path) -> None:
    """Add a line to a file, as a user would."""
    file.write_text(file.read_text(encoding="utf-8") + "changed\n", encoding="utf-8")
