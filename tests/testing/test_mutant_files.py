"""A mutant is started from one file, which is found by its name."""

from tests.mutants.__main__ import files_of, load


def test_each_mutant_is_in_one_file() -> None:
    assert {name: files for name in load() if len(files := files_of(name)) != 1} == {}
