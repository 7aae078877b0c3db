"""Confirmation of destructive writes, if the operator requires it.

Every tool commits its writes with this module. With ``--confirm-writes``, an edit that changes or
removes existing bytes needs the user's consent. If the client supports forms, the user gets a form.
Otherwise the tool returns a preview with a token, to be sent in a second call. The consent is bound
to the paths and to all bytes before and after. Either exactly these changes are written, or none.
"""

from __future__ import annotations

from ...failure import ToolError
from ...protocol.questions import UnansweredError
from ...protocol.seal import Seal, UnsealedError, fingerprint
from .previews import diffs, summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...protocol.calls import Call
    from ...surface import Surface
    from ...workspace import Change, Edit

TOKEN_SECONDS = 600.0
"""Time until a token expires, long enough for a person to read the preview."""

LONGEST_MESSAGE = 4_000
"""Approximate maximum of diff characters in a form."""

LONGEST_PREVIEW = 20_000
"""Approximate maximum of diff characters in a preview."""

_MOST_LOGGED = 20


def build(surface: Surface) -> Confirm:
    """Build the part ``confirm``."""
    return Confirm(surface)


class Confirm:
    def __init__(self, surface: Surface) -> None:
        self._wanted = surface.settings.confirm_writes
        self._seal = Seal(TOKEN_SECONDS, "confirm", surface.settings.state_key)

    def commit(self, call: Call, edit: Edit, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Commit an edit, now or when it is confirmed.

        A token must fit even if the edit needs no confirmation. Otherwise the edit is not the one
        that the client has seen in the preview.

        Returns:
            None if the edit is written; otherwise the result of the tool, which asks for
            confirmation (``schemas.outputs(pending=True)``).
        """
        changes = edit.changes
        token = arguments.get("confirm_token") if self._wanted else None
        if token is not None:
            self._redeem(call, changes, token)
        elif self._wanted and any(change.before is not None for change in changes):
            if not call.can("elicitation", "form"):
                return self._pending(call, changes)
            _ask(call, changes)
        edit.commit()
        if changes:
            paths = [change.path for change in changes[:_MOST_LOGGED]]
            call.log("info", {"event": "written", "files": len(changes), "paths": paths})
        return None

    def _pending(self, call: Call, changes: Sequence[Change]) -> dict[str, Any]:
        return {
            "confirmed": False,
            "confirm_token": self._seal.close({"edit": _identity(call, changes)}),
            "preview": f"{summary(changes)}\n\n{diffs(changes, LONGEST_PREVIEW)}",
        }

    def _redeem(self, call: Call, changes: Sequence[Change], token: str) -> None:
        try:
            note = self._seal.open(token)
            fits = note["edit"] == _identity(call, changes)
            if fits:
                self._seal.spend(note)
        except UnsealedError as why:
            raise _stale(str(why)) from None
        if not fits:
            raise _stale("the files or the call have changed since the preview")


def _ask(call: Call, changes: Sequence[Change]) -> None:
    files = "this file" if len(changes) == 1 else f"these {len(changes)} files"
    message = (
        f"The tool {call.params['name']} wants to write {files}:\n{summary(changes)}\n\n"
        f"{diffs(changes, LONGEST_MESSAGE)}"
    )
    schema = {
        "type": "object",
        "properties": {
            "confirm": {
                "type": "boolean",
                "title": "Carry this out",
                "description": "Yes writes exactly what is shown; no writes nothing.",
                "default": False,
            }
        },
        "required": ["confirm"],
    }
    params = {"message": message, "requestedSchema": schema}
    identity = _identity(call, changes).encode()
    try:
        answer = call.ask("confirm", "elicitation/create", params, bound_to=identity)
    except UnansweredError as why:
        raise _not_confirmed("No confirmation came", str(why)) from None
    if answer["action"] != "accept":
        done = "declined" if answer["action"] == "decline" else "dismissed"
        raise _not_confirmed(f"The user has {done} it")
    agreed = (answer.get("content") or {}).get("confirm")
    if agreed is not True:
        odd = None if agreed is False else "The answer has no boolean confirm."
        raise _not_confirmed("The user has not confirmed it", odd)


def _identity(call: Call, changes: Sequence[Change]) -> str:
    exact = [(one.path, _digest(one.before), _digest(one.after)) for one in changes]
    return fingerprint([call.params["name"], sorted(exact)])


def _digest(data: bytes | None) -> str:
    return "none" if data is None else fingerprint("bytes", data)


def _not_confirmed(reason: str, details: str | None = None) -> ToolError:
    return ToolError(
        f"{reason}; nothing was written.",
        code="NOT_CONFIRMED",
        type="ConflictError",
        details=details,
    )


def _stale(reason: str) -> ToolError:
    return ToolError(
        f"The confirmation does not count: {reason}. Nothing was written.",
        code="CONFIRMATION_STALE",
        type="ConflictError",
        field="confirm_token",
    )
