"""Resolve paths to locations, and check whether a client may access them."""

from __future__ import annotations

from .boundary import Boundary
from .names import Names
from .paths import Location, cut, names_of
from .place import Root
from .refusals import NotAllowed, NotFound, OutsideClientRoots, OutsideRoot, Refusal, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..settings import Settings
    from .paths import Parts


class Policy:
    """The roots, the deny lists, the allow list and the client's roots.

    If there are several roots, each has a name (``paths.names_of``). Every path sent to the client
    begins with the name of its root. A path of the client may begin with one too. Any other
    relative path selects the first root that has such a file, or the first root for a new file.

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
        """Set the client's roots; paths outside them are refused from now on.

        They narrow our roots and never widen them. None removes the limit.
        """
        self._boundary = Boundary.of(uris, self.roots)

    def locate(self, index: int, parts: Parts) -> Location:
        return Location(index, parts, self._prefixes[index] if self._prefixes else None)

    def contains(self, at: Location) -> bool:
        """Return whether a location is in the client's roots; always true without such roots."""
        return self._boundary.contains(at)

    def shows(self, at: Location) -> bool:
        folds = self.roots[at.root].folds
        return not self.names.denies(at.parts, folds=folds) and self._boundary.shows(at)

    def check(self, at: Location, *, writing: bool = False) -> None:
        """Check that no deny list matches a location."""
        folds = self.roots[at.root].folds
        try:
            self.names.check(at.parts, folds=folds, writing=writing)
        except Refusal as refused:
            raise type(refused)(at.path) from None

    def check_allowed(self, at: Location) -> None:
        """Check that the allow list, if there is one, permits a file."""
        if not self.names.allows(at.parts):
            raise NotAllowed(at.path)

    def candidates(
        self, path: str, cwd: str = "", *, listing: bool = False, writing: bool = False
    ) -> list[Location]:
        """Return the possible locations of a path, in the order of the roots.

        Args:
            listing: Whether directories above the client's roots are included.

        Raises:
            Refusal: The path is invalid, is outside the roots, or contains a denied name; or
                ``cwd`` is no directory.
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
        """Return the existing directories for ``cwd``; a write would create a misspelt one.

        Raises:
            Refusal: There is none; the field of the error is ``cwd``.
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
