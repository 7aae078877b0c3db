"""The naming of files by a tool: suffix, folder, and text around a path. Pure."""

import posixpath
from dataclasses import dataclass
from typing import Final

from mcp_touchstone.samples import uri_template

TEXT: Final = ".txt"
"""Suffix of the files in the fixture trees and in payloads."""

PATH: Final = "{path}"
"""Placeholder of the path in a form."""


@dataclass(frozen=True, slots=True)
class FileNaming:
    """The conversion of paths in our trees to arguments of a tool.

    Attributes:
        suffix: the suffix of the files, such as ``.md``; empty if the tool takes text files.
        adds_suffix: whether the server adds the suffix itself.
        folder: the folder, relative to the root, of the files that are named plainly; empty for
            the root.
        adds_folder: whether the server adds this folder itself.
        form: the text around the path, such as ``file://{path}``.
    """

    suffix: str = ""
    adds_suffix: bool = False
    folder: str = ""
    adds_folder: bool = False
    form: str = PATH

    def suffixed(self, text: str) -> str:
        """Return a path, or a text with several, with the suffix of the tool."""
        return text.replace(TEXT, self.suffix) if self.suffix else text

    def placed(self, text: str) -> str:
        """Return the place, relative to the root, of a file that is named plainly.

        A name that climbs, and an absolute path, are kept.
        """
        text = self.suffixed(text)
        below = f"{self.folder}/"
        if not self.folder or text.startswith(("/", below)) or ".." in text:
            return text
        return self.folder if text == "." else below + text

    def written(self, path: str) -> str:
        """Return the text to send for a path, without the parts that the server adds."""
        path = self.suffixed(path)
        if self.suffix and self.adds_suffix:
            path = path.replace(self.suffix, "")
        if self.folder and self.adds_folder and not path.startswith("/"):
            below = f"{self.folder}/"
            if path == self.folder:
                path = "."
            elif path.startswith(below):
                path = path.removeprefix(below)
            else:
                path = "../" * len(self.folder.split("/")) + path
        return path

    def filled(self, path: str) -> str:
        """Return the form with a path in it; a URI is kept, and in a URI a path is encoded."""
        if self.form == PATH or path.lower().startswith("file:"):
            return path
        if "://" in self.form:
            path = uri_template.path(path)
        return self.form.replace(PATH, path)

    def __str__(self) -> str:
        """Return a description for reports; empty for text files at any path."""
        parts = []
        if self.suffix:
            parts.append(f"{self.suffix} {'added' if self.adds_suffix else 'files'}")
        if self.adds_folder:
            parts.append(f"in {self.folder}")
        if self.form != PATH:
            parts.append(f"as {self.form}")
        return ", ".join(parts)


def folder_and_name(path: str) -> tuple[str, str]:
    """Split a path into the values of two arguments; the folder of a plain name is ``.``."""
    folder, name = posixpath.split(path)
    return folder or ".", name


def first_and_rest(path: str) -> tuple[str, str]:
    """Split a path after its first part; the first part of a plain name is ``.``."""
    first, slash, rest = path.partition("/")
    return (first or "/", rest) if slash else (".", path)
