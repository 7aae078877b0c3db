"""All fakes by name."""

from types import ModuleType

from tests.fakes import guards, links, modes, patches, promises
from tests.fakes.server import Guard

MODULES: tuple[ModuleType, ...] = (guards, links, patches, promises, modes)

ODD: dict[str, type[Guard]] = {"SulksAfterAClimb": guards.SulksAfterAClimb}
"""Fakes that no threat names: they show something of the harness."""

FAKES: dict[str, type[Guard]] = {
    name: found
    for module in MODULES
    for name, found in vars(module).items()
    if isinstance(found, type)
    and issubclass(found, Guard)
    and found is not Guard
    and found not in {*ODD.values(), links.Lexical}
}
