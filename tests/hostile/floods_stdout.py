"""Writes valid notifications as fast as it can."""

import os

line = (
    b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n'
    * 500
)
try:
    while True:
        os.write(1, line)
except BrokenPipeError:
    pass
