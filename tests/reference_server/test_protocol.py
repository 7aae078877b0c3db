"""The protocol of the reference server: both eras, sessions, batches, errors."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from reference_server.protocol.calls import Call
from reference_server.protocol.revisions import ALL as SERVED
from reference_server.settings import Settings
from reference_server.surface import Surface
from tests.cases import cases
from tests.client_questions import tool
from tests.reference_client import (
    ALL,
    MODERN,
    InProcess,
    Message,
    after_opening,
    alive,
    ask,
    code_of,
    converse,
    initialize,
    modern,
    notification,
    only,
    opening,
    raw,
    request,
)

Check = Callable[[list[Any]], None]


def silence(heard: list[Any]) -> None:
    assert heard == []


def refusal(code: int, request_id: Any = None) -> Check:
    """Expect one error with this id; None means an unreadable id, which is left out."""

    def check(heard: list[Any]) -> None:
        error = only(heard)
        assert code_of(error) == code
        if request_id is None:
            assert error.get("id") is None
        else:
            assert error["id"] == request_id
            assert type(error["id"]) is type(request_id)
        assert "\n" not in error["error"]["message"]
        assert len(error["error"]["message"]) < 200

    return check


def success(request_id: Any) -> Check:
    def check(heard: list[Any]) -> None:
        answer = only(heard)
        assert "result" in answer
        assert answer["id"] == request_id
        assert type(answer["id"]) is type(request_id)

    return check


def of(members: bytes) -> bytes:
    return b'{"jsonrpc":"2.0",' + members + b"}"


def ping(identifier: bytes) -> bytes:
    return of(b'"id":' + identifier + b',"method":"ping"')


DEEP = b"[" * 100_000 + b"]" * 100_000
CALL = (
    b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"file_read","arguments":%s}}'
)

LEGACY_ROWS: dict[str, tuple[bytes, Check]] = {
    "1 not JSON": (b"hello", refusal(-32700)),
    "1 truncated": (b'{"jsonrpc":"2.0","id":5,"method":"pi', refusal(-32700)),
    "1 NUL": (b"\0", refusal(-32700)),
    "1 trailing comma": (of(b'"id":5,"method":"ping",'), refusal(-32700)),
    "1 comment": (b'{"jsonrpc":"2.0","id":5,"method":"ping"}//', refusal(-32700)),
    "1 single quotes": (b"{'jsonrpc':'2.0'}", refusal(-32700)),
    "1 raw tab in string": (ping(b'"a\tb"'), refusal(-32700)),
    "1 two messages": (ping(b"5") + ping(b"6"), refusal(-32700)),
    "2 empty line": (b"", silence),
    "2 whitespace": (b" \t \r", silence),
    "3 number": (b"42", refusal(-32600)),
    "3 string": (b'"x"', refusal(-32600)),
    "3 null": (b"null", refusal(-32600)),
    "3 empty array": (b"[]", refusal(-32600)),
    "3 empty object": (b"{}", refusal(-32600)),
    "4 batch": (b"[" + ping(b"5") + b"," + ping(b"6") + b"]", refusal(-32600)),
    "5 no jsonrpc": (b'{"id":5,"method":"ping"}', refusal(-32600, 5)),
    "5 jsonrpc 1.0": (b'{"jsonrpc":"1.0","id":5,"method":"ping"}', refusal(-32600, 5)),
    "5 jsonrpc number": (b'{"jsonrpc":2.0,"id":5,"method":"ping"}', refusal(-32600, 5)),
    "6 id null": (ping(b"null"), refusal(-32600)),
    "6 id true": (ping(b"true"), refusal(-32600)),
    "6 id fraction": (ping(b"1.5"), refusal(-32600)),
    "6 id NaN": (ping(b"NaN"), refusal(-32700)),
    "6 id array": (ping(b"[1]"), refusal(-32600)),
    "6 id object": (ping(b"{}"), refusal(-32600)),
    "6 id 5.0": (ping(b"5.0"), success(5.0)),
    "6 id 1e2": (ping(b"1e2"), success(100.0)),
    "7 id 2**70": (ping(str(2**70).encode()), success(2**70)),
    "7 id negative": (ping(b"-1"), success(-1)),
    "7 id 2**53+1": (ping(str(2**53 + 1).encode()), success(2**53 + 1)),
    "7 id empty": (ping(b'""'), success("")),
    "7 id digits": (ping(b'"7"'), success("7")),
    "8 id of 5000 digits": (ping(b"9" * 5000), refusal(-32600)),
    "8 argument of 5000 digits": (CALL % (b'{"path":%s}' % (b"9" * 5000)), lambda _heard: None),
    "12 no method": (of(b'"id":5'), refusal(-32600, 5)),
    "12 method number": (of(b'"id":5,"method":5'), refusal(-32600, 5)),
    "12 method null": (of(b'"id":5,"method":null'), refusal(-32600, 5)),
    "12 params array": (of(b'"id":5,"method":"ping","params":[]'), refusal(-32602, 5)),
    "12 params string": (of(b'"id":5,"method":"ping","params":"x"'), refusal(-32600, 5)),
    "13 method empty": (of(b'"id":5,"method":""'), refusal(-32601, 5)),
    "13 method unknown": (of(b'"id":5,"method":"a/b"'), refusal(-32601, 5)),
    "13 initialized with id": (
        of(b'"id":5,"method":"notifications/initialized"'),
        refusal(-32601, 5),
    ),
    "14 params null": (of(b'"id":5,"method":"ping","params":null'), refusal(-32600, 5)),
    "14 extra member": (of(b'"id":5,"method":"ping","x":1'), success(5)),
    "14 method and result": (of(b'"id":5,"method":"ping","result":{}'), refusal(-32600, 5)),
    "15 response": (of(b'"id":77,"result":{}'), silence),
    "15 result and error": (of(b'"id":5,"result":{},"error":{}'), silence),
    "15 error without id": (of(b'"id":null,"error":{"code":1,"message":""}'), silence),
    "20 second initialize": (raw(initialize("2024-11-05", 5)).strip(), refusal(-32600, 5)),
    "24 initialize without id": (of(b'"method":"initialize"'), silence),
    "25 initialized twice": (of(b'"method":"notifications/initialized"'), silence),
    "25 unknown notification": (of(b'"method":"notifications/x"'), silence),
    "25 call without id": (of(b'"method":"tools/call","params":{"name":"file_read"}'), silence),
    "26 notification with params array": (of(b'"method":"notifications/x","params":[]'), silence),
    "26 notification without jsonrpc": (b'{"method":"notifications/x"}', silence),
    "27 cancelled unknown": (
        of(b'"method":"notifications/cancelled","params":{"requestId":99}'),
        silence,
    ),
    "27 cancelled object": (
        of(b'"method":"notifications/cancelled","params":{"requestId":{}}'),
        silence,
    ),
    "27 cancelled true": (
        of(b'"method":"notifications/cancelled","params":{"requestId":true}'),
        silence,
    ),
    "27 cancelled without params": (of(b'"method":"notifications/cancelled"'), silence),
    "38 _meta number": (of(b'"id":5,"method":"ping","params":{"_meta":5}'), refusal(-32602, 5)),
    "39 progressToken true": (
        of(b'"id":5,"method":"ping","params":{"_meta":{"progressToken":true}}'),
        refusal(-32602, 5),
    ),
    "40 a method that is the client's own": (
        of(b'"id":5,"method":"sampling/createMessage","params":{}'),
        refusal(-32601, 5),
    ),
    "42 invalid UTF-8": (ping(b'"\xff"'), refusal(-32700)),
    "42 encoded surrogate": (ping(b'"\xed\xa0\x80"'), refusal(-32700)),
    "42 overlong": (ping(b'"\xc0\xaf"'), refusal(-32700)),
    "43 lone surrogate in id": (ping(rb'"\ud800"'), refusal(-32600)),
    "43 lone surrogate elsewhere": (
        of(rb'"id":5,"method":"ping","params":{"x":"\uDC00"}'),
        refusal(-32600, 5),
    ),
    "44 NUL escape": (ping(rb'"\u0000"'), success("\0")),
    "44 surrogate pair": (ping(rb'"\ud83d\ude00"'), success("😀")),
    "44 line separators": (ping('"\u2028\u0085"'.encode()), success("\u2028\u0085")),
    "45 byte order mark": (b"\xef\xbb\xbf" + ping(b"5"), refusal(-32700)),
    "46 carriage return": (ping(b"5") + b"\r", success(5)),
    "46 spaces": (b" \t" + ping(b"5") + b"  ", success(5)),
    "47 carriage return between messages": (ping(b"5") + b"\r" + ping(b"6"), refusal(-32700)),
    "47 carriage return inside": (ping(b"\r5\r"), success(5)),
    "48 form feed": (ping(b"5") + b"\f", refusal(-32700)),
    "49 method twice": (of(b'"id":5,"method":"x","method":"ping"'), refusal(-32600, 5)),
    "49 id twice": (of(b'"id":5,"id":6,"method":"ping"'), refusal(-32600)),
    "50 NaN": (CALL % b'{"path":NaN}', refusal(-32700)),
    "50 Infinity": (CALL % b'{"path":-Infinity}', refusal(-32700)),
    "51 nesting bomb": (CALL % DEEP, refusal(-32700)),
    "51 open nesting bomb": (b'{"a":' * 100_000, refusal(-32700)),
    "55 Content-Length": (b"Content-Length: 5", refusal(-32700)),
}


@pytest.mark.parametrize("row", LEGACY_ROWS)
def test_odd_line_in_a_session_gets_the_expected_answer(row: str) -> None:
    line, check = LEGACY_ROWS[row]
    check(after_opening("2025-11-25", line))


@pytest.mark.parametrize("row", [row for row in LEGACY_ROWS if row.split()[0] in ("1", "3", "6")])
def test_odd_line_without_a_session_is_answered_without_an_id(row: str) -> None:
    line = LEGACY_ROWS[row][0]
    for heard in after_opening(MODERN, line):
        assert heard.get("id", 5) in (5.0, 100.0)


@cases(
    *(("protocolVersion", None), ("protocolVersion", 1), ("protocolVersion", [])),
    *(("capabilities", None), ("capabilities", []), ("capabilities", {"roots": []})),
    *(("clientInfo", None), ("clientInfo", {"name": "x"}), ("clientInfo", {"name": 1})),
)
def test_initialize_with_a_mistyped_member_is_refused_and_may_be_repeated(
    member: str, wrong: Any
) -> None:
    message = initialize("2025-11-25", 1)
    message["params"][member] = wrong
    refused, accepted = converse(message, initialize("2025-11-25", 2))
    assert (refused["id"], code_of(refused)) == (1, -32602)
    assert accepted["result"]["protocolVersion"] == "2025-11-25"


def test_initialized_before_initialize_is_ignored() -> None:
    heard = converse(notification("notifications/initialized"), request(1, "tools/list"))
    assert code_of(only(heard)) == -32600


def test_batch_waits_for_its_slow_members() -> None:
    call = request(2, "tools/call", {"name": "file_read", "arguments": {"path": "LICENSE"}})
    (answers,) = after_opening("2025-03-26", [request(1, "ping"), call])
    assert sorted(answer["id"] for answer in answers) == [1, 2]


def test_batch_cannot_hold_initialize_or_modern_requests() -> None:
    members = [initialize("2025-03-26", 1), modern(2, "tools/list")]
    (answers,) = after_opening("2025-03-26", members)
    assert [(a["id"], code_of(a)) for a in answers] == [(1, -32600), (2, -32600)]


def test_batch_before_initialize_is_refused() -> None:
    assert code_of(only(converse([initialize("2025-03-26")]))) == -32600


def test_oversized_batch_is_refused_as_a_whole() -> None:
    assert code_of(only(after_opening("2025-03-26", [1] * 1001))) == -32600


class Gate:
    """A feature with one tool that waits: ``wait {"until_cancelled": bool}``."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.opened = threading.Event()
        self.cancelled = threading.Event()

    def __call__(self, surface: Surface) -> None:
        surface.toolbox.add(tool("wait", self._work))

    def _work(self, call: Call, _arguments: Message) -> Message:
        self.entered.release()
        deadline = time.monotonic() + 10
        while not self.opened.wait(0.01) and time.monotonic() < deadline:
            if call.cancelled:
                self.cancelled.set()
            call.check()
        return {}


def wait_call(revision: str, request_id: Any) -> Message:
    return ask(revision, request_id, "tools/call", name="wait")


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_cancelled_call_stops_and_is_never_answered(revision: str) -> None:
    gate = Gate()
    with InProcess(features=[gate]) as client:
        client.open(revision)
        client.send(wait_call(revision, 5), wait_call(revision, "5"))
        assert gate.entered.acquire(timeout=10)
        assert gate.entered.acquire(timeout=10)
        client.send(notification("notifications/cancelled", {"requestId": 5, "reason": "bored"}))
        assert gate.cancelled.wait(10)
        gate.opened.set()
        assert client.hear()["id"] == "5"
        client.send(alive(revision, "after"))
        assert client.hear()["id"] == "after"
        assert client.hears_nothing()


def test_cancelled_member_leaves_the_rest_of_its_batch() -> None:
    gate = Gate()
    with InProcess(features=[gate]) as client:
        client.open("2025-03-26")
        client.send([wait_call("2025-03-26", 1), request(2, "ping")])
        assert gate.entered.acquire(timeout=10)
        client.send(notification("notifications/cancelled", {"requestId": 1}))
        assert [answer["id"] for answer in client.hear()] == [2]
        gate.opened.set()


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_late_cancellation_causes_no_second_answer(revision: str) -> None:
    lines: list[Message | bytes | list[Any]] = []
    for number in range(50):
        lines.append(ask(revision, number, "tools/call", name="file_read", arguments={"path": "x"}))
        lines.append(notification("notifications/cancelled", {"requestId": number}))
    ids = [message["id"] for message in after_opening(revision, *lines)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_reused_id_in_flight_is_refused_and_the_first_call_is_answered(revision: str) -> None:
    gate = Gate()
    with InProcess(features=[gate]) as client:
        client.open(revision)
        client.send(wait_call(revision, 5), alive(revision, 5))
        refused = client.hear()
        assert code_of(refused) == -32600
        assert refused.get("id") is None
        gate.opened.set()
        assert client.hear()["id"] == 5
        client.send(alive(revision, 5))
        assert "result" in client.hear()


def test_more_calls_than_threads_and_queue_are_all_answered() -> None:
    settings = Settings(workers=2, queue=2)
    call = [
        modern(n, "tools/call", name="file_read", arguments={"path": "LICENSE"}) for n in range(40)
    ]
    assert sorted(message["id"] for message in converse(*call, settings=settings)) == [*range(40)]


def test_features_add_methods_per_revision_and_may_answer_later() -> None:
    parked: list[Call] = []

    def feature(surface: Surface) -> None:
        methods = surface.methods
        methods.request("x/park", SERVED[-2:], parked.append, endless=True)
        methods.request("x/release", SERVED[-2:], release)
        methods.capability("experimental", {"x": {}}, SERVED[-1:])

    def release(_call: Call) -> Message:
        call = parked.pop()
        call.notify("notifications/x", {})
        call.finish({"resultType": "input_required", "_meta": {"com.example/a": 1}})
        call.notify("notifications/too-late", {})
        call.finish({})
        return {}

    with InProcess(features=[feature]) as client:
        client.send(modern("p", "x/park"), modern("r", "x/release"))
        assert client.hear() == {"jsonrpc": "2.0", "method": "notifications/x", "params": {}}
        parked_answer, released = client.hear(), client.hear()
        assert parked_answer["result"]["resultType"] == "input_required"
        assert parked_answer["result"]["_meta"].keys() == {
            "com.example/a",
            "io.modelcontextprotocol/serverInfo",
        }
        assert released["id"] == "r"
        client.send(modern("d", "server/discover"))
        assert client.hear()["result"]["capabilities"]["experimental"] == {"x": {}}
        client.send(modern("for ever", "x/park"))
        started = time.monotonic()
    assert client.code == 0
    assert time.monotonic() - started < 3


def broken(answer: Callable[[], Any]) -> Callable[[Surface], None]:
    def feature(surface: Surface) -> None:
        methods = surface.methods
        methods.request("x/broken", SERVED, lambda _call: answer())

    return feature


def crash() -> None:
    raise RuntimeError("secret detail")


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("answer", [crash, lambda: {"n": float("nan")}, lambda: {"n": {1}}])
def test_defect_in_a_handler_is_an_internal_error_without_details(
    revision: str, answer: Callable[[], Any]
) -> None:
    settings = Settings(log_level="off")
    question = ask(revision, 1, "x/broken")
    heard = converse(*opening(revision), question, settings=settings, features=[broken(answer)])
    assert code_of(heard[-1]) == -32603
    assert "secret" not in json.dumps(heard)


def test_lone_surrogate_in_a_result_becomes_a_question_mark() -> None:
    feature = broken(lambda: {"name": "a\udc80b 😀"})
    heard = only(converse(modern(1, "x/broken"), features=[feature]))
    assert heard["result"]["name"] == "a?b 😀"
