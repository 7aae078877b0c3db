"""The generated pages say what the catalogue says."""

import subprocess
import sys

from tests.conftest import HERE


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(HERE.parent / "docs" / "generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
