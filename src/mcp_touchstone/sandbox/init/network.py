"""The network of a sandbox: its loopback device, and sockets for processes outside.

Each function raises ``OSError`` if the system refuses, or if the sandbox has ended.
"""

import ctypes
import os
import sys

from .libc import NEWNET, NEWUSER, check, libc

NS_GET_USERNS = 0xB701
AF_INET, SOCK_DGRAM = 2, 2
SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x8914, 0x8916, 1


def start_loopback() -> None:
    """Enable 127.0.0.1 for the processes of the sandbox."""
    socket = check("socket", libc.socket(AF_INET, SOCK_DGRAM, 0))
    request = ctypes.create_string_buffer(b"lo".ljust(16, b"\0") + bytes([IFF_UP, 0]), 40)
    check("loopback", libc.ioctl(socket, SIOCSIFFLAGS, request))
    os.close(socket)


def listen(words: list[str]) -> None:
    """Send a socket that listens in the network of a sandbox.

    Args:
        words: id of a process in the sandbox, as seen outside; ``tcp`` or ``udp``; the address and
            the port; the descriptor of the Unix socket to send it over; and addresses that the
            loopback device of the sandbox gets before.

    Raises:
        OSError: the sandbox has ended, or the port is in use there.
    """
    import socket

    pid, kind, host, port, descriptor, *addresses = words
    enter_network(pid)
    for number, address in enumerate(addresses):
        add_address(f"lo:{number}", socket.inet_aton(address))
    if kind == "udp":
        listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listener.bind((host, int(port)))
    elif ":" in host and socket.has_dualstack_ipv6():
        family = socket.AF_INET6
        listener = socket.create_server((host, int(port)), family=family, dualstack_ipv6=True)
    else:
        listener = socket.create_server(("" if ":" in host else host, int(port)))
    with listener, socket.socket(fileno=int(descriptor)) as caller:
        socket.send_fds(caller, [b"."], [listener.fileno()])


def sockets(words: list[str]) -> None:
    """Send TCP sockets of the network of a sandbox, one for each byte that is received.

    A socket stays in the network in which it was made, so the caller can connect it.

    Args:
        words: id of a process in the sandbox, as seen outside, and the descriptor of the Unix
            socket of the caller. A byte ``6`` asks for IPv6.
    """
    import socket

    pid, descriptor = words
    enter_network(pid)
    with socket.socket(fileno=int(descriptor)) as caller:
        while asked := caller.recv(1):
            with socket.socket(socket.AF_INET6 if asked == b"6" else socket.AF_INET) as made:
                socket.send_fds(caller, [b"."], [made.fileno()])


def enter_network(pid: str) -> None:
    """Enter the network of a process."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    owner = check("owner of the network", libc.ioctl(network, NS_GET_USERNS))
    check("setns", libc.setns(owner, NEWUSER))
    check("setns", libc.setns(network, NEWNET))


def add_address(label: str, address: bytes) -> None:
    """Add an IPv4 address to a network device.

    Args:
        label: name of the device, a colon, and a name for the address.
        address: the four bytes of the address.
    """
    control = check("socket", libc.socket(AF_INET, SOCK_DGRAM, 0))
    family = AF_INET.to_bytes(2, sys.byteorder)
    fields = label.encode().ljust(16, b"\0") + family + bytes(2) + address
    request = ctypes.create_string_buffer(fields, 40)
    check(f"address {label}", libc.ioctl(control, SIOCSIFADDR, request))
    os.close(control)
