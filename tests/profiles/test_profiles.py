"""Profiles of clients: each rule on a bad list and a good one, the answers, and the reports."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import CatalogueError
from mcp_touchstone.cli import main
from mcp_touchstone.connection.server_profile import ServerProfile, Spoken
from mcp_touchstone.profiles import load, notes
from mcp_touchstone.profiles.measure import MEASURES
from mcp_touchstone.profiles.notes import ProfileNotes, measured
from mcp_touchstone.report import clients, html, machine, markdown
from mcp_touchstone.report.reread import read
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.threshold import Floor
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.wire.reply import Reply
from tests.cases import cases
from tests.fleets import record
from tests.hostile_words import HOSTILE

RULES: Final = {one.name: one for name in load.names() for one in load.profile(name).rules}
HINTS: Final = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
GOOD: Final = {
    "name": "read_note",
    "title": "Read a note",
    "description": "Reads a note.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "either": {"oneOf": [{"type": "string"}, {"type": "array", "items": {}}]},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    "annotations": {**HINTS, "title": "Read a note"},
}


def tool(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


def takes(**schema: Any) -> dict[str, Any]:
    """Return a tool with these members in its input schema."""
    return tool(inputSchema={"type": "object", "properties": {}, **schema})


def has(argument: dict[str, Any]) -> dict[str, Any]:
    """Return a tool with this schema of an argument."""
    return takes(properties={"one": argument})


def many(count: int) -> list[dict[str, Any]]:
    return [tool(name=f"tool_{number}") for number in range(count)]


ARRAY: Final = {"type": "array"}
PAIR: Final = {"type": "array", "items": [{"type": "string"}, {"type": "number"}]}
BESIDE: Final = {"$ref": "#/$defs/a", "type": "string"}
ONE_OF: Final = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}

LISTS: Final[dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]]] = {
    "claude/tool-name-characters": ([tool(name="notes.read")], [tool(name="Notes-read_1")]),
    "claude/tool-name-length": ([tool(name="n" * 65)], [tool(name="n" * 64)]),
    "claude/property-keys": (
        [takes(properties={"filter[name]": {}}), takes(properties={"k" * 65: {}})],
        [takes(properties={"a_b.c-1": {}}), has({"properties": {"in[side]": {}}})],
    ),
    "claude/root-keywords": ([takes(**ONE_OF)], [has(ONE_OF), takes(**{"not": {}})]),
    "claude-code/tool-name-length": ([tool(name="n" * 118)], [tool(name="n" * 117)]),
    "claude-code/tool-name-characters": ([tool(name="a b")], [tool(name="a_b-1")]),
    "claude-code/root-keywords": ([takes(**{"if": {}})], [has(ONE_OF)]),
    "claude-code/property-keys": ([takes(properties={"a b": {}})], [GOOD]),
    "claude-code/description-length": (
        [tool(description="d" * 2049)],
        [tool(description="d" * 2048), tool(description=None)],
    ),
    "claude-directory/annotations-title": (
        [tool(annotations=HINTS), tool(annotations={"title": ""}), tool(annotations={"title": 1})],
        [tool(annotations={**HINTS, "title": "Read"})],
    ),
    "docker/lists-tools": ([], [GOOD]),
    "claude-directory/hints": (
        [tool(annotations={}), tool(annotations={"readOnlyHint": "yes"}), tool(annotations=1)],
        [tool(annotations={"readOnlyHint": False}), tool(annotations={"destructiveHint": True})],
    ),
    "claude-directory/tool-name-length": ([tool(name="n" * 65)], [tool(name="n" * 64)]),
    "openai/tool-name-characters": ([tool(name="kanban.move")], [tool(name="kanban-move")]),
    "openai/tool-name-length": ([tool(name="n" * 65)], [tool(name="n" * 64)]),
    "openai/array-items": ([has(ARRAY)], [has({"type": "array", "items": {}})]),
    "openai/tool-count": (many(129), many(128)),
    "openai-directory/hints": ([tool(annotations={"readOnlyHint": True})], [GOOD]),
    "vscode/array-items": (
        [has(ARRAY), has({"anyOf": [ARRAY, {"type": "null"}]}), has({"items": ARRAY})],
        [has({"type": "array", "items": {}}), has({"type": ["array", "null"]}), has(PAIR)],
    ),
    "vscode/draft-07": (
        [has({"exclusiveMinimum": True}), has({"required": True}), has({"type": "text"})],
        [has({"exclusiveMinimum": 1}), has({"$dynamicRef": "#a", "prefixItems": []})],
    ),
    "vscode/tool-count": (many(129), many(128)),
    "vscode/root-keywords": ([takes(**ONE_OF)], [has(ONE_OF)]),
    "vscode/required-names": (
        [takes(required=["missing"]), tool(inputSchema={"type": "object", "required": ["a"]})],
        [GOOD, has({"type": "object", "required": ["a"]})],
    ),
    "vscode/tuple-items": ([has(PAIR)], [has({"type": "array", "items": {}})]),
    "vscode/tool-name-characters": ([tool(name="a.b"), tool(name="a/b")], [tool(name="a_b-C1")]),
    "vscode/tool-name-length": ([tool(name="n" * 56)], [tool(name="n" * 55)]),
    "vscode/not-read-only": (
        [tool(annotations={"readOnlyHint": False}), tool(annotations=None)],
        [tool(annotations={"readOnlyHint": True})],
    ),
    "cursor/tool-name-length": ([tool(name="n" * 56)], [tool(name="n" * 55)]),
    "cursor/tool-count": (many(81), many(80)),
    "gemini/tool-name-characters": ([tool(name="a/b")], [tool(name="a.b:c-d_e")]),
    "gemini/tool-name-length": ([tool(name="n" * 55)], [tool(name="n" * 54)]),
    "gemini/reference-siblings": (
        [has(BESIDE)],
        [has({"$ref": "#/$defs/a", "description": "d", "default": 1}), has({"type": "string"})],
    ),
    "windsurf/tool-count": (many(101), many(100)),
    "letta/no-properties": ([tool(inputSchema={"type": "object"})], [takes()]),
}
"""Rule -> lists of tools with which it applies and does not. The server is named ``note``."""

RECORDS: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "registry/name": ({"name": "no-slash"}, {"name": "io.github.somebody/notes"}),
    "registry/text-length": ({"description": "d" * 101}, {"title": "t" * 100}),
    "registry/exact-version": ({"version": "^1.2.3"}, {"version": "1.0.0-x.1"}),
}
OTHERS: Final = {"claude-code/instructions-length"}


def server(
    tools: list[dict[str, Any]], name: str = "note", revision: str = "2025-11-25", **opening: Any
) -> ServerProfile:
    reply = Reply(1, value={"result": {"serverInfo": {"name": name}, **opening}})
    return ServerProfile(Pace(1.0), {revision: Spoken(reply, {"tools": tools})})


def applied(found: ProfileNotes) -> set[str]:
    return {note.rule.name for client in found.clients for note in client.notes}


def notes_on(tools: list[dict[str, Any]], *names: str, **more: Any) -> ProfileNotes:
    return measured(names or load.names(), server(tools, **more))


def run_with(found: ProfileNotes, *floor: str) -> Run:
    made = Run(Subject(reported={"2025-11-25": {"name": "note"}}), floor=Floor.read(floor))
    return replace(made, clients=found)


def test_every_rule_has_a_bad_list_and_a_good_one() -> None:
    assert {*LISTS, *RECORDS, *OTHERS} == {*RULES}
    assert {one.measures for one in RULES.values()} == {*MEASURES}


@pytest.mark.parametrize("name", LISTS)
def test_a_rule_applies_to_each_bad_list_and_to_no_good_one(name: str) -> None:
    bad, good = LISTS[name]
    counted = RULES[name].measures in {"tool-count", "no-tools"}

    for tools in [bad] if counted else [[one] for one in bad]:
        assert name in applied(notes_on(tools))
    for tools in [good] if counted else [[one] for one in good]:
        assert name not in applied(notes_on(tools))


@pytest.mark.parametrize("name", RECORDS)
def test_a_rule_of_the_registry_measures_the_record(name: str) -> None:
    bad, good = ({**record(), **change} for change in RECORDS[name])

    assert name in applied(measured(["registry"], server([]), bad))
    assert applied(measured(["registry"], server([]), good)) == set()


@pytest.mark.parametrize("version", ["latest", "~1", ">=1.2", "1.x", "1.2.*"])
def test_a_package_has_one_version(version: str) -> None:
    row = {"name": "a.b/c", "packages": [{"version": "1.0.0"}, {"version": version}]}

    (client,) = measured(["registry"], server([]), row).clients

    assert [note.found for note in client.notes] == [(("", f"packages[1].version: {version!r}"),)]


def test_instructions_are_measured() -> None:
    long = server([GOOD], instructions="i" * 2049)

    assert applied(measured(load.names(), long)) == OTHERS
    assert applied(notes_on([GOOD], instructions="i" * 2048)) == set()


def test_a_long_name_of_the_server_counts_as_the_client_counts_it() -> None:
    name = tool(name="n" * 46)

    assert "vscode/tool-name-length" not in applied(notes_on([name], name="s" * 99))
    assert "gemini/tool-name-length" in applied(notes_on([name], name="s" * 99))


def test_the_lists_of_the_newest_revision_with_a_handshake_are_measured() -> None:
    modern = server([tool(name="a.b")], revision=rev.LATEST_MODERN)
    both = replace(modern, spoken={**modern.spoken, **server([GOOD]).spoken})

    assert measured(["claude"], both).revision == rev.LATEST_LEGACY
    assert applied(measured(["claude"], both)) == set()
    assert applied(measured(["claude"], modern)) == {"claude/tool-name-characters"}


def test_each_client_has_an_answer() -> None:
    def answer(client: str, *tools: dict[str, Any]) -> str:
        return notes_on([*tools], client).clients[0].answer

    assert answer("vscode", GOOD) == "no known obstacle"
    assert answer("vscode", GOOD, tool(annotations={})) == "no known obstacle"
    assert answer("vscode", GOOD, has(ARRAY)) == "refused because of 1 of 2 tools"
    assert answer("claude-code", tool(description="d" * 3000)) == "loses something"
    assert answer("openai", *many(129)) == "refused"
    assert answer("registry", GOOD) == "not measured"


def test_nothing_is_measured_without_a_list_and_that_is_said() -> None:
    found = measured(load.names(), ServerProfile(Pace(1.0)))

    assert {client.answer for client in found.clients} == {"not measured"}
    assert found.losing == []
    reasons = {client.unmeasured for client in found.clients}
    assert reasons == {notes.UNOPENED, notes.NO_RECORD, notes.BY_HAND}
    (vscode,) = notes_on([], "vscode").clients
    assert (vscode.answer, vscode.unmeasured) == ("not measured", notes.NOTHING)


def test_a_first_page_is_called_one() -> None:
    whole = server(many(3))
    first = replace(whole.spoken["2025-11-25"], cursors={"tools/list": "next"})
    paged = replace(whole, spoken={"2025-11-25": first})

    (client,) = measured(["windsurf"], paged).clients

    assert client.unmeasured == notes.FIRST_PAGE


def test_clients_that_differ_are_named_with_what_suits_all() -> None:
    found = notes_on([tool(name="n" * 58)], "cursor", "vscode", "claude", "windsurf")

    (said,) = found.differences()
    assert said == (
        "length of tool names, with the client's prefix (claude: accepted; cursor: hidden; vscode: "
        "renamed). At most 55 characters suit all, with the server named 'note'."
    )
    assert list(notes_on([GOOD]).differences()) == []


def test_a_profile_fails_a_run_only_if_that_is_asked_and_something_is_lost() -> None:
    lost = notes_on([has(ARRAY)], "vscode")
    asked = notes_on([tool(annotations={})], "vscode")

    assert run_with(lost, "profile").exit_code == 1
    assert not run_with(lost).losing
    assert not run_with(lost, "never", "profile").losing
    assert not run_with(asked, "profile").losing
    assert Floor.read(["should", "profile"]).words == ("should", "profile")


@cases(
    (["--for", "vscod"], "no client is called 'vscod'; did you mean 'vscode'?"),
    (["--for", "cursor,claud"], "no client is called 'claud'; did you mean 'claude'"),
    (["--fail-on", "profile"], "--fail-on profile: name the clients with --for"),
)
def test_wrong_words_are_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    try:
        status = main(["check", "--self", *words])
    except SystemExit as left:
        status = left.code  # type: ignore[assignment]  # argparse gives a number
    shown = capsys.readouterr().err

    assert status == 2
    assert said in shown
    assert shown.count("\n") == 1


def test_words_name_profiles_once() -> None:
    assert load.chosen(("cursor,vscode", "cursor")) == ("cursor", "vscode")
    directories = ("claude-directory", "docker", "github", "openai-directory", "registry")
    assert load.chosen(("directories", "docker")) == directories
    assert load.chosen(("cursor", "all")) == ("cursor", *(n for n in load.names() if n != "cursor"))


def test_a_directory_lists_what_passed_and_what_only_a_person_can_confirm() -> None:
    bad = tool(annotations=HINTS)
    made = run_with(notes_on([bad], "claude-directory", "github", "cursor"))
    rows = [(label, text.split(":")[0]) for _, label, text in clients.lines(made)]
    claude, github, cursor = machine.document(made)["clients"]["profiles"]

    assert rows[:4] == [
        ("claude-directory", "refused because of 1 of 1 tools"),
        ("refused", "claude-directory/annotations-title"),
        ("passed", "claude-directory/hints"),
        ("passed", "claude-directory/tool-name-length"),
    ]
    assert [label for label, _ in rows[4:]].count("by hand") == len(
        claude["boxes"] + github["boxes"]
    )
    assert claude["passed"] == ["claude-directory/hints", "claude-directory/tool-name-length"]
    assert (github["answer"], github["passed"]) == ("not measured", [])
    assert "boxes" not in cursor
    assert claude["boxes"][0]["source"].startswith("https://")


def test_hostile_names_stay_data_in_every_report() -> None:
    bad = tool(name=HOSTILE, inputSchema={"type": "object", "properties": {HOSTILE: ARRAY}})
    made = run_with(notes_on([bad], name=HOSTILE))

    for text in (markdown.render(made), html.render(made)):
        assert "<script>evil" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "vscode/array-items" in markdown.render(made)


def test_a_saved_report_has_the_same_notes(tmp_path: Path) -> None:
    made = run_with(notes_on([has(ARRAY), tool(name="n" * 58)]), "profile")
    path = tmp_path / "run.json"
    path.write_text(json.dumps(machine.document(made)), "utf-8")

    again = read(path)

    assert again.clients == made.clients
    assert again.exit_code == made.exit_code == 1
    assert json.loads(path.read_text("utf-8"))["clients"]["differences"]


def test_a_long_list_of_tools_is_cut_on_the_screen_only() -> None:
    made = run_with(notes_on([tool(name=f"a.{n}") for n in range(9)], "claude"))

    (_, (_, label, text)) = clients.lines(made)

    assert label == "refused"
    assert "a.3 and 5 more" in text
    assert len(machine.document(made)["clients"]["profiles"][0]["notes"][0]["found"]) == 9


def test_the_reference_server_and_its_known_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"

    status = main(
        ["check", "--self", "--quick", "--for", "all", "--json", str(path), "--color", "never"]
    )

    found = {one["client"]: one for one in json.loads(path.read_text())["clients"]["profiles"]}
    named = {note["rule"] for one in found.values() for note in one["notes"]}
    assert status == 0
    assert named == {"vscode/not-read-only", "openai-directory/hints"}
    said = " ".join(capsys.readouterr().out.split())
    assert f"no known obstacle: {found['cursor']['rules']} rules of Cursor" in said


def test_explain_shows_a_rule_of_a_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "claude/tool-name-length"]) == 0
    shown = capsys.readouterr().out
    assert "at most 64" in shown
    assert RULES["claude/tool-name-length"].source in shown

    assert main(["explain", "claude/tool-name-lenght"]) == 2
    assert "did you mean 'tool-name-length'" in capsys.readouterr().err


@cases(
    ({"source": ""}, "source is missing"),
    ({"source": "a book"}, "source is no address"),
    ({"efect": "cut"}, "unknown key 'efect'; did you mean 'effect'?"),
    ({"effect": "cutt"}, "effect 'cutt'; did you mean 'cut'"),
    ({"measures": "tool-names"}, "measures 'tool-names'; did you mean"),
    ({"read": "2026-01-01"}, "read is no date"),
    ({"pattern": "("}, "it needs limit"),
)
def test_a_wrong_profile_is_an_error_with_its_place(change: dict[str, Any], said: str) -> None:
    good = RULES["windsurf/tool-count"]
    row = {
        "id": good.id,
        "measures": good.measures,
        "limit": 1,
        "effect": "cut",
        "says": "It is cut.",
        "cure": "Less.",
        "source": good.source,
        "read": good.read,
        "version": "1",
    }
    table = {"name": "A", "summary": "B", "rule": [row]}
    assert load.parse("a", table).rules[0].limit == 1

    with pytest.raises(CatalogueError, match=r"profiles/a\.toml: tool-count") as caught:
        load.parse("a", {**table, "rule": [{**row, **change}]})
    assert said in str(caught.value)
