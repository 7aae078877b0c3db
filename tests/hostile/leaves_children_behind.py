"""Starts a child that holds its pipes, and one in a session of its own."""

import subprocess, sys

sys.path.insert(0, sys.argv[1])
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
subprocess.Popen(SLEEP)
subprocess.Popen(
    SLEEP,
    start_new_session=True,
    stdin=subprocess.DEVNULL,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
)
from reference_server.server import serve
from reference_server.settings import Settings

serve(0, 1, Settings())
