"""What is tried on a server, and what is not: only what may be called, only what is needed."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone import revision as rev
from mcp_touchstone.dossier import Dossier
from mcp_touchstone.gate import _ground
from mcp_touchstone.learning import learn
from mcp_touchstone.needs import WORDS
from mcp_touchstone.pace import Pace
from mcp_touchstone.pool import Pool
from mcp_touchstone.recon import explore
from mcp_touchstone.scout import BUDGET, HANGS
from mcp_touchstone.session import Role
from mcp_touchstone.target import ROOT, Named, Target
from mcp_touchstone.traffic import SLOW, WISHED
from mcp_touchstone.world import NOTE, NOTES, World
from tests.conftest import HERE

LEGACY = rev.LATEST_LEGACY
MODERN = rev.LATEST_MODERN
TOY = str(HERE / "toy_server.py")


class Found:
    """A toy server after it was tried."""

    def __init__(self, dossier: Dossier, pool: Pool) -> None:
        self.dossier = dossier
        self.pool = pool

    def examples(self, word: str, revision: str = LEGACY) -> list[str]:
        return [str(example) for example in self.dossier.spoken[revision].examples(word)]

    def lacks(self, word: str, revision: str = LEGACY) -> bool:
        return bool(self.dossier.lacks((word,), revision))

    def called(self, revision: str | None = None) -> list[str]:
        """Name the tools that were called, in every process."""
        return [
            entry.value["params"]["name"]
            for connection in self.pool.connections
            for entry in connection.transcript
            if revision in {None, connection.revision}
            if isinstance(entry.value, dict) and entry.value.get("method") == "tools/call"
        ]


@contextmanager
def tried(
    *features: str,
    words: set[str],
    on: tuple[str, ...] = (LEGACY, MODERN),
    startup: float = 20.0,
    **named: Any,
) -> Iterator[Found]:
    command = (sys.executable, "-S", TOY, ROOT, *features)
    target = Target(command=command, startup=startup, named=Named(**named))
    with World() as world:
        pool = Pool(target, world, Pace(startup))
        try:
            dossier, connections = explore(pool.spawn, pool.pace)
            pool.adopt(connections, dossier)
            learn(dossier, dict.fromkeys(on, words), _ground(pool, threading.Event()))
            yield Found(dossier, pool)
        finally:
            pool.close()


# --- tools


def test_a_tool_is_called_once_its_arguments_are_made_up_and_kept_as_it_worked() -> None:
    with tried("echo", "count", words={"callable-tool"}) as found:
        for revision in (LEGACY, MODERN):
            assert found.examples("callable-tool", revision) == [
                "tools/call count",
                'tools/call echo {"text": "hello"}',
            ]
            assert found.examples("structured-tool", revision) == ["tools/call count"]
            assert found.examples("argument-tool", revision)[0].startswith("tools/call echo")


def test_a_tool_that_is_not_annotated_is_never_called_unless_it_is_named() -> None:
    with tried("echo", "write", words=set(WORDS)) as found:
        assert "write" not in found.called()
    with tried("write", words={"callable-tool"}, calls=(("write", None),)) as found:
        assert set(found.called()) == {"write"}
        assert found.lacks("callable-tool")
        assert found.dossier.remarks == ["--call write: isError: write does not do that"]


def test_older_revisions_without_annotations_take_the_tool_by_its_name() -> None:
    with tried("echo", "write", words={"callable-tool"}, on=("2024-11-05",)) as found:
        listed = found.dossier.spoken["2024-11-05"].named("tools")
        assert not any("annotations" in tool for tool in listed)
        assert found.examples("callable-tool", "2024-11-05")
        assert set(found.called()) == {"echo"}


def test_named_arguments_are_used_as_they_are() -> None:
    calls = (("echo", {"text": "mine"}),)
    with tried("echo", words={"callable-tool"}, calls=calls) as found:
        assert found.examples("callable-tool") == ['tools/call echo {"text": "mine"}']
        assert found.dossier.remarks == []


def test_paths_are_tried_until_one_is_right_and_a_tool_that_reads_files_is_known() -> None:
    with tried("read", words={"file-tool"}) as found:
        (example,) = found.dossier.spoken[LEGACY].examples("file-tool")
        assert example.arguments["path"].endswith("notes/today.txt")
        assert not found.lacks("file-tool")


def test_a_tool_on_a_later_page_is_found() -> None:
    features = ("paged", "write", "picky", "echo")
    calls = (("write", None),)
    with tried(*features, words={"callable-tool"}, on=(LEGACY,), calls=calls) as found:
        assert found.examples("callable-tool") == ['tools/call echo {"text": "hello"}']


def test_what_fails_says_why() -> None:
    with tried("picky", words={"callable-tool", "slow-call"}) as found:
        assert found.lacks("callable-tool")
        why = found.dossier.why("slow-call", LEGACY)
        assert "picky answered isError: picky does not do that" in why
    with tried("write", words={"callable-tool"}) as found:
        assert "no tool is annotated read-only" in found.dossier.why("callable-tool", LEGACY)


def test_a_tool_that_kills_the_server_costs_no_other_word() -> None:
    with tried("die", "echo", words={"callable-tool"}, on=(LEGACY,)) as found:
        assert found.examples("callable-tool") == ['tools/call echo {"text": "hello"}']
        assert found.pool.started == len(rev.ALL) + 1


def test_a_tool_that_never_answers_is_taken_back_and_left_alone() -> None:
    with tried("hang", "echo", words={"callable-tool"}, on=(LEGACY,), startup=1.5) as found:
        assert found.examples("callable-tool") == ['tools/call echo {"text": "hello"}']
        methods = [e.value.get("method") for e in found.pool.shared(LEGACY).transcript if e.value]
        assert "notifications/cancelled" in methods


def test_trying_ends_after_a_few_hangs() -> None:
    """Each costs a deadline; together they stay below what is spent on one revision."""
    assert HANGS * Pace(20.0).reply < BUDGET
    calls = tuple(("hang", {"turn": turn}) for turn in range(9))
    with tried("hang", words={"callable-tool"}, on=(LEGACY,), startup=1.0, calls=calls) as found:
        assert found.lacks("callable-tool")
        assert len(found.called()) == HANGS


# --- traffic


def test_progress_and_log_messages_are_seen_where_they_are_asked_for() -> None:
    with tried("echo", "nap", "chat", words={"progress-call", "log-traffic"}) as found:
        for revision in (LEGACY, MODERN):
            assert found.examples("progress-call", revision) == ['tools/call nap {"duration": 0.1}']
            assert found.examples("log-traffic", revision) == ["tools/call chat"]


def test_what_is_logged_unasked_counts_too() -> None:
    with tried("loud", words={"log-traffic"}, on=(LEGACY,)) as found:
        assert found.examples("log-traffic") == ["(unasked)"]


def test_silence_is_no_traffic() -> None:
    with tried("echo", words={"progress-call", "log-traffic"}) as found:
        assert found.lacks("progress-call")
        assert found.lacks("log-traffic", MODERN)


def test_a_call_that_takes_a_duration_is_made_to_last() -> None:
    with tried("echo", "nap", words={"slow-call"}, on=(LEGACY,)) as found:
        (slow,) = found.dossier.spoken[LEGACY].examples("slow-call")
        assert 1 <= slow.arguments["duration"] <= 2
        assert slow.seconds >= SLOW


def test_a_call_that_waits_for_each_of_many_things_is_not_made_to_last_for_ever() -> None:
    with tried("naps", words={"slow-call"}, on=(LEGACY,)) as found:
        (slow,) = found.dossier.spoken[LEGACY].examples("slow-call")
        assert slow.arguments["duration"] < 1
        assert SLOW <= slow.seconds < 2 * WISHED


def test_a_call_that_was_slow_once_is_no_call_that_lasts() -> None:
    with tried("stutter", words={"callable-tool", "slow-call"}, on=(LEGACY,)) as found:
        (call,) = found.dossier.spoken[LEGACY].examples("callable-tool")
        assert call.seconds >= SLOW
        assert found.lacks("slow-call")


# --- resources, prompts, completions


def test_resources_and_expansions_are_read() -> None:
    words = {"readable-resource", "readable-template"}
    with tried("note", "template", "completions", words=words) as found:
        assert found.examples("readable-resource")[0] == "resources/read note:///1"
        assert found.examples("readable-template") == [
            "resources/read note:///1",
            "resources/read note:///2",
        ]


def test_a_template_is_expanded_without_completion_too() -> None:
    with tried("template", words={"readable-template"}) as found:
        assert found.examples("readable-template") == ["resources/read note:///1"]


def test_a_resource_is_named() -> None:
    uris = ("note:///2", "note:///none")
    with tried(words={"readable-resource"}, resources=uris) as found:
        assert found.examples("readable-resource") == ["resources/read note:///2"]
        assert found.dossier.remarks == [
            '--resource note:///none: error -32601 "no resources/read"'
        ]


def test_a_prompt_gets_what_completion_offers_or_what_is_named() -> None:
    with tried("greet", "hello", "completions", words={"rendered-prompt"}) as found:
        assert found.examples("rendered-prompt") == [
            'prompts/get greet {"colour": "red"}',
            "prompts/get hello",
        ]
    with tried("greet", words={"rendered-prompt"}) as found:
        assert found.lacks("rendered-prompt")
        assert "what colour?" in found.dossier.why("rendered-prompt", LEGACY)
    named = (("greet", {"colour": "red"}),)
    with tried("greet", words={"rendered-prompt"}, prompts=named) as found:
        assert not found.lacks("rendered-prompt")


def test_the_oldest_revision_completes_without_a_capability() -> None:
    old = "2024-11-05"
    with tried("greet", "completions", words={"completions"}, on=(old,)) as found:
        assert not found.lacks("completions", old)
    with tried("greet", words={"completions"}, on=(old,)) as found:
        assert found.lacks("completions", old)
    with tried("greet", words={"completions", "callable-tool"}, on=(old,)) as found:
        assert found.lacks("callable-tool", old)


# --- questions


QUESTIONS = {"elicits", "elicits-url", "samples", "samples-tools", "lists-roots", "mrtr"}


def test_what_makes_it_ask_is_found_in_both_eras() -> None:
    features = ("echo", "elicit", "link", "sample", "roots")
    with tried(*features, words=QUESTIONS, on=rev.ALL) as found:
        for revision in (LEGACY, MODERN):
            assert found.examples("elicits-url", revision) == ["tools/call link"]
            assert found.examples("samples-tools", revision) == ["tools/call sample"]
            assert found.examples("lists-roots", revision) == ["tools/call roots"]
        assert len(found.examples("mrtr", MODERN)) == 4
        (first, *_) = found.dossier.spoken[MODERN].examples("mrtr")
        assert first.result["requestState"] == "S1"
        assert first.asked
        assert not found.lacks("elicits", "2025-06-18")
        assert not found.lacks("samples", "2024-11-05")
        assert found.lacks("elicits", "2025-03-26")
        assert found.lacks("elicits-url", "2025-06-18")
        assert found.lacks("mrtr", LEGACY)


def test_one_more_process_is_enough_for_all_sessions() -> None:
    with tried("elicit", words={"elicits"}, on=rev.ALL) as found:
        assert found.pool.started == len(rev.ALL) + 1
        willing = [
            connection.revision
            for connection in found.pool.connections
            if not connection.modern and connection.transcript.capabilities
        ]
        assert willing == [LEGACY]


def test_a_tool_that_shows_itself_only_to_a_willing_client_is_found() -> None:
    with tried("shy", words={"elicits"}, on=(LEGACY,)) as found:
        assert found.examples("elicits") == ["tools/call elicit"]


def test_a_server_that_asks_unasked_is_found_out() -> None:
    with tried("curious", words={"lists-roots"}, on=(LEGACY,)) as found:
        assert found.examples("lists-roots") == ["(unasked)"]


def test_an_error_that_asks_for_a_visit_counts_as_an_elicitation() -> None:
    with tried("needs_url", words={"elicits-url"}, on=(LEGACY,)) as found:
        (example,) = found.dossier.spoken[LEGACY].examples("elicits-url")
        assert example.asked[0]["params"]["elicitationId"] == "e1"


def test_an_ordinary_client_answers_again_once_questions_are_over() -> None:
    with tried("elicit", words={"mrtr"}, on=(MODERN,)) as found:
        connection = found.pool.shared(MODERN)
        assert connection.client.capabilities == {}
        assert connection.transcript.capabilities == {}


# --- tasks and subscriptions


@pytest.mark.parametrize("name", ["work", "toil"])
def test_a_tool_is_run_as_a_task(name: str) -> None:
    with tried(name, words={"task-tool"}, on=(LEGACY, "2025-06-18", MODERN)) as found:
        (example,) = found.dossier.spoken[LEGACY].examples("task-tool")
        assert example.result["task"]["taskId"]
        assert example.name == name
        assert found.lacks("task-tool", "2025-06-18")
        assert found.lacks("task-tool", MODERN)


def test_a_fault_in_running_a_task_does_not_hide_that_the_tool_lists_it() -> None:
    """What an optional tool answers, the chapter on tasks judges; our arguments may be wrong."""
    with tried("work", "lazy", words={"task-tool"}, on=(LEGACY,)) as found:
        assert not found.lacks("task-tool")
    with tried("toil", "lazy", words={"task-tool"}, on=(LEGACY,)) as found:
        assert found.lacks("task-tool")
        assert "toil answered error -32603" in found.dossier.why("task-tool", LEGACY)


def test_a_tool_that_must_be_a_task_is_not_called_plainly() -> None:
    with tried("toil", words={"callable-tool"}, on=(LEGACY,)) as found:
        assert found.called() == []


@pytest.mark.parametrize("name", ["work", "toil"])
def test_a_task_is_made_to_last(name: str) -> None:
    with tried(name, words={"slow-task"}, on=(LEGACY,)) as found:
        (example,) = found.dossier.spoken[LEGACY].examples("slow-task")
        assert example.arguments["duration"] > 0
        assert example.seconds >= SLOW


def test_a_task_that_cannot_last_does_not() -> None:
    with tried("quiz", words={"slow-task"}, on=(LEGACY,)) as found:
        assert found.lacks("slow-task")


def test_a_task_is_seen_to_ask_a_client_that_answers() -> None:
    words = {"asking-task", "elicits"}
    with tried("quiz", words=words, on=(LEGACY, "2025-06-18", MODERN)) as found:
        (example,) = found.dossier.spoken[LEGACY].examples("asking-task")
        assert example.name == "quiz"
        assert [one["method"] for one in example.asked] == ["elicitation/create"]
        assert found.lacks("elicits")
        assert found.lacks("asking-task", "2025-06-18")
        assert found.lacks("asking-task", MODERN)
    with tried("work", words={"asking-task"}, on=(LEGACY,)) as found:
        assert found.lacks("asking-task")


def test_a_subscription_is_opened_or_refused() -> None:
    with tried("listen", words={"subscriptions"}) as found:
        assert not found.lacks("subscriptions", MODERN)
        assert found.lacks("subscriptions", LEGACY)
    with tried(words={"subscriptions"}) as found:
        assert found.lacks("subscriptions", MODERN)
        assert "-32601" in found.dossier.why("subscriptions", MODERN)


# --- only what is needed


def test_nothing_is_tried_and_nothing_started_where_no_word_asks_for_it() -> None:
    listed = {word for word, known in WORDS.items() if not known.probes}
    with tried("echo", "elicit", words={*listed, "tools"}, on=rev.ALL) as found:
        assert found.pool.started == len(rev.ALL)
        assert found.called() == []
        requests = {
            entry.value["method"]
            for connection in found.pool.connections
            for entry in connection.transcript
            if isinstance(entry.value, dict) and "id" in entry.value
        }
        assert requests <= {
            "initialize", "server/discover", "ping",
            "tools/list", "resources/list", "resources/templates/list", "prompts/list",
        }  # fmt: skip


def test_the_server_is_asked_for_nothing_by_an_ordinary_client() -> None:
    with tried("elicit", "sample", words={"callable-tool"}, on=(LEGACY,)) as found:
        roles = [m.role for c in found.pool.connections for e in c.transcript for m in e.messages]
        assert Role.REQUEST not in roles


def test_the_place_paths_point_at_is_there(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        assert (world.root / NOTE).read_text() == NOTES[NOTE]
