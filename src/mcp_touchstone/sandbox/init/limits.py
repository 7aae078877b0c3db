"""What the processes of a sandbox may not do.

Each function raises ``OSError`` if the system refuses.
"""

import ctypes
import os
import resource
import sys

from .libc import PR_SET_NO_NEW_PRIVS, check, kernel, libc

KEPT_CAPABILITIES = (0, 1, 2, 3, 4, 5, 6, 7, 10)
"""Capabilities of root for files, ids and low ports. None for mounts, traces or networks.

Capabilities as in capabilities(7): CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, KILL,
SETGID, SETUID, NET_BIND_SERVICE. Users other than root have none.
"""

PR_CAPBSET_READ, PR_CAPBSET_DROP = 23, 24
CAPABILITY_VERSION = 0x20080522
KEY_CALLS = {
    "x86_64": ((0xC000003E, 248), (0x40000003, 286)),
    "aarch64": ((0xC00000B7, 217), (0x40000028, 309)),
    "riscv64": ((0xC00000F3, 217),),
    "loongarch64": ((0xC0000102, 217),),
    "ppc64le": ((0xC0000015, 269),),
    "s390x": ((0x80000016, 278),),
}
"""Machine -> its architectures, the own one first: number in seccomp(2), and number of ``add_key``.

The numbers of ``request_key`` and ``keyctl`` are the next two.
"""

KEYCTL_JOIN_SESSION_KEYRING = 1
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
ENOSYS, EPERM = 38, 1


def drop_capabilities() -> None:
    """Permanently drop the capabilities that could undo the sandbox."""
    check("no_new_privs", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    kept = KEPT_CAPABILITIES if os.geteuid() == 0 else ()
    number = 0
    while libc.prctl(PR_CAPBSET_READ if number in kept else PR_CAPBSET_DROP, number, 0, 0, 0) >= 0:
        number += 1
    mask = sum(1 << number for number in kept)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)(mask, mask, 0, 0, 0, 0)
    check("capset", libc.capset(ctypes.byref(header), ctypes.byref(sets)))


def close_keyrings() -> None:
    """Refuse the keys that the kernel keeps for the user, for good.

    A new session keyring is not enough: a process of the same user may link the user's keyring
    by its number, and then read the keys in it.
    """
    natives = KEY_CALLS.get(os.uname().machine, ())
    if not natives or sys.maxsize < 1 << 32:
        return
    number = ctypes.c_long(natives[0][1] + 2)
    if libc.syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None) < 0 and (
        ctypes.get_errno() in {ENOSYS, EPERM}
    ):
        return  # the kernel has no keyrings, or a container refuses them already
    steps: list[tuple[int, ...]] = []
    for architecture, first in natives:
        steps += [
            (0x20, 0, 0, 4),  # load the architecture
            (0x15, 0, 5, architecture),  # another one: go to the next block
            (0x20, 0, 0, 0),  # load the number of the call
            (0x54, 0, 0, 0xBFFFFFFF),  # without the mark of x32
            (0x14, 0, 0, first),  # subtract; a lower number becomes a large one
            (0x25, 1, 0, 2),  # more than two above: go to the next block
            (0x06, 0, 0, 0x50000 | EPERM),  # refuse
        ]
    steps.append((0x06, 0, 0, 0x7FFF0000))  # allow
    code = b"".join(
        number.to_bytes(size, sys.byteorder)
        for step in steps
        for number, size in zip(step, (2, 1, 1, 4), strict=True)
    )
    filters = ctypes.create_string_buffer(code, len(code))
    program = (ctypes.c_size_t * 2)()  # struct sock_fprog: a short, and a pointer
    ctypes.c_ushort.from_buffer(program).value = len(steps)
    program[1] = ctypes.addressof(filters)
    address = ctypes.addressof(program)
    check("seccomp", libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, address, 0, 0))


def limit_files(largest: int) -> None:
    """Limit the size of files in bytes (getrlimit(2)), and disable core dumps."""
    for kind, wanted in ((resource.RLIMIT_FSIZE, largest), (resource.RLIMIT_CORE, 0)):
        set_limit(kind, wanted)


def limit_processes(most: int) -> None:
    """Limit the processes and threads of the sandbox, if the system counts them separately.

    Since 5.14 Linux counts the processes of a user separately in each user namespace. That does not
    limit root; ``mount_proc`` limits root if Linux can.
    """
    if kernel() >= (5, 14):
        set_limit(resource.RLIMIT_NPROC, most)


def set_limit(kind: int, wanted: int) -> None:
    """Set a resource limit, not above the present one."""
    hard = resource.getrlimit(kind)[1]
    bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (bound, bound))
