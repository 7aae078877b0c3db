"""The options of the pytest plugin and their ini keys. Does not import the harness."""

from typing import Final

import pytest

INI_FILES: Final = {
    "pytest.ini": "",
    "pyproject.toml": r"^\[tool\.pytest\b",
    "tox.ini": r"^\[pytest\]",
    "setup.cfg": r"^\[tool:pytest\]",
}
"""Files that pytest reads its configuration from, and the line that each needs for it."""

LISTS: Final = {
    "select": ("WORD", "clause, chapter, group or scenario; globs are allowed; repeatable"),
    "revision": ("DATE", "check this protocol revision only; repeatable"),
    "target": ("NAME", "check this server of the configuration only; repeatable"),
    "header": (
        "NAME=env:VARIABLE",
        "a header of each HTTP request; its value is read from a variable; repeatable",
    ),
    "call": ("NAME={...}", "a tool that may be called, best with arguments that work; repeatable"),
    "resource": ("URI", "a resource that can be read; repeatable"),
    "prompt": ("NAME={...}", "a prompt with arguments that work; repeatable"),
    "promise": ("NAME", "a guarantee the server makes, for the security suite; repeatable"),
    "fail-on": (
        "SEVERITY",
        "lowest severity that fails an item: must, should, high, ...; sdk; repeatable",
    ),
}
"""Options that may be given several times, each an ini key too: name -> its value and its help."""
SINGLE: Final = {
    "url": (
        "URL",
        "the server speaks HTTP here; {port} is replaced, also in the command of --mcp-server",
    ),
    "suite": ("NAME", "conformance (default), security or all; security needs {root}"),
    "timeout": ("SECONDS", "limit for the first reply (default 60)"),
    "sandbox": ("NAME", "auto, unshare, bwrap or off (default: auto for security, else off)"),
    "deadline": ("SECONDS", "limit for the whole run (default: none; 1200 where CI is set)"),
    "examples": ("N", "examples of each property in each revision (default 10; 0 for none)"),
    "seed": ("N", "random seed of the examples (default 0)"),
}
"""The other options that are words of `mcp-touchstone check`: name -> its value and its help."""
FLAGS: Final = {
    "attack-commands": "also attack tools that run programs; requires a sandbox",
    "accept-unbound": "pass a security run although no tool that handles files was found",
    "online": "leave the server the network in its sandbox",
    "strict": "a broken SHOULD is a failure, and faults of the server's SDK count",
    "quick": "check the newest revision only, in one conversation, without calling tools",
}
"""Options without a value, each an ini key too."""
FILES: Final = {
    "config": "file that defines the server: touchstone.toml, pyproject.toml, or a client's file",
    "baseline": "file of known failures (default: touchstone-baseline.toml, if it exists)",
}
"""Options that name a file; in an ini key its path is relative to the ini file."""
GOLDEN: Final = "folder of a golden recording: check that the answers are as recorded in it"
SERVER: Final = ("server", "url", "config")
"""Options and ini keys that name a server."""


def given(config: pytest.Config, name: str) -> list[str]:
    """Return the values of an option, or else of its ini key; a set flag has one value."""
    option = config.getoption(f"--mcp-{name}")
    key = config.getini(f"mcp_{name.replace('-', '_')}")
    found = key if option is None or option == [] or option is False else option
    if isinstance(found, str):
        return [found]
    return list(found) if isinstance(found, list) else ["true"] * bool(found)
