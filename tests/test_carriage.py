"""What a move would do is told from the tree; a folder that copies into itself is never carried."""

import os
from collections.abc import Iterator

import pytest

from mcp_touchstone.attack.field import Field
from mcp_touchstone.attack.reach import Carriage, carriage
from mcp_touchstone.loader import home

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    trees = ("base", "siblings", "links", "denied")
    with Field(home() / "security_suite" / "fixtures.toml", trees) as made:
        yield made


@pytest.mark.parametrize(
    ("text", "kind"),
    [
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
    ],
)
def test_a_move_is_known_by_what_it_would_do(
    field: Field, text: str, kind: Carriage | None
) -> None:
    assert carriage(text, field) is kind


def test_what_was_moved_away_with_its_folder_is_put_back(field: Field) -> None:
    (field.root / "dir_with_links").rename(field.root / "elsewhere")

    field.mend()

    assert (field.root / "dir_with_links" / "out").is_symlink()
