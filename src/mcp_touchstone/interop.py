"""A witness beside our verdict: the official client takes its ordinary way through the server.

It runs in a process of its own, under an interpreter that has the SDK (``mcp``): ours must not
import it, since it would have to be the version the user's own server pins. It judges no clause
and changes no exit status.
"""

import json
import os
import shlex
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from mcp_touchstone import revision as rev
from mcp_touchstone.dossier import Dossier, Example
from mcp_touchstone.framing import encode
from mcp_touchstone.gate import survey
from mcp_touchstone.plan import UsageError
from mcp_touchstone.process import MARK, Gone, LaunchError, ServerProcess, now
from mcp_touchstone.strays import sweep
from mcp_touchstone.target import Target
from mcp_touchstone.transcript import Source, Transcript
from mcp_touchstone.world import World

CLIENT: Final = Path(__file__).with_name("interop_client.py")

WORDS: Final = frozenset({"callable-tool"})
"""What recon has to know: a tool that may be called, with arguments that work."""

IMPORT: Final = 60.0
"""Seconds the SDK may take to be imported, on a busy machine from a cold disk."""

PATIENCE: Final = 2.0
"""Seconds for each step of ending the client."""

ABSENT: Final = (
    "the official client is not installed here: `pip install 'mcp-touchstone[interop]'`, or name "
    "an interpreter that has `mcp` with --interop-python"
)


class Word(StrEnum):
    """What the client says of a server in one era."""

    WORKS = "works"
    COMPLAINS = "works, with complaints"
    FAILS = "fails"
    SILENT = "not asked"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the client.

    Attributes:
        name: what it did.
        held: whether it got through.
        told: what it got, or what it raised.
    """

    name: str
    held: bool
    told: str


@dataclass(frozen=True, slots=True)
class Way:
    """One way through the server.

    Attributes:
        revision: the revision the client was asked to speak, the newest of its era.
        steps: what it did, in order; the first that did not hold may be the last.
        complaints: what it logged as a warning, or passed over with an error.
        why: why it was not asked; empty when it was.
    """

    revision: str
    steps: tuple[Step, ...] = ()
    complaints: tuple[str, ...] = ()
    why: str = ""

    @property
    def word(self) -> Word:
        """What the client says, in a word."""
        if self.why:
            return Word.SILENT
        if not self.steps or not all(step.held for step in self.steps):
            return Word.FAILS
        return Word.COMPLAINS if self.complaints else Word.WORKS


@dataclass(frozen=True, slots=True)
class Interop:
    """What the official client says of a server.

    Attributes:
        sdk: its version.
        python: the version of its interpreter.
        ways: one for each era the server has.
        trouble: why it could not be asked; empty when it was.
    """

    sdk: str
    python: str
    ways: tuple[Way, ...] = ()
    trouble: str = ""


@dataclass(slots=True)
class Client:
    """An interpreter that has the SDK.

    Attributes:
        python: the interpreter.
        found: what it says of itself.
    """

    python: str
    found: Mapping[str, Any] = field(default_factory=dict)

    def walk(self, job: Mapping[str, Any] | None, limit: float) -> dict[str, Any]:
        """Send the client on its way; give what it says, with ``trouble`` where it says nothing."""
        mark = f"interop-{os.getpid()}-{uuid.uuid4().hex}"
        env = {**os.environ, MARK: mark, "PYTHONIOENCODING": "utf-8"}
        whole = None if job is None else {**job, "env": {**job["env"], MARK: mark}}
        born = now()
        transcript = Transcript("interop", clock=lambda: now() - born)
        process = ServerProcess((self.python, str(CLIENT)), transcript, env=env, born=born)
        try:
            try:
                process.send(encode(whole), limit)
            except Gone as gone:
                if process.wait(PATIENCE) is None:
                    return {"trouble": f"the client {gone}"}
            transcript.wait(lambda: transcript.ended, limit)
            said = _last(transcript)
            if said is not None:
                return said
            status = process.wait(PATIENCE)
            words = process.stderr().strip().splitlines()[-1:] or ["it wrote nothing"]
            left = f"left with status {status}" if status is not None else "did not come to an end"
            return {"trouble": f"the client {left}: {words[0]}"}
        finally:
            process.end(PATIENCE, polite=False)
            sweep(mark)


def _last(transcript: Transcript) -> dict[str, Any] | None:
    for entry in reversed(list(transcript)):
        if entry.source is Source.THEM:
            try:
                found = json.loads(entry.raw)
            except ValueError:
                continue
            if isinstance(found, dict) and "steps" in found:
                return found
    return None


def find(python: str | None) -> Client:
    """Find the official client, in this environment or under a named interpreter.

    Raises:
        UsageError: it is not there.
        LaunchError: there is no such interpreter.
    """
    if python is None:
        try:
            metadata.version("mcp")
        except metadata.PackageNotFoundError:
            raise UsageError(ABSENT) from None
    client = Client(python or sys.executable)
    client.found = client.walk(None, IMPORT)
    if client.found["trouble"]:
        raise UsageError(f"{shlex.quote(client.python)} has no official client: "
                         f"{client.found['trouble']}")  # fmt: skip
    return client


def ask(client: Client, target: Target) -> Interop:
    """Let the client go through a server, once in each era the server has."""
    ways: list[Way] = []
    with World() as world:
        try:
            dossier, _ = survey(target, words=WORDS, world=world)
            trouble = dossier.trouble
            ways += [_way(client, target, world, dossier, one) for one in _eras(dossier)]
        except LaunchError as error:
            trouble = str(error)
    return Interop(client.found["sdk"], client.found["python"], tuple(ways), trouble)


def _eras(dossier: Dossier) -> list[str]:
    modern = [revision for revision in dossier.spoken if rev.is_modern(revision)]
    return [*dossier.legacy[-1:], *modern[-1:]]


def _way(client: Client, target: Target, world: World, dossier: Dossier, revision: str) -> Way:
    if rev.is_modern(revision) and not client.found["modern"]:
        return Way(revision, why=f"mcp {client.found['sdk']} does not know this revision")
    limit = 2 * target.startup
    job = {
        "command": target.command_in(world.root),
        "env": {**world.env(os.environ), **target.env_in(world.root)},
        "cwd": target.cwd_in(world.root),
        "revision": revision,
        "seconds": target.startup,
        "limit": limit,
        "call": _call(dossier.spoken[revision].examples("callable-tool")),
    }
    said = client.walk(job, limit + IMPORT)
    if said["trouble"]:
        return Way(revision, (Step("run", held=False, told=said["trouble"]),))
    steps = tuple(Step(step["step"], step["held"], step["told"]) for step in said["steps"])
    return Way(revision, steps, tuple(dict.fromkeys(said["complaints"])))


def _call(examples: list[Example]) -> dict[str, Any] | None:
    return {"name": examples[0].name, "arguments": examples[0].arguments} if examples else None
