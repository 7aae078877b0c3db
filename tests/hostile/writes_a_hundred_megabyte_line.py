"""Answers initialize with a line of 100 MB."""

import os, sys

sys.stdin.readline()
os.write(1, b'{"jsonrpc":"2.0","id":101,"result":{"protocolVersion":"')
chunk = b"x" * 65536
try:
    for _ in range(1600):
        view = memoryview(chunk)
        while view:
            view = view[os.write(1, view) :]
    os.write(1, b'"}}\n')
except BrokenPipeError:
    sys.exit(0)
for _ in sys.stdin:
    pass
