"""Every word of ``needs`` can be met and lacking, and only needed probes are made."""

from typing import Any

import pytest

from mcp_touchstone.catalog import needs
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.needs import CAPABILITIES, SHOWN_ONLY, WORDS, Probe
from mcp_touchstone.connection.server_profile import (
    Decided,
    Example,
    Request,
    ServerProfile,
    Spoken,
)
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.wire.reply import Reply
from tests.cases import cases
from tests.conftest import HERE

MODERN = rev.LATEST_MODERN
TOOL = {
    "name": "t",
    "inputSchema": {"type": "object", "properties": {"a": {}}, "required": ["a"]},
    "outputSchema": {"type": "object"},
    "icons": [],
}
LISTS: dict[str, list[Any]] = {
    "tools": [TOOL],
    "resources": [{"uri": "file:///a", "name": "a"}],
    "templates": [{"uriTemplate": "x://{path}", "name": "p"}],
    "prompts": [{"name": "p", "arguments": [{"name": "city", "required": True}]}],
}


def spoken(capabilities: Any = None, **more: Any) -> Spoken:
    value = {"result": {"capabilities": {} if capabilities is None else capabilities}}
    decided = Decided()
    for name in ("found", "tried", "notes"):
        setattr(decided, name, more.pop(name, getattr(decided, name)))
    return Spoken(Reply(1, 2, value), **more, decided=decided)


def profile(one: Spoken, *revisions: str) -> ServerProfile:
    return ServerProfile(Pace(1.0), dict.fromkeys(revisions, one))


def rich(*revisions: str) -> ServerProfile:
    everything: dict[str, dict[str, Any]] = {
        name: {"listChanged": True, "subscribe": True} for name in CAPABILITIES
    }
    for name in ("tasks", "skills", "ui"):
        everything["extensions"][f"io.modelcontextprotocol/{name}"] = {}
    example = Example("tools/call", {"name": "t"}, item=TOOL)
    tried = {word for word, known in WORDS.items() if known.probes}
    found = {word: [example] for word in WORDS}
    more = {"cursors": {"tools/list": "more"}, "found": found, "tried": tried}
    return profile(spoken(everything, lists=LISTS, **more), *revisions)


@pytest.mark.parametrize("word", [*WORDS, *CAPABILITIES, "tools.listChanged"])
def test_every_word_can_be_met_and_lacking(word: str) -> None:
    """Otherwise its clauses would silently always or never apply."""
    rich_ones = [rich(*revisions) for revisions in (rev.ALL, rev.MODERN)]
    bare_ones = [profile(spoken(), *revisions) for revisions in (rev.ALL, rev.MODERN)]

    assert any(not one.lacks((word,), MODERN) for one in rich_ones)
    assert any(one.lacks((word,), MODERN) for one in bare_ones) or word in SHOWN_ONLY


def test_any_choice_meets_a_need_and_all_needs_are_required() -> None:
    some = profile(spoken({"tools": {}, "resources": {"subscribe": False}}), "2025-11-25")

    assert some.lacks((), "2025-11-25") == ""
    assert some.lacks(("prompts or tools",), "2025-11-25") == ""
    assert some.lacks(("tools", "prompts"), "2025-11-25") == "prompts"
    assert some.lacks(("resources.subscribe",), "2025-11-25") == "resources.subscribe"
    assert some.lacks(("tools",), "2025-06-18") == "tools"


@cases(
    ({"tasks": {"list": {}}}, "tasks.list", True),
    ({"tasks": {"list": True}}, "tasks.list", True),
    ({"tasks": {"list": False}}, "tasks.list", False),
    ({"tasks": {"requests": {"tools": {"call": {}}}}}, "tasks.requests.tools.call", True),
    ({"tasks": {"requests": {"tools": {}}}}, "tasks.requests.tools.call", False),
    ({"tasks": {"requests": True}}, "tasks.requests.tools.call", False),
    ({"tools": {"listChanged": True}}, "tools.listChanged", True),
    ({"tools": {"listChanged": {}}}, "tools.listChanged", False),
    ({"tools": True}, "tools", False),
    ({"tools": {}}, "tools", True),
    ({}, "logging", False),
)
def test_a_capability_is_declared_by_its_path(capabilities: Any, path: str, declared: bool) -> None:
    assert spoken(capabilities).declares(path) is declared


def test_words_known_from_the_opening_and_lists_need_no_probe() -> None:
    words = [word for word, known in WORDS.items() if not known.probes]

    assert needs.probes([*words, "tools", "tools.listChanged"], MODERN) == set()
    assert {"pagination", "listed-prompt", "modern-only", "server-requests"} <= set(words)


def test_word_selects_only_its_own_probes() -> None:
    assert needs.probes({"callable-tool"}, MODERN) == {Probe.CALLS}
    both = needs.probes({"mrtr", "readable-resource"}, MODERN)
    assert both == {Probe.QUESTIONS, Probe.READS}


def test_word_is_not_probed_in_revisions_without_it() -> None:
    assert needs.probes({"mrtr", "task-tool", "elicits"}, "2025-03-26") == set()
    assert needs.probes({"elicits"}, "2025-06-18") == {Probe.QUESTIONS}


def test_completion_is_probed_only_in_revisions_without_its_capability() -> None:
    assert needs.probes({"completions"}, "2024-11-05") == {Probe.COMPLETION}
    assert needs.probes({"completions"}, "2025-03-26") == set()


def test_unmet_word_explains_the_failed_probe() -> None:
    one = spoken(tried={"callable-tool"}, notes={"callable-tool": "echo answered isError: no"})

    said = profile(one, MODERN).why("callable-tool", MODERN)

    assert said == f"no {WORDS['callable-tool'].text}; echo answered isError: no"
    assert profile(one, MODERN).why("tools", MODERN) == "no tools"
    both = profile(one, MODERN).why("elicits or samples", MODERN)
    assert both == "no elicitation and no sampling"


def test_callable_tools_are_filtered_by_word() -> None:
    plain = Example("tools/call", {"name": "plain"}, item={"name": "plain", "inputSchema": {}})
    typed = Example("tools/call", {"name": "t"}, item=TOOL)
    one = spoken(found={"callable-tool": [plain, typed]}, tried={"callable-tool"})

    assert one.examples("callable-tool") == [plain, typed]
    assert one.examples("structured-tool") == [typed]
    assert one.examples("argument-tool") == [typed]
    assert one.examples("slow-call") == []


def test_example_text_names_its_request() -> None:
    call = Example("tools/call", {"name": "echo", "arguments": {"text": "hi"}}, item=TOOL)

    assert str(call) == 'tools/call echo {"text": "hi"}'
    assert (call.name, call.arguments) == ("echo", {"text": "hi"})
    assert call.schema["required"] == ["a"]
    assert str(Request("resources/read", {"uri": "a:b"})) == "resources/read a:b"
    assert str(Request("")) == "(unasked)"
    assert Example("x", {"name": 5, "arguments": []}).arguments == {}


def test_completable_lists_prompt_arguments_and_template_variables() -> None:
    one = spoken(lists={**LISTS, "prompts": [*LISTS["prompts"], {"name": "q", "arguments": 5}]})

    assert one.completable == [
        ({"type": "ref/prompt", "name": "p"}, "city"),
        ({"type": "ref/resource", "uri": "x://{path}"}, "path"),
    ]


@cases(
    {"tools": [None, 5, {}, {"name": 7}, {"name": "x", "inputSchema": [], "annotations": 1}]},
    {"resources": ["a", {"uri": 5}], "templates": [{"uriTemplate": "{"}, {}]},
    {"prompts": [[], {"name": "p", "arguments": {"a": 1}}, {"name": "q", "arguments": [1]}]},
)
def test_malformed_lists_never_raise(lists: Any) -> None:
    one = spoken(lists=lists)

    for word in WORDS:
        one.offers(word)
    assert one.harmless == []
    assert isinstance(one.plain_prompts, list)
    assert isinstance(one.completable, list)


def test_every_word_is_documented_in_needs_md() -> None:
    text = (HERE.parent / "docs" / "how-it-judges" / "needs.md").read_text("utf-8")

    assert [word for word in WORDS if f"`{word}`" not in text] == []
