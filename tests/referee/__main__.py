"""The program: ``python -m tests.referee --root DIR``, over stdio, or over HTTP with ``--http``."""

import os
import sys
from functools import partial

from mcp_touchstone.bridge import reference
from reference_server.__main__ import main
from reference_server.bundle import ALL_FEATURES
from reference_server.features import skills
from reference_server.operation import options
from tests.referee import content, rounds, tools

FEATURES = (*ALL_FEATURES, skills.feature, tools.feature, rounds.feature, content.feature)

COMMAND = (sys.executable, "-m", "tests.referee")

if __name__ == "__main__":
    words = sys.argv[1:]
    if "--http" in words:
        check = partial(options.read, environment=os.environ)
        sys.exit(reference.main("tests.referee", COMMAND, words, check, options.UsageError))
    sys.exit(main(words, FEATURES))
