"""The files of a sandbox: a new root, made by mounts.

Each function raises ``OSError`` if the system refuses.
"""

import ctypes
import os
import stat

from .common import PER_FILE, write
from .libc import check, kernel, libc

RESERVED = 301
"""The lowest limit of process ids that Linux accepts; it does not reuse that many ids."""

SKELETON = 64 << 20
"""Size in bytes of a file system for folders and devices."""

LARGEST_COPY = 64 << 20
"""Size in bytes up to which a folder is copied at each start."""

MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY = 1
SYS_MOUNT_SETATTR = 442  # on nearly all architectures, since Linux 5.12


def build(words: list[str], most: int, own: int) -> None:
    """Make a new root by mounts, given as options of bubblewrap, and enter it.

    Args:
        words: the mounts.
        most: greatest number of processes.
        own: greatest size of what is writable only here, in bytes.
    """
    new = "/tmp"  # any existing folder: only this process sees the mounts there
    mount("none", "/", None, MS_REC | MS_PRIVATE, None)
    mount_tmpfs(new, SKELETON, MS_NOSUID | MS_NODEV)
    os.mkdir(f"{new}/old")
    check("pivot_root", libc.pivot_root(new.encode(), f"{new}/old".encode()))
    os.chdir("/")
    os.mkdir("/copies")
    mount_tmpfs("/copies", own, MS_NOSUID | MS_NODEV)
    read_only = []
    rest = iter(words)
    lower = ""
    for word in rest:
        if word == "--ro-bind":
            set_read_only(bind(next(rest), next(rest)), recursive=True)
        elif word == "--bind":
            bind(next(rest), next(rest))
        elif word == "--overlay-src":
            lower = next(rest)
        elif word == "--tmp-overlay":
            overlay(lower, next(rest))
        elif word == "--symlink":
            target, place = next(rest), next(rest)
            make_folder(os.path.dirname(place))
            os.symlink(target, place)
        elif word == "--tmpfs":
            place = next(rest)
            make_folder(place)
            mount(new_folder(0o1777), place, None, MS_BIND, None)
        elif word == "--proc":
            mount_proc(next(rest), most)
        elif word == "--dev":
            mount_dev(next(rest))
        elif word == "--remount-ro":
            read_only.append(next(rest))
    for place in ("/old", "/copies"):
        check(f"umount {place}", libc.umount2(place.encode(), MNT_DETACH))
        os.rmdir(place)
    for place in read_only:
        set_read_only(place)


def mount(source: str, place: str, kind: str | None, flags: int, options: str | None) -> None:
    """Mount a file system with the system call mount."""
    names = [None if text is None else os.fsencode(text) for text in (source, place, kind, options)]
    check(f"mount {place}", libc.mount(*names[:3], flags, names[3]))


def mount_tmpfs(place: str, size: int, flags: int) -> None:
    """Mount a file system in memory of at most ``size`` bytes."""
    options = f"mode=755,size={size},nr_inodes={size // PER_FILE}"
    mount("tmpfs", place, "tmpfs", flags, options)


def new_folder(mode: int) -> str:
    """Make a folder in the file system that what is writable shares; return its path."""
    path = f"/copies/{len(os.listdir('/copies'))}"
    os.mkdir(path)
    os.chmod(path, mode)
    return path


def bind(source: str, place: str) -> str:
    """Bind a file or folder of the old root to a place of the new one; return the place.

    Raises:
        OSError: it does not exist, or the mount was refused.
    """
    if os.path.isdir(f"/old{source}"):
        make_folder(place)
    else:
        make_folder(os.path.dirname(place))
        if not os.path.lexists(place):
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
    mount(f"/old{source}", place, None, MS_BIND | MS_REC, None)
    return place


def overlay(lower: str, place: str) -> None:
    """Mount a folder such that changes to it stay in the sandbox; read-only if that fails.

    Where the kernel has no overlays for users, the folder is copied if it is small.
    """
    upper, work = new_folder(0o755), new_folder(0o700)
    escaped = f"/old{lower}".replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
    options = f"lowerdir={escaped},upperdir={upper},workdir={work},userxattr"
    make_folder(place)
    try:
        mount("overlay", place, "overlay", MS_NOSUID | MS_NODEV, options)
    except OSError:
        if copy(f"/old{lower}", upper, LARGEST_COPY):
            mount(upper, place, None, MS_BIND, None)
        else:
            set_read_only(bind(lower, place), recursive=True)


def copy(source: str, target: str, most: int) -> bool:
    """Copy the content of a folder, links as links; return whether that was possible.

    Args:
        source: the folder.
        target: an empty folder.
        most: greatest size in bytes; each file and folder counts as 1000 more.
    """
    import shutil

    try:
        for folder, _, names in os.walk(source):
            most -= 1000 + sum(1000 + os.lstat(f"{folder}/{name}").st_size for name in names)
            if most < 0:
                return False
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    except (OSError, shutil.Error):
        return False
    return True


def set_read_only(place: str, *, recursive: bool = False) -> None:
    """Make a mount read-only."""
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY, 0, 0, 0)
    words = (SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(place), AT_RECURSIVE if recursive else 0)
    number, folder, name, flags = (w if isinstance(w, bytes) else ctypes.c_long(w) for w in words)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    done = libc.syscall(number, folder, name, flags, ctypes.byref(attributes), size)
    check(f"read-only {place}", done)


def mount_proc(place: str, most: int) -> None:
    """Mount ``/proc`` of the sandbox; settings of the whole machine are read-only.

    Root is limited to ``most`` processes here, since nothing else limits root.
    """
    make_folder(place)
    mount("proc", place, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)
    if kernel() >= (6, 14) and os.geteuid() == 0:  # before, one number for the machine
        write(f"{place}/sys/kernel/pid_max", str(RESERVED + most))
    for name in os.listdir(place):
        path = f"{place}/{name}"
        mode = os.lstat(path).st_mode
        is_folder, is_file = stat.S_ISDIR(mode), stat.S_ISREG(mode)
        if not name.isdigit() and (is_folder or (is_file and mode & 0o222)):
            mount(path, path, None, MS_BIND | MS_REC, None)
            set_read_only(path, recursive=True)


def mount_dev(place: str) -> None:
    """Make the devices that every program expects, and no other."""
    make_folder(place)
    mount_tmpfs(place, SKELETON, MS_NOSUID)
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        bind(f"/dev/{name}", f"{place}/{name}")
    for name in ("shm", "pts"):
        os.mkdir(f"{place}/{name}")
    options = "newinstance,ptmxmode=0666,mode=620"
    mount("devpts", f"{place}/pts", "devpts", MS_NOSUID | MS_NOEXEC, options)
    for name, number in {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}.items():
        os.symlink(f"/proc/self/fd{number}", f"{place}/{name}")
    os.symlink("pts/ptmx", f"{place}/ptmx")


def make_folder(path: str) -> None:
    """Make a folder and those above it, if they are missing."""
    if path not in {"", "/"} and not os.path.isdir(path):
        make_folder(os.path.dirname(path))
        os.mkdir(path, 0o755)
