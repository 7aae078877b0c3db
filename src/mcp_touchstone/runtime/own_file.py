"""Replace a file of the user as a whole. Knows no MCP."""

import contextlib
import errno
import os
import secrets
import shutil
from pathlib import Path
from typing import Final

from mcp_touchstone.runtime.input_file import InputFile

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def replace(path: Path, old: bytes, new: bytes) -> None:
    """Replace the content of a file: afterwards it is the old or the new one, even after a crash.

    The new content is written to a file beside it, which then gets its name. The target of a link
    is replaced, and the link stays. Mode, owner and extended attributes are kept.

    Args:
        old: the content that was read.

    Raises:
        OSError: the content could not be written, the file has another one by now, or it has
            further names, which would keep the old content. The file is as it was.
    """
    place = Path(os.path.realpath(path))
    found = place.stat()
    if found.st_nlink > 1:
        raise OSError(errno.EMLINK, "it has further names (hard links); edit a copy", str(path))
    beside = place.with_name(f".{place.name[:100]}.{secrets.token_hex(8)}")
    try:
        with open(os.open(beside, _NEW, 0o600), "wb") as file:  # noqa: PTH123  (a descriptor)
            file.write(new)
            if os.name != "nt":
                os.fchown(file.fileno(), found.st_uid, found.st_gid)
            shutil.copystat(place, beside)
            os.utime(beside)
            file.flush()
            os.fsync(file.fileno())
        if InputFile(place).data() != old:
            raise OSError(errno.EBUSY, "another program changed it; try again", str(path))
        beside.replace(place)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
    if os.name != "nt":  # the new name is on the disk too
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
