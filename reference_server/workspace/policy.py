"""Which places a path may mean, and which of them a client may reach."""

from __future__ import annotations

from .boundary import Boundary
from .names import Names
from .paths import Location, cut, names_of
from .place import Root
from .refusals import (
    NotAllowed,
    NotFound,
    OutsideClientRoots,
    OutsideRoot,
    Refusal,
    refusal,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..settings import Settings
    from .paths import Parts


class Policy:
    """The roots, the deny lists, the allow list and the client's roots.

    Where there are several roots, each has a name (``paths.names_of``). Every path that goes out
    begins with the name of its root. A path that comes in may begin with one too; any other
    relative path means the first root that has such a file, or the first root for a new file.

    Args:
        settings: The operator's decisions.

    Attributes:
        roots: The open roots, in order of precedence.
        names: The deny lists and the allow list.
    """

    def __init__(self, settings: Settings) -> None:
        self.roots = [Root(path) for path in settings.roots]
        self.names = Names(settings.deny, settings.deny_writes, settings.allow)
        self._prefixes = names_of(settings.roots) if len(self.roots) > 1 else ()
        self._boundary = Boundary(None)

    def narrow(self, uris: Iterable[str] | None) -> None:
        """Take the client's roots: what is below none of them is refused from now on.

        They narrow our roots and never widen them. None takes the boundary away.
        """
        self._boundary = Boundary.of(uris, self.roots)

    def locate(self, index: int, parts: Parts) -> Location:
        """Give the place of a path below one root."""
        return Location(index, parts, self._prefixes[index] if self._prefixes else None)

    def contains(self, at: Location) -> bool:
        """Say whether the client's roots hold this place; without such roots, all do."""
        return self._boundary.contains(at)

    def shows(self, at: Location) -> bool:
        """Say whether a listing may hold a place: no rule denies it or hides it."""
        folds = self.roots[at.root].folds
        return not self.names.denies(at.parts, folds=folds) and self._boundary.shows(at)

    def check(self, at: Location, *, writing: bool = False) -> None:
        """See that no deny list has a place.

        Raises:
            Refusal: One has it.
        """
        folds = self.roots[at.root].folds
        try:
            self.names.check(at.parts, folds=folds, writing=writing)
        except Refusal as refused:
            raise type(refused)(at.path) from None

    def check_allowed(self, at: Location) -> None:
        """See that a file is on the allow list, if there is one.

        Raises:
            NotAllowed: It is not.
        """
        if not self.names.allows(at.parts):
            raise NotAllowed(at.path)

    def candidates(
        self, path: str, cwd: str = "", *, listing: bool = False, writing: bool = False
    ) -> list[Location]:
        """Give the places a path may mean, in the order of the roots.

        Args:
            path: As the client wrote it.
            cwd: The directory that a relative path starts from.
            listing: Whether the directories on the way to the client's roots count too.
            writing: Whether the file is to be written.

        Raises:
            Refusal: The path is not one, leads out, or holds a denied name; or ``cwd`` is no
                directory.
        """
        found = []
        refused: Refusal | None = None
        for at in self._meanings(path, cwd):
            self.check(at, writing=writing)
            if (self._boundary.shows if listing else self.contains)(at):
                found.append(at)
            else:
                refused = OutsideClientRoots(path)
        if refused and not found:
            raise refused
        return found

    def _meanings(self, path: str, cwd: str) -> list[Location]:
        index, parts = self._cut(path)
        if index is None and cwd:
            starts = self._directories(cwd)
            if len(starts) == 1 or starts[0].parts:
                return [self.locate(at.root, (*at.parts, *parts)) for at in starts]
        if index is None and parts and parts[0] in self._prefixes:
            index, parts = self._prefixes.index(parts[0]), parts[1:]
        indexes = range(len(self.roots)) if index is None else (index,)
        return [self.locate(each, parts) for each in indexes]

    def _directories(self, cwd: str) -> list[Location]:
        """Give the directories that a path may start from; a misspelt one would be made.

        Raises:
            Refusal: There is none; its field is ``cwd``.
        """
        found = []
        try:
            for at in self.candidates(cwd, listing=True):
                try:
                    with self.roots[at.root].place(at.parts):
                        found.append(at)
                except (FileNotFoundError, UnicodeEncodeError):
                    continue
                except OSError as error:
                    raise refusal(error, cwd) from None
            if not found:
                raise NotFound(cwd, "There is no such directory below the root.")
        except Refusal as refused:
            refused.field = "cwd"
            raise
        return found

    def _cut(self, path: str) -> tuple[int | None, Parts]:
        spellings = [
            (index, parts) for index, root in enumerate(self.roots) for parts in root.spellings
        ]
        try:
            which, parts = cut(path, [parts for _, parts in spellings])
        except OutsideRoot as error:
            raise OutsideRoot(path, error.message) from None
        return (None if which is None else spellings[which][0]), parts
