"""The refusals of the workspace, one type per reason.

A refusal names the policy and nothing about the disk: no refusal reveals whether a denied file
exists.
"""

from __future__ import annotations

import errno

from ..failure import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar, Final

LONGEST: Final = 4096
"""Greatest number of characters of a path that an answer repeats, as many as Linux accepts."""


class Refusal(ToolError):  # noqa: N818 - the name used throughout this server
    """The workspace refuses a request; a subclass gives the reason.

    Args:
        path: The path as the client sent it, for ``context.file``; a long one is cut.
        message: Replaces the reason of the class.
    """

    CODE: ClassVar[str] = "REFUSED"
    TYPE: ClassVar[str] = "PolicyError"
    REASON: ClassVar[str] = "This is not permitted here."
    FIELD: ClassVar[str | None] = "path"

    def __init__(self, path: str = "", message: str | None = None) -> None:
        super().__init__(
            message or self.REASON,
            code=self.CODE,
            type=self.TYPE,
            field=self.FIELD,
            context={"file": _cut(path)} if path else None,
        )


def _cut(path: str) -> str:
    return path if len(path) <= LONGEST else path[:LONGEST] + "…"


class InvalidPath(Refusal):
    CODE = "INVALID_PATH"
    TYPE = "ValidationError"
    REASON = "Write the path with forward slashes, relative to the root."


class OutsideRoot(Refusal):
    CODE = "OUTSIDE_ROOT"
    REASON = "The path is not below the root; give it relative to the root, without '..'."


class OutsideClientRoots(Refusal):
    CODE = "OUTSIDE_CLIENT_ROOTS"
    REASON = "The path is not below any of the roots that the client has named."


class LinkInPath(Refusal):
    CODE = "LINK"
    REASON = "The path leads through a symbolic link, and links are not followed."


class Denied(Refusal):
    CODE = "DENIED"
    REASON = "A part of the path is on the deny list of this server."


class WriteDenied(Refusal):
    CODE = "WRITE_DENIED"
    REASON = "A part of the path is on the deny list for writing: it is read here and not written."


class NotAllowed(Refusal):
    CODE = "NOT_ALLOWED"
    REASON = "The path matches no pattern on the allow list of this server."


class ReadOnly(Refusal):
    CODE = "READ_ONLY"
    REASON = "This server runs read-only; nothing is written."
    FIELD = None


class NotFound(Refusal):
    CODE = "NOT_FOUND"
    TYPE = "ExecutionError"
    REASON = "There is no such file below the root. Check the spelling and the case of the path."


class Exists(Refusal):
    CODE = "EXISTS"
    TYPE = "ConflictError"
    REASON = "There is a file of that name already; it was left as it is."


class NotRegular(Refusal):
    CODE = "NOT_REGULAR"
    REASON = "The path is not a regular file."


class IsDirectory(Refusal):
    CODE = "IS_DIRECTORY"
    TYPE = "ExecutionError"
    REASON = "The path is a directory, not a file."


class NotDirectory(Refusal):
    CODE = "NOT_DIRECTORY"
    TYPE = "ExecutionError"
    REASON = "The path, or a part of it, is a file and not a directory."


class TooLarge(Refusal):
    CODE = "TOO_LARGE"


class NotPermitted(Refusal):
    CODE = "NOT_PERMITTED"
    TYPE = "ExecutionError"
    REASON = "The operating system does not permit this."


class Changed(Refusal):
    CODE = "CHANGED"
    TYPE = "ConflictError"
    REASON = "The file has changed since it was read; nothing was written."


class Busy(Refusal):
    CODE = "BUSY"
    TYPE = "ConflictError"
    REASON = "Another process is writing below this root; nothing was written."
    FIELD = None


class WriteFailed(Refusal):
    CODE = "WRITE_FAILED"
    TYPE = "SystemError"
    REASON = "The file system reported an error while writing; every file is as it was."
    FIELD = None


class SpansRoots(Refusal):
    CODE = "SPANS_ROOTS"
    TYPE = "ValidationError"
    REASON = "One edit can change files of one root only; make one edit for each root."


_KINDS: dict[int, type[Refusal]] = {
    errno.ENOENT: NotFound,
    errno.ENOTDIR: NotDirectory,
    errno.EISDIR: IsDirectory,
    errno.ELOOP: LinkInPath,
    errno.EXDEV: OutsideRoot,
    errno.EACCES: NotPermitted,
    errno.EPERM: NotPermitted,
    errno.EROFS: NotPermitted,
    errno.ENXIO: NotRegular,
    errno.EEXIST: Exists,
}
_REASONS = {
    errno.ENAMETOOLONG: (InvalidPath, "The path is too long for this file system."),
    errno.EILSEQ: (InvalidPath, "This file system has no such name."),
    errno.EINVAL: (InvalidPath, "This file system has no such name."),
    errno.ENOSPC: (WriteFailed, "The disk is full; every file is as it was."),
    errno.EDQUOT: (WriteFailed, "The disk quota is used up; every file is as it was."),
    errno.EFBIG: (WriteFailed, "The file would be too large; every file is as it was."),
}


def refusal(error: OSError, path: str, otherwise: type[Refusal] = NotPermitted) -> Refusal:
    """Convert an error of the operating system; the original message may contain paths."""
    number = error.errno or 0
    if number in _REASONS:
        kind, reason = _REASONS[number]
        return kind(path, reason)
    return _KINDS.get(number, otherwise)(path)
