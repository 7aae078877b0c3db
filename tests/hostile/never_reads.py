"""Never reads its input and never ends by itself."""

import signal, time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    time.sleep(1)
