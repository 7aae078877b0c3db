"""The program: ``python -m tests.referee --root DIR``, on standard input and output."""

import sys

from reference_server.__main__ import main
from reference_server.features import ALL_FEATURES
from tests.referee import content, rounds, tools

FEATURES = (*ALL_FEATURES, tools.feature, rounds.feature, content.feature)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], FEATURES))
