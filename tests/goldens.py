"""Golden files: one text file below ``golden/`` for each snapshot, and what is replaced in them."""

import re
import sys

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation

from tests.conftest import HERE

GOLDEN = HERE.parent / "golden"


class Golden(SingleFileSnapshotExtension):
    """One text file for each snapshot, below golden/."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        """Return the snapshot folder of a test file."""
        return str(GOLDEN / test_location.basename)


def scrubbed(text: str) -> str:
    """Replace what differs from run to run: folders, versions, times."""
    text = re.sub(r"/[\w./-]*mcp-touchstone-\w+", "<world>", text)
    text = re.sub(r'"version":"[^"]+"', '"version":"<version>"', text)
    text = re.sub(r"\((\w+\.py):\d+\)", r"(\1:<n>)", text)
    text = re.sub(r"(?m)^\d+\.\d s: server start-up .*", "<seconds of each part>", text)
    text = re.sub(r"mcp-touchstone(-reference)? \d[\w.+]*", r"mcp-touchstone\1 <version>", text)
    text = re.sub(r"\d+ processes, \d+\.\d s", "<processes>, <seconds>", text)
    text = text.replace(sys.executable, "<python>").replace(str(HERE.parent), "<checkout>")
    text = re.sub(r"/\S*/suites?/", "<suites>/", text)
    # The position of a line depends on the output before it; the snapshots are about its form.
    text = re.sub(r'"id":\d+', '"id":<id>', text)
    return re.sub(r"(?m)^(  line |  [ \u25b8] )\d+ +", r"\1<n> ", text)
