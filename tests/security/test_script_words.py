"""Words of a server in a reproduction script are data: none is run, and each arrives unchanged."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_touchstone.catalog.loader import home
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.security import line_payloads
from mcp_touchstone.security.fixture_tree import FixtureTree
from mcp_touchstone.security.line_payloads import quoted
from mcp_touchstone.security.repro_calls import script, talk
from mcp_touchstone.security.repro_script import Scene, recreated
from mcp_touchstone.target.target import ROOT, Target

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the scripts are of POSIX")

REVISION: Final = "2025-11-25"

PIECES: Final = (
    '$(touch "$TRAP/1")',
    '`touch "$TRAP/2"`',
    '"; touch "$TRAP/3"; "',
    "'; touch $TRAP/4; '",
    "\ntouch $TRAP/5\n",
    "|touch $TRAP/6",
    "&touch $TRAP/7&",
    "\nLINES\ntouch $TRAP/8\n",
    "LINES",
    "-",
    "--",
    "-rf",
    "$D",
    '"$D"',
    "@D@",
    "@ID@",
    "%s",
    "%",
    "\\",
    "\\012",
    "'",
    '"',
    "`",
    "$",
    "{",
    "}",
    " ",
    "\n",
    "\t",
    "\x1b[2J",
    "\u202e",
    "*",
    "?",
    "~",
    "#",
    "=",
    "!",
    "a",
    "é",
    "\udcff",
)
"""Parts of hostile words. ``$TRAP`` is a folder in which nothing may be made."""

TEXTS: Final = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)
NAMES: Final = TEXTS.map(lambda text: text.replace("/", "")).filter(lambda text: text not in "..")
WORDS: Final = TEXTS.filter(lambda text: "\udcff" not in text)

SERVER: Final = """
import json, os, sys
said = []
for line in sys.stdin:
    said.append(line.rstrip("\\n"))
    if line.strip():
        answer = {"jsonrpc": "2.0", "id": json.loads(line).get("id"), "result": {}}
        print(json.dumps(answer), flush=True)
tree = {}
for folder, below, files in os.walk("."):
    for name in (*below, *files):
        path = os.path.join(folder, name)
        tree[path] = (
            "link" if os.path.islink(path)
            else "folder" if os.path.isdir(path) else open(path, "rb").read().hex()
        )
seen = {"said": said, "tree": tree, "words": sys.argv[2:], "env": dict(os.environ)}
with open(sys.argv[1], "w") as file:
    json.dump(seen, file)
"""
"""Answers everything, and writes down what it was given."""


@pytest.fixture(scope="module")
def field() -> Iterator[FixtureTree]:
    with FixtureTree(home() / "security_suite" / "fixtures.toml") as made:
        yield made


@contextmanager
def planted(folder: SafePath, name: str, content: str, leads: str) -> Iterator[SafePath]:
    """Make a folder with a file and a link, as a server might."""
    folder.mkdir()
    (folder / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    (folder / f"link{name[:40]}").symlink_to(leads)
    yield folder
    folder.remove()


def ran(text: str) -> dict[str, Any]:
    """Run a script in an empty folder; assert that it leaves nothing; return what arrived."""
    with tempfile.TemporaryDirectory() as folder:
        cwd, place, trap = (Path(folder, name) for name in ("cwd", "place", "trap"))
        for made in (cwd, place, trap):
            made.mkdir()
        seen = Path(folder, "seen")
        done = subprocess.run(
            ["sh", "-c", text.replace("sleep 1", ":").replace("@SEEN@", str(seen))],
            cwd=cwd,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(cwd),
                "TMPDIR": str(place),
                "TRAP": str(trap),
                "SANDBOX": "off",
            },
            capture_output=True,
            timeout=60,
            check=False,
        )
        left = [path.name for made in (cwd, place, trap) for path in made.iterdir()]
        assert left == [], text
        assert done.returncode in {0, 1}, done.stderr.decode() + text
        printed = (done.stdout + done.stderr).decode()
        assert printed.replace("\n", "").replace("\t", "").isprintable(), printed
        found: dict[str, Any] = json.loads(seen.read_text("utf-8"))
        return found


def target(*words: str, env: dict[str, str] | None = None) -> Target:
    command = (sys.executable, "-I", "-S", "-c", SERVER, "@SEEN@", *words)
    return Target(command=command, cwd=ROOT, env=env or {})


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(NAMES, TEXTS, TEXTS, WORDS, WORDS)
def test_words_of_a_server_are_not_run(
    field: FixtureTree, name: str, content: str, leads: str, word: str, more: str
) -> None:
    """Names, contents, links, arguments and variables reach the server as they are."""
    variable = word.replace("=", "")
    scene = Scene(field, target(word, more, env={"ODD": more, variable: more}), REVISION)
    call = ("tools/call", {"name": word, "arguments": {more: f"{field.root}/{word}"}})
    with planted(field.root / "made", name, content, leads):
        text = script(scene, f"made/{word}", call)
    assert "\x1b" not in text
    found = ran(text)

    assert found["words"] == [word, more]
    assert found["env"]["ODD"] == found["env"][variable] == more
    assert found["tree"][f"./made/{name}"] == content.encode("utf-8", "surrogateescape").hex()
    assert [path for path in found["tree"] if path.startswith("./made/")] == [f"./made/{name}"]
    params = json.loads(found["said"][-1])["params"]
    assert params["name"] == word
    (argument,) = params["arguments"].values()
    assert argument.endswith(f"/root/{word}") or field.root.name != "root"
    assert str(field.path) not in argument


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(NAMES, TEXTS, TEXTS, WORDS)
def test_words_of_a_server_in_a_folder_and_in_lines_are_not_run(
    field: FixtureTree, name: str, content: str, leads: str, word: str
) -> None:
    """A folder made again, lines as bytes, and denied names hold no code either."""
    denied = field.denied
    try:
        field.denied = SimpleNamespace(entries=[SimpleNamespace(example=word)], written=[])  # type: ignore[assignment]
        scene = Scene(field, target(), REVISION, denies=True)
        with planted(field.root / "made", name, content, leads) as folder:
            again = recreated(folder, field.path)
        steps = script(scene, "ok.txt", again, ("tools/call", {"name": word}))
        probe = {"jsonrpc": "2.0", "id": 9, "method": "ping", "params": {"word": word}}
        line = {"jsonrpc": "2.0", "id": 8, "method": word}
        lines = talk(scene, line_payloads.plain("x", word, line), probe)
    finally:
        field.denied = denied
    found = ran(steps)
    ours = {path: what for path, what in found["tree"].items() if path.startswith("./made/")}

    assert ours == {f"./made/{name}": content.encode("utf-8", "surrogateescape").hex()}
    assert json.loads(ran(lines)["said"][-1])["params"] == {"word": word.replace("@D@", "x")} or (
        "@D@" in word
    )


@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20) | TEXTS
)
@settings(max_examples=200, deadline=None)
def test_quoted_text_is_one_printable_word(text: str) -> None:
    word = quoted(text)
    done = subprocess.run(["sh", "-c", f"printf '%s.' {word}"], capture_output=True, check=True)

    assert word.replace("\n", "").isprintable()
    assert done.stdout.decode("utf-8", "surrogateescape") == f"{text}."


def test_link_of_a_server_is_not_made_again(field: FixtureTree, tmp_path: Path) -> None:
    folder = field.root / "made"
    folder.mkdir()
    (folder / "a").symlink_to(str(tmp_path))
    (tmp_path / "b").write_text("of the user")
    text = recreated(folder, field.path)
    folder.remove()

    assert "made/a" not in text
    assert "of the user" not in text


def test_link_out_of_the_seed_is_not_followed(field: FixtureTree, tmp_path: Path) -> None:
    """The copied folder of the user keeps no link that leads out of it."""
    seed = tmp_path / "seed"
    seed.mkdir()
    kept = tmp_path / "kept.txt"
    kept.write_text("precious", encoding="utf-8")
    (seed / "ok.txt").symlink_to(kept)
    scene = Scene(field, Target(command=target().command, cwd=ROOT, root_from=seed), REVISION)
    found = ran(script(scene, "ok.txt", ("ping", {})))

    assert kept.read_text("utf-8") == "precious"
    assert found["tree"]["./ok.txt"] != "link"


def test_script_refuses_a_folder_with_signs_in_its_name(field: FixtureTree, tmp_path: Path) -> None:
    """The path of the folder stands in JSON, in sed and in lines of attacks."""
    place = tmp_path / 'a b|&"'
    place.mkdir()
    done = subprocess.run(
        ["sh", "-c", script(Scene(field, target(), REVISION), "ok.txt", ("ping", {}))],
        env={"PATH": os.environ["PATH"], "TMPDIR": str(place)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2
    assert "set TMPDIR to a folder" in done.stdout
    assert list(place.iterdir()) == []
