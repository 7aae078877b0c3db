"""Probing of a server: only permitted calls are made, and only for the words that are needed."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.needs import WORDS
from mcp_touchstone.connection.server_profile import ServerProfile
from mcp_touchstone.discovery import prober
from mcp_touchstone.discovery.probe_traffic import NEARLY, SLOW, WISHED
from mcp_touchstone.discovery.prober import BUDGET, HANGS
from mcp_touchstone.discovery.probes import run_probes
from mcp_touchstone.discovery.recon import explore
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.engine.stages import probe_context
from mcp_touchstone.results.tool_use import tool_use
from mcp_touchstone.runtime.scratch import NOTE, NOTES, World
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.wire.lifecycle import Role
from tests.conftest import HERE

pytestmark = pytest.mark.slow

LEGACY = rev.LATEST_LEGACY
MODERN = rev.LATEST_MODERN
TOY = str(HERE / "toy_server.py")


class Probed:
    """The results of probing a toy server."""

    def __init__(self, profile: ServerProfile, pool: ProcessPool) -> None:
        self.profile = profile
        self.pool = pool

    def examples(self, word: str, revision: str = LEGACY) -> list[str]:
        return [str(example) for example in self.profile.spoken[revision].examples(word)]

    def lacks(self, word: str, revision: str = LEGACY) -> bool:
        return bool(self.profile.lacks((word,), revision))

    def called(self, revision: str | None = None) -> list[str]:
        """Return the names of the tools that were called, in every process."""
        return [
            entry.value["params"]["name"]
            for connection in self.pool.connections
            for entry in connection.transcript
            if revision in {None, connection.transcript.revision}
            if isinstance(entry.value, dict) and entry.value.get("method") == "tools/call"
        ]


@contextmanager
def probed(
    *features: str,
    words: set[str],
    on: tuple[str, ...] = (LEGACY, MODERN),
    spoken: tuple[str, ...] = (),
    startup: float = 20.0,
    **given: Any,
) -> Iterator[Probed]:
    """Probe a server in some of the revisions that it is opened in, by default in all of them."""
    command = (sys.executable, "-S", TOY, ROOT, *features)
    target = Target(command=command, timeout=startup, **given)
    with World() as world:
        pool = ProcessPool(target, world, Pace(startup))
        try:
            profile, connections, _ = explore(pool.spawn, pool.pace, spoken or on)
            pool.adopt(connections, profile)
            run_probes(profile, dict.fromkeys(on, words), probe_context(pool, threading.Event()))
            yield Probed(profile, pool)
        finally:
            pool.close()


def test_working_calls_with_generated_arguments_become_examples() -> None:
    with probed("echo", "count", words={"callable-tool"}) as found:
        for revision in (LEGACY, MODERN):
            assert found.examples("callable-tool", revision) == [
                "tools/call count",
                'tools/call echo {"text": "hello"}',
            ]
            assert found.examples("structured-tool", revision) == ["tools/call count"]
            assert found.examples("argument-tool", revision)[0].startswith("tools/call echo")


def test_unannotated_tool_is_called_only_if_named() -> None:
    with probed("echo", "write", words=set(WORDS)) as found:
        assert "write" not in found.called()
    with probed("write", words={"callable-tool"}, call=(("write", None),)) as found:
        assert set(found.called()) == {"write"}
        assert found.lacks("callable-tool")
        assert found.profile.remarks == ["--call write: isError: write does not do that"]


def test_revision_without_annotations_uses_those_of_another_revision() -> None:
    old = "2024-11-05"
    with probed("echo", "write", words={"callable-tool"}, on=(old,), spoken=rev.ALL) as found:
        listed = found.profile.spoken[old].named("tools")
        assert not any("annotations" in tool for tool in listed)
        assert found.examples("callable-tool", old)
        assert set(found.called()) == {"echo"}


def test_named_arguments_are_used_unchanged() -> None:
    calls = (("echo", {"text": "mine"}),)
    with probed("echo", words={"callable-tool"}, call=calls) as found:
        assert found.examples("callable-tool") == ['tools/call echo {"text": "mine"}']
        assert found.profile.remarks == []


def test_file_tool_is_found_by_trying_paths() -> None:
    with probed("read", words={"file-tool"}) as found:
        (example,) = found.profile.spoken[LEGACY].examples("file-tool")
        assert example.arguments["path"].endswith("notes/today.txt")
        assert not found.lacks("file-tool")


def test_a_tool_on_a_later_page_is_found() -> None:
    features = ("paged", "write", "picky", "echo")
    calls = (("write", None),)
    with probed(*features, words={"callable-tool"}, on=(LEGACY,), call=calls) as found:
        assert found.examples("callable-tool") == ['tools/call echo {"text": "hello"}']


def test_unmet_word_states_the_reason() -> None:
    with probed("picky", words={"callable-tool", "slow-call"}) as found:
        assert found.lacks("callable-tool")
        why = found.profile.why("slow-call", LEGACY)
        assert "picky answered isError: picky does not do that" in why
    with probed("write", words={"callable-tool"}) as found:
        assert "annotated read-only" in found.profile.why("callable-tool", LEGACY)


def test_invalid_output_is_the_reason_of_a_tool_whatever_its_other_calls_answer() -> None:
    with probed("misshapen", words={"callable-tool"}, on=(LEGACY,)) as found:
        (failed,) = tool_use(found.profile).failed

        assert len(found.called()) > 1
        assert failed.reason == "isError: Output validation error: it has no size"


def test_probing_continues_after_a_tool_kills_the_server() -> None:
    with probed("die", "echo", words={"callable-tool"}, on=(LEGACY,), spoken=rev.ALL) as found:
        assert found.examples("callable-tool") == ['tools/call echo {"text": "hello"}']
        assert found.pool.started == len(rev.ALL) + 1


def test_tool_whose_calls_are_all_errors_is_a_refused_call() -> None:
    with probed("picky", "echo", words={"callable-tool"}, on=(LEGACY,)) as found:
        assert found.examples("refused-call") == ['tools/call picky {"colour": "hello"}']


def test_call_that_is_never_answered_is_cancelled() -> None:
    with probed("hang", "echo", words={"callable-tool"}, on=(LEGACY,), startup=1.5) as found:
        assert found.examples("callable-tool") == ['tools/call echo {"text": "hello"}']
        methods = [
            e.value.get("method") for e in found.pool.lender.get(LEGACY).transcript if e.value
        ]
        assert "notifications/cancelled" in methods
        assert found.examples("unanswered-call") == ["tools/call hang"]


def test_probing_stops_after_a_few_hangs() -> None:
    """Each costs a deadline; their sum stays below the time budget of one revision."""
    assert HANGS * Pace(20.0).reply < BUDGET
    calls = tuple(("hang", {"turn": turn}) for turn in range(9))
    with probed("hang", words={"callable-tool"}, on=(LEGACY,), startup=1.0, call=calls) as found:
        assert found.lacks("callable-tool")
        assert len(found.called()) == HANGS


def test_requested_progress_and_log_messages_are_found() -> None:
    with probed("echo", "nap", "chat", words={"progress-call", "log-traffic"}) as found:
        for revision in (LEGACY, MODERN):
            assert found.examples("progress-call", revision) == ['tools/call nap {"duration": 0.1}']
            assert found.examples("log-traffic", revision) == ["tools/call chat"]


def test_unrequested_log_messages_count_as_log_traffic() -> None:
    with probed("loud", words={"log-traffic"}, on=(LEGACY,)) as found:
        assert found.examples("log-traffic") == ["(unasked)"]


def test_silent_tool_has_no_progress_or_log_traffic() -> None:
    with probed("echo", words={"progress-call", "log-traffic"}) as found:
        assert found.lacks("progress-call")
        assert found.lacks("log-traffic", MODERN)


def test_duration_argument_is_used_for_a_slow_call() -> None:
    with probed("echo", "nap", words={"slow-call"}, on=(LEGACY,)) as found:
        (slow,) = found.profile.spoken[LEGACY].examples("slow-call")
        assert 1 <= slow.arguments["duration"] <= 2
        assert slow.seconds >= SLOW


def test_duration_is_reduced_if_the_tool_applies_it_several_times() -> None:
    with probed("naps", words={"slow-call"}, on=(LEGACY,)) as found:
        (slow,) = found.profile.spoken[LEGACY].examples("slow-call")
        assert slow.arguments["duration"] < 1
        assert SLOW <= slow.seconds < 2 * WISHED


def test_duration_is_raised_if_the_first_call_was_delayed() -> None:
    with probed("late", words={"slow-call"}, on=(LEGACY,)) as found:
        (slow,) = found.profile.spoken[LEGACY].examples("slow-call")
        assert slow.seconds >= NEARLY * WISHED


def test_whole_number_is_raised_for_a_slow_call() -> None:
    with probed("echo", "steps", words={"slow-call"}, on=(LEGACY,)) as found:
        (slow,) = found.profile.spoken[LEGACY].examples("slow-call")
        assert slow.arguments["n"] <= 300
        assert slow.seconds >= SLOW


def test_call_that_was_slow_once_is_not_a_slow_call() -> None:
    with probed("stutter", words={"callable-tool", "slow-call"}, on=(LEGACY,)) as found:
        (call,) = found.profile.spoken[LEGACY].examples("callable-tool")
        assert call.seconds >= SLOW
        assert found.lacks("slow-call")


def test_call_with_a_duration_that_was_slow_once_is_not_a_slow_call() -> None:
    with probed("stumble", words={"callable-tool", "slow-call"}, on=(LEGACY,)) as found:
        assert found.lacks("slow-call")


def test_resources_and_expanded_templates_are_read() -> None:
    words = {"readable-resource", "readable-template"}
    with probed("note", "template", "completions", words=words) as found:
        assert found.examples("readable-resource")[0] == "resources/read note:///1"
        assert found.examples("readable-template") == [
            "resources/read note:///1",
            "resources/read note:///2",
        ]


def test_template_is_expanded_without_completion() -> None:
    with probed("template", words={"readable-template"}) as found:
        assert found.examples("readable-template") == ["resources/read note:///1"]


def test_named_resources_are_read_and_failures_are_remarked() -> None:
    uris = ("note:///2", "note:///none")
    with probed(words={"readable-resource"}, resource=uris) as found:
        assert found.examples("readable-resource") == ["resources/read note:///2"]
        assert found.profile.remarks == [
            '--resource note:///none: error -32601 "no resources/read"'
        ]


def test_prompt_arguments_come_from_completion_or_from_the_target() -> None:
    with probed("greet", "hello", "completions", words={"rendered-prompt"}) as found:
        assert found.examples("rendered-prompt") == [
            'prompts/get greet {"colour": "red"}',
            "prompts/get hello",
        ]
    with probed("greet", words={"rendered-prompt"}) as found:
        assert found.lacks("rendered-prompt")
        assert "what colour?" in found.profile.why("rendered-prompt", LEGACY)
    named = (("greet", {"colour": "red"}),)
    with probed("greet", words={"rendered-prompt"}, prompt=named) as found:
        assert not found.lacks("rendered-prompt")


def test_completion_is_probed_without_a_capability_in_2024_11_05() -> None:
    old = "2024-11-05"
    with probed("greet", "completions", words={"completions"}, on=(old,)) as found:
        assert not found.lacks("completions", old)
    with probed("greet", words={"completions"}, on=(old,)) as found:
        assert found.lacks("completions", old)
    with probed("greet", words={"completions", "callable-tool"}, on=(old,)) as found:
        assert found.lacks("callable-tool", old)


QUESTIONS = {"elicits", "elicits-url", "samples", "samples-tools", "lists-roots", "mrtr"}


def test_calls_that_cause_client_requests_are_found_in_both_eras() -> None:
    features = ("echo", "elicit", "link", "sample", "roots")
    with probed(*features, words=QUESTIONS, on=rev.ALL) as found:
        for revision in (LEGACY, MODERN):
            assert found.examples("elicits-url", revision) == ["tools/call link"]
            assert found.examples("samples-tools", revision) == ["tools/call sample"]
            assert found.examples("lists-roots", revision) == ["tools/call roots"]
        assert len(found.examples("mrtr", MODERN)) == 4
        (first, *_) = found.profile.spoken[MODERN].examples("mrtr")
        assert first.result["requestState"] == "S1"
        assert first.asked
        assert not found.lacks("elicits", "2025-06-18")
        assert not found.lacks("samples", "2024-11-05")
        assert found.lacks("elicits", "2025-03-26")
        assert found.lacks("elicits-url", "2025-06-18")
        assert found.lacks("mrtr", LEGACY)


def test_probing_questions_starts_one_more_process() -> None:
    with probed("elicit", words={"elicits"}, on=rev.ALL) as found:
        assert found.pool.started == len(rev.ALL) + 1
        willing = [
            connection.transcript.revision
            for connection in found.pool.connections
            if not connection.modern and connection.transcript.capabilities
        ]
        assert willing == [LEGACY]


def test_tool_listed_only_for_a_capable_client_is_found() -> None:
    with probed("shy", words={"elicits"}, on=(LEGACY,)) as found:
        assert found.examples("elicits") == ["tools/call elicit"]


def test_unprompted_server_request_is_found() -> None:
    with probed("curious", words={"lists-roots"}, on=(LEGACY,)) as found:
        assert found.examples("lists-roots") == ["(unasked)"]


def test_url_elicitation_error_counts_as_url_elicitation() -> None:
    with probed("needs_url", words={"elicits-url"}, on=(LEGACY,)) as found:
        (example,) = found.profile.spoken[LEGACY].examples("elicits-url")
        assert example.asked[0]["params"]["elicitationId"] == "e1"


def test_client_capabilities_are_reset_after_probing_questions() -> None:
    with probed("elicit", words={"mrtr"}, on=(MODERN,)) as found:
        connection = found.pool.lender.get(MODERN)
        assert connection.answers.client.capabilities == {}
        assert connection.transcript.capabilities == {}


@pytest.mark.parametrize("name", ["work", "toil"])
def test_tool_is_called_as_a_task(name: str) -> None:
    with probed(name, words={"task-tool"}, on=(LEGACY, "2025-06-18", MODERN)) as found:
        (example,) = found.profile.spoken[LEGACY].examples("task-tool")
        assert example.result["task"]["taskId"]
        assert example.name == name
        assert found.lacks("task-tool", "2025-06-18")
        assert found.lacks("task-tool", MODERN)


def test_failed_task_counts_only_for_a_tool_with_optional_task_support() -> None:
    """The tasks chapter judges the answer of an optional tool; our arguments may be wrong."""
    with probed("work", "lazy", words={"task-tool"}, on=(LEGACY,)) as found:
        assert not found.lacks("task-tool")
    with probed("toil", "lazy", words={"task-tool"}, on=(LEGACY,)) as found:
        assert found.lacks("task-tool")
        assert "error -32603" in found.profile.why("task-tool", LEGACY)


def test_calls_that_take_all_the_time_leave_some_to_each_other_probe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a server on a busy machine "offers no prompt that could be rendered"."""
    monkeypatch.setattr(prober, "BUDGET", 0.0)
    words = {"callable-tool", "rendered-prompt", "task-tool"}
    with probed("echo", "work", "hello", words=words) as found:
        assert not found.lacks("callable-tool")
        assert not found.lacks("task-tool")
        for revision in (LEGACY, MODERN):
            assert not found.lacks("rendered-prompt", revision)


def test_tool_that_requires_a_task_is_not_called_without_one() -> None:
    with probed("toil", words={"callable-tool"}, on=(LEGACY,)) as found:
        assert found.called() == []


@pytest.mark.parametrize("name", ["work", "toil"])
def test_duration_argument_is_used_for_a_slow_task(name: str) -> None:
    with probed(name, words={"slow-task"}, on=(LEGACY,)) as found:
        (example,) = found.profile.spoken[LEGACY].examples("slow-task")
        assert example.arguments["duration"] > 0
        assert example.seconds >= SLOW


def test_task_without_a_duration_is_not_a_slow_task() -> None:
    with probed("quiz", words={"slow-task"}, on=(LEGACY,)) as found:
        assert found.lacks("slow-task")


def test_request_of_a_task_to_the_client_is_found() -> None:
    words = {"asking-task", "elicits"}
    with probed("quiz", words=words, on=(LEGACY, "2025-06-18", MODERN)) as found:
        (example,) = found.profile.spoken[LEGACY].examples("asking-task")
        assert example.name == "quiz"
        assert [one["method"] for one in example.asked] == ["elicitation/create"]
        assert found.lacks("elicits")
        assert found.lacks("asking-task", "2025-06-18")
        assert found.lacks("asking-task", MODERN)
    with probed("work", words={"asking-task"}, on=(LEGACY,)) as found:
        assert found.lacks("asking-task")


def test_subscription_support_is_probed() -> None:
    with probed("listen", words={"subscriptions"}) as found:
        assert not found.lacks("subscriptions", MODERN)
        assert found.lacks("subscriptions", LEGACY)
    with probed(words={"subscriptions"}) as found:
        assert found.lacks("subscriptions", MODERN)
        assert "-32601" in found.profile.why("subscriptions", MODERN)


def test_words_without_probes_cause_no_call_and_no_extra_process() -> None:
    listed = {word for word, known in WORDS.items() if not known.probes}
    with probed("echo", "elicit", words={*listed, "tools"}, on=rev.ALL) as found:
        assert found.pool.started == len(rev.ALL)
        assert found.called() == []
        requests = {
            entry.value["method"]
            for connection in found.pool.connections
            for entry in connection.transcript
            if isinstance(entry.value, dict) and "id" in entry.value
        }
        assert requests <= {
            "initialize",
            "server/discover",
            "ping",
            "tools/list",
            "resources/list",
            "resources/templates/list",
            "prompts/list",
        }


def test_server_sends_no_request_to_a_client_without_capabilities() -> None:
    with probed("elicit", "sample", words={"callable-tool"}, on=(LEGACY,)) as found:
        roles = [m.role for c in found.pool.connections for e in c.transcript for m in e.messages]
        assert Role.REQUEST not in roles


def test_example_note_exists_in_the_root(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        assert (world.root / NOTE).read_text() == NOTES[NOTE]
