"""Run a fake: ``python tests/fakes NAME ROOT``.

``--matrix`` prints the findings of each fake, ``--proofs`` the payloads that each fake proves.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
if sys.path[0] == str(HERE):
    # A family may be called as a module of the standard library: secrets is.
    del sys.path[0]
sys.path.insert(0, str(HERE.parents[1]))

from tests.fakes.catalogue import FAKES, ODD  # noqa: E402  (needs the path)


def main(words: list[str]) -> int:
    if words[:1] == ["--matrix"]:
        from tests.fakes.matrix import printed  # noqa: PLC0415  (a fake starts without it)

        return printed(words[1:])
    if words[:1] == ["--proofs"]:
        from tests.fakes.matrix import attacked, cover, near  # noqa: PLC0415

        sys.stdout.write(cover({name: attacked(name, near(name)).fired for name in FAKES}))
        return 0
    name, root, *options = words
    guard = {**FAKES, **ODD}[name](root)
    guard.options = tuple(options)
    guard.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
