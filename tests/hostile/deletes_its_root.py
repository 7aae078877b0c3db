"""Deletes the folder it was given."""

import os

from kit import ROOT, serve

for place, folders, files in os.walk(ROOT, topdown=False):
    for name in files:
        try:
            os.unlink(os.path.join(place, name))
        except FileNotFoundError:
            pass
    for name in folders:
        try:
            os.rmdir(os.path.join(place, name))
        except OSError:
            pass
try:
    os.rmdir(ROOT)
except OSError:
    pass
serve()
