"""The expected report of each server in ``tests/hostile``; the groups run in parallel."""

from dataclasses import dataclass

MIB = 2**20


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
    argument: str = ""
    patience: int = 3
    memory: int = 150 * MIB


FLOOD = 500 * MIB
SOUND = Case(status=0, said=("1 pass",))

GROUPS: dict[str, dict[str, Case]] = {
    "silence": {
        "never_answers": Case(
            status=2, said=("no answer within 3.0 s", "--timeout waits longer")
        ),
        "listens_on_a_port": Case(status=2, said=("listens on port",)),
        "never_reads": Case(status=2, said=("no answer within 3.0 s",)),
        "reads_one_byte_a_second": Case(status=2, said=("no answer within 3.0 s",)),
        "answers_tomorrow": Case(status=1, said=("ping-empty-response", "no answer within")),
        "invents_ids": Case(status=1, said=("ping-empty-response", "no answer within")),
        "stops_itself": Case(status=1, said=("no answer within",), select="jsonrpc"),
        "echoes_every_line": Case(status=2, said=("repeats our request",)),
        "answers_late": Case(status=0, said=("1 pass",), argument="0.1", patience=20),
        "answers_beside_the_id": Case(
            status=1, said=("copy the id of the request",), select="jsonrpc", argument="null"
        ),
        "answers_only_after": Case(
            status=1, said=("its output is buffered",), select="stdio", argument="buffered",
            patience=20,
        ),
        "starts_slowly": Case(status=0, said=("1 pass",), patience=60),
        "is_slow_at_its_first_start": Case(
            status=0, said=("1 pass",), argument="6.5", patience=12
        ),
    },
    "pipes": {
        "closes_stdout_and_lives": Case(status=1, said=("closed its output",)),
        "closes_stdin_and_lives": Case(status=1, said=("no answer within",)),
        "closes_every_pipe_and_lives": Case(status=2, said=("closed its output",)),
        "leaves_while_a_child_holds_the_pipes": Case(
            status=1, said=("the server left (status 0)",)
        ),
        "asks_and_never_reads": Case(status=1, said=("ping-empty-response",), memory=FLOOD),
        "asks_its_client_for_ever": Case(
            status=0, said=("warn  ping-not-excessive",), select="ping"
        ),
    },
    "floods": {
        "floods_stdout": Case(
            status=2, said=("we stopped listening", "20,000 lines"), patience=60, memory=FLOOD
        ),
        "floods_stderr": Case(status=0, said=("1 pass",), patience=60),
        "writes_a_line_without_end": Case(
            status=2, said=("a line of 33,",), patience=60, memory=FLOOD
        ),
        "writes_a_hundred_megabyte_line": Case(
            status=2, said=("a line of 33,",), patience=60, memory=FLOOD
        ),
        "returns_a_gigabyte": Case(status=0, said=("1 pass",), patience=60, memory=FLOOD),
        "glues_everything_together": Case(
            status=1, said=("a line of 33,",), patience=60, memory=FLOOD
        ),
        "writes_binary": Case(status=1, said=("not JSON",), select="stdio", memory=FLOOD),
        "writes_empty_lines": Case(
            status=2, said=("20,000 lines", "a blank line"), select="stdio", patience=60,
            memory=FLOOD,
        ),
    },
    "wire": {
        "prints_a_banner": Case(
            status=1,
            said=("stdio-stdout-only-messages", "▸", "Welcome to the demo server"),
            select="stdio",
        ),
        "writes_invalid_utf8": Case(
            status=1, said=("stdio-utf8-output", "not UTF-8"), select="stdio"
        ),
        "answers_every_id_twice": Case(
            status=1, said=("a second response to id 101",), select="jsonrpc"
        ),
        "answers_before_it_is_asked": SOUND,
        "answers_in_deep_json": Case(
            status=2, said=("not judged: a message is nested deeper than 128 levels",)
        ),
        "nests_deeply schema": Case(
            status=1, said=("not judged: a message is nested deeper than 128 levels",),
            select="tools", argument="schema", patience=20,
        ),
        "nests_deeply results": Case(
            status=2, said=("not judged: a message is nested deeper than 128 levels",),
            select="tools", argument="results", patience=20,
        ),
        "answers_in_huge_numbers": Case(status=0, said=("warn  ping-empty-response",)),
        "answers_over_many_lines": Case(
            status=1, said=("stdio-no-embedded-newlines", "over 14 lines"), select="stdio"
        ),
        "speaks_another_protocol": Case(
            status=1, said=("the framing of another protocol (LSP)",), select="stdio"
        ),
        "speaks_http": Case(status=1, said=("HTTP/1.1 400 Bad Request",), select="stdio"),
        "has_an_id_of_a_megabyte": Case(status=0, said=("1 pass",), memory=FLOOD),
        "changes_its_tools_at_every_list": SOUND,
        "forgets_what_came_with_an_array": Case(
            status=1,
            said=("an answer to the next request, after an array",),
            select="jsonrpc-invalid-request",
        ),
    },
    "processes": {
        "ignores_end_of_input_and_sigterm": Case(
            status=0, said=("SIGKILL", "warn"), select="lifecycle"
        ),
        "leaves_children_behind": SOUND,
        "forks_twice": SOUND,
        "hides_a_daemon": SOUND,
        "starts_thirty_children": SOUND,
        "renames_itself": SOUND,
        "signals_its_parent": Case(status=130, said=("interrupted",)),
    },
    "ends": {
        "exits_at_once": Case(
            status=2,
            said=("the server left (status 3)", "DATABASE_URL is not set", "the command by hand"),
        ),
        "dies_at_a_message 1": Case(status=2, said=("the server left (status 9)",), argument="1"),
        **{
            f"dies_at_a_message {n}": Case(
                status=1, said=("the server left (status 9)",), argument=f"{n}"
            )
            for n in (2, 3, 4, 6)
        },
        "leaves_after_each_answer": Case(status=1, said=("the server left (status 0)",)),
        "crashes_on_the_third_request": Case(status=1, said=("the server left (SIGSEGV)",)),
        "dumps_core": Case(status=1, said=("a core of 0 bytes", "the server left (SIGABRT)")),
        "refuses_every_initialize": Case(
            status=1, said=("lifecycle-initialize-response", "license expired"), select="lifecycle"
        ),
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
        f"sends_schemas_that_explode {kind}": Case(
            status=1, said=("tools-malformed-call-error",), select="tools", argument=kind,
            patience=20, memory=FLOOD,
        )
        for kind in (
            "doubles", "unions", "names", "wide", "branches", "patterns", "lengths", "numbers",
            "types", "cycles", "deep", "items",
        )
    },
    "amounts": {
        "sends_schemas_that_explode enum": Case(
            status=1, said=("tools-malformed-call-error",), select="tools", argument="enum",
            patience=20, memory=FLOOD,
        ),
        "lists_thousands_of_tools": Case(
            status=1, said=("tools-malformed-call-error",), select="tools", argument="1000",
            patience=20, memory=FLOOD,
        ),
        "gives_a_new_list_of_megabytes_each_time": Case(
            status=2, said=("the server wrote more than 192 MiB in all processes",),
            select="tools", patience=20, memory=FLOOD + 12 * MIB,
        ),
        "asks_two_questions_for_each_answer": Case(
            status=0, said=("1 pass",), patience=20, memory=FLOOD
        ),
    },
    "locks": {
        f"runs_only_once {kind}": Case(
            status=0, said=("one at a time",), select="lifecycle", argument=kind, patience=20
        )
        for kind in ("leaves", "kills")
    },
    "screen": {
        "writes_escape_sequences": Case(status=0, said=(r"\x1b[2J", r"\u202e")),
        "writes_markup": Case(status=0, said=("alert(1)", r"\n::error::owned")),
        "writes_lone_surrogates": Case(status=0, said=(r"\udfff",)),
        "writes_to_the_terminal": SOUND,
    },
}  # fmt: skip
"""Name of the file, and of the case where a file has several, by what is tried."""
