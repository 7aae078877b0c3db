"""The fixture tree of an attack: canaries, damage detection, payload targets, effects of moves."""

import base64
import json
import mmap
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_touchstone.bindings.canary import Area, Canaries
from mcp_touchstone.catalog.loader import home
from mcp_touchstone.runtime import git_repo
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.security import payload, reachability
from mcp_touchstone.security.fixture_tree import ALWAYS, DENYING, VARIABLE, FixtureTree, commit_name
from tests.cases import cases

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")

SUITE = home() / "security_suite"
LIBRARY = payload.load(SUITE / "payloads")
SECRET = {Area.OUTSIDE, Area.ENVIRONMENT}

ELSEWHERE = {"bestfit", "cp932", "cp949", "posix-darwin", "win", "hfs", "casefold"}
"""Readings of other platforms and of code pages."""

DEAD = {
    "path.sibling-14": "needs a sibling that is a file",
    "path.sibling-18": "the name of the root is the same in both forms",
    "path.absolute-09": "the root of the file system holds nothing of ours to be known again",
    "path.separators-06": "what is left is an absolute path to nowhere",
    "path.expansion-07": "Windows spells variables so",
    "path.nul-control-06": "aims at a denied name",
    "link.write-13": "is a pair of paths",
    "link.write-15": "is a pair of paths",
}


@pytest.fixture
def field() -> Iterator[FixtureTree]:
    with FixtureTree(SUITE / "fixtures.toml") as made:
        yield made


def test_each_file_has_its_own_canary_on_every_line(field: FixtureTree) -> None:
    tokens = [canary.token for canary in field.canaries.planted]
    outside = (field.outside / "canary-file.txt").read_text().splitlines()

    assert len(tokens) == len(set(tokens)) > 20
    assert len(outside) == 4
    assert len({line.partition(" ")[0] for line in outside}) == 1
    assert field.env({})[VARIABLE] in tokens


@cases(
    lambda t: t,
    lambda t: t[:-8],
    lambda t: t.encode().hex(),
    lambda t: base64.b64encode(t.encode()).decode(),
    lambda t: base64.b64encode(b"x" + t.encode() + b"tail").decode(),
    lambda t: base64.b64encode(b"xy" + t.encode() + b"tail").decode(),
    lambda t: f"1 | +{t}",
)
def test_canary_is_found_in_any_encoding(shape: "object") -> None:
    canaries = Canaries()
    canary = canaries.plant("outside/x", Area.OUTSIDE)
    assert callable(shape)
    message = {"result": {"content": [{"text": f"before {shape(canary.token)} after"}]}}

    assert canaries.found_in_message(json.loads(json.dumps(message)), SECRET) == [canary]


def test_canary_is_found_in_a_git_object() -> None:
    canaries = Canaries()
    canary = canaries.plant("outside/x", Area.OUTSIDE)
    packed = zlib.compress(b"blob 9\0" + canary.content.encode())

    assert canaries.found(packed, SECRET) == [canary]
    assert canaries.found(b"MCPCANARY-0123456789abcdef0123456789abcdef", SECRET) == []


def test_changes_outside_the_root_are_detected_and_restored(field: FixtureTree) -> None:
    victim = field.outside / "canary-file.txt"
    assert field.damage() == []

    victim.write_text("overwritten")
    (field.sibling / "new").mkdir()
    damage = {change.path: change.what for change in field.damage()}
    assert damage == {"outside/canary-file.txt": "changed", "rootEvil/new": "made (folder)"}
    field.restore()
    assert field.damage() == []
    assert field.content(victim) == victim.read_bytes() != b"overwritten"


def test_write_to_a_mapped_file_that_leaves_its_times_is_detected(field: FixtureTree) -> None:
    victim = field.outside / "canary-file.txt"
    with Path(str(victim)).open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:1] = mapped[0:1]  # the page is now dirty: later writes to it change no time
        field.accept_outside()
        mapped[0:1] = b"#"
        damage = field.damage()

    assert [str(change) for change in damage] == ["outside/canary-file.txt was changed"]
    field.restore(damage)
    assert victim.read_bytes() == field.content(victim)


def test_created_and_deleted_file_is_detected(field: FixtureTree) -> None:
    (field.outside / "passing").touch()
    (field.outside / "passing").unlink()

    assert [change.path for change in field.damage()] == ["outside"]


def test_new_files_in_home_tmp_and_root_are_no_damage(field: FixtureTree) -> None:
    (field.home / ".cache").mkdir()
    (field.tmp / "x").touch()
    (field.root / "made").touch()
    assert field.damage() == []

    (field.home / "canary-file.txt").unlink()
    assert [str(change) for change in field.damage()] == ["home/canary-file.txt was removed"]


def test_outside_bytes_copied_into_the_root_are_found(field: FixtureTree) -> None:
    assert field.laundered(SECRET) == []
    (field.root / "stolen").write_bytes((field.outside / "src.py").read_bytes())

    assert [where for where, _ in field.laundered(SECRET)] == ["root/stolen"]


def test_search_for_canaries_ends_in_a_file_of_any_size(
    field: FixtureTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_touchstone.security.fixture_tree.SEARCHED", 4 << 20)
    (field.root / "vast").make_sparse(1 << 40, b"end")

    with pytest.raises(OSError, match="were not all searched"):
        field.laundered(SECRET)

    (field.root / "vast").unlink()
    (field.root / "stolen").write_bytes((field.outside / "src.py").read_bytes())
    assert [where for where, _ in field.laundered(SECRET)] == ["root/stolen"]


FAMILIES = [group for group in LIBRARY if group.startswith(("path.", "link."))]


@pytest.mark.parametrize("group", FAMILIES)
def test_live_payloads_reach_their_target_without_protection(
    field: FixtureTree, group: str
) -> None:
    dead = {
        row.id
        for row, text in field.each(LIBRARY[group])
        if row.live and not set("+".join(row.live).split("+")) & ELSEWHERE
        if reachability.aim(row, text, field) is None
    }

    assert dead - set(DEAD) == set()


def test_denied_bytes_copied_to_a_file_that_may_be_read_are_found() -> None:
    with FixtureTree(SUITE / "fixtures.toml", [*ALWAYS, DENYING]) as made:
        denied = made.root / ".env"
        (made.root / "kept").mkdir()
        (made.root / "kept" / ".env").write_bytes(denied.read_bytes())
        (made.root / "kept" / "stolen").write_bytes(denied.read_bytes())

        found = {where for where, _ in made.laundered({Area.DENIED})}

    assert found == {"root/kept/stolen"}


def test_payloads_inside_the_root_reach_no_target(field: FixtureTree) -> None:
    for group in FAMILIES:
        for row in LIBRARY[group]:
            if row.expect == "same-as-plain":
                assert reachability.aim(row, payload.fill(row.text, field.names), field) is None, (
                    row.id
                )


def test_siblings_of_a_repository_root_are_repositories() -> None:
    with FixtureTree(SUITE / "fixtures.toml", is_repository=True) as made:
        assert (made.outside / ".git").is_dir()
        assert (made.sibling / ".git").is_dir()
        assert not (made.path / ".git").exists()
        assert not (made.home / ".git").exists()
        assert made.damage() == []


def test_canary_name_in_a_git_index_is_replaced(field: FixtureTree) -> None:
    for name in ("first", "second"):
        commit_name(field.root / "dir", field.canaries.name(f"root/{name}", Area.INSIDE))

    assert (field.root / "dir/.git/index").read_bytes().count(b"mcpname-") == 1


def test_git_index_is_written_and_read_back(field: FixtureTree) -> None:
    names = {f"{'n' * n}.txt": f"{n}\n" for n in range(1, 9)}
    folder = field.root / "dir/staged"
    folder.mkdir()
    assert git_repo.staged(folder) == {}
    for name, text in names.items():
        (folder / name).write_text(text)
    git_repo.commit(folder, names)

    found = git_repo.staged(folder)

    assert list(found) == sorted(names)
    assert len({*found.values()}) == len(names)
    assert all(git_repo.keeps(folder, text.encode()) for text in names.values())
    assert not git_repo.keeps(folder, b"another\n")


def test_outside_bytes_in_the_git_objects_of_the_root_are_found() -> None:
    with FixtureTree(SUITE / "fixtures.toml", is_repository=True) as made:
        copy = made.root / "copy"
        copy.mkdir()
        data = (made.outside / "canary-file.txt").read_bytes()
        (copy / "file").write_bytes(data)
        git_repo.commit(copy, ["file"])
        (name,) = (
            p
            for p in (copy / ".git/objects").below()
            if p.is_file() and b"MCPCANARY" in git_repo.unpacked(p.read_bytes())
        )
        kept = made.root / ".git/objects" / name.parent.name / name.name
        kept.parent.mkdir(exist_ok=True)
        name.rename(kept)
        (copy / "file").unlink()

        ((where, canary),) = made.laundered({Area.OUTSIDE})

    assert where == f"root/.git/objects/{name.parent.name}/{name.name}"
    assert canary.where == "outside/canary-file.txt"


def test_tree_is_restored_after_an_attack(field: FixtureTree) -> None:
    state = field.state()
    (field.root / "new" / "deep").mkdir(parents=True)
    (field.root / "new" / "deep" / "file.txt").write_text("left by an attack")
    (field.root / "control.txt").write_text("changed")
    (field.outside / "new.txt").write_text("outside")
    link = next(path for path in sorted(field.root.below()) if path.is_symlink())
    link.unlink()
    field.names["pid"] = "17"

    assert field.state() != state
    assert field.restored(state)
    assert field.state() == state
    assert link.is_symlink()


def test_folder_that_was_replaced_by_a_link_to_it_is_restored(field: FixtureTree) -> None:
    field.restore()
    folder = next(path for path in sorted(field.root.below()) if (path / "ok2.txt").is_file())
    kept = (folder / "ok2.txt").read_bytes()
    folder.rename(field.root / "moved")
    folder.symlink_to("moved")
    field.restore()

    assert folder.is_dir()
    assert (folder / "ok2.txt").read_bytes() == kept


def test_folders_are_opened_once_to_look_at_their_files(
    field: FixtureTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    field.restore()
    opened = []
    real = SafePath.opened

    def noted(path: SafePath) -> object:
        opened.append(path)
        return real(path)

    monkeypatch.setattr(SafePath, "opened", noted)
    field.restore([])

    assert opened
    assert len(opened) == len(set(opened))


@pytest.mark.parametrize("change", ["a note of the world", "a canary", "a line of a script"])
def test_tree_with_other_changes_is_not_restored(field: FixtureTree, change: str) -> None:
    state = field.state()
    if change == "a note of the world":
        (field.root / "README.md").write_text("changed")
    elif change == "a canary":
        field.plain(field.root / "planted.txt")
    else:
        field.made.append("true")

    assert not field.restored(state)


@pytest.fixture(scope="module")
def denying() -> Iterator[FixtureTree]:
    with FixtureTree(SUITE / "fixtures.toml", [*ALWAYS, DENYING]) as made:
        yield made


@cases(
    ("../outside/canary-file.txt -> new.txt", reachability.Carriage.IN),
    ("lnk_dir_abs -> new", reachability.Carriage.IN),
    ("ok.txt -> ../outside/new.txt", reachability.Carriage.OUT),
    ("ok.txt -> lnk_dir_abs", reachability.Carriage.OVER),
    ("dir_with_links -> new", reachability.Carriage.TREE),
    (".git -> new", reachability.Carriage.DENIED),
    ("ok.txt -> bin/app.txt", reachability.Carriage.DENIED),
    ("ok.txt -> new.txt", None),
    ("dir -> dir/sub/inner", None),
    ("dir -> new", None),
    (". -> new", None),
)
def test_move_is_classified_by_its_effect(
    denying: FixtureTree, text: str, kind: reachability.Carriage | None
) -> None:
    assert reachability.carriage(text, denying) is kind


def test_mend_restores_the_contents_of_a_moved_folder(field: FixtureTree) -> None:
    (field.root / "dir_with_links").rename(field.root / "elsewhere")

    field.restore()

    assert (field.root / "dir_with_links" / "out").is_symlink()
