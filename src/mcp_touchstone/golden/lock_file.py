"""``touchstone.lock``: servers as somebody approved them, to be compared with a run.

The file is in a repository, so an enemy may have written it: it is read through the one door,
within limits, and it is replaced only as a whole, after a run that reached the server.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.errors import InputError, UserError
from mcp_touchstone.discovery.origin import digests
from mcp_touchstone.results.advice import advice
from mcp_touchstone.results.lock import ChangeKind, LockChange, Locked
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime import own_file
from mcp_touchstone.runtime.input_file import InputFile
from mcp_touchstone.runtime.members import Members
from mcp_touchstone.version import __version__
from mcp_touchstone.wire.json_diff import NOTHING, Difference, differences, where

NAME: Final = "touchstone.lock"
FORMAT: Final = 1
LARGEST: Final = 32 << 20
"""Bytes of a lock."""

SHOWN: Final = 300
"""Characters of a value."""

PARTS: Final = ("package", "files", "server", "sdk", "offer", "options", "abilities", "verdicts")
"""Members of the entry of a server; each is an object."""

WORDS: Final = frozenset({"description", "title", "instructions"})
"""Members that a model reads as text."""

APPROVE: Final = "`mcp-touchstone approve -- COMMAND` writes it"


def load(path: Path) -> dict[str, Any]:
    """Read the servers of a lock, by name.

    Raises:
        UserError: it cannot be read, or is no lock.
    """
    cure = "restore it, or remove it and approve again"
    document = Members.of(InputFile(path, cure, APPROVE, most=LARGEST).json(), str(path))
    if document.get("format", int) != FORMAT:
        raise UserError(f"{path}: it has another format than this version reads; approve again")
    servers = document.object("servers")
    for name in servers.value:
        entry = servers.object(name)
        for part in PARTS:
            entry.get(part, dict)
    return dict(servers.value)


def named(run: Run, name: str) -> str:
    """Return the name of a server in a lock: that of its target, else its command or URL."""
    return name or run.subject.shown


def entry(run: Run, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a lock keeps of a server.

    Args:
        options: the options that abilities and verdicts depend on.

    Raises:
        UserError: the run did not reach the server, or its package has no digest.
    """
    if run.trouble or not run.offer:
        raise UserError(f"{NAME}: the server was not reached, so nothing is compared or written")
    subject, origin = run.subject, run.subject.sdk.origin
    package: dict[str, Any] = {"url": subject.url}
    files: dict[str, str] = {}
    if subject.command:
        files = digests(origin)
        assert origin is not None  # noqa: S101  (it has digests)
        package = {"kind": origin.kind, "name": origin.name, "version": origin.version}
        package |= {"integrity": origin.seal} if origin.seal else {}
    answer = advice(run)
    failed = {
        v.clause.id: "fail" for v in run.of(Outcome.FAIL) if not (v.sometimes or v.sdk is not None)
    }
    return {
        "package": package,
        "files": files,
        "server": dict(run.offer["server"]),
        "sdk": {sdk.name: sdk.version for sdk in subject.sdk.sdks},
        "offer": {key: value for key, value in run.offer.items() if key != "server"},
        "options": dict(options),
        "abilities": {str(one.power): str(one.known) for one in run.abilities if one.has},
        "verdicts": {**({"install": str(answer.word)} if answer else {}), "rules": failed},
    }


def compare(run: Run, path: Path, name: str, options: Mapping[str, Any]) -> Locked:
    """Compare a run with a lock.

    Raises:
        UserError: as for ``load`` and ``entry``, or the lock has no such server.
    """
    servers = load(path)
    key = named(run, name)
    if key not in servers:
        known = ", ".join(sorted(servers)[:5]) or "none"
        raise UserError(f"{path}: it has no server {key!r}; it has {known}. {APPROVE}")
    old, new = servers[key], entry(run, options)
    same = old["options"] == new["options"]
    note = "" if same else "other options than at the approval: abilities and rules not compared"
    return Locked(path.name, key, tuple(_changes(old, new, whole=same)), note)


def _changes(
    old: Mapping[str, Any], new: Mapping[str, Any], *, whole: bool
) -> Iterator[LockChange]:
    for part, kind in (
        ("package", ChangeKind.PACKAGE),
        ("files", ChangeKind.FILE),
        ("sdk", ChangeKind.PACKAGE),
    ):
        for one in differences(old[part], new[part], (part,)):
            yield _change(kind, one)
    found = [*differences(old["server"], new["server"], ("server",))]
    found += differences(old["offer"], new["offer"])
    items: dict[tuple[str, ...], list[Difference]] = {}
    for one in found:
        items.setdefault(one.path[:2], []).append(one)
    for changed in items.values():
        only_words = all(one.path[-1] in WORDS and one.old is not NOTHING for one in changed)
        for one in changed:
            yield _change(ChangeKind.RUG_PULL if only_words else ChangeKind.DEFINITION, one)
    if not whole:
        return
    for power, known in new["abilities"].items():
        if power not in old["abilities"]:
            yield LockChange(ChangeKind.ABILITY, power, "", known)
    was = old["verdicts"].get("rules")
    for rule in new["verdicts"]["rules"]:
        if not isinstance(was, dict) or rule not in was:
            yield LockChange(ChangeKind.VERDICT, rule, "", "fail")


def _change(kind: ChangeKind, one: Difference) -> LockChange:
    return LockChange(kind, where(one.path), _text(one.old), _text(one.new))


def _text(value: Any) -> str:
    if value is NOTHING:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def update(run: Run, path: Path, name: str, options: Mapping[str, Any]) -> str:
    """Write a server into a lock, beside those that it has; return its name there.

    Raises:
        UserError: as for ``load`` and ``entry``, or the file cannot be written. It is as it was.
    """
    exists = path.exists() or path.is_symlink()
    servers = load(path) if exists else {}
    key = named(run, name)
    servers[key] = entry(run, options)
    document = {"format": FORMAT, "tool": __version__, "servers": servers}
    data = f"{json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)}\n"
    text = data.encode("utf-8", "backslashreplace")
    try:
        if exists:
            own_file.replace(path, InputFile(path, most=LARGEST).data(), text)
        else:
            with path.open("xb") as file:
                file.write(text)
    except (OSError, InputError) as error:
        raise UserError(f"{path}: it was not written: {error}") from None
    return key
