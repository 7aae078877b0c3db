"""Judge the servers of a list, on this machine or a cluster; append a row for each to a file."""

import contextlib
import json
import logging
import os
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from filelock import FileLock, Timeout

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.fleet.child import Running
from mcp_touchstone.fleet.entry import ListedServer, RegistryType, Start
from mcp_touchstone.fleet.judge import FleetSettings, judge, matches, unjudged
from mcp_touchstone.runtime.input_file import InputFile
from mcp_touchstone.runtime.members import Members
from mcp_touchstone.transport.process import now, sleep

LARGEST: Final = 4 << 30
"""Greatest size of a file of rows, in bytes; one row at a time is in memory."""

OUTCOMES: Final = ("fail", "warn", "broken", "note", "pass", "unseen")
"""The outcomes of a rule, the gravest first."""

TRIES: Final = 2
"""Attempts at a server, if the first one fails by a fault of ours or of the machine."""

CONNECT: Final = 15
"""Seconds to wait for the scheduler of a cluster."""

RENEW: Final = 120
"""Seconds to wait for the scheduler of a cluster after it was lost, and for a worker."""

LOSSES: Final = 3
"""Losses of a cluster between two rows that are survived."""

_MINUTE: Final = 60


class FleetError(InputError):
    """A fleet cannot be judged; the message says why."""


class LostError(Exception):
    """The cluster was lost before it took a server."""


class Rows:
    """The file of rows, one JSON object in a line; used by one program at a time.

    A last line that was cut off is removed. Each row is on the disk before the next one is written.

    Args:
        plan: the settings; rows of others are not mixed with ours.
        resume: whether the file may have rows.
    """

    def __init__(self, path: Path, plan: FleetSettings, *, resume: bool) -> None:
        self.done: set[str] = set()
        self._path = path
        self._lock = FileLock(f"{path}.lock")
        self._plan = plan
        self._resume = resume

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            try:
                opened.enter_context(self._lock.acquire(blocking=False))
            except Timeout:
                raise FleetError(f"{self._path}: another fleet writes to it") from None
            if self._path.exists() and not self._path.is_file():
                raise FleetError(f"{self._path}: it is no file; name another with --out")
            # no rest of a row is written later
            self._file = opened.enter_context(self._path.open("ab", buffering=0))
            self._read()
            self._opened = opened.pop_all()
        return self

    def _read(self) -> None:
        if self._path.stat().st_size and not self._resume:
            raise FleetError(f"{self._path} has rows; add --resume, or name another with --out")
        self._file.truncate(_whole(self._path))
        for row in read(self._path):
            why = matches(row, self._plan)
            if why:
                raise FleetError(f"{self._path} has rows of {why}; name another with --out")
            if row["start"]["class"] == Start.HARNESS:
                self.done.discard(row["key"])
            else:
                self.done.add(row["key"])

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._opened.close()

    def append(self, row: Mapping[str, Any]) -> None:
        """Append a row and wait until it is on the disk.

        Raises:
            FleetError: it cannot be written; the file then ends with the row before.
        """
        size = self._path.stat().st_size
        left = memoryview(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(size)
            raise FleetError(
                f"{self._path}: {error.strerror}; make room, then --resume continues"
            ) from error
        self.done.add(row["key"])


def _whole(path: Path) -> int:
    """Return the size of a file up to the end of its last whole line, in bytes."""
    size = path.stat().st_size
    with path.open("rb") as file:
        at = size
        while at > 0:
            start = max(at - 65536, 0)
            file.seek(start)
            found = file.read(at - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            at = start
    return 0


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, without a last line that was cut off.

    Raises:
        InputError: it is no such file.
    """
    file = InputFile(path, "name rows of `mcp-touchstone fleet`", most=LARGEST)
    for where, value in file.rows(cut=True):
        row = Members.of(value, f"{where}: a row of `mcp-touchstone fleet`")
        for name in ("key", "registry", "package", "version", "language", "interrupted", "files"):
            row.get(name, str)
        for name in ("revisions", "sdk_faults"):
            row.texts(name)
        for name, members in (("tool", ("version", "catalogue")), ("start", ("class", "line"))):
            for member in members:
                row.object(name).get(member, str)
        for name in ("install", "startup", "run", "total"):
            row.object("seconds").number(name, float)
        for sdk in row.objects("sdk"):
            sdk.get("name", str)
            sdk.get("version", str)
        verdicts = row.object("verdicts")
        for revision in verdicts.value:
            outcomes = Members.of(verdicts.value[revision], f"{where}: verdicts")
            for rule in outcomes.value:
                if outcomes.get(rule, str) not in OUTCOMES:
                    raise InputError(f"{outcomes.where}: {rule} has none of {', '.join(OUTCOMES)}")
        for name in ("sdk", "revisions", "sdk_faults"):
            row.get(name, list)
        for name in ("settings", "verdicts"):
            row.get(name, dict)
        yield dict(row.value)


def shard(entries: Iterable[ListedServer], part: int, parts: int) -> Iterator[ListedServer]:
    """Yield the servers of one of several equal parts, those of a host in the same part.

    The part depends on the host alone, or without one on the key.
    """
    for entry in entries:
        if zlib.crc32((entry.host or entry.key).encode("utf-8", "replace")) % parts == part - 1:
            yield entry


@dataclass(slots=True)
class FleetCounts:
    """The counts of a fleet so far."""

    begun: float = field(default_factory=now)
    planned: int = 0
    done: int = 0
    classes: Counter[str] = field(default_factory=Counter)

    def add(self, row: Mapping[str, Any]) -> str:
        """Count a row; return the line that shows it."""
        self.done += 1
        kind = row["start"]["class"]
        self.classes[kind] += 1
        spent = max(now() - self.begun, 0.001)
        rate = self.done / spent * _MINUTE
        left = (self.planned - self.done) / rate
        shown = row["start"]["line"]
        return (
            f"{self.done}/{self.planned}  {kind:13} {row['seconds']['total']:6.1f} s  {row['key']}"
            f"{f'  ({shown})' if shown else ''}  [{rate:.1f}/min, {left:.0f} min left]"
        )


@dataclass(frozen=True, slots=True)
class WorkerPool:
    """What judges servers: threads of this machine, or the workers of a cluster.

    Attributes:
        renew: connects again after the cluster was lost, and returns the new ``slots``; what was
            submitted before is then lost. None for a pool that cannot be lost.
    """

    submit: "Callable[[ListedServer, FleetSettings], Future[dict[str, Any]]]"
    slots: int
    renew: Callable[[], int] | None = None


@contextmanager
def threads(slots: int, running: Running) -> Iterator[WorkerPool]:
    """Open threads, each with a process of ``check``."""
    with ThreadPoolExecutor(slots) as executor:
        try:
            yield WorkerPool(
                lambda entry, plan: executor.submit(judged, entry, plan, running), slots
            )
        except BaseException:
            running.stop()
            raise


@contextmanager
def cluster(
    scheduler: str, running: Running, on_loss: Callable[[str], object]
) -> Iterator[WorkerPool]:
    """Connect to a cluster of Dask; each thread of its workers judges a server at a time.

    Args:
        running: ends the wait for a lost scheduler if it is stopped.
        on_loss: called with a sentence when the scheduler is lost.

    Raises:
        FleetError: Dask is not installed, or there is no such cluster.
    """
    try:
        import distributed  # noqa: F401, PLC0415  (an extra)
    except ImportError:
        raise FleetError(
            "--engine dask requires Dask: pip install 'mcp-touchstone[fleet]'"
        ) from None
    for name in ("distributed", "distributed.client"):  # our sentence on a loss is enough
        logging.getLogger(name).setLevel(logging.CRITICAL)
    dask = _Dask(scheduler, running, on_loss)
    try:
        yield WorkerPool(dask.submit, dask.connect(CONNECT), dask.renew)
    finally:
        dask.close()


@dataclass
class _Dask:
    """A cluster, and the clients that are connected to it: one, or none after a loss."""

    scheduler: str
    running: Running
    on_loss: Callable[[str], object]
    clients: list[Any] = field(default_factory=list)

    def connect(self, seconds: float, hint: str = "") -> int:
        """Connect; return the number of the workers' threads, or 0 if the fleet is stopped.

        Raises:
            FleetError: there is no scheduler with a worker in time.
        """
        import distributed  # noqa: PLC0415  (an extra)

        until = now() + seconds
        while not self.running.stopping:
            trouble = "it has no workers"
            try:
                if not self.clients:
                    self.clients.append(distributed.Client(self.scheduler, timeout=CONNECT / 3))
                slots = int(sum(self.clients[-1].nthreads().values()))
            except Exception as error:  # noqa: BLE001  (Dask raises many kinds)
                slots, trouble = 0, str(error) or "no scheduler answers"
                self.close()
            if slots:
                return slots
            if now() > until:
                raise FleetError(f"--scheduler {self.scheduler}: {trouble}{hint}")
            sleep(0.2)
        return 0

    def close(self) -> None:
        while self.clients:
            with contextlib.suppress(Exception):
                self.clients.pop().close(timeout=CONNECT)

    def submit(self, entry: ListedServer, plan: FleetSettings) -> "Future[dict[str, Any]]":
        found: Future[dict[str, Any]]
        try:
            found = self.clients[-1].get_executor(pure=False).submit(judged, entry, plan)
        except Exception as error:  # noqa: BLE001  (the client of a lost scheduler)
            found = Future()
            found.set_exception(LostError(str(error)))
        return found

    def renew(self) -> int:
        self.on_loss(
            f"--scheduler {self.scheduler}: it is lost; waiting {RENEW} s for it and a worker"
        )
        self.close()
        return self.connect(RENEW, "; --resume continues")


@dataclass
class _Queue:
    """The servers that wait for a worker, each with the number of the attempt.

    Attributes:
        waiting: those that no worker has had.
        again: those whose worker was lost.
        remote: those at a URL, until no other server at a URL is under way.
        under_way: those that a worker has.
    """

    waiting: Iterator[tuple[ListedServer, int]]
    again: list[tuple[ListedServer, int]] = field(default_factory=list)
    remote: deque[tuple[ListedServer, int]] = field(default_factory=deque)
    under_way: "dict[Future[dict[str, Any]], tuple[ListedServer, int]]" = field(
        default_factory=dict
    )

    def following(self) -> tuple[ListedServer, int] | None:
        """Return the next server for a worker; None if there is none now."""
        busy = any(entry.registry is RegistryType.REMOTE for entry, _ in self.under_way.values())
        if self.remote and not busy:
            return self.remote.popleft()
        while one := self.again.pop() if self.again else next(self.waiting, None):
            if not busy or one[0].registry is not RegistryType.REMOTE:
                return one
            self.remote.append(one)
        return None

    def take_back(self) -> None:
        """Queue all servers under way again, since their workers are lost."""
        self.again += self.under_way.values()
        self.under_way.clear()


def drive(
    entries: Iterable[ListedServer],
    plan: FleetSettings,
    rows: Rows,
    *,
    pool: WorkerPool,
    running: Running,
    on_row: Callable[[Mapping[str, Any]], None],
) -> None:
    """Judge servers; append a row for each.

    A server whose worker is lost is judged again, and so are all servers under way if the cluster
    is lost. Of servers at a URL one is judged at a time.

    Args:
        entries: the servers; those that have a row are left out.
        running: ends the fleet if it is stopped; servers under way then get no row.

    Raises:
        FleetError: a worker has another version than this program, or the cluster is lost.
    """
    queue = _Queue((entry, 1) for entry in entries if entry.key not in rows.done)
    under_way, slots, losses = queue.under_way, pool.slots, 0
    while not running.stopping:
        while len(under_way) < slots and (one := queue.following()):
            under_way[pool.submit(one[0], plan)] = one
        if not under_way:
            break
        lost = False
        for future in wait(under_way, timeout=1, return_when=FIRST_COMPLETED).done:
            entry, attempt = under_way.pop(future)
            try:
                row = future.result()
            except Exception as error:  # noqa: BLE001  (of a worker; the fleet goes on)
                if pool.renew is not None and isinstance(error, CancelledError | LostError):
                    queue.again.append((entry, attempt))
                    lost = True
                    continue
                if attempt < TRIES:
                    queue.again.append((entry, attempt + 1))
                    continue
                why = f"{type(error).__name__}: {error}"
                row = {**unjudged(entry, plan, why), "attempts": attempt}
            if running.stopping:
                break
            if why := matches(row, plan):
                raise FleetError(f"a worker has {why}; install the same one everywhere")
            rows.append(row)
            on_row(row)
            losses = 0
        if lost and pool.renew is not None:
            queue.take_back()
            losses += 1
            if losses > LOSSES:
                raise FleetError(f"the cluster was lost {losses} times without a row")
            slots = pool.renew()


def judged(
    entry: ListedServer, plan: FleetSettings, running: Running | None = None
) -> dict[str, Any]:
    """Judge a server, again after a fault that is not the server's; return its row."""
    for attempt in range(1, TRIES + 1):
        row = judge(entry, plan, running)
        row["attempts"] = attempt
        if row["start"]["class"] != Start.HARNESS or (running is not None and running.stopping):
            break
    return row
