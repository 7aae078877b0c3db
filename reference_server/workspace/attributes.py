"""What a new version of a file takes over from the old one besides its name."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .place import Place

_ACL = "system.posix_acl_access"
_OF_THE_BYTES = frozenset({"security.capability", "security.evm", "security.ima"})
"""Extended attributes that vouch for the old bytes; the system drops some at each write too."""

_SET_ID = stat.S_ISUID | stat.S_ISGID


def inherit(place: Place, name: str, new: int) -> list[str]:
    """Give an open new file the extended attributes, the owner and the mode of an existing file.

    Without its owner a file does not keep the bits that let it run as its owner or group: it would
    run as us.

    Returns:
        What was not taken over; empty if everything was.
    """
    old = place.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        found = os.fstat(old)
        lost = _copy_attributes(old, new) + _copy_owner(found, new)
    finally:
        os.close(old)
    mode = stat.S_IMODE(found.st_mode)
    if mode & _SET_ID and {"owner", "group"} & set(lost):
        mode &= ~_SET_ID
        lost.append("set-id bits")
    if hasattr(os, "fchmod"):
        os.fchmod(new, mode)  # after the owner, whose change takes the set-id bits away
    return lost


def _copy_attributes(old: int, new: int) -> list[str]:
    lost: list[str] = []
    if not hasattr(os, "listxattr"):
        return lost
    try:
        given = {name: os.getxattr(new, name) for name in os.listxattr(new)}
        names = os.listxattr(old)
    except OSError:  # a file system without extended attributes
        return lost
    if _ACL in given and _ACL not in names:  # from the default of the directory
        os.removexattr(new, _ACL)
    for name in names:
        try:
            value = os.getxattr(old, name)
            kept = given.get(name) == value
            if not kept and name not in _OF_THE_BYTES:
                os.setxattr(new, name, value)
                kept = True
        except OSError:
            kept = False
        if not kept:
            lost.append(name)
    return lost


def _copy_owner(found: os.stat_result, new: int) -> list[str]:
    if not hasattr(os, "fchown"):
        return []
    for owner in ((found.st_uid, found.st_gid), (-1, found.st_gid)):
        own = os.fstat(new)
        if (own.st_uid, own.st_gid) != (found.st_uid, found.st_gid):
            with suppress(OSError):
                os.fchown(new, *owner)
    own = os.fstat(new)
    kept = {"owner": own.st_uid == found.st_uid, "group": own.st_gid == found.st_gid}
    return [name for name, same in kept.items() if not same]
