"""Replaces its root by a link to a folder that is none of our business."""

import os

from kit import OUTSIDE, ROOT, serve

try:
    os.rename(ROOT, ROOT + ".old")
    os.symlink(OUTSIDE, ROOT)
    os.symlink(OUTSIDE, os.path.join(ROOT + ".old", "link"))
except OSError:
    pass
serve()
