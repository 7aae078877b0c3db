"""Servers with a tool that fetches URLs, with one fault each; and good ones."""

import ipaddress
import socket
from http.client import HTTPConnection
from types import MappingProxyType
from typing import Any
from urllib.parse import urljoin, urlsplit
from urllib.request import urlopen

from tests.fakes.server import STRING, Guard, Refused, takes

HOPS = 5


def special(address: str) -> bool:
    """Whether an address is not one of the public network."""
    found = ipaddress.ip_address(address)
    mapped = getattr(found, "ipv4_mapped", None)
    return not (mapped or found).is_global


class FetchesPublicUrls(Guard, tools=("read_file", "fetch_url"), sandboxed=True):
    """Resolves each host once, refuses special addresses, and checks each redirect likewise."""

    families: tuple[str, ...] = ("urls",)

    schemas = MappingProxyType({"fetch_url": takes(url=STRING)})

    def fetch_url(self, url: str) -> str:
        for _ in range(HOPS):
            moved, text = self.get(url)
            if not moved:
                return text
            url = urljoin(url, moved)
        raise Refused("too many redirects")

    def get(self, url: str) -> tuple[str, str]:
        """Return where the answer redirects to, and its text."""
        parts = urlsplit(url)
        if parts.scheme != "http":
            raise Refused(f"{parts.scheme} is not fetched")
        return self.request(self.permitted(parts.hostname or ""), url)

    def permitted(self, host: str) -> str:
        """Return the address that is connected to, or refuse."""
        address = str(socket.getaddrinfo(host, 80, type=socket.SOCK_STREAM)[0][4][0])
        if special(address):
            raise Refused(f"{address} is refused")
        return address

    @staticmethod
    def request(host: str, url: str) -> tuple[str, str]:
        parts = urlsplit(url)
        connection = HTTPConnection(host, parts.port or 80, timeout=5)
        connection.request("GET", parts.path or "/")
        answer = connection.getresponse()
        return answer.getheader("Location") or "", answer.read().decode("utf-8", "replace")


class FetchesAnyUrl(FetchesPublicUrls, trips={"urls-internal"}):
    """Fetches whatever its user names; that is what it is for."""

    def permitted(self, host: str) -> str:
        return host


class FollowsRedirects(FetchesPublicUrls, trips={"urls-redirects"}):
    """Checks the first address only."""

    def get(self, url: str) -> tuple[str, str]:
        moved, text = super().get(url)
        return self.request(urlsplit(moved).hostname or "", moved) if moved else ("", text)


class ResolvesTwice(FetchesPublicUrls, trips={"urls-names"}):
    """Checks one answer of the name server, and connects to the next one."""

    def permitted(self, host: str) -> str:
        super().permitted(host)
        return host


class ChecksTheTextOfHosts(FetchesPublicUrls, trips={"urls-names"}):
    """Refuses hosts that look like a special address."""

    def permitted(self, host: str) -> str:
        if host.startswith(("127.", "10.", "192.168.", "169.254.")) or host == "localhost":
            raise Refused(f"{host} is refused")
        return host


class FetchesAnyScheme(FetchesPublicUrls, trips={"urls-schemes"}):
    """Refuses special addresses, and opens every scheme that its library knows."""

    def get(self, url: str) -> tuple[str, str]:
        scheme = urlsplit(url).scheme
        if scheme in {"http", ""}:
            return super().get(url)
        if scheme != "file":
            self.permitted(urlsplit(url).hostname or "")
        with urlopen(url, timeout=5) as answer:  # noqa: S310  (that is the fault)
            return "", answer.read().decode("utf-8", "replace")

    def fetch_url(self, url: str) -> str:
        moved, text = self.get(url)
        if moved:
            raise Refused("redirects are not followed")
        return text


class FetchesFilesAsItSays(FetchesAnyScheme, trips=set()):
    """Fetches http:, ftp: and file: URLs, and declares that."""

    def listed(self, tool: str) -> dict[str, Any]:
        return {**super().listed(tool), "description": "Fetches http:, ftp: and file: URLs"}
