"""Is a daemon: the process that was started is gone, a grandchild in another session serves."""

import os

from kit import serve

if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
serve()
