"""Is sound, but takes its time to start."""

import time

time.sleep(1.2)

from kit import serve

serve()
