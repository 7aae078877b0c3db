"""A deny list of the user: its entries, its errors, and the payloads made from it."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.bindings.canary import Area
from mcp_touchstone.catalog.loader import SECURITY, home, load
from mcp_touchstone.cli import main
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.security import payload, reachability
from mcp_touchstone.security.fixture_tree import FixtureTree
from mcp_touchstone.target import deny_list
from mcp_touchstone.target.promises import PromiseTerms, read, shown
from tests.cases import cases
from tests.fakes.denials import LIST
from tests.fakes.matrix import attacked, target_of
from tests.runs import learning

SUITE = home() / "security_suite"
LIBRARY = payload.load(SUITE / "payloads")
POSIX = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")


@cases(
    (".env", ".env", ["a/.env", ".env"], [".envrc", "env", "a.env"]),
    ("*.pem", "touchstone.pem", ["a/b/c.pem"], ["pem", "c.pem.txt"]),
    (".ssh/", ".ssh", [".ssh/id", "a/.ssh/b/c", ".ssh"], [".sshd/x", "ssh/x"]),
    ("private/**", "private", ["private/a/b"], ["private", "a/private/b", "privates/a"]),
    ("**/x/**", "x", ["x/a", "a/x/b/c"], ["x", "a/x"]),
    ("private/*", "private/touchstone", ["private/a/b"], ["private", "a/private/b"]),
    ("**/private/", "private", ["a/private/b"], ["privates"]),
    ("config/*.yml", "config/touchstone.yml", ["config/a.yml"], ["a/config/a.yml", "a.yml"]),
    ("a/**/key", "a/key", ["a/key", "a/b/c/key"], ["b/a/key", "a/keys"]),
    ("id_[!a-c]?", "id_dx", ["x/id_d1"], ["id_a1", "id_d"]),
    ("id_[ab]", "id_a", ["id_b"], ["id_c"]),
)
def test_deny_entry_matches_like_gitignore(
    entry: str, example: str, has: list[str], lacks: list[str]
) -> None:
    found = deny_list.read([entry])

    assert found.names["denied"] == (example,)
    for path in has:
        assert found.lists(path.split("/")), path
    for path in lacks:
        assert not found.lists(path.split("/")), path


BAD_ENTRIES = (
    *("", " ", "/etc", "C:/x", "~/.ssh", "../x", "a/../b", "a//b", "./a", "!a", "{a,b}", "a\\b"),
    *('a"b', "**", "*", "*.txt", "dir/"),
)
BAD_LISTS = (
    *('deny-list={"deny": []}', 'deny-list={"deny": "*.pem"}', 'deny-list={"denied": ["a"]}'),
    'read-only={"deny": ["a"]}',
    shown("deny-list", PromiseTerms(deny=tuple(map(str, range(65))))),
)


def test_invalid_deny_list_is_refused_with_a_hint(golden: SnapshotAssertion) -> None:
    said = []
    lists = [f"deny-list={json.dumps({'deny': ['.ssh/', entry]})}" for entry in BAD_ENTRIES]
    for promise in (*lists, *BAD_LISTS):
        with pytest.raises(ValueError, match="deny") as caught:
            read(promise)
        said.append(str(caught.value))

    assert "\n".join(said) == golden


def test_invalid_deny_entry_in_a_configuration_prints_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "touchstone.toml").write_text(
        'command = ["x", "{root}"]\n[promise]\ndeny-list = { deny = ["../up"] }\n', encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)

    status = main(["check", "--suite", "security"])

    (line,) = capsys.readouterr().err.splitlines()
    assert status == 2
    assert "touchstone.toml" in line
    assert "promise: deny-list" in line


def test_name_variants_equal_to_the_original_are_omitted() -> None:
    own = deny_list.read(["private/", "ID", "a/b/", "*.key"])

    assert [*own.texts("{denied_folder|upper}/x")] == ["PRIVATE/x", "A/B/x"]
    assert [*own.texts("{denied_file|upper}")] == ["TOUCHSTONE.KEY"]
    assert [*own.texts("{denied_folder|bare}/x")] == []
    assert [*own.texts("{denied_deep_folder}/x {other}")] == ["private/x {other}"]
    assert [*own.texts("lnk_{denied_folder|flat}")] == ["lnk_private", "lnk_ab"]
    assert [*own.texts("{denied_file|short}")] == ["ID~1", "TOUCHS~1.KEY"]
    assert [*own.texts("{denied_file|last-escaped}")] == ["I%44", "touchstone.ke%79"]
    assert [*own.texts("{denied_file|title}")] == []  # Touchstone.key is denied like touchstone.key
    assert [*own.texts("plain")] == ["plain"]


def test_long_deny_list_is_spread_over_the_payload_rows() -> None:
    own = deny_list.read([f"name{n}" for n in range(20)])
    taken = [[*own.texts(f"{n}/{{denied_file}}", everything=False)] for n in range(40)]

    assert {len(texts) for texts in taken} == {deny_list.EACH}
    assert len({text.partition("/")[2] for texts in taken for text in texts}) == 20
    assert len([*own.texts("{denied_file}")]) == 20


def reached(field: FixtureTree, group: str) -> set[str]:
    return {
        text
        for row, text in field.each(LIBRARY[group])
        if reachability.aim(row, text, field) is not None
    }


@POSIX
def test_fixture_tree_contains_only_the_names_of_the_user() -> None:
    with FixtureTree(
        SUITE / "fixtures.toml", ("base", "links", "denied"), deny_list.read(LIST)
    ) as field:
        planted = {c.where for c in field.canaries.planted if c.area is Area.DENIED}
        everything = {path.name for path in field.root.below()}

        assert {
            "root/touchstone.pem",
            "root/secrets.yml",
            "root/config/secrets.yml",
            "root/.ssh/config",
            "root/.ssh/refs/heads/main",
            "root/pkg/.ssh/m.pyc",
            "root/private/hooks/pre-commit",
            "root/dir/sub/deep/secrets.yml",
        } <= planted
        assert "root/pkg/private/m.pyc" not in planted
        assert not {".git", ".env", "node_modules", "bin", "obj"} & everything
        assert {"private/HEAD", ".ssh/HEAD", "touchstone.pem"} <= reached(field, "deny.direct")
        assert "dir/../secrets.yml" in reached(field, "deny.spelling")
        assert {"lnk_ssh/config", "lnk_secretsyml"} <= reached(field, "deny.alias")
        assert reached(field, "deny.writeonly") == set()

        field.restore()
        (field.root / ".ssh" / "HEAD").unlink()
        (field.root / "sub").mkdir()
        (field.root / "sub" / "new.pem").touch()
        assert {c.path for c in field.damage()} >= {"root/.ssh/HEAD", "root/sub/new.pem"}


@POSIX
def test_conflicting_deny_entries_are_planted_without_damage() -> None:
    odd = deny_list.read(
        ["pkg", "config", "config/", "lnk_*", "docs/", "a", "a/b", ".git/", "existing.txt"]
    )

    with FixtureTree(
        SUITE / "fixtures.toml", ("base", "siblings", "links", "denied"), odd
    ) as field:
        assert field.damage() == []


@POSIX
def test_server_is_judged_only_by_the_names_of_the_user() -> None:
    choice = Choice(select=("deny",), jobs=4)
    run, profile = learning(target_of("DeniesItsOwn"), load(SECURITY), choice)
    found = {verdict.clause.id: verdict.outcome for verdict in run.verdicts}

    assert "attacked with touchstone.pem, secrets.yml, .ssh, private" in profile.remarks[-1]
    assert found["deny-direct"] is Outcome.PASS
    assert found["deny-near-miss"] is Outcome.PASS
    assert found["deny-write-only"] is Outcome.UNSEEN
    assert {*found.values()} == {Outcome.PASS, Outcome.UNSEEN}


@POSIX
def test_server_with_own_deny_list_fails_the_default_list() -> None:
    target = replace(target_of("DeniesItsOwn"), promise={"deny-list": PromiseTerms()})
    (verdict,) = judge(target, load(SECURITY), Choice(select=("deny-direct",), jobs=2)).verdicts

    assert verdict.outcome is Outcome.FAIL


@POSIX
def test_finding_names_the_denied_path() -> None:
    (verdict,) = attacked("DeniesItsOwnAtTheTop", ("deny-direct",)).verdicts

    assert "root/pkg/.ssh/m.pyc" in verdict.gravest.actual


@POSIX
def test_deny_list_without_letters_is_not_judged_by_case() -> None:
    target = target_of("DeniesItsOwn")
    target = replace(target, promise={"deny-list": PromiseTerms(deny=("123/",))})
    run = judge(target, load(SECURITY), Choice(select=("deny-case",), jobs=2))

    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.UNSEEN]
