"""Reading of a report from its file, with a check of its format. Judges nothing."""

import json
from pathlib import Path
from typing import Any

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.report.machine import FORMAT, SCHEMA
from mcp_touchstone.runtime.input_file import InputFile


class ReportError(InputError):
    """A report cannot be used; the message names the file and the remedy."""


def load(path: Path) -> dict[str, Any]:
    """Read a report that `check --json` wrote.

    Raises:
        InputError: there is no such file, or it is no report of a supported format.
    """
    missing = f"`check --json {path}` writes it"
    document = InputFile(path, "name a report of `check --json`", missing).json()
    number = document.get("format") if isinstance(document, dict) else None
    if isinstance(number, int) and number > FORMAT:
        raise ReportError(
            f"{path}: format {number} is newer than this version, which reads {FORMAT}; "
            "update mcp-touchstone"
        )
    import jsonschema  # noqa: PLC0415  (only who compares needs it so early)

    schema = json.loads(SCHEMA.read_text("utf-8"))
    wrong = jsonschema.Draft202012Validator(schema).iter_errors(document)
    places = sorted((one.json_path for one in wrong), key=len)
    if places:
        raise ReportError(
            f"{path}: {places[0]} is not as in a report; name one that `check --json` wrote"
        )
    found: dict[str, Any] = document
    return found
