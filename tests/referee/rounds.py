"""Tools of 2026-07-28 that answer with a question first (basic/patterns/mrtr)."""

from typing import Any

from reference_server.protocol.answers import problem_with
from reference_server.protocol.calls import Call
from reference_server.protocol.errors import InputRequired, invalid_params
from reference_server.surface import Surface
from tests.referee.tools import STRING, Shelf, content, form
from tests.referee.wrapping import Result, text

OK = {"ok": {"type": "boolean"}}


def name_form(message: str) -> Result:
    return form(message, {"name": STRING}, ["name"])


def question(words: str, tokens: int) -> Result:
    return {"messages": [{"role": "user", "content": text(words)}], "maxTokens": tokens}


def ask_without_state(call: Call) -> Result:
    """Ask what needs no state: each retry brings all there is to know.

    The core's own questions always have one; an answer without it answers nothing it asked.
    """
    asked = name_form("What is your name?")
    answer: Any = (call.params.get("inputResponses") or {}).get("user_name")
    if answer is None:
        requests = {"user_name": {"method": "elicitation/create", "params": asked}}
        raise InputRequired({"resultType": "input_required", "inputRequests": requests})
    problem = problem_with("elicitation/create", answer, call.revision)
    if problem:
        raise invalid_params(f"inputResponses: user_name {problem}")
    return content(text(f"Hello, {(answer.get('content') or {}).get('name')}!"))


def ask_model(call: Call) -> Result:
    asked = question("What is the capital of France?", 100)
    answer = call.ask("capital_question", "sampling/createMessage", asked)
    return content(text(str(answer["content"].get("text"))))


def ask_roots(call: Call) -> Result:
    roots = call.ask("client_roots", "roots/list", {})["roots"]
    return content(text(f"Roots: {', '.join(root['uri'] for root in roots)}"))


def confirm(call: Call) -> Result:
    call.ask("confirm", "elicitation/create", form("Please confirm", OK, ["ok"]))
    return content(text("state-ok"))


def ask_three_things(call: Call) -> Result:
    answers = call.ask_together(
        {
            "user_name": ("elicitation/create", name_form("What is your name?")),
            "greeting": ("sampling/createMessage", question("Generate a greeting", 50)),
            "client_roots": ("roots/list", {}),
        }
    )
    return content(text(f"Heard {', '.join(answers)}."))


def ask_twice(call: Call) -> Result:
    name = call.ask("step1", "elicitation/create", name_form("Step 1: What is your name?"))
    asked = form("Step 2: What is your favorite color?", {"color": STRING}, ["color"])
    colour = call.ask("step2", "elicitation/create", asked)
    return content(text(f"{name.get('content')} {colour.get('content')}"))


def ask_what_is_declared(call: Call) -> Result:
    if call.can("sampling"):
        return ask_model(call)
    if call.can("elicitation", "form"):
        return confirm(call)
    return content(text("Nothing to ask with."))


def feature(surface: Surface) -> None:
    """Add the tools."""
    shelf = Shelf()
    for name, work in {
        "elicitation": ask_without_state,
        "sampling": ask_model,
        "list_roots": ask_roots,
        "request_state": confirm,
        "multiple_inputs": ask_three_things,
        "multi_round": ask_twice,
        "tampered_state": confirm,
        "capabilities": ask_what_is_declared,
    }.items():
        shelf.add(f"test_input_required_result_{name}", work)
    shelf.install(surface)
