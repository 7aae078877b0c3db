"""Is sound, but logs without end to stderr."""

import os, sys, threading

sys.path.insert(0, sys.argv[1])
from reference_server.server import serve
from reference_server.settings import Settings


def flood():
    while True:
        os.write(2, b"debug: all is well " * 2000 + b"\n")


threading.Thread(target=flood, daemon=True).start()
serve(0, 1, Settings())
