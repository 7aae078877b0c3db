"""The expected report of each server in ``tests/hostile``; the groups run in parallel."""

import sys
from dataclasses import dataclass
from typing import Any

from tests.conftest import HERE

MIB = 2**20


def hostile(name: str, root: str = ".", outside: str = ".", argument: str = "-") -> tuple[str, ...]:
    """Return the command of a server in ``tests/hostile``."""
    words = (name, str(HERE.parent), root, outside, argument)
    return (sys.executable, "-S", str(HERE / "hostile"), *words)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A hostile server and its expected report.

    Attributes:
        status: exit status.
        said: words that must stand in the report.
        select: what is judged.
        argument: an argument of the server beside the folders.
        patience: limit for the first answer, in seconds.
        memory: what the harness may need for it, in bytes.
    """

    status: int
    said: tuple[str, ...] = ()
    select: str = "answers_a_ping"
    argument: str = "-"
    patience: int = 3
    memory: int = 150 * MIB


def case(status: int, *said: str, **how: Any) -> Case:
    """Expect an exit status and words in the report."""
    return Case(status=status, said=said, **how)


FLOOD = 300 * MIB
SOUND = case(0, "1 pass")

GROUPS: dict[str, dict[str, Case]] = {
    "silence": {
        "never_answers": case(2, "no answer within 3.0 s", "--timeout waits longer"),
        "listens_on_a_port": case(2, "listens on port"),
        "never_reads": case(2, "no answer within 3.0 s"),
        "reads_one_byte_a_second": case(2, "no answer within 3.0 s"),
        "answers_tomorrow": case(1, "ping-empty-response", "no answer within"),
        "invents_ids": case(1, "ping-empty-response", "no answer within"),
        "stops_itself": case(1, "no answer within", select="jsonrpc"),
        "echoes_every_line": case(2, "repeats our request"),
        "answers_late": case(0, "1 pass", argument="0.1", patience=20),
        "answers_beside_the_id": case(
            1, "copy the id of the request", select="jsonrpc", argument="null"
        ),
        "answers_only_after": case(
            1, "its output is buffered", select="stdio", argument="buffered", patience=20
        ),
        "starts_slowly": case(0, "1 pass", patience=60),
        "is_slow_at_its_first_start": case(0, "1 pass", argument="6.5", patience=12),
    },
    "pipes": {
        "closes_stdout_and_lives": case(1, "closed its output"),
        "closes_stdin_and_lives": case(1, "no answer within"),
        "closes_every_pipe_and_lives": case(2, "closed its output"),
        "leaves_while_a_child_holds_the_pipes": case(1, "the server left (status 0)"),
        "asks_and_never_reads": case(1, "ping-empty-response", memory=FLOOD),
        "asks_its_client_for_ever": case(0, "warn  ping-not-excessive", select="ping"),
    },
    "floods": {
        "floods_stdout": case(2, "we stopped listening", "5,000 lines", patience=60, memory=FLOOD),
        "sends_many_notifications": case(
            1, "we stopped", select="jsonrpc", patience=60, memory=FLOOD
        ),
        "floods_stderr": case(0, "1 pass", patience=60),
        "writes_a_line_without_end": case(2, "a line of 33,", patience=60, memory=FLOOD),
        "writes_a_hundred_megabyte_line": case(2, "a line of 33,", patience=60, memory=FLOOD),
        "returns_a_gigabyte": case(0, "1 pass", patience=60, memory=FLOOD),
        "glues_everything_together": case(1, "a line of 33,", patience=60, memory=FLOOD),
        "writes_binary": case(1, "not JSON", select="stdio", memory=FLOOD),
        "writes_empty_lines": case(
            2, "5,000 lines", "a blank line", select="stdio", patience=60, memory=FLOOD
        ),
    },
    "wire": {
        "prints_a_banner": case(
            1, "stdio-stdout-only-messages", "▸", "Welcome to the demo server", select="stdio"
        ),
        "writes_invalid_utf8": case(1, "stdio-utf8-output", "not UTF-8", select="stdio"),
        "answers_every_id_twice": case(1, "a second response to id 101", select="jsonrpc"),
        "answers_before_it_is_asked": SOUND,
        "answers_in_deep_json": case(2, "not judged: a message is nested deeper than 128 levels"),
        "nests_deeply schema": case(
            1,
            "not judged: a message is nested deeper than 128 levels",
            select="tools",
            argument="schema",
            patience=20,
        ),
        "nests_deeply results": case(
            2,
            "not judged: a message is nested deeper than 128 levels",
            select="tools",
            argument="results",
            patience=20,
        ),
        "answers_in_huge_numbers": case(0, "warn  ping-empty-response"),
        "answers_over_many_lines": case(
            1, "stdio-no-embedded-newlines", "over 14 lines", select="stdio"
        ),
        "speaks_another_protocol": case(1, "the framing of another protocol (LSP)", select="stdio"),
        "speaks_http": case(1, "HTTP/1.1 400 Bad Request", select="stdio"),
        "has_an_id_of_a_megabyte": case(0, "1 pass", memory=FLOOD),
        "changes_its_tools_at_every_list": SOUND,
        "forgets_what_came_with_an_array": case(
            1, "an answer to the next request, after an array", select="jsonrpc-invalid-request"
        ),
    },
    "processes": {
        "ignores_end_of_input_and_sigterm": case(0, "SIGKILL", "warn", select="lifecycle"),
        "leaves_children_behind": SOUND,
        "forks_twice": SOUND,
        "hides_a_daemon": SOUND,
        "starts_thirty_children": SOUND,
        "renames_itself": SOUND,
        **{
            f"spins_after_each_call {kind}": case(
                0,
                "a whole core while idle",
                select="tools-call-answered",
                argument=kind,
                patience=60,
            )
            for kind in ("mortal", "deaf")
        },
        "signals_its_parent": case(130, "interrupted"),
    },
    "ends": {
        "exits_at_once": case(
            2, "the server left (status 3)", "DATABASE_URL is not set", "the command by hand"
        ),
        "dies_at_a_message 1": case(2, "the server left (status 9)", argument="1"),
        **{
            f"dies_at_a_message {n}": case(1, "the server left (status 9)", argument=f"{n}")
            for n in (2, 3, 4, 6)
        },
        "leaves_after_each_answer": case(1, "the server left (status 0)"),
        "crashes_on_the_third_request": case(1, "the server left (SIGSEGV)"),
        "dumps_core": case(1, "a core of 0 bytes", "the server left (SIGABRT)"),
        "refuses_every_initialize": case(
            1, "lifecycle-initialize-response", "license expired", select="lifecycle"
        ),
    },
    "disk": {
        **{
            f"takes_too_much {kind}": case(
                2, f"it {what}", "name a larger --root-size", argument=kind, patience=60
            )
            for kind, what in {
                "bytes": "wrote more than 16 MiB",
                "single": "wrote more than 16 MiB",
                "home": "wrote more than 16 MiB",
                "mapped": "wrote more than 16 MiB",
                "unnamed": "wrote more than 16 MiB",
                "files": "made more than 2,048 files",
                "folders": "made more than 2,048 files",
            }.items()
        },
        "takes_much again": case(0, "1 pass", argument="again", patience=60),
        "takes_much sparse": case(0, "1 pass", argument="sparse", patience=60),
    },
    "files": {
        "fills_its_root": SOUND,
        "deletes_its_root": SOUND,
        "shuts_its_root": SOUND,
        "puts_a_link_in_place_of_its_root": SOUND,
        "makes_ten_thousand_files": SOUND,
        "leaves_odd_files": SOUND,
    },
    "schemas": {
        f"sends_schemas_that_explode {kind}": case(
            1,
            "tools-malformed-call-error",
            select="tools",
            argument=kind,
            patience=20,
            memory=FLOOD,
        )
        for kind in (
            "doubles",
            "unions",
            "names",
            "wide",
            "branches",
            "patterns",
            "lengths",
            "numbers",
            "types",
            "cycles",
            "deep",
            "items",
        )
    },
    "amounts": {
        "sends_schemas_that_explode enum": case(
            1,
            "tools-malformed-call-error",
            select="tools",
            argument="enum",
            patience=20,
            memory=FLOOD,
        ),
        "lists_thousands_of_tools": case(
            1,
            "tools-malformed-call-error",
            select="tools",
            argument="1000",
            patience=20,
            memory=FLOOD,
        ),
        "gives_a_new_list_of_megabytes_each_time": case(
            2,
            "the server wrote more than 168 MiB in all processes",
            select="tools",
            patience=20,
            memory=FLOOD,
        ),
        "asks_two_questions_for_each_answer": case(0, "1 pass", patience=20, memory=FLOOD),
    },
    "locks": {
        f"runs_only_once {kind}": case(
            0, "one at a time", select="lifecycle", argument=kind, patience=20
        )
        for kind in ("leaves", "kills")
    },
    "screen": {
        "writes_escape_sequences": case(0, r"\x1b[2J", r"\u202e"),
        "writes_markup": case(0, "alert(1)", r"\n::error::owned"),
        "writes_lone_surrogates": case(0, r"\udfff"),
        "writes_to_the_terminal": SOUND,
    },
}
"""Name of the server, and of the case where a server has several, by what is tried."""

SANDBOXED: dict[str, Case] = {
    f"fills_its_own_places {argument}": case(
        2, what, "name a larger --root-size", argument=argument, patience=60
    )
    for argument, what in {
        "bytes /tmp": "it filled the 16 MiB of /tmp in its sandbox",
        "leaves /tmp": "it filled the 16 MiB of /tmp in its sandbox",
        "files /tmp": "it made 4,096 files in /tmp of its sandbox",
        "bytes /dev/shm": "it filled the 16 MiB of ",
        "leaves /var/tmp": "it filled the 16 MiB of ",
    }.items()
}
"""The same for servers that need a sandbox."""
