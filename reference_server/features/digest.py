"""``workspace_digest``: one hash for a whole tree, to detect changes in it.

It is the long-running tool of this server: it reports progress and can be cancelled.
"""

from __future__ import annotations

import time

from ..failure import ToolError
from ..protocol.toolbox import Tool
from ..tools.schemas import CWD, inputs, outputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..protocol.calls import Call
    from ..protocol.toolbox import Arguments
    from ..surface import Surface

_LONGEST_PAUSE = 1000
_SLICE = 0.02
"""Seconds to sleep between checks for a cancellation."""

_HINTS = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}

_DESCRIPTION = (
    "Hash every file below a directory, and those hashes together: the SHA-256 of the lines "
    "'<sha256 of the file>  <path>', sorted by path, as sha256sum writes them. Two trees with the "
    "same digest hold the same files under the same paths. Links and files that may not be read "
    "here are left out; those that could not be read are counted in left_out."
)


def install(surface: Surface) -> None:

    def digest(call: Call, arguments: Arguments) -> dict[str, Any]:
        return _digest(surface, call, arguments)

    surface.toolbox.add(
        Tool(
            "workspace_digest",
            alias="workspace.digest",
            title="Digest of a tree",
            description=_DESCRIPTION,
            input_schema=inputs(
                (),
                path={
                    "type": "string",
                    "description": "Directory below the root. Default: the root.",
                },
                cwd=CWD,
                pause_ms={
                    "type": "integer",
                    "minimum": 0,
                    "maximum": _LONGEST_PAUSE,
                    "description": "Milliseconds to wait after each file, to go easy on a disk.",
                },
            ),
            output_schema=outputs(
                path={"type": "string", "description": "The directory as it was asked for."},
                files={"type": "integer", "minimum": 0, "description": "Files in the digest."},
                bytes={"type": "integer", "minimum": 0, "description": "Bytes in them."},
                left_out={"type": "integer", "minimum": 0, "description": "Files not readable."},
                sha256={"type": "string", "description": "The digest, in hex."},
            ),
            annotations=_HINTS,
            work=digest,
            task=True,
        )
    )


def _digest(surface: Surface, call: Call, arguments: Arguments) -> dict[str, Any]:
    import hashlib  # noqa: PLC0415 - loading OpenSSL takes as long as starting this server

    workspace = surface.workspace
    path = arguments.get("path", "")
    entries = list(workspace.walk(path, cwd=arguments.get("cwd", ""), check=call.check))
    lines: list[tuple[bytes, str]] = []
    size = 0
    for done, entry in enumerate(entries):
        call.progress(done, len(entries), entry.path)
        try:
            snapshot = workspace.read(entry.path, check=call.check)
        except ToolError:  # removed meanwhile, not permitted, or too large
            continue
        lines.append((entry.path.encode(), snapshot.sha256))
        size += len(snapshot.data)
        _pause(call, int(arguments.get("pause_ms", 0)))
    call.progress(len(entries), len(entries))
    whole = hashlib.sha256()
    for name, sha256 in sorted(lines):
        whole.update(b"%s  %s\n" % (sha256.encode(), name))
    return {
        "path": path or ".",
        "files": len(lines),
        "bytes": size,
        "left_out": len(entries) - len(lines),
        "sha256": whole.hexdigest(),
    }


def _pause(call: Call, milliseconds: int) -> None:
    end = time.monotonic() + milliseconds / 1000
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _SLICE))
        call.check()
