"""Move payloads are classified by their effect on the fixture tree."""

import os
from collections.abc import Iterator

import pytest

from mcp_touchstone.catalog.loader import home
from mcp_touchstone.security.fixture_tree import FixtureTree
from mcp_touchstone.security.reachability import Carriage, carriage
from tests.cases import cases

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")


@pytest.fixture(scope="module")
def field() -> Iterator[FixtureTree]:
    trees = ("base", "siblings", "links", "denied")
    with FixtureTree(home() / "security_suite" / "fixtures.toml", trees) as made:
        yield made


@cases(
    ("../outside/canary-file.txt -> new.txt", Carriage.IN),
    ("lnk_dir_abs -> new", Carriage.IN),
    ("ok.txt -> ../outside/new.txt", Carriage.OUT),
    ("ok.txt -> lnk_dir_abs", Carriage.OVER),
    ("dir_with_links -> new", Carriage.TREE),
    (".git -> new", Carriage.DENIED),
    ("ok.txt -> bin/app.txt", Carriage.DENIED),
    ("ok.txt -> new.txt", None),
    ("dir -> dir/sub/inner", None),
    ("dir -> new", None),
    (". -> new", None),
)
def test_move_is_classified_by_its_effect(
    field: FixtureTree, text: str, kind: Carriage | None
) -> None:
    assert carriage(text, field) is kind


def test_mend_restores_the_contents_of_a_moved_folder(field: FixtureTree) -> None:
    (field.root / "dir_with_links").rename(field.root / "elsewhere")

    field.restore()

    assert (field.root / "dir_with_links" / "out").is_symlink()
