"""Is stopped (SIGSTOP) in the middle of the conversation."""

import signal, sys

sys.path.insert(0, sys.argv[1])
count = 0
import reference_server.protocol.connection as connection

receive = connection.Connection.receive


def counted(self, line):
    global count
    count += 1
    if count == 12:
        signal.raise_signal(signal.SIGSTOP)
    return receive(self, line)


connection.Connection.receive = counted
from reference_server.server import serve
from reference_server.settings import Settings

serve(0, 1, Settings())
