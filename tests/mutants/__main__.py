"""Run one mutant as a server: ``python tests/mutants NAME [ROOT]``; without a name, list them.

``python tests/mutants --http PORT NAME [ROOT]`` serves it over HTTP. ``python tests/mutants
--matrix`` prints each judged clause with the mutants that break it. ``python tests/mutants --clause
ID`` judges the mutants of one clause, of servers or clients, or the fakes of one threat.
"""

import gc
import importlib
import os
import re
import sys

gc.disable()  # a mutant lives for seconds only, so collections are wasted processor time

HERE = os.path.abspath(f"{__file__}/..")  # noqa: PTH100  (pathlib is slow to import)
if sys.path[0] == HERE:
    # A chapter may be called as a module of the standard library: logging is.
    del sys.path[0]
sys.path.insert(0, os.path.abspath(f"{HERE}/../.."))  # noqa: PTH100

from tests.mutants import kit  # noqa: E402  (needs the path)

KITS = {"kit.py", "http_kit.py", "token_checks.py", "judged.py", "by_clause.py"}
NO_CHAPTERS = {"__main__.py", "__init__.py", *KITS}


def load(named: str = "") -> dict[str, kit.Mutant]:
    """Import every mutant file, or only the one that holds the mutant named."""
    if named in kit.REGISTRY:
        return kit.REGISTRY
    for file in files_of(named):
        importlib.import_module(f"tests.mutants.{file[:-3]}")
    return kit.REGISTRY


def files_of(named: str) -> list[str]:
    """Return the files with a class or a row of a name, without an import; all for no name."""
    pattern = rf'^(class | +|.*\)\(){named}[(=]|\(\s*"{named}",\s'
    word, mark = named.encode(), re.compile(pattern.encode() if named else b"", re.MULTILINE)
    found = []
    for file in sorted(os.listdir(HERE)):  # noqa: PTH208
        if file.endswith(".py") and file not in NO_CHAPTERS:
            with open(f"{HERE}/{file}", "rb") as opened:  # noqa: PTH123
                text = opened.read()
            if word in text and mark.search(text):  # the first is much faster, and mostly false
                found.append(file)
    return found


def matrix(known: dict[str, kit.Mutant]) -> int:
    """Print clause × mutant; 1 when a clause survives them all."""
    from mcp_touchstone.catalog.loader import load as load_suite  # noqa: PLC0415  (a mutant needs none)

    survivors = 0
    catalogue = load_suite().catalogue
    now = [one.due(lambda c: catalogue[c].judged) for one in known.values()]
    for clause in catalogue:
        if clause.judged:
            killers = [one.name for one in now if clause.id in one.breaks]
            survivors += not killers
            print(f"{clause.id:<52} {' '.join(killers) or 'SURVIVES'}")
    return bool(survivors)


def main(words: list[str]) -> int:
    """Run the mutant named first on the command line."""
    if words[:1] == ["--http"]:
        from tests.mutants import http_kit  # noqa: PLC0415  (a mutant of stdio needs none)

        port, name, root = words[1], words[2], (words[3:] or ["."])[0]
        return http_kit.run(name, load(name)[name].fault, int(port), root)
    if words[:1] == ["--clause"] and len(words) == 2:
        from tests.mutants.by_clause import printed  # noqa: PLC0415  (a mutant needs none)

        return printed(words[1])
    known = load(words[0] if words and words[0].isidentifier() else "")
    if not words:
        for name, one in known.items():
            print(f"{name:<52} {one.revision}  {' '.join(one.breaks or one.passes)}")
        return 0
    if words[0] == "--matrix":
        return matrix(known)
    if words[0] not in known:
        print(f"no mutant is called {words[0]}", file=sys.stderr)
        return 2
    return kit.run(known[words[0]].fault(), words[1] if len(words) > 1 else ".")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
