"""The writing tool of the patch-only family: ``file_apply_patch_only``.

The client must send the hash of the text that it has read, and a diff that matches the file in
every line. If one byte differs, nothing is written.

The error for a stale hash does not contain the current one. A client that copied it from the error
would apply a diff of an old text; it must read the file again.
"""

from __future__ import annotations

from ...failure import ToolError
from ...protocol.toolbox import Tool
from ...tools.schemas import CONFIRM, CWD, PATH, hints, inputs, outputs
from ...tools.text import ENCODING, FACTS, Text, read_text
from .diffs import apply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...protocol.calls import Call
    from ...protocol.toolbox import Arguments
    from ...surface import Surface

_HASH = {
    "type": "string",
    "pattern": "^[0-9A-Fa-f]{64}$",
    "description": "sha256 or sha256_normalized of the file, as the last read gave it.",
}
_DIFF = {
    "type": "string",
    "description": (
        "Unified diff of this one file: --- and +++ with its path (prefixes a/ and b/, or none), "
        "then hunks. Line numbers, counts and context must fit exactly. Newlines stay as the file "
        "has them; the file is neither created, deleted, renamed nor given another mode."
    ),
}
_HASHES = {
    "type": "object",
    "properties": {name: FACTS[name] for name in ("sha256", "sha256_normalized")},
    "required": ["sha256", "sha256_normalized"],
}
_COUNT = {"type": "integer", "minimum": 1}


def install(surface: Surface) -> None:
    if surface.settings.read_only:
        return

    def work(call: Call, arguments: Arguments) -> dict[str, Any]:
        return _patch(surface, call, arguments)

    more = {"confirm_token": CONFIRM} if surface.settings.confirm_writes else {}
    surface.toolbox.add(
        Tool(
            "file_apply_patch_only",
            alias="file.apply_patch_only",
            title="Patch a file",
            description=(
                "Change a text file with a unified diff, if its hash is still expectedHash. "
                "Read the file first. Either the whole diff is applied or nothing is written."
            ),
            input_schema=inputs(
                ("path", "expectedHash", "diffText"),
                path=PATH,
                expectedHash=_HASH,
                diffText=_DIFF,
                cwd=CWD,
                encoding=ENCODING,
                **more,
            ),
            output_schema=outputs(
                pending=True,
                path={"type": "string", "description": "Of the file, relative to its root."},
                applied={"type": "boolean", "description": "True: the file was written."},
                before=_HASHES,
                after={**_HASHES, "description": "expectedHash for the next patch."},
                hunks=_COUNT,
                added={"type": "integer", "minimum": 0, "description": "Lines."},
                removed={"type": "integer", "minimum": 0, "description": "Lines."},
            ),
            annotations=hints(read_only=False),
            work=work,
        )
    )


def _patch(surface: Surface, call: Call, arguments: Arguments) -> dict[str, Any]:
    path, cwd = arguments["path"], arguments.get("cwd", "")
    surface.workspace.policy.candidates(path, cwd, writing=True)  # before the file is accessed
    snapshot = surface.workspace.read(path, cwd=cwd, check=call.check)
    old = read_text(snapshot, arguments.get("encoding"))
    if arguments["expectedHash"].lower() not in old.hashes().values():
        raise _stale(snapshot.path)
    names = (snapshot.path, path, "/".join(snapshot.at.parts))
    patched = apply(old.text, arguments["diffText"], names)
    call.check()
    new = Text(old.encode(patched.text), old.encoding)
    edit = surface.workspace.edit(call.who, call.request_id)
    edit.put(path, new.data, cwd=cwd, before=snapshot)
    pending: dict[str, Any] | None = surface.part("features.confirmation").commit(
        call, edit, arguments
    )
    if pending is not None:
        return pending
    return {
        "path": snapshot.path,
        "applied": True,
        "before": old.hashes(),
        "after": new.hashes(),
        "hunks": patched.hunks,
        "added": patched.added,
        "removed": patched.removed,
    }


def _stale(path: str) -> ToolError:
    return ToolError(
        "The file is not the one that expectedHash was taken from; nothing was written.",
        code="HASH_MISMATCH",
        type="ConflictError",
        field="expectedHash",
        context={"file": path},
    )
