"""The CEDARScript tools with the real library: results, errors, limits and isolation."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference_server.features.cedarscript import engine
from reference_server.features.cedarscript.explain import find
from tests.cases import cases
from tests.conftest import eventually
from tests.reference_client import CHECKOUT, MODERN, ask, modern, notification
from tests.reference_server.cedarscript.client import CASES, NEEDS_LIBRARY, Client, lay, tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [NEEDS_LIBRARY, pytest.mark.slow]

WRITTEN = {"as the library", "corrected"}
FIRST = "UPDATE FILE 'a.txt' DELETE LINE 'one'"


def source(case: dict[str, Any]) -> dict[str, str]:
    """Return the files of a case."""
    return {
        path: text if isinstance(text, str) else CASES["samples"][text["sample"]]
        for path, text in case["before"].items()
    }


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One server for all cases; each case has a directory of its own below its root."""
    with Client(tmp_path_factory.mktemp("root"), log_level="off") as client:
        yield client


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    place.mkdir()
    lay(place, {"a.txt": "one\ntwo\nthree\n", "m.py": "def f():\n    return 1\n"})
    return place


@pytest.fixture
def client(root: Path) -> Iterator[Client]:
    with Client(root, log_level="off") as client:
        yield client


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["name"])
def test_recorded_case_gives_the_expected_result(shared: Client, case: dict[str, Any]) -> None:
    place = shared.root / case["name"]
    place.mkdir()
    before = source(case)
    lay(place, before)
    laid = tree(place)
    script = {"commands": "".join(case["commands"]), "root": case["name"]}

    if case["expect"] not in WRITTEN:
        error = shared.refuse(script.pop("commands"), **script)
        assert error["code"] == case["code"]
        assert tree(place) == laid, "nothing was written"
        return
    preview = shared.call("apply_cedarscript", **script)
    assert preview["dry_run"] is True
    assert tree(place) == laid, "a dry run writes nothing"
    done = shared.call("apply_cedarscript", dry_run=False, **script)

    wanted = {**before, **case["after"]}
    assert tree(place) == {p: text.encode() for p, text in wanted.items() if text is not None}
    assert {"affected_files": done["affected_files"], "diffs": done["diffs"]} == preview["preview"]
    changed = [f"{case['name']}/{path}" for path in case["after"]]
    assert sorted(done["affected_files"]) == sorted(changed)
    assert done["results"] == preview["results"]


@pytest.mark.parametrize(
    "case",
    [case for case in CASES["cases"] if "code" in case or "error" in case["library"]],
    ids=lambda case: case["name"],
)
def test_recorded_error_messages_are_explained(shared: Client, case: dict[str, Any]) -> None:
    if "error" in case["library"]:
        theirs = case["library"]["error"]
        found = find(f"{theirs['kind']}: {theirs['text']}")
        assert found is not None, theirs
        explained = shared.call("explain_error", error_message=theirs["text"])
        assert explained["known"] is True
        assert "tip" not in json.dumps(explained)
    if case["expect"] in WRITTEN:
        return
    place = shared.root / f"{case['name']}-explained"
    place.mkdir(exist_ok=True)
    lay(place, source(case))
    ours = shared.fail("apply_cedarscript", commands="".join(case["commands"]), root=place.name)
    for message in (ours["message"], json.dumps(ours), f"{ours['code']}: {ours['message']}"):
        explained = shared.call("explain_error", error_message=message)
        assert (explained["known"], explained["code"]) == (True, case["code"]), message
        assert explained["explanation"]
        assert explained["recovery_steps"]


def test_recorded_cases_have_the_expected_counts() -> None:
    counts: dict[tuple[str, str], int] = {}
    for case in CASES["cases"]:
        key = (case["library"]["verdict"], case["expect"])
        counts[key] = counts.get(key, 0) + 1
    assert sum(counts.values()) == 141
    assert ("unsafe", "as the library") not in counts
    assert ("unsafe", "corrected") not in counts
    assert counts["ok", "as the library"] == 54
    assert counts["ok", "refused"] == 1, "ED, which runs any command"
    silent = [
        case["name"]
        for case in CASES["cases"]
        if case["library"]["verdict"] == "bug" and case["expect"] == "as the library"
    ]
    assert silent == ["create_content_starting_with_at_digit"], "@n: is the language's own prefix"


@cases(
    ('UPDAET FILE "a" DELETE LINE "b"', 1, 1, "did you mean UPDATE?"),
    ('\n\nRM FILE "b"\nRM FIL "c"', 4, 4, "not understood"),
    ("RM FILE a.txt", 1, 9, "not understood"),
    ('Words.\n```cedarscript\nRM FILE "b"\nupdate\n```', 4, 1, "capitals"),
    ('RM FILE "grüße"; RM FILE "é" x', 1, 30, "not understood"),
    ('RM FILE "a.py', 1, 9, "not closed"),
    ('/* x\nRM FILE "a"', 1, 1, "not understood"),
    ('RM FILE "a" /* x', 1, 13, "not closed"),
    ("DELETE FILE 'a'", 1, 1, "not with DELETE"),
    ("UPDATE FILE 'a' REPLACE WHOLE WITH CASE WHEN EMPTY THEN REMOVE", 1, 63, "END is missing"),
    ("UPDATE FUNCTION 'f' FROM FILE 'm.py' DELETE", 1, 44, "DELETE is not followed by what"),
    ("UPDATE FILE 'a' DELETE -- it\nRM FILE 'b'", 1, 29, "DELETE is not followed by what"),
    ("UPDATE FILE 'a' DELETE LINE", 1, 28, "LINE is not followed by what"),
)
def test_syntax_error_reports_line_and_column(
    shared: Client, script: str, line: int, column: int, words: str
) -> None:
    error = shared.fail("parse_cedarscript", content=script)
    assert error["type"] == "ParseError"
    assert error["field"] == "content"
    assert error["context"] == {"script_line": line, "script_column": column}
    assert words in error["message"]
    assert "NEVER" not in json.dumps(error)


def test_incomplete_delete_suggests_delete_whole(shared: Client) -> None:
    script = "UPDATE FUNCTION 'f' FROM FILE 'm.py' DELETE"
    error = shared.fail("parse_cedarscript", content=script)
    assert any("DELETE WHOLE" in each for each in error["suggestions"])
    assert "EMPTY" not in error["message"]


def test_write_error_names_the_command(root: Path) -> None:
    script = f"RM FILE 'a.txt'\nCREATE FILE 'new.txt' WITH CONTENT '{'x' * 101}'"
    with Client(root, log_level="off", max_file_size=100) as client:
        error = client.fail("apply_cedarscript", commands=script)
    assert (error["code"], error["field"]) == ("TOO_LARGE", "commands")
    assert error["context"] == {"file": "new.txt", "script_line": 2, "command_index": 2}


def test_old_comment_forms_are_ignored(client: Client) -> None:
    commented = f"-- ../outside.txt\n/* ../outside.txt */\n{FIRST} -- that one"
    assert client.preview(commented)["affected_files"] == ["a.txt"]
    kept = client.preview("CREATE FILE 'b.sql' WITH CONTENT '''\n-- kept\n'''")["diffs"][0]
    assert "+-- kept\n" in kept["diff"]


def test_only_dry_run_false_writes(client: Client, root: Path) -> None:
    said: tuple[Any, ...] = (True, None, 0, "", "false", [], {}, "no")
    for more in ({}, *({"dry_run": one} for one in said)):
        client.ask("tools/call", name="apply_cedarscript", arguments={"commands": FIRST, **more})
        assert (root / "a.txt").read_text() == "one\ntwo\nthree\n", more


def test_failing_script_changes_nothing(client: Client, root: Path) -> None:
    laid = tree(root)
    error = client.refuse(
        f"{FIRST}\nCREATE FILE 'deep/new.txt' WITH CONTENT 'x'\n"
        "UPDATE FILE 'a.txt' DELETE LINE 'nine'"
    )
    assert error["code"] == "LINE_NOT_FOUND"
    assert error["context"] == {"file": "a.txt", "script_line": 3, "command_index": 3}
    assert tree(root) == laid
    assert not (root / "deep").exists()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../outside.txt", "OUTSIDE_ROOT"),
        ("/etc/passwd", "OUTSIDE_ROOT"),
        (".git/config", "DENIED"),
        ("sub/.env", "DENIED"),
        ("bin/x.txt", "WRITE_DENIED"),
        ("link/x.txt", "LINK"),
        ("link.txt", "LINK"),
        ("dangling.txt", "LINK"),
        ("a.txt/b", "NOT_DIRECTORY"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        "CREATE FILE '{}' WITH CONTENT 'x'",
        "UPDATE FILE '{}' REPLACE WHOLE WITH CONTENT 'x'",
        "RM FILE '{}'",
    ],
)
def test_all_paths_are_checked_before_the_first_command_runs(
    shared: Client, tmp_path: Path, command: str, path: str, code: str
) -> None:
    place = shared.root / tmp_path.name
    place.mkdir()
    lay(place, {"a.txt": "one\n", ".git/config": "secret", "sub/.env": "secret", "bin/x.txt": "x"})
    (place / "link").symlink_to(tmp_path, target_is_directory=True)
    (place / "link.txt").symlink_to(place / "a.txt")
    (place / "dangling.txt").symlink_to(tmp_path / "made.txt")
    path = path.replace("../", "../../")
    script = f"UPDATE FILE 'a.txt' DELETE LINE 'nine'\n{command.format(path)}"
    error = shared.refuse(script, root=place.name)
    assert error["code"] == code, "the path is refused before the first command fails"
    assert error["context"]["command_index"] == 2
    assert "secret" not in json.dumps(error)
    assert not list(tmp_path.iterdir())


def test_root_argument_stays_below_the_root(client: Client, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "b.txt").write_text("x\ny\n")
    done = client.carry_out("UPDATE FILE 'b.txt' DELETE LINE 'x'", root="sub")
    assert done["affected_files"] == ["sub/b.txt"]
    for outside in ("..", "/", str(root.parent), "sub/../.."):
        error = client.refuse("RM FILE 'b.txt'", root=outside)
        assert (error["code"], error["field"]) == ("OUTSIDE_ROOT", "root")
    assert client.preview("RM FILE 'b.txt'", root=str(root / "sub"))["affected_files"] == [
        "sub/b.txt"
    ]


def test_missing_root_argument_is_refused_and_not_created(client: Client, root: Path) -> None:
    before = tree(root)
    for script in ("CREATE FILE 'x.py' WITH CONTENT 'x = 1'", "RM FILE 'a.txt'"):
        error = client.refuse(script, root="nodir")
        assert (error["code"], error["field"]) == ("NOT_FOUND", "root")
        assert error["context"] == {"file": "nodir"}
    assert tree(root) == before


def test_all_errors_report_their_location_with_the_same_keys(client: Client, root: Path) -> None:
    """``script_line`` counts in the script, ``line`` in ``file``."""
    first = "UPDATE FILE 'a.txt' DELETE LINE 'one'\n"
    fine = "UPDATE FILE 'm.py' INSERT AFTER LINE 'return 1' WITH CONTENT '@0:x = 1'\n"
    breaking = "UPDATE FILE 'm.py' REPLACE LINE 'return 1' WITH CONTENT '@0:return ('\n"
    where = {"script_line": 2, "command_index": 2}

    outside = client.refuse(first + "RM FILE '.git/x'")
    missing = client.refuse(first + "UPDATE FILE 'a.txt' DELETE LINE 'nine'")
    broken = client.refuse(first + breaking + fine.replace("'return 1'", "'return ('"))
    wrong = client.fail("parse_cedarscript", content=first + "UPDAET")
    early = client.refuse(first + "UPDATE FILE 'm.py' DELETE LINE 'x' (")

    assert outside["context"] == {"file": ".git/x", **where}
    assert missing["context"] == {"file": "a.txt", **where}
    assert broken["code"] == "BREAKS_SYNTAX"
    assert broken["context"].pop("line") in (2, 3)
    assert broken["context"] == {"file": "m.py", **where}
    assert wrong["context"]["script_line"] == early["context"]["script_line"] == 2
    assert "line" not in {*wrong["context"], *early["context"]}


def test_error_names_the_command_that_breaks_the_syntax(client: Client, root: Path) -> None:
    """The third command repairs the syntax that the second breaks; the fourth breaks it again."""
    lay(root, {"m.py": "a = 1\nb = 2\nc = 3\n"})
    change = "UPDATE FILE 'm.py' REPLACE LINE '{}' WITH CONTENT '@0:{}'\n"
    pairs = (("a = 1", "a = 5"), ("b = 2", "b = ("), ("b = (", "b = 4"), ("c = 3", "c = )"))
    script = "".join(change.format(*pair) for pair in pairs)

    error = client.refuse(script)

    assert error["code"] == "BREAKS_SYNTAX"
    assert error["context"]["command_index"] == error["context"]["script_line"] == 4


def test_equivalent_paths_are_one_file(client: Client, root: Path) -> None:
    script = f"{FIRST}\nUPDATE FILE './a.txt' DELETE LINE 'three'\nRM FILE 'm.py'"
    done = client.carry_out(script)
    assert done["affected_files"] == ["a.txt", "m.py"]
    assert tree(root) == {"a.txt": b"two\n"}
    assert [each["change"] for each in done["diffs"]] == ["updated", "removed"]


def test_edit_keeps_encoding_newlines_and_mode(client: Client, root: Path) -> None:
    lay(root, {})
    (root / "w.txt").write_bytes("\ufeffeins\r\nzwei\r\ndrei".encode("utf-16-le"))
    (root / "mixed.txt").write_bytes(b"one\r\ntwo\n")
    (root / "latin.txt").write_bytes(b"caf\xe9\n")
    os.chmod(root / "w.txt", 0o640)  # noqa: PTH101
    client.carry_out("UPDATE FILE 'w.txt' INSERT AFTER LINE 'zwei' WITH CONTENT 'z\u2028w'")
    assert (root / "w.txt").read_bytes() == "\ufeffeins\r\nzwei\r\nz\u2028w\r\ndrei".encode(
        "utf-16-le"
    )
    assert (root / "w.txt").stat().st_mode & 0o777 == 0o640
    for name, code in (("mixed.txt", "MIXED_NEWLINES"), ("latin.txt", "NOT_TEXT")):
        assert client.refuse(f"UPDATE FILE '{name}' DELETE LINE 'one'")["code"] == code


def test_binary_and_mixed_newline_files_can_be_removed(client: Client, root: Path) -> None:
    (root / "latin.txt").write_bytes(b"caf\xe9\n")
    (root / "mixed.txt").write_bytes(b"one\r\ntwo\n")
    script = "RM FILE 'latin.txt'\nRM FILE 'mixed.txt'"
    diffs = {each["file"]: each["diff"] for each in client.preview(script)["diffs"]}
    assert diffs["latin.txt"] == "Binary files a/latin.txt and /dev/null differ\n"
    assert "-one\n" in diffs["mixed.txt"]
    client.carry_out(script)
    assert sorted(tree(root)) == ["a.txt", "m.py"]
    assert client.refuse(script)["code"] == "NOT_FOUND"


def test_read_only_server_previews_but_does_not_write(root: Path) -> None:
    with Client(root, log_level="off", read_only=True) as client:
        tools = {tool["name"]: tool for tool in client.ask("tools/list")["result"]["tools"]}
        assert tools["apply_cedarscript"]["annotations"]["readOnlyHint"] is True
        assert client.preview(FIRST)["affected_files"] == ["a.txt"]
        error = client.fail("apply_cedarscript", commands=FIRST, dry_run=False)
        assert error["code"] == "READ_ONLY"
        assert client.call("list_capabilities")["read_only"] is True
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_write_waits_for_confirmation(root: Path) -> None:
    with Client(root, log_level="off", confirm_writes=True) as client:
        waiting = client.call("apply_cedarscript", commands=FIRST, dry_run=False)
        assert waiting["confirmed"] is False
        assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"
        done = client.carry_out(FIRST, confirm_token=waiting["confirm_token"])
        assert done["affected_files"] == ["a.txt"]
    assert (root / "a.txt").read_text() == "two\nthree\n"


LINES = st.lists(
    st.text(alphabet="ab \t\f\x85\u2028é", min_size=1, max_size=4), min_size=1, max_size=8
)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    LINES, st.integers(1, 8), st.integers(1, 8), st.sampled_from(["\n", "\r\n", "\r"]), st.data()
)
def test_line_numbers_select_exactly_those_lines(
    shared: Client, lines: list[str], first: int, last: int, newline: str, data: st.DataObject
) -> None:
    path = shared.root / "lines.txt"
    first, last = sorted((min(first, len(lines)), min(last, len(lines))))
    end = data.draw(st.sampled_from([newline, ""])) if len(lines) > 1 else newline
    text = newline.join(lines) + end
    segment = f"SEGMENT STARTING AT LINE {first} ENDING AT LINE {last}"
    forms = {
        f"DELETE LINE {first}": [*lines[: first - 1], *lines[first:]],
        f"INSERT BEFORE LINE {first} WITH CONTENT 'new'": [
            *lines[: first - 1],
            "new",
            *lines[first - 1 :],
        ],
        f"INSERT AFTER LINE {first} WITH CONTENT 'new'": [*lines[:first], "new", *lines[first:]],
        f"REPLACE LINE {first} WITH CONTENT 'new'": [*lines[: first - 1], "new", *lines[first:]],
        f"DELETE {segment}": [*lines[: first - 1], *lines[last:]],
        f"REPLACE {segment} WITH CONTENT 'new'": [*lines[: first - 1], "new", *lines[last:]],
    }
    for form, wanted in forms.items():
        path.write_bytes(text.encode())
        shared.carry_out(f"UPDATE FILE 'lines.txt' {form}")
        assert path.read_bytes() == (newline.join(wanted) + (end if wanted else "")).encode(), form


def workers() -> set[psutil.Process]:
    """Return the workers of the servers in this process."""
    found = set()
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):  # also of a process that just ended
            if any("cedarscript_worker" in word for word in child.cmdline()):
                found.add(child)
    return found


def test_slow_pattern_times_out_and_the_next_call_works(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RUN_SECONDS", 1.0)
    (root / "redos.txt").write_text("a" * 40 + "b\n")
    hostile = (
        'UPDATE FILE "redos.txt" REPLACE WHOLE WITH CASE WHEN REGEX r"^(a+)+$" THEN REMOVE END',
        'UPDATE FILE "redos.txt" DELETE LINE REGEX r"^(a+)+$"',
        'UPDATE FILE "redos.txt" REPLACE WHOLE WITH CASE WHEN REGEX "a" THEN SUB r"(a+)+$" r"" END',
    )
    others = workers()
    with Client(root, log_level="off") as client:
        for script in hostile:
            error = client.fail("apply_cedarscript", commands=script)
            assert error["code"] == "SCRIPT_TIMEOUT"
            assert client.preview(FIRST)["affected_files"] == ["a.txt"]
        assert len(workers() - others) == 1
    assert workers() == others


@pytest.mark.parametrize("distinct", [120, 100_000])
def test_file_of_100_000_lines_is_edited(client: Client, root: Path, distinct: int) -> None:
    (root / "long.txt").write_text("".join(f"line {n % distinct}\n" for n in range(100_000)))
    (shown,) = client.preview("UPDATE FILE 'long.txt' REPLACE LINE 50001 WITH CONTENT 'x'")["diffs"]
    assert "\n@@ -49998,7 +49998,7 @@\n line" in shown["diff"]


def test_time_in_which_the_worker_gets_no_processor_is_not_counted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RUN_SECONDS", 1.0)
    others = workers()
    with Client(root, log_level="off") as client:
        client.preview(FIRST)
        (worker,) = workers() - others
        worker.suspend()
        waking = threading.Timer(2.5, worker.resume)
        waking.start()
        assert client.preview(FIRST)["affected_files"] == ["a.txt"]
        waking.join()


def test_worker_is_started_when_the_tools_are_listed(root: Path) -> None:
    others = workers()
    with Client(root, log_level="off") as client:
        client.ask("tools/list")
        client.ask("tools/list")
        eventually(lambda: len(workers() - others) == 1)
        client.preview(FIRST)
        assert len(workers() - others) == 1
    assert workers() == others


def test_server_that_ends_while_the_worker_starts_leaves_nothing(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, others = {*tmp_path.iterdir()}, workers()
    for pause in (0, 0.01, 0.05):
        with Client(root, log_level="off") as client:
            client.ask("tools/list")
            time.sleep(pause)
    assert workers() == others
    assert {*tmp_path.iterdir()} == before


def test_slow_pattern_delays_no_other_tool_and_can_be_cancelled(root: Path) -> None:
    (root / "redos.txt").write_text("a" * 40 + "b\n")
    script = 'UPDATE FILE "redos.txt" DELETE LINE REGEX r"^(a+)+$"'
    with Client(root, log_level="off") as client:
        arguments = {"commands": script}
        client.send(modern("slow", "tools/call", name="apply_cedarscript", arguments=arguments))
        begun = time.monotonic()
        assert client.call("explain_error", error_message="NO_CHANGE")["known"] is True
        assert time.monotonic() - begun < 5
        client.send(notification("notifications/cancelled", {"requestId": "slow"}))
        begun = time.monotonic()
        assert client.preview(FIRST)["affected_files"] == ["a.txt"], "cancelled, it ends at once"
        assert time.monotonic() - begun < engine.RUN_SECONDS


def test_excessive_indentation_is_refused(client: Client) -> None:
    for script in (
        "CREATE FILE 'big.txt' WITH CONTENT '@99999999:y'",
        "CREATE FILE 'big.txt' WITH CONTENT '@" + "9" * 5000 + ":y'",
        "UPDATE FILE 'a.txt' REPLACE WHOLE WITH CONTENT '''\n@65:y\n'''",
    ):
        assert client.refuse(script)["code"] == "INDENTATION_OUT_OF_RANGE"


def test_script_and_its_output_have_a_size_limit(root: Path) -> None:
    grow = "UPDATE FILE 'a.txt' REPLACE WHOLE WITH CASE WHEN REGEX r'.' THEN SUB r'.' r'{}' END\n"
    with Client(root, log_level="off", max_file_size=100_000) as client:
        error = client.refuse(grow.format("x" * 50) * 4)
        assert error["code"] == "TOO_LARGE"
        assert client.refuse("#" * (256 * 1024 + 1))["code"] == "SCRIPT_TOO_LARGE"
        assert client.preview(FIRST)["affected_files"] == ["a.txt"]


def test_worker_memory_has_a_limit(root: Path) -> None:
    grow = "UPDATE FILE 'a.txt' REPLACE WHOLE WITH CASE WHEN REGEX r'.' THEN SUB r'' r'{}' END\n"
    with Client(root, log_level="off", max_file_size=10**9) as client:
        error = client.fail("apply_cedarscript", commands=grow.format("x" * 20_000) * 3)
        assert error["code"] in {"SCRIPT_TOO_COSTLY", "TOO_LARGE"}
        assert client.preview(FIRST)["affected_files"] == ["a.txt"]


def test_deeply_nested_code_does_not_break_the_server(client: Client, root: Path) -> None:
    deep = "x = " + "(" * 5_000 + ")" * 5_000
    client.fail("apply_cedarscript", commands=f"CREATE FILE 'deep.py' WITH CONTENT '{deep}'")
    assert client.preview(FIRST)["affected_files"] == ["a.txt"]


def test_worker_is_isolated_and_replaced_if_killed(
    client: Client, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "hush")
    others = workers()
    client.preview(FIRST)
    (worker,) = workers() - others
    assert set(worker.environ()) <= {*engine._PASSED_ON, "LC_CTYPE"}
    assert not os.path.exists(worker.cwd()), "nothing can be made there"  # noqa: PTH110
    assert os.getpgid(worker.pid) == worker.pid
    assert {file.path for file in worker.open_files()} == set()
    again = client.preview(FIRST)
    assert again["affected_files"] == ["a.txt"]
    assert workers() - others == {worker}, "one warm worker"
    worker.kill()
    worker.wait(10)
    assert client.preview(FIRST) == again, "whoever is killed is replaced"


PARSED_AGAIN = """
from w.library import Library
library = Library(1000)
script = "UPDATE FUNCTION 'f' FROM FILE 'x.py' REPLACE BODY WITH CONTENT '@0:return 2'"
for _ in range(3):
    commands, _ = library.parser.parse_script(script)
    library.update(commands[0], "def f():\\n    return 1\\n", "x.py")
finder = sys.modules["cedarscript_editor.tree_sitter_identifier_finder"]
print(finder.get_parser("python").hits)
"""


def in_worker(program: str) -> str:
    """Run a program with the worker's modules as package ``w``; return its last line of output."""
    start = "import sys, types\npackage = types.ModuleType('w')\npackage.__path__ = sys.argv[1:]\n"
    here = str(CHECKOUT / "reference_server" / "features" / "cedarscript")
    command = (sys.executable, "-P", "-c", f"{start}sys.modules['w'] = package\n{program}", here)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_unchanged_file_is_parsed_once() -> None:
    assert int(in_worker(PARSED_AGAIN)) >= 2


def test_worker_imports_no_slow_library() -> None:
    """With ``importlib.metadata`` the first parse took twice as long."""
    program = (
        "from w.library import Library\n"
        "from w.worker import _warm_up\n"
        "_warm_up(Library(1000))\n"
        "slow = {'importlib.metadata', 'email', 'zipfile', 'packaging'}\n"
        "print(sorted(slow & {*sys.modules}))"
    )
    assert in_worker(program) == "[]"


def test_concurrent_scripts_are_all_answered(client: Client, root: Path) -> None:
    lay(root, {f"f{n}.txt": "one\ntwo\n" for n in range(20)})
    before = threading.active_count()  # another test may have left some
    for n in range(20):
        arguments = {"commands": f"UPDATE FILE 'f{n}.txt' DELETE LINE 'one'", "dry_run": False}
        client.send(modern(f"w{n}", "tools/call", name="apply_cedarscript", arguments=arguments))
    heard = [client.hear(60) for _ in range(20)]
    assert {answer["id"] for answer in heard} == {f"w{n}" for n in range(20)}
    assert all("isError" not in answer["result"] for answer in heard), heard
    assert {(root / f"f{n}.txt").read_text() for n in range(20)} == {"two\n"}
    assert threading.active_count() - before < 27


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_tools_are_listed_in_each_revision(root: Path, revision: str) -> None:
    with Client(root, log_level="off") as client:
        client.open(revision)
        client.send(ask(revision, "list", "tools/list"))
        tools = client.hear()["result"]["tools"]
        names = ["parse_cedarscript", "apply_cedarscript", "explain_error", "list_capabilities"]
        assert [tool["name"] for tool in tools] == names
        if revision == MODERN:
            hints = [tool["annotations"]["readOnlyHint"] for tool in tools]
            assert hints == [True, False, True, True]


def test_capability_examples_can_be_parsed(shared: Client) -> None:
    capabilities = shared.call("list_capabilities")
    assert capabilities["available"] is True
    assert "reason" not in capabilities
    for command in capabilities["commands"]:
        assert shared.call("parse_cedarscript", content=command["example"])["count"] == 1
