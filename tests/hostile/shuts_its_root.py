"""Takes every right away from the folder it was given."""

import os

from kit import ROOT, serve

try:
    os.mkdir(os.path.join(ROOT, "deep"))
    open(os.path.join(ROOT, "deep", "file"), "w").close()
    os.chmod(os.path.join(ROOT, "deep"), 0)
except OSError:
    pass
os.chmod(ROOT, 0)
serve()
