"""Run a fake: ``python tests/fakes NAME ROOT``.

``--matrix`` prints the findings of each fake, ``--proofs`` the payloads that each fake proves.
"""

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
if sys.path[0] == str(HERE):
    # A family may be called as a module of the standard library: secrets is.
    del sys.path[0]
sys.path.insert(0, str(HERE.parents[1]))

from tests.fakes.server import Guard  # noqa: E402  (needs the path)


def fake(named: str) -> type[Guard]:
    """Import only the module of one fake: the tests start thousands of them."""
    marks = (f"\nclass {named}(", f"\n    {named}=has(")
    for path in sorted(HERE.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(mark in text for mark in marks):
            module = importlib.import_module(f"tests.fakes.{path.stem}")
            found: type[Guard] = getattr(module, named)
            return found
    raise LookupError(named)


def main(words: list[str]) -> int:
    if words[:1] == ["--matrix"]:
        from tests.fakes.matrix import printed  # noqa: PLC0415  (a fake starts without it)

        return printed(words[1:])
    if words[:1] == ["--proofs"]:
        from tests.fakes.catalogue import FAKES  # noqa: PLC0415
        from tests.fakes.matrix import attacked, cover, near  # noqa: PLC0415

        sys.stdout.write(cover({name: attacked(name, near(name)).fired for name in FAKES}))
        return 0
    name, root, *options = words
    guard = fake(name)(root)
    guard.options = tuple(options)
    guard.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
