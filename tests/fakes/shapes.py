"""Fakes whose tools take no plain path to a text file: other suffixes, arguments and forms."""

import json
import os
import shlex
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

from tests.fakes.guards import ABSOLUTE, DOTDOT, EXPANSION, NAMES, SEPARATORS, SIBLING, TWO_READINGS
from tests.fakes.server import STRING, Guard, Refused, fakes, has, takes


class Shaped(Guard, families=("traversal", "links")):
    """Its tools have schemas and descriptions of their own; the guard is the strict one."""

    about: dict[str, str] = {}  # noqa: RUF012
    climbing = False

    def listed(self, tool: str) -> dict[str, Any]:
        return {**super().listed(tool), "description": self.about.get(tool, "")}

    def place(self, text: str, *, writing: bool) -> str:
        return self.climbs(text) if self.climbing else self.strictly(text)

    def climbs(self, text: str) -> str:
        """Refuse a path that begins with dot-dot, and no other that leads outside by dot-dot."""
        if text.startswith(("/", "..")) or self.has_links(text):
            return self.strictly(text)
        return os.path.normpath(os.path.join(self.root, text))


class Notes(Shaped, tools=("read_note", "write_note", "list_notes")):
    """Takes Markdown files only, by paths with their suffix."""

    schemas = {  # noqa: RUF012
        "read_note": takes(path=STRING),
        "write_note": takes(path=STRING, content=STRING),
        "list_notes": takes(folder=STRING),
    }

    def of_kind(self, path: str) -> str:
        if not path.endswith(".md"):
            raise Refused("a note ends with .md")
        return self.place(path, writing=False)

    def read_note(self, path: str) -> str:
        return Path(self.of_kind(path)).read_text(encoding="utf-8")

    def write_note(self, path: str, content: str) -> str:
        place = Path(self.of_kind(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
        return "written"

    def list_notes(self, folder: str) -> str:
        names = os.listdir(self.place(folder, writing=False))
        return "\n".join(name for name in sorted(names) if name.endswith(".md"))


class Titles(Shaped, tools=("create_note", "get_note")):
    """Makes a note from its title: adds the suffix and keeps all notes in one folder."""

    schemas = {  # noqa: RUF012
        "create_note": takes(title=STRING, body=STRING),
        "get_note": takes(title=STRING),
    }

    def of_title(self, title: str) -> Path:
        os.makedirs(os.path.join(self.root, "notes"), exist_ok=True)
        return Path(self.place(f"notes/{title}.md", writing=True))

    def place(self, text: str, *, writing: bool) -> str:
        place = self.strictly(text)
        if not place.startswith(os.path.join(self.root, "notes") + os.sep):
            raise Refused("no title")
        return place

    def create_note(self, title: str, body: str) -> str:
        place = self.of_title(title)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"---\ntitle: {title}\n---\n\n{body}\n", encoding="utf-8")
        return "made"

    def get_note(self, title: str) -> str:
        return self.of_title(title).read_text(encoding="utf-8")


class ClimbingTitles(Titles):
    """Makes a note from a title that may climb."""

    trips = frozenset(
        {
            DOTDOT,
            SIBLING,
            TWO_READINGS,
            SEPARATORS,
            EXPANSION,
            "links-read",
            "links-write",
        }
    )

    def place(self, text: str, *, writing: bool) -> str:
        if self.has_links(text.rsplit("..", maxsplit=1)[-1].strip("/")):
            raise Refused("a link")
        return os.path.join(self.root, text)


class Projects(Shaped, tools=("project_read", "project_write")):
    """Takes a project and the name of a file in two arguments."""

    schemas = {  # noqa: RUF012
        "project_read": takes(projectName=STRING, fileName=STRING),
        "project_write": takes(projectName=STRING, fileName=STRING, content=STRING),
    }

    def within(self, project: str, name: str) -> Path:
        if "/" in name or name in {".", ".."}:
            raise Refused("a name holds no slash")
        return Path(self.place(f"{project}/{name}", writing=True))

    def project_read(self, projectName: str, fileName: str) -> str:  # noqa: N803
        return self.within(projectName, fileName).read_text(encoding="utf-8")

    def project_write(self, projectName: str, fileName: str, content: str) -> str:  # noqa: N803
        place = self.within(projectName, fileName)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
        return "written"


class ClimbingNames(Projects):
    """Checks the project, and nothing of the name in it."""

    trips = frozenset(
        {
            DOTDOT,
            SIBLING,
            TWO_READINGS,
            SEPARATORS,
            EXPANSION,
            "traversal-hostile-names",
        }
    )

    def within(self, project: str, name: str) -> Path:
        folder = self.strictly(project)
        if self.has_links(f"{project}/{name}") or name.startswith("/"):
            raise Refused("a link")
        return Path(os.path.normpath(os.path.join(folder, name)))


class Sheets(Shaped, tools=("create_workbook", "read_cells")):
    """Reads workbooks, which have to be well-formed, and makes empty ones."""

    schemas = {  # noqa: RUF012
        "create_workbook": takes(filepath=STRING),
        "read_cells": takes(filepath=STRING, sheet_name=STRING),
    }
    about = {"read_cells": "Read all cells of a sheet in an Excel workbook."}  # noqa: RUF012

    def workbook(self, filepath: str) -> str:
        if not filepath.endswith(".xlsx"):
            raise Refused("unsupported file")
        return self.place(filepath, writing=False)

    def create_workbook(self, filepath: str) -> str:
        made = BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr("xl/workbook.xml", "<workbook/>")
        Path(self.workbook(filepath)).write_bytes(made.getvalue())
        return "made"

    def read_cells(self, filepath: str, sheet_name: str) -> str:
        try:
            with zipfile.ZipFile(self.workbook(filepath)) as archive:
                if f'name="{sheet_name}"' not in archive.read("xl/workbook.xml").decode():
                    raise Refused("no such sheet")
                return archive.read("xl/worksheets/sheet1.xml").decode()
        except (zipfile.BadZipFile, KeyError) as error:
            raise Refused("no workbook") from error


class Notebooks(Shaped, tools=("read_notebook",)):
    """Reads the cells of a notebook, which is JSON of a known form."""

    schemas = {"read_notebook": takes(notebook_path=STRING)}  # noqa: RUF012

    def read_notebook(self, notebook_path: str) -> str:
        text = Path(self.place(notebook_path, writing=False)).read_text(encoding="utf-8")
        return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])


class Vaults(Shaped, tools=("list_vaults", "read_in_vault")):
    """Takes the name of a vault, which a tool lists, and a path in it."""

    schemas = {  # noqa: RUF012
        "list_vaults": {"type": "object", "properties": {}},
        "read_in_vault": takes(vault=STRING, path=STRING),
    }

    def list_vaults(self) -> str:
        return f"Vaults:\n- {os.path.basename(self.root)}"

    def read_in_vault(self, vault: str, path: str) -> str:
        if vault != os.path.basename(self.root):
            raise Refused("no such vault")
        return Path(self.place(path, writing=False)).read_text(encoding="utf-8")


class Addresses(Shaped, tools=("convert",)):
    """Takes the URI of a file."""

    schemas = {"convert": takes(uri=STRING)}  # noqa: RUF012
    about = {"convert": "Convert a file:// resource to text."}  # noqa: RUF012

    def convert(self, uri: str) -> str:
        if not uri.startswith("file://"):
            raise Refused("no file URI")
        path = self.place(uri.removeprefix("file://"), writing=False)
        return Path(path).read_text(encoding="utf-8")


class ClimbingAddresses(Addresses, trips={DOTDOT, ABSOLUTE}):
    """Takes the URI of a file that may climb after an allowed beginning."""

    def place(self, text: str, *, writing: bool) -> str:
        below = text.removeprefix(self.root + "/")
        if below == text:
            raise Refused("outside")
        return self.climbs(below)


LONGEST_LINE = 10_000


class Lines(Shaped, tools=("open_by_command",), about={"open_by_command": "Takes 'cat FILE'."}):
    """Takes a command line that prints one file."""

    schemas = {"open_by_command": takes(command=STRING)}  # noqa: RUF012

    def open_by_command(self, command: str) -> str:
        # To split a megabyte takes shlex many seconds.
        program, *paths = shlex.split(command) if len(command) < LONGEST_LINE else [""]
        if program != "cat" or len(paths) != 1:
            raise Refused("no such command")
        return Path(self.place(paths[0], writing=False)).read_text(encoding="utf-8")


class ChosenVaults(Vaults, tools=("read_in_vault",)):
    """Takes the name of a vault from the values in its schema; only the last one has files."""

    schemas = {  # noqa: RUF012
        "read_in_vault": takes(vault={"type": "string", "enum": ["old", "main"]}, path=STRING)
    }

    def read_in_vault(self, vault: str, path: str) -> str:
        if vault != "main":
            raise Refused("the vault is empty")
        return Path(self.place(path, writing=False)).read_text(encoding="utf-8")


class Mentions(Shaped, tools=("ask",)):
    """Takes a text, in which @ and a path insert a file."""

    schemas = {  # noqa: RUF012
        "ask": takes(prompt={"type": "string", "description": "A question; @file inserts one."})
    }

    def ask(self, prompt: str) -> str:
        _, _, path = prompt.partition("@")
        if not path:
            raise Refused("nothing is mentioned")
        return Path(self.place(path, writing=False)).read_text(encoding="utf-8")


class NotesInFolders(Shaped, tools=("create_note", "read_note")):
    """Takes a path, and optionally a folder that it is below; checks the whole."""

    schemas = {  # noqa: RUF012
        "create_note": takes(filename=STRING, content=STRING) | {"required": ["filename"]},
        "read_note": takes(filename=STRING) | {"required": ["filename"]},
    }
    for _schema in schemas.values():
        _schema["properties"] = {**_schema["properties"], "folder": STRING}

    def within(self, folder: str, filename: str) -> Path:
        return Path(self.strictly(os.path.join(folder, filename)))

    def create_note(self, filename: str, content: str = "", folder: str = "") -> str:
        place = self.within(folder, filename)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
        return "made"

    def read_note(self, filename: str, folder: str = "") -> str:
        return self.within(folder, filename).read_text(encoding="utf-8")


class NotesInAnyFolder(NotesInFolders, trips={DOTDOT}):
    """Checks the path alone, and no folder that climbs."""

    def within(self, folder: str, filename: str) -> Path:
        self.strictly(filename)
        return Path(self.climbs(os.path.join(folder, filename)) if folder else filename)


class NotesInNamedFolders(NotesInFolders):
    """Takes one name as the folder, also the one above; checks the path for dot-dot."""

    trips = frozenset({DOTDOT, SIBLING, TWO_READINGS, SEPARATORS, EXPANSION})

    def within(self, folder: str, filename: str) -> Path:
        if not folder:
            return Path(self.strictly(filename))
        if "/" in folder or ".." in filename or self.has_links(f"{folder}/{filename}"):
            raise Refused("no such folder")
        return Path(self.root, folder, filename.lstrip("/"))


class NotesInCheckedFolders(NotesInFolders):
    """Checks the folder alone if there is one, and the path alone otherwise."""

    trips = frozenset(
        {
            DOTDOT,
            ABSOLUTE,
            SIBLING,
            TWO_READINGS,
            SEPARATORS,
            EXPANSION,
            "links-read",
            "links-write",
        }
    )

    def within(self, folder: str, filename: str) -> Path:
        if not folder or ".." not in filename:
            return Path(self.strictly(os.path.join(folder, filename)))
        return Path(self.strictly(folder), filename)


class NotesInProjects(NotesInFolders):
    """Takes the optional folder as the name of a project below a folder of its own."""

    def within(self, folder: str, filename: str) -> Path:
        place = f"projects/{folder}/{filename}" if folder else filename
        return Path(self.project(folder, place))

    def project(self, folder: str, place: str) -> str:
        return self.strictly(place)


class NotesInAnyProject(NotesInProjects):
    """Checks no name of a project that climbs."""

    trips = frozenset({DOTDOT, SIBLING, TWO_READINGS, SEPARATORS, EXPANSION, NAMES})

    def project(self, folder: str, place: str) -> str:
        if ".." not in folder or self.has_links(place):
            return self.strictly(place)
        return self.climbs(place)


fakes(__name__)(
    ClimbingNotes=has(
        Notes,
        "Takes Markdown files only, and checks for dot-dot at the beginning.",
        DOTDOT,
        climbing=True,
    ),
    ClimbingProjects=has(
        Projects,
        "Checks the name of the file, and of the project only how it begins.",
        DOTDOT,
        climbing=True,
    ),
    ClimbingSheets=has(
        Sheets,
        "Reads and makes workbooks, and checks for dot-dot at the beginning.",
        DOTDOT,
        climbing=True,
    ),
    ClimbingVaults=has(
        Vaults, "Takes the name of a vault, and a path that may climb.", DOTDOT, climbing=True
    ),
    ClimbingLines=has(
        Lines,
        "Takes a command line, and checks its path for dot-dot at the beginning.",
        DOTDOT,
        climbing=True,
    ),
    ClimbingChosenVaults=has(
        ChosenVaults,
        "Takes a vault from the values in its schema, and a path that may climb.",
        DOTDOT,
        climbing=True,
    ),
    ClimbingMentions=has(
        Mentions, "Takes a text with a path that may climb after an @.", DOTDOT, climbing=True
    ),
)
