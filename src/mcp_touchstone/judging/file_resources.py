"""Resources that are files of the server's folder. Judges nothing."""

import contextlib
from typing import Final

from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.wire.framing import list_in, object_in

READS: Final = 8
"""Resources read to find one that is a file of the tree."""


def find_file_resource(talk: Conversation, uris: list[str]) -> tuple[str, SafePath] | None:
    """Read listed resources until one is a file of the folder; return its URI and the file."""
    texts = {}
    for file in sorted(talk.root.below()):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            texts[file.read_text()] = file
    for uri in sorted(uris)[:READS]:
        reply = talk.wire.request("resources/read", {"uri": uri}, required=False)
        for item in map(object_in, list_in(reply.result, "contents")):
            if item.get("text") in texts:
                return uri, texts[item["text"]]
    return None


def edit(file: SafePath) -> None:
    """Add a line to a file, as a user would."""
    file.append(b"changed\n")
