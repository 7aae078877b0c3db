"""What a server does beside answering."""

import pytest

from mcp_touchstone.security.watch import OWN


@pytest.mark.parametrize(
    "name",
    [".npm/_cacache/tmp", ".npmrc", ".cache/uv/CACHEDIR.TAG", ".local/share/uv/tools/.lock"],
)
def test_a_file_of_a_launcher_is_no_state_of_the_server(name: str) -> None:
    assert OWN.search(name)


@pytest.mark.parametrize(
    "name", ["notes.db", ".cache/notes/index", ".local/share/notes/db", "notes/.npm/a", "go.txt"]
)
def test_another_file_in_its_home_is_state_of_the_server(name: str) -> None:
    assert not OWN.search(name)
