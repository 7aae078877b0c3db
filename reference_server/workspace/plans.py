"""The folder with the plans of unfinished edits.

It is outside the roots, so nothing that comes with the files of a root can be a plan, and no client
can write one.
"""

from __future__ import annotations

import os

from ..operation.verbose import is_inside
from . import descent
from .place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings import Settings

PLAN = ".json"
"""Suffix of a plan; its name begins with ``Root.key``."""


def open_plans(settings: Settings, *, make: bool = False) -> Place:
    """Open the folder of plans.

    Args:
        make: Whether to create it.

    Raises:
        OSError: It does not exist, or others could write in it; see ``strerror``.
    """
    folder = settings.state_folder
    if not folder:
        raise OSError(0, "this user has no state folder")
    if is_inside(os.path.join(folder, PLAN), settings.roots):  # noqa: PTH118
        raise OSError(0, "the state folder is below a root")
    if make:
        os.makedirs(folder, 0o700, exist_ok=True)  # noqa: PTH103 - pathlib costs a third of the start-up
    if not descent.CAN_DESCEND:
        return Place(None, os.path.realpath(folder))
    place = Place(os.open(folder, descent.DIRECTORY), "")
    found = place.lstat(".")
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        place.__exit__(None, None, None)
        raise OSError(0, "others may write in the state folder")
    return place
