"""All fakes by name."""

import importlib
from pathlib import Path
from types import ModuleType

from tests.fakes import (
    commands,
    guards,
    havoc,
    http,
    injection,
    links,
    protocol,
    repositories,
    secrets,
    shapes,
    trust,
)
from tests.fakes.server import Guard

NONE = {"__init__", "__main__", "catalogue", "matrix", "server"}
"""Modules of this folder that hold no fakes."""

MODULES: tuple[ModuleType, ...] = tuple(
    importlib.import_module(f"tests.fakes.{path.stem}")
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if path.stem not in NONE
)

ODD: dict[str, type[Guard]] = {
    found.__name__: found
    for found in (
        *(guards.HangsOnHugeNames, guards.HangsOnLongNames, guards.ListsAnything),
        *(guards.ReadsByAnotherArgument, guards.RefusesAllAfterAClimb, havoc.WreaksHavoc),
        *(http.Behind, http.ListsTasksOfAll, http.ListsTasksOnly, http.RunsOwnTasks),
        *(http.RunsTasks, http.WatchesFiles, injection.ReadsAnyOfMany, injection.SortsSlowly),
        *(injection.SortsWithoutEnd, links.WalksEndlessly, protocol.DeafAfterABlankLine),
        *(protocol.EditsOnly, protocol.LeavesOnInvalidRequests),
    )
}
"""Fakes without a threat: they test the harness."""

BASES = {
    *(
        guards.OpensAnotherForm,
        commands.RunsPrograms,
        links.Lexical,
        shapes.Shaped,
        protocol.Talks,
        repositories.RunsGit,
    ),
    *(protocol.TalksWell, trust.Describes, http.SpeaksHttp, secrets.Keeps),
}
"""The base classes of fakes."""

FAKES: dict[str, type[Guard]] = {
    name: found
    for module in MODULES
    for name, found in vars(module).items()
    if isinstance(found, type)
    and issubclass(found, Guard)
    and found is not Guard
    and found not in {*ODD.values(), *BASES}
    and found.__module__ == module.__name__
}
