"""The Skills extension (SEP-2640): how to use the tools of this server, as files for an agent.

Source: ext-skills, specification/stable/skills.mdx. Offered with ``--feature skills``.
"""

from __future__ import annotations

from ..protocol.errors import INVALID_PARAMS, ProtocolError
from ..protocol.pages import page
from ..protocol.revisions import MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..protocol.calls import Call, Handler
    from ..surface import Surface

EXTENSION = "io.modelcontextprotocol/skills"
MANIFEST = "SKILL.md"
DIRECTORY = "inode/directory"

SKILLS: dict[str, dict[str, str]] = {
    "skill://edit-text": {
        MANIFEST: """\
---
name: edit-text
description: Change text files with the tools of this server without losing what others wrote.
license: MIT
---

# Edit text

1. Read the file with `file_read`, and keep the hash that it returns.
2. Write a unified diff of your change.
3. Send both to `file_apply_patch_only`. It refuses if the file has changed meanwhile.

[references/refusals.md](references/refusals.md) says what to do when it refuses.
""",
        "references/refusals.md": """\
# Refusals

- Another hash: read the file again, and make the diff again from what it has now.
- Lines that do not fit: the diff was made for another file, or its context has changed.
- A path outside of the root: this server does not read or write there.
""",
    },
    "skill://trees/compare-trees": {
        MANIFEST: """\
---
name: compare-trees
description: Find out with one number whether two directories hold the same files.
license: MIT
---

# Compare trees

Call `workspace_digest` for each directory. Equal digests mean the same files under the same paths.
"""
    },
}
"""URI of the root of a skill -> path of each file -> its text."""

FIELDS = ("name", "description", "license")


def feature(surface: Surface) -> None:
    methods, skills = surface.methods, Skills(surface.settings.page_size)
    declared = methods.capabilities(MODERN[0]).get("extensions", {})
    declared = {**declared, EXTENSION: {"directoryRead": True}}
    methods.capability("extensions", declared, MODERN)
    methods.request("skills/list", MODERN, skills.list_skills, cacheable=True)
    methods.request("skills/get", MODERN, skills.get, cacheable=True)
    methods.request("resources/directory/read", MODERN, skills.read_directory)
    methods.around("resources/list", MODERN, skills.list_resources)
    methods.around("resources/read", MODERN, skills.read)


class Skills:
    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._files = {
            f"{root}/{path}": text for root, files in SKILLS.items() for path, text in files.items()
        }

    def list_skills(self, call: Call) -> dict[str, Any]:
        entries = [self._entry(root) for root in SKILLS]
        return page(entries, call.params, "skills", self._page_size)

    def get(self, call: Call) -> dict[str, Any]:
        root, _, file = str(call.params.get("uri")).rpartition("/")
        if root not in SKILLS or file != MANIFEST:
            raise _unknown("skill", call)
        return {"skill": self._entry(root)}

    def _entry(self, root: str) -> dict[str, Any]:
        from hashlib import sha256  # noqa: PLC0415 - loads OpenSSL, as slow as the start-up

        files = []
        for path, text in SKILLS[root].items():
            data = text.encode()
            digest = f"sha256:{sha256(data).hexdigest()}"
            files.append({"uri": f"{root}/{path}", "digest": digest, "size": len(data)})
        return {
            "uri": f"{root}/{MANIFEST}",
            "frontmatter": _frontmatter(SKILLS[root]),
            "resources": files,
        }

    def read_directory(self, call: Call) -> dict[str, Any]:
        start = f"{call.params.get('uri')}/"
        below = [uri.removeprefix(start) for uri in self._files if uri.startswith(start)]
        if not below or start not in _directories(self._files):
            raise _unknown("directory", call)
        names = dict.fromkeys(path.partition("/")[0] for path in below)
        children = [
            self._resource(start + name)
            if start + name in self._files
            else {"uri": start + name, "name": name, "mimeType": DIRECTORY}
            for name in names
        ]
        return page(children, call.params, "resources", self._page_size)

    def _resource(self, uri: str) -> dict[str, Any]:
        root, _, file = uri.rpartition("/")
        if root in SKILLS and file == MANIFEST:
            found = _frontmatter(SKILLS[root])
            described = {"name": found["name"], "description": found["description"]}
        else:
            described = {"name": file}
        return {"uri": uri, **described, "mimeType": "text/markdown"}

    def list_resources(self, inner: Handler, call: Call) -> dict[str, Any] | None:
        found = inner(call)
        if found is not None and "nextCursor" not in found:
            found["resources"] += map(self._resource, self._files)
        return found

    def read(self, inner: Handler, call: Call) -> dict[str, Any] | None:
        uri = call.params.get("uri")
        if not isinstance(uri, str) or uri not in self._files:
            return inner(call)
        return {"contents": [{"uri": uri, "mimeType": "text/markdown", "text": self._files[uri]}]}


def _directories(files: dict[str, str]) -> set[str]:
    """Return the directories from the roots of skills downwards, each with a slash."""
    found = {f"{root}/" for root in SKILLS}
    for uri in files:
        parent = uri.rpartition("/")[0]
        while parent not in SKILLS:
            found.add(f"{parent}/")
            parent = parent.rpartition("/")[0]
    return found


def _frontmatter(files: dict[str, str]) -> dict[str, str]:
    """Return the fields of the manifest of a skill; ours are one line each."""
    lines = files[MANIFEST].split("---\n")[1].splitlines()
    found = dict(line.split(": ", 1) for line in lines)
    return {name: found[name] for name in FIELDS}


def _unknown(kind: str, call: Call) -> ProtocolError:
    message = f"There is no such {kind}"
    return ProtocolError(INVALID_PARAMS, message, {"uri": call.params.get("uri")})
