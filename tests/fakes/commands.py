"""Servers with a tool that runs programs, with one fault each; and good ones."""

import os
import shlex
import subprocess
from pathlib import Path
from types import MappingProxyType

from tests.fakes.server import STRING, STRINGS, Guard, Refused, takes

LISTED = ("cat", "grep", "ls", "find", "sort")
RUNS = ("-exec", "-ok", "-fprint", "-fls", "-delete", "-o", "--output", "-r", "-R", "-L", "-f")


class RunsPrograms(Guard, families=("commands",), tiers=("commands",), tools=("run_command",)):
    """Runs listed programs without a shell; their words stay inside the root."""

    schemas = MappingProxyType({"run_command": takes(command=STRING)})

    def run_command(self, command: str) -> str:
        return self.ran(shlex.split(command))

    def ran(self, words: list[str]) -> str:
        self.check(words)
        return self.started(words)

    def check(self, words: list[str]) -> None:
        """Refuse programs off the list, options that write or run, and words that lead outside."""
        if not words or words[0] not in LISTED:
            raise Refused("that program is not on the list")
        for word in words[1:]:
            self.check_word(word)

    def check_word(self, word: str) -> None:
        self.check_option(word)
        self.strictly(word)

    def check_option(self, word: str) -> None:
        if word.startswith("-") and word.startswith(RUNS):
            raise Refused("that option is not on the list")

    def started(self, words: list[str] | str) -> str:
        """Run a program, or a line in a shell, in the root; return its output and its errors."""
        done = subprocess.run(
            ["bash", "-c", words] if isinstance(words, str) else words,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=5,
            check=False,
        )
        return done.stdout


class RunsListedPrograms(RunsPrograms):
    """Takes a command line."""


class RunsListsOfWords(RunsPrograms, tools=("run_words",)):
    """Takes the words of a command as a list, and the folder in which it runs."""

    schemas = MappingProxyType({"run_words": takes(command=STRINGS, directory=STRING)})

    def run_words(self, command: list[str], directory: str) -> str:
        if self.strictly(directory) != self.root:
            raise Refused("only in the root")
        return self.ran(command)


class RunsProgramsWithWords(RunsPrograms, tools=("execute",)):
    """Takes a program, and its words as a list."""

    schemas = MappingProxyType(
        {"execute": takes(command=STRING, args=STRINGS) | {"required": ["command"]}}
    )

    def execute(self, command: str, args: list[str] | None = None) -> str:
        return self.ran([command, *(args or [])])


class RunsSequences(RunsPrograms):
    """Runs several commands in turn and permits separators, because it checks each command."""

    def run_command(self, command: str) -> str:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=";|&<>()")
        lexer.whitespace_split = True
        parts: list[list[str]] = [[]]
        for word in lexer:
            if set(word) & set("<>()`$"):
                raise Refused("only separators")
            if set(word) <= set(";|&"):
                parts.append([])
            else:
                parts[-1].append(word)
        return "".join(self.ran(words) for words in parts)


class RunsAnything(RunsPrograms):
    """Is a shell without a list and without a folder; it promises neither."""

    def run_command(self, command: str) -> str:
        return self.started(command)


class ComparesBaseNames(RunsPrograms, trips={"commands-unlisted"}):
    """Compares the last component of the program with its list."""

    def check(self, words: list[str]) -> None:
        super().check([os.path.basename(words[0]), *words[1:]])


class SkipsAssignments(RunsPrograms, trips={"commands-unlisted"}):
    """Skips assignments when it checks, and lets a shell look for the program along them."""

    def run_command(self, command: str) -> str:
        words = shlex.split(command)
        plain = [word for word in words if "=" not in word]
        self.check(plain)
        first = [word for word in words if "=" in word]
        return self.started(" ".join([*first, shlex.join(plain)]))


class ChecksTheFirstWord(RunsPrograms, trips={"commands-shell"}):
    """Passes the line to a shell if its words are harmless, up to the first separator."""

    def run_command(self, command: str) -> str:
        if ".." in command or "/" in command or "~" in command or "lnk" in command:
            raise Refused("only names")
        self.check(shlex.split(command.partition("\n")[0].partition(";")[0]))
        return self.started(command)


class SplitsAtSemicolons(RunsPrograms, trips={"commands-shell"}):
    """Checks each part of a line between semicolons, and not between lines."""

    def run_command(self, command: str) -> str:
        for sign in "&|<>$`(){}*?~'\"\\":
            if sign in command:
                raise Refused(f"no {sign}")
        for part in command.split(";"):
            self.check(shlex.split(part.partition("\n")[0]))
        return self.started(command)


class RedirectsAnywhere(RunsPrograms, trips={"commands-shell"}):
    """Redirects output as the caller says, to any file."""

    def run_command(self, command: str) -> str:
        line, _, place = command.partition(">")
        found = super().run_command(line)
        if place.strip():
            Path(self.root, place.strip()).write_text(found, encoding="utf-8")
        return found


class PassesOptionsThatRun(RunsPrograms, trips={"commands-options"}):
    """Checks the program and the paths, and no option."""

    def check_word(self, word: str) -> None:
        if not word.startswith(("-", "{")):
            self.strictly(word)

    def check(self, words: list[str]) -> None:
        if words[1:2] in (["-r"], ["-R"], ["-L"], ["-f"]):
            raise Refused("only files of the root")
        super().check(words)


class ChecksAbsolutePathsOnly(RunsPrograms, trips={"commands-folder"}):
    """Refuses absolute paths outside, and lets climbs through."""

    def check_word(self, word: str) -> None:
        self.check_option(word)
        if word.startswith("/"):
            self.strictly(word)


class ComparesWordsAsText(RunsPrograms, trips={"commands-folder"}):
    """Compares paths as text, so that links lead outside."""

    def check_word(self, word: str) -> None:
        self.check_option(word)
        plain = os.path.normpath(os.path.join(self.root, word))
        if plain != self.root and not plain.startswith(self.root + os.sep):
            raise Refused("outside")
