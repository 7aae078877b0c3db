"""The state of one connection: the lifecycle table, and answers matched to requests."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mcp_touchstone.wire.framing import Kind
from mcp_touchstone.wire.lifecycle import LOOSE, TABLE, Event, Message, Phase, Role, SessionState
from tests.cases import cases

INITIALIZED = {"method": "notifications/initialized"}

PATHS: Mapping[Phase, tuple[Event, ...]] = {
    Phase.SILENT: (),
    Phase.INITIALIZING: (Event.INITIALIZE_SENT,),
    Phase.AGREED: (Event.INITIALIZE_SENT, Event.INITIALIZE_ACCEPTED),
    Phase.OPERATING: (Event.INITIALIZE_SENT, Event.INITIALIZE_ACCEPTED, Event.INITIALIZED_SENT),
    Phase.CLOSING: (Event.INPUT_CLOSED,),
}


def ask(
    session: SessionState, request_id: Any, line: int, method: str = "ping", **more: Any
) -> None:
    session.sent({"id": request_id, "method": method}, line, **more)


def hear(session: SessionState, value: Any) -> Message:
    (message,) = session.heard(value)
    return message


def at(phase: Phase) -> SessionState:
    session = SessionState()
    for event in PATHS[phase]:
        session.move(event)
    assert session.phase is phase
    return session


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("event", Event)
def test_only_events_in_the_table_change_the_phase(phase: Phase, event: Event) -> None:
    session = at(phase)

    session.move(event)

    assert session.phase is TABLE.get((phase, event), phase)


def test_every_phase_except_closing_can_be_left() -> None:
    left = {phase for (phase, _), to in TABLE.items() if to is not phase}

    assert left == set(Phase) - {Phase.CLOSING}


def test_handshake_passes_through_the_phases() -> None:
    session = SessionState()
    phases = [session.phase]
    ask(session, 1, 1, "initialize")
    phases.append(session.phase)
    hear(session, {"id": 1, "result": {}})
    phases.append(session.phase)
    session.sent(INITIALIZED, 3)
    phases.append(session.phase)

    assert phases == [Phase.SILENT, Phase.INITIALIZING, Phase.AGREED, Phase.OPERATING]


def test_stateless_request_opens_the_session_and_legacy_request_does_not() -> None:
    legacy, modern = SessionState(), SessionState()
    ask(legacy, 1, 1)
    ask(modern, 1, 1, "server/discover", modern=True)

    assert legacy.phase is Phase.SILENT
    assert modern.phase is Phase.OPERATING


@cases(
    ({"id": 5, "result": {}}, Kind.RESULT, Role.ANSWER),
    ({"id": 5.0, "result": {}}, Kind.RESULT, Role.ANSWER),
    ({"id": 5, "error": {}}, Kind.ERROR, Role.ANSWER),
    ({"id": 5}, Kind.ODD, Role.ANSWER),
    ({"id": "5", "result": {}}, Kind.RESULT, Role.ORPHAN),
    ({"id": 6, "error": {}}, Kind.ERROR, Role.ORPHAN),
    ({"id": 6}, Kind.ODD, Role.ORPHAN),
    ({"id": None, "error": {}}, Kind.ERROR, Role.UNADDRESSED),
    ({"id": True, "result": {}}, Kind.RESULT, Role.UNADDRESSED),
    ({"id": [5], "result": {}}, Kind.RESULT, Role.UNADDRESSED),
    ({"error": {}}, Kind.ERROR, Role.UNADDRESSED),
    ({"id": 5, "method": "ping"}, Kind.REQUEST, Role.REQUEST),
    ({"id": None, "method": "ping"}, Kind.REQUEST, Role.REQUEST),
    ({"method": "x"}, Kind.NOTIFICATION, Role.NOTIFICATION),
    ({"method": 5}, Kind.NOTIFICATION, Role.NOTIFICATION),
    ({"jsonrpc": "2.0"}, Kind.ODD, Role.ODD),
    ({"method": "x", "result": {}}, Kind.ODD, Role.ODD),
    ("text", Kind.ODD, Role.ODD),
    (None, Kind.ODD, Role.ODD),
)
def test_message_role_depends_on_the_open_requests(value: Any, kind: Kind, role: Role) -> None:
    session = SessionState()
    ask(session, 5, 7)

    message = hear(session, value)

    assert (message.kind, message.role) == (kind, role)
    assert message.answers == (7 if role is Role.ANSWER else None)


def test_loose_roles_are_responses_without_an_open_request() -> None:
    others = {Role.ANSWER, Role.REFUSAL, Role.REQUEST, Role.NOTIFICATION, Role.ODD}
    assert set(Role) - LOOSE == others


def test_method_is_none_unless_it_is_a_string() -> None:
    session = SessionState()
    session.sent({"id": 1, "method": 7}, 1)

    assert hear(session, {"id": 1, "result": {}}).method is None
    assert hear(session, {"method": "m"}).method == "m"
    assert hear(session, {"method": ["m"]}).method is None


@cases(
    ({"id": 1, "error": {"code": -32700}}, -32700),
    ({"id": 1, "error": {}}, None),
    ({"id": 1, "error": "no"}, None),
    ({"id": 1, "result": {}}, None),
    ("text", None),
)
def test_error_code_is_none_unless_present(value: Any, code: int | None) -> None:
    assert hear(SessionState(), value).code == code


def test_array_inside_a_batch_has_the_role_odd() -> None:
    (message,) = SessionState().heard([[{"id": 1, "result": {}}]])

    assert message.role is Role.ODD


def test_cancelled_request_may_stay_unanswered() -> None:
    session = SessionState()
    ask(session, 1, 1)
    session.sent({"method": "notifications/cancelled", "params": {"requestId": 1}}, 2)

    assert session.unanswered() == []
    assert hear(session, {"id": 1, "result": {}}).role is Role.ANSWER


@pytest.mark.parametrize("params", [{"requestId": "1"}, {"requestId": 2}, {}, [1], None])
def test_cancellation_of_another_id_is_ignored(params: Any) -> None:
    session = SessionState()
    ask(session, 1, 1)
    session.sent({"method": "notifications/cancelled", "params": params}, 2)

    assert len(session.unanswered()) == 1


def test_optional_request_may_stay_unanswered() -> None:
    session = SessionState()
    ask(session, 1, 1, required=False)

    assert session.unanswered() == []


@pytest.mark.parametrize("value", [5, "x", None, [], {}, {"id": None, "method": "m"}, {"id": {}}])
def test_unanswerable_message_opens_no_request(value: Any) -> None:
    session = SessionState()
    session.sent(value, 1)

    assert session.asked == []


IDS = st.sampled_from([1, 2, "1", "2", 2.5])


class AgainstAModel(RuleBasedStateMachine):
    """Compares the session with a simple model that searches a list of requests."""

    @initialize()
    def begin(self) -> None:
        self.session = SessionState()
        self.asked: list[dict[str, Any]] = []
        self.phase = "silent"
        self.line = 0

    def newest(self, request_id: Any) -> dict[str, Any] | None:
        same = [
            a for a in self.asked if type(a["id"]) is type(request_id) and a["id"] == request_id
        ]
        return same[-1] if same else None

    @rule(
        request_id=IDS,
        method=st.sampled_from(["initialize", "ping"]),
        required=st.booleans(),
        modern=st.booleans(),
    )
    def we_ask(self, request_id: Any, method: str, required: bool, modern: bool) -> None:
        self.line += 1
        ask(self.session, request_id, self.line, method, required=required, modern=modern)
        self.asked.append(
            {"id": request_id, "line": self.line, "method": method, "open": required, "answers": 0}
        )
        if self.phase == "silent":
            if method == "initialize":
                self.phase = "initializing"
            elif modern:
                self.phase = "operating"

    @rule(request_id=IDS)
    def we_cancel(self, request_id: Any) -> None:
        params = {"requestId": request_id}
        self.session.sent({"method": "notifications/cancelled", "params": params}, 1)
        found = self.newest(request_id)
        if found:
            found["open"] = False

    @rule()
    def we_are_initialized(self) -> None:
        self.session.sent(INITIALIZED, 0)
        if self.phase == "agreed":
            self.phase = "operating"

    @rule(request_id=IDS, error=st.booleans(), batch=st.booleans())
    def the_server_answers(self, request_id: Any, error: bool, batch: bool) -> None:
        value = {"id": request_id, ("error" if error else "result"): {}}
        message = hear(self.session, [value] if batch else value)
        found = self.newest(request_id)
        if found is None:
            assert (message.role, message.answers) == (Role.ORPHAN, None)
            return
        first = not found["answers"]
        found["answers"] += 1
        found["open"] = False
        assert message.role is (Role.ANSWER if first else Role.SECOND_ANSWER)
        assert (message.answers, message.method) == (found["line"], found["method"])
        if found["method"] == "initialize" and first and self.phase == "initializing":
            self.phase = "silent" if error else "agreed"

    @rule()
    def we_close_its_input(self) -> None:
        self.session.move(Event.INPUT_CLOSED)
        self.phase = "closing"

    @invariant()
    def both_stand_in_the_same_place(self) -> None:
        assert self.session.phase.name.lower() == self.phase

    @invariant()
    def both_wait_for_the_same(self) -> None:
        waiting = [asked.line for asked in self.session.unanswered()]
        assert waiting == [asked["line"] for asked in self.asked if asked["open"]]


AgainstAModel.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestAgainstAModel = AgainstAModel.TestCase
