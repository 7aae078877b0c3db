"""The four tools: their names, schemas and descriptions, and the functions that run them."""

from __future__ import annotations

from ...protocol.toolbox import Tool
from ...tools.schemas import CONFIRM, CWD, READS, hints, inputs, outputs
from .available import reason_against

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...failure import ToolError
    from ...protocol.calls import Call
    from ...protocol.toolbox import Arguments
    from ...surface import Surface
    from .engine import Engine

_ENGINE = "features.cedarscript.engine"
_STRING = {"type": "string"}
_STRINGS = {"type": "array", "items": _STRING}
_SCRIPT = {
    "type": "string",
    "description": (
        "CEDARScript commands, as they are or in code fences named CEDARScript. Example: "
        "UPDATE FUNCTION 'f' FROM FILE 'm.py' REPLACE BODY WITH CONTENT '@0:return 2'"
    ),
}
_DIFFS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "file": {"type": "string", "description": "Path relative to its root."},
            "change": {"type": "string", "enum": ["created", "updated", "removed"]},
            "diff": {"type": "string", "description": "Unified diff; its lines end in LF."},
            "left_out": {
                "type": "integer",
                "description": "Characters of a diff that does not fit into the answer.",
            },
            "sha256": {"type": "string", "description": "Hash of the file after it."},
        },
        "required": ["file", "change", "diff"],
    },
}
_FILES = {"type": "array", "items": _STRING, "description": "Paths relative to their root."}


def install(surface: Surface) -> None:
    """Add the tools to the toolbox.

    The tools that check and carry out scripts are left out if the library cannot be used.
    """
    tools = _Tools(surface)
    if reason_against() is None:
        surface.toolbox.add(_parse_tool(tools))
        surface.toolbox.add(_apply_tool(tools, surface))
        surface.toolbox.listed = tools.warm
    surface.toolbox.add(_explain_tool(tools))
    surface.toolbox.add(_list_tool(tools))


class _Tools:
    """The functions that run the tools. Each loads the modules that it needs on its first call."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface

    def _engine(self) -> Engine:
        engine: Engine = self._surface.part(_ENGINE)
        engine.on_failure = self._withdraw
        return engine

    def _withdraw(self) -> None:
        """Remove the tools that need the library, after it was found not to work."""
        for name in ("parse_cedarscript", "apply_cedarscript"):
            self._surface.toolbox.remove(name)

    def warm(self) -> None:
        """Start the library in the background: the first script then need not wait for it."""
        self._engine().warm()

    def parse(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        commands = self._parse(call, arguments["content"], "content")[1]
        return {"success": True, "commands": commands, "count": len(commands)}

    def _parse(
        self, call: Call, content: str, field: str
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        from ...failure import ToolError  # noqa: PLC0415
        from .scan import find_blocks  # noqa: PLC0415 - compiles patterns

        try:
            blocks = [{"text": block.text, "line": block.line} for block in find_blocks(content)]
            if not blocks:
                return [], []
            answer = self._engine().ask({"op": "parse", "blocks": blocks}, call.check)
            _raise_refused(answer)
        except ToolError as error:
            error.field = error.field or field
            raise
        commands: list[dict[str, Any]] = answer["commands"]
        return blocks, commands

    def apply(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        from ...workspace.refusals import ReadOnly  # noqa: PLC0415
        from .stage import Stage  # noqa: PLC0415

        dry_run = arguments.get("dry_run") is not False
        workspace, read_only = self._surface.workspace, self._surface.settings.read_only
        if read_only and not dry_run:
            raise ReadOnly
        blocks, commands = self._parse(call, arguments["commands"], "commands")
        stage = Stage(call, workspace, arguments.get("root", ""))
        stage.take(commands)
        made: dict[str, Any] = {"results": [], "files": {}}
        if commands:
            made = self._engine().ask(
                {"op": "apply", "blocks": blocks, **stage.request()}, call.check
            )
            _raise_refused(made)
        if not read_only:
            # The edit is built for a dry run too, to refuse changes that cannot be written.
            edit = workspace.edit(call.who, call.request_id)
            stage.put(edit, made["files"])
            if not dry_run:
                pending = self._surface.part("features.confirmation").commit(call, edit, arguments)
                if pending is not None:
                    waiting: dict[str, Any] = pending
                    return waiting
        diffs = stage.describe(made["files"])
        shown = {"affected_files": [each["file"] for each in diffs], "diffs": diffs}
        if dry_run:
            return {"success": True, "dry_run": True, "results": made["results"], "preview": shown}
        return {"success": True, "dry_run": False, "results": made["results"], **shown}

    def explain(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        from .explain import explain  # noqa: PLC0415

        return explain(
            call,
            arguments["error_message"],
            offered=self._surface.toolbox.tools(),
            ask_model=arguments.get("ask_model") is True,
            deprecated=self._surface.settings.deprecated,
        )

    def capabilities(self, call: Call, _arguments: Arguments) -> dict[str, Any]:
        from .capabilities import describe  # noqa: PLC0415

        settings = self._surface.settings
        reason = self._engine().probe(call.check)
        return describe(reason, read_only=settings.read_only, largest=settings.max_file_size)


def _raise_refused(answer: dict[str, Any]) -> None:
    """Raise the error in an answer of the worker, if there is one."""
    if "failed" in answer:
        from .explain import as_error  # noqa: PLC0415

        raise as_error(answer["failed"])
    if "refused" in answer:
        raise _refusal(answer["refused"])


def _refusal(facts: dict[str, Any]) -> ToolError:
    from ...failure import ToolError  # noqa: PLC0415
    from .explain import rules  # noqa: PLC0415

    rule = rules().get(facts["code"])
    places = ("file", "line", "script_line", "script_column", "command_index")
    return ToolError(
        facts["message"],
        code=facts["code"],
        type=facts["type"],
        context={name: facts[name] for name in places if name in facts},
        suggestions=facts.get("suggestions") or (rule.suggestions if rule else ()),
        related_tools=("explain_error", "list_capabilities"),
    )


def _parse_tool(tools: _Tools) -> Tool:
    return Tool(
        "parse_cedarscript",
        title="Check a CEDARScript",
        description=(
            "Check a CEDARScript without running it. Returns its commands, or the place of the "
            "first error with suggestions."
        ),
        input_schema=inputs(("content",), content=_SCRIPT),
        output_schema=outputs(
            success={"type": "boolean"},
            commands={
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "type": {
                            "type": "string",
                            "enum": ["CreateCommand", "RmFileCommand", "UpdateCommand"],
                        },
                        "path": {"type": "string", "description": "The file it changes."},
                        "line": {"type": "integer", "description": "Its first line, from 1."},
                        "summary": {"type": "string", "description": "What it does."},
                    },
                    "required": ["type", "path", "line", "summary"],
                },
            },
            count={"type": "integer", "minimum": 0},
        ),
        annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
        work=tools.parse,
    )


def _apply_tool(tools: _Tools, surface: Surface) -> Tool:
    read_only = surface.settings.read_only
    arguments: dict[str, Any] = {
        "commands": _SCRIPT,
        "root": {**CWD, "description": "Directory below the root; paths are relative to it."},
        "dry_run": {
            "type": "boolean",
            "default": True,
            "description": (
                "Only true here: this server writes nothing."
                if read_only
                else "Only false writes; otherwise the result shows what would change."
            ),
        },
    }
    if surface.settings.confirm_writes and not read_only:
        arguments["confirm_token"] = CONFIRM
    schema = outputs(
        pending=True,
        success={"type": "boolean"},
        dry_run={"type": "boolean"},
        results={**_STRINGS, "description": "What each command does."},
    )
    schema["properties"].update(
        affected_files=_FILES,
        diffs=_DIFFS,
        # An object in a dry run, text if the write waits for confirmation.
        preview={
            "type": ["object", "string"],
            "properties": {"affected_files": _FILES, "diffs": _DIFFS},
        },
    )
    return Tool(
        "apply_cedarscript",
        title="Preview CEDARScript edits" if read_only else "Apply a CEDARScript",
        description=(
            "Run CEDARScript commands on files below the root: all of them or none. By default "
            "nothing is written, and unified diffs show the changes"
            + ("; this server never writes." if read_only else "; dry_run false writes them.")
            + " Functions, methods and classes are found in Python files, lines in every text "
            "file. list_capabilities shows every form with an example."
        ),
        input_schema=inputs(("commands",), **arguments),
        output_schema=schema,
        annotations=hints(read_only=read_only),
        work=tools.apply,
    )


def _explain_tool(tools: _Tools) -> Tool:
    schema = outputs(
        explanation=_STRING,
        suggestions=_STRINGS,
        recovery_steps=_STRINGS,
        code={"type": "string", "description": "Code of the error; UNKNOWN if no rule matches it."},
        known={"type": "boolean", "description": "Whether a rule matches this message."},
    )
    schema["properties"].update(
        command_index={"type": "integer", "description": "Number of the faulty command, from 1."},
        model={
            "type": "object",
            "description": "The answer of the client's model, if asked; unverified.",
            "properties": {
                "asked": {"type": "boolean"},
                "note": _STRING,
                "name": _STRING,
                "words": _STRING,
            },
            "required": ["asked", "note"],
        },
    )
    return Tool(
        "explain_error",
        title="Explain a CEDARScript error",
        description=(
            "Explain an error of parse_cedarscript, apply_cedarscript or the CEDARScript library: "
            "its meaning, possible causes and the next steps."
        ),
        input_schema=inputs(
            ("error_message",),
            error_message={
                "type": "string",
                "minLength": 1,
                "description": "The message, or the whole error as JSON.",
            },
            ask_model={
                "type": "boolean",
                "default": False,
                "description": "Also ask the client's model, if the client permits sampling.",
            },
        ),
        output_schema=schema,
        annotations=READS,
        work=tools.explain,
    )


def _list_tool(tools: _Tools) -> Tool:
    objects = {"type": "array", "items": {"type": "object"}}
    schema = outputs(
        available={"type": "boolean", "description": "Whether this server can run scripts."},
        library={"type": "object"},
        read_only={"type": "boolean"},
        commands={**objects, "description": "Supported forms with an example each."},
        notes=_STRINGS,
        not_carried_out={
            **_STRINGS,
            "description": "Constructs of the language that are not supported.",
        },
        symbols={**_STRINGS, "description": "Languages whose functions and classes can be named."},
        lines={**_STRINGS, "description": "Languages whose lines can be edited."},
        limits={"type": "object"},
    )
    schema["properties"]["reason"] = {
        "type": "string",
        "description": "Why CEDARScript is not available.",
    }
    return Tool(
        "list_capabilities",
        title="List the CEDARScript forms",
        description=(
            "List the supported forms of CEDARScript with an example each, and the limits; if "
            "CEDARScript is not available, say why."
        ),
        input_schema=inputs(()),
        output_schema=schema,
        annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
        work=tools.capabilities,
    )
