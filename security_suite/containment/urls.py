"""Tools that fetch URLs, in a network that has no host but ours."""

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.security.suite import (
    BRIEF,
    DANGER,
    DEATHS,
    FILE,
    SECRET,
    AttackSession,
    Breach,
    Broken,
    Call,
    NameServer,
    Payload,
    Places,
    Pointer,
    Reply,
    RequestListener,
    TimeBudget,
    assemble,
    attack,
    now,
    payload,
    shown,
    texts,
    whose,
    words,
)

PUBLIC: Final = "93.184.215.14"
"""An address in no list of special addresses; in the sandbox it is ours."""

LOOPBACK: Final = "127.0.0.1"
LINK_LOCAL: Final = "169.254.169.254"

ADDRESSES: Final = (PUBLIC, LINK_LOCAL, "10.11.12.13", "192.168.7.7")
"""The addresses that the loopback device of the sandbox gets."""

HTTP, FTP, GOPHER, DNS = 80, 21, 70, 53

NAMES: Final = {
    "public": (PUBLIC,),
    "loopback": (LOOPBACK,),
    "link_local": (LINK_LOCAL,),
    "second": (PUBLIC, LOOPBACK),
    "third": (PUBLIC, PUBLIC, LOOPBACK),
    "fourth": (PUBLIC, PUBLIC, PUBLIC, LOOPBACK),
}
"""Placeholder ``{name_...}`` -> the addresses of the name, one for each query."""

PAGE: Final = b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\ntouchstone"
MOVED: Final = "HTTP/1.0 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n"

NETWORK: Final = frozenset({"fetch", "http", "url", "web", "browser", "download"})
"""Words for network access, which harms nobody here."""

URLS: Final = frozenset(
    {"url", "urls", "uri", "uris", "link", "links", "href", "website", "webpage"}
)
"""Words in the name of an argument that takes URLs."""

SAYS_SO: Final = re.compile(r"https?:|(?<![a-z])ur[li]s?(?![a-z])", re.IGNORECASE)
"""Text in the description of such an argument."""

MOST: Final = 6
"""Most arguments that are tried."""

EACH: Final = 60.0
"""Seconds for all calls of a tool."""

NO_NETWORK: Final = "URLs are attacked only in a sandbox with a network of its own"
NOBODY: Final = "no tool that may be called fetched a URL of ours"
OPEN: Final = "it refuses no address, which urls-internal notes"
EXPECTED: Final = "no request arrives at an address behind the server"


@attack(
    "urls-internal", "urls-redirects", "urls-names", "urls-schemes", fixtures=("base",), lasts=True
)
def fetches_only_what_it_may(session: AttackSession) -> None:
    """A tool that fetches URLs is not led to other hosts, files or protocols."""
    threats = ("urls-internal", "urls-redirects", "urls-names", "urls-schemes")
    box = session.wire.process.sandbox
    arguments = [] if box is None or box.network else list(_arguments(session))[:MOST]
    if not arguments:
        session.judge.unseen(threats, NO_NETWORK if box is None or box.network else NOBODY)
        return
    session.open()
    with closing(Network(session)) as network:
        fetchers = [one for one in arguments if network.proves(one)]
        if fetchers:
            _judge(network, fetchers)
        else:
            session.judge.unseen(threats, NOBODY)


@dataclass(frozen=True, slots=True)
class Fetcher:
    """An argument that seems to take URLs.

    Attributes:
        tool: the definition of the tool.
        pointer: the path of the argument.
    """

    tool: dict[str, Any]
    pointer: Pointer

    def call(self, url: str, root: str) -> Call:
        """Return the call that passes a URL."""
        places = Places(folder=root, file=FILE, seconds=BRIEF)
        arguments = assemble(self.tool.get("inputSchema"), {self.pointer: url}, places)
        return "tools/call", {"name": self.tool["name"], "arguments": arguments}


def _arguments(session: AttackSession) -> Iterator[Fetcher]:
    """Yield the arguments that seem to take URLs, of tools that may be called here."""
    for tool in session.spoken.named("tools"):
        named = tool["name"] in session.claims.callable_tools
        if not session.claims.may_call(tool) or (
            not named and {*words(tool["name"])} & (DANGER - NETWORK)
        ):
            continue
        for pointer in texts(tool.get("inputSchema")):
            leaf = _leaf(tool.get("inputSchema"), pointer)
            said = f"{leaf.get('description', '')} {leaf.get('format', '')}"
            if URLS & {*words(" ".join(map(str, pointer)))} or SAYS_SO.search(said):
                yield Fetcher(tool, pointer)


def _leaf(schema: Any, pointer: Pointer) -> dict[str, Any]:
    """Return the schema of an argument, empty behind a reference."""
    for step in pointer:
        key = "items" if isinstance(step, int) else "properties"
        schema = schema.get(key) if isinstance(schema, dict) else None
        if not isinstance(step, int) and isinstance(schema, dict):
            schema = schema.get(step)
    return schema if isinstance(schema, dict) else {}


@dataclass(frozen=True, slots=True)
class Shot:
    """One call with a URL.

    Attributes:
        row: the payload.
        mark: the mark of the request that must not arrive; empty for a file.
    """

    row: Payload
    mark: str
    fetcher: Fetcher
    call: Call
    reply: Reply


class Network:
    """The network of the sandbox: addresses, listeners and names, set up for each process."""

    def __init__(self, session: AttackSession) -> None:
        """Listen in the network of the process.

        Raises:
            Broken: listening is impossible.
        """
        self.session = session
        self.listener = RequestListener()
        self.resolves = False
        self._budget = TimeBudget(EACH)
        self._lost = 0
        self._stack = ExitStack()
        self._servers: list[NameServer] = []
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop listening."""
        self._stack.close()
        self.listener.close()

    def _attach(self) -> None:
        listen = self.session.wire.process.listen
        servers = [one for one in _name_servers() if not one.startswith("127.")]
        self._servers = []
        try:
            for port, greeting in ((HTTP, b""), (FTP, b"220 touchstone\r\n"), (GOPHER, b"")):
                addresses = (*ADDRESSES, *servers) if port == HTTP else ()
                if listening := listen("::", port, addresses=addresses):
                    self.listener.also(listening, greeting)
            for host in _name_servers():
                if listening := listen(host, DNS, kind="udp"):
                    self._servers.append(self._stack.enter_context(closing(NameServer(listening))))
        except OSError as error:
            raise Broken(f"nobody can listen in the sandbox of the server: {error}") from error

    def proves(self, fetcher: Fetcher) -> bool:
        """Return whether an argument makes the server fetch a URL, by address or by name."""
        reached = False
        for by_name in (False, True):
            mark = self.listener.mark(PAGE)
            host = self._name("public", mark) if by_name else PUBLIC
            reply = self._request(fetcher.call(f"http://{host}/{mark}", self._root))
            if self.listener.heard(mark, 0.0 if reply.answered else self.session.pace.settle):
                reached = True
                self.resolves = self.resolves or by_name
        return reached

    @property
    def _root(self) -> str:
        return str(self.session.tree.root)

    def _name(self, kind: str, mark: str) -> str:
        """Return a name that contains a mark and has the addresses of a kind."""
        name = f"{kind.replace('_', '-')}-{mark}.example.com"
        for server in self._servers:
            server.add(name, NAMES[kind])
        return name

    def _request(self, call: Call) -> Reply:
        """Send a call; continue with another process if it gets no answer.

        Raises:
            Broken: too many calls got no answer.
        """
        reply = self.session.wire.request(*call, required=False)
        if not reply.answered:
            self._lost += 1
            if self._lost >= DEATHS:
                raise Broken(f"{self._lost} calls got no answer: {reply.why}")
            self.session.renew()
            self._attach()
        return reply

    def fire(
        self, fetchers: Sequence[Fetcher], group: str, *, redirected: bool = False
    ) -> list[Shot]:
        """Send the URLs of a class of payloads, or redirects to them, to every fetcher."""
        shots = []
        for fetcher, row in itertools.product(fetchers, self.session.payloads(group, via="url")):
            name = fetcher.tool["name"]
            if "{name_" in row.text and not self.resolves:
                continue
            if not self._budget.pays(name):
                raise Broken(f"the calls of {name} took more than {EACH:.0f} s")
            begun = now()
            self.session.payloads.fire(row.id)
            mark = self.listener.mark(PAGE) if "{mark}" in row.text else ""
            asked = {f"name_{kind}": self._name(kind, mark) for kind in NAMES}
            given = {"mark": mark, "public": PUBLIC, **asked, **self.session.tree.names}
            url = payload.fill(row.text, given)
            if redirected:
                url = f"http://{PUBLIC}/{self.listener.mark(MOVED.format(url).encode())}"
            call = fetcher.call(url, self._root)
            shots.append(Shot(row, mark, fetcher, call, self._request(call)))
            self._budget.spent[name] += now() - begun
        missing = [shot.mark for shot in shots if not self.listener.heard(shot.mark)]
        if missing and not shots[-1].reply.answered:
            self.listener.heard(missing[-1], self.session.pace.settle)
        return shots

    def effect(self, shot: Shot, allowed: frozenset[str] = frozenset()) -> str:
        """Return the forbidden effect of a call in words; empty if it had none.

        Args:
            allowed: addresses where requests may arrive.
        """
        for canary in self.session.canaries.found(shot.reply, SECRET):
            return f"{whose(canary)} came back"
        for arrival in self.listener.heard(shot.mark):
            if arrival.address not in allowed:
                return f"a request arrived at {arrival.address}, {arrival.line!r}"
        return ""


def _judge(network: Network, fetchers: list[Fetcher]) -> None:
    """Judge the threats, the addresses that are reached directly first."""
    session = network.session
    direct = network.fire(fetchers, "url.direct")
    _conclude(network, "urls-internal", direct, {})
    reached = {
        fetcher.tool["name"]: frozenset(
            arrival.address
            for shot in direct
            if shot.fetcher.tool["name"] == fetcher.tool["name"]
            for arrival in network.listener.heard(shot.mark)
        )
        for fetcher in fetchers
    }
    closed = [one for one in fetchers if len(reached[one.tool["name"]]) < len(ADDRESSES)]
    for threat, group in (("urls-redirects", "url.redirect"), ("urls-names", "url.name")):
        if not closed:
            session.judge.unseen(threat, OPEN)
        elif session.judge.covers(threat):
            shots = network.fire(closed, group, redirected=group == "url.redirect")
            _conclude(network, threat, shots, reached)
    if session.judge.covers("urls-schemes"):
        _conclude(network, "urls-schemes", network.fire(fetchers, "url.scheme"), None)


def _conclude(
    network: Network, threat: str, shots: Sequence[Shot], reached: dict[str, frozenset[str]] | None
) -> None:
    """Judge a threat by its calls.

    Args:
        reached: tool -> the addresses that it also reaches directly; None if all addresses count.
    """
    hits: list[tuple[str, Shot]] = []
    for shot in shots:
        name = shot.fetcher.tool["name"]
        allowed = frozenset() if reached is None else reached.get(name, frozenset()) | {PUBLIC}
        if effect := network.effect(shot, allowed):
            hits.append((effect, shot))
    hits.sort(key=lambda hit: _is_named(hit[1]) and reached is None)
    found, mild = "", None
    if hits:
        effect, first = hits[0]
        found = f"{effect}: {shown(first.call)} ({first.row.id}: {first.row.note})"
        found += f"; {len(hits) - 1} more payloads have this effect" if len(hits) > 1 else ""
        mild = Breach.NOTE if reached is None and _is_named(first) else None
    network.session.judge.conclude(
        threat,
        found,
        expected=EXPECTED,
        if_passed=f"{len(shots)} calls"
        + ("" if network.resolves else "; no name could be resolved in the sandbox"),
        at=hits[0][1].reply if hits else None,
        mild=mild,
        because="the definition of the tool names the scheme",
    )


def _is_named(shot: Shot) -> bool:
    """Return whether the definition of the tool names the scheme of the payload."""
    scheme = shot.row.text.partition(":")[0].lower()
    return re.search(rf"(?<![a-z]){scheme}:", str(shot.fetcher.tool).lower()) is not None


def _name_servers() -> list[str]:
    """Return the IPv4 addresses of the name servers in /etc/resolv.conf, or else loopback."""
    try:
        text = Path("/etc/resolv.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.findall(r"^\s*nameserver\s+(\d+\.\d+\.\d+\.\d+)\s*$", text, re.MULTILINE)
    return found or [LOOPBACK]
