"""The bridge serves a server of 2026-07-28 over streamable HTTP, without sessions."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from mcp_touchstone.bridge.child import Launch
from mcp_touchstone.bridge.listener import Listener
from tests.bridge_client import (
    EVENTS,
    META,
    MODERN,
    SCRIBE,
    TOY,
    WAIT,
    Bridge,
    Http,
    Reply,
    modern_meta,
    notification,
    refused,
    request,
    session,
)
from tests.cases import cases
from tests.conftest import eventually

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def modern_scribe() -> Iterator[Http]:
    """A bridge shared by several tests."""
    listener = Listener(Launch(command=(*SCRIBE, "modern")), most=1, startup=WAIT)
    listener.start()
    yield Http(listener.server_address[1])
    listener.stop()


def test_stateless_requests_share_a_process_and_keep_their_ids(bridge: Bridge) -> None:
    http = bridge(*SCRIBE, "modern")
    pids = set()
    for given in (1, "1", 1, 7.0):
        with http.modern("anything", id=given, Mcp_Session_Id="ignored") as reply:
            assert reply.status == 200
            assert reply.header("Mcp-Session-Id") is None
            body = reply.json()
            assert body["id"] == given
            assert type(body["id"]) is type(given)
            pids.add(body["result"]["pid"])
    assert len(pids) == 1


def test_clients_with_equal_ids_and_tokens_get_their_own_replies(bridge: Bridge) -> None:
    http = bridge(*TOY, "nap")

    def nap(seconds: float) -> Reply:
        params = {"name": "nap", "arguments": {"duration": seconds}}
        return http.modern("tools/call", params, id="same", meta={"progressToken": "same"})

    with nap(0.6) as slow, nap(0.2) as quick:
        for reply in (quick, slow):
            *progress, answer = reply.messages()
            turns = [one["params"]["progress"] for one in progress]
            assert turns == list(range(1, len(turns) + 1))
            assert {one["params"]["progressToken"] for one in progress} == {"same"}
            assert answer["id"] == "same"
            assert answer["result"]["content"][0]["text"] == f"napped {turns[-1]}"


WITHOUT_HANDSHAKE = (*SCRIBE, "modern", "modern-only")


def test_server_without_a_handshake_answers_get_and_delete_by_405(bridge: Bridge) -> None:
    http = bridge(*WITHOUT_HANDSHAKE)
    with http.modern("server/discover") as reply:
        assert reply.status == 200
    for method in ("GET", "DELETE"):
        reply = http.send(method)
        assert reply.header("Allow") == "POST"
        refused(reply, 405)


@cases(
    ([*WITHOUT_HANDSHAKE], 405),
    ([*SCRIBE], 400),
    ([*SCRIBE, "modern"], 400),
    ids=["no handshake", "legacy", "both eras"],
)
def test_get_before_every_request_wants_a_session_id_if_there_is_a_handshake(
    bridge: Bridge, command: list[str], status: int
) -> None:
    http = bridge(*command)
    for method in ("GET", "DELETE"):
        refused(http.send(method), status)


def test_modern_events_have_no_id(bridge: Bridge) -> None:
    params = {"name": "nap", "arguments": {"duration": 0.2}}
    with bridge(*TOY, "nap").modern("tools/call", params, meta={"progressToken": 1}) as reply:
        assert reply.header("X-Accel-Buffering") == "no"
        assert {event.id for event in reply.events()} == {""}


def test_log_message_is_sent_only_to_the_request_that_asked_for_it(bridge: Bridge) -> None:
    http = bridge(*TOY, "chat", "nap")
    level = {META + "logLevel": "debug"}
    nap = {"name": "nap", "arguments": {"duration": 1.0}}

    with http.modern("tools/call", nap, id=1, meta={"progressToken": 1}) as other:
        assert other.kind == EVENTS
        with http.modern("tools/call", {"name": "chat"}, id=2, meta=level) as asked:
            log, answer = asked.messages()
        assert all(one.get("method") != "notifications/message" for one in other.messages())

    assert log["params"]["data"] == "chatting"
    assert answer["id"] == 2


def test_subscription_notifications_carry_the_id_of_the_client(bridge: Bridge) -> None:
    http = bridge(*TOY, "listen", "echo")
    wanted = {"notifications": {"toolsListChanged": True}}

    with http.modern("subscriptions/listen", wanted, id="mine") as stream:
        events = stream.events()
        first, second = next(events).message, next(events).message
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert second["method"] == "notifications/tools/list_changed"
    for one in (first, second):
        assert one["params"]["_meta"][META + "subscriptionId"] == "mine"


def test_modern_disconnect_cancels_the_request(bridge: Bridge) -> None:
    http = bridge(*SCRIBE, "modern")

    def ask() -> list[Any]:
        with http.modern("look", id="second") as reply:
            return [json.loads(line) for line in reply.json()["result"]["heard"]]

    broken = Http(http.port)
    connection = broken_connection(broken)
    eventually(lambda: any(one["method"] == "silence" for one in ask()))
    connection.close()
    eventually(lambda: any(one["method"] == "notifications/cancelled" for one in ask()))
    heard = ask()
    (silent,) = (one for one in heard if one["method"] == "silence")
    (taken_back,) = (one for one in heard if one["method"] == "notifications/cancelled")

    assert taken_back["params"]["requestId"] == silent["id"]


def broken_connection(http: Http) -> Any:
    """Send a request that is never answered, and return the connection."""
    connection = HTTPConnection("127.0.0.1", http.port, timeout=WAIT)
    body = request("silence", {"_meta": modern_meta()}, id="gone")
    headers = {
        "Content-Type": "application/json",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "silence",
    }
    connection.request("POST", "/mcp", json.dumps(body), headers)
    return connection


@cases(
    ("error/-32601", 404),
    ("error/-32020", 400),
    ("error/-32021", 400),
    ("error/-32022", 400),
    ("error/-32602", 200),
    ("error/-32603", 200),
)
def test_json_rpc_error_code_sets_the_http_status(
    modern_scribe: Http, method: str, status: int
) -> None:
    with modern_scribe.modern(method, id="e") as reply:
        assert reply.status == status
        assert reply.json()["id"] == "e"


def test_invalid_params_without_complete_meta_get_400(bridge: Bridge) -> None:
    http = bridge(*SCRIBE, "modern")
    headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "error/-32602"}
    whole = modern_meta()
    for meta in ({}, *({name: value} for name, value in whole.items())):
        with http.post(request("error/-32602", {"_meta": meta}), **headers) as reply:
            assert reply.status == 400
            assert reply.json()["error"]["code"] == -32602


@cases(
    {"MCP_Protocol_Version": None},
    {"MCP_Protocol_Version": "2025-11-25"},
    {"Mcp_Method": None},
    {"Mcp_Method": "tools/list"},
    {"Mcp_Method": "TOOLS/CALL"},
    {"Mcp_Name": None},
    {"Mcp_Name": "other"},
    {"Mcp_Name": "=?base64?b3RoZXI=?="},
    {"Mcp_Name": "=?base64?cGxhaW4?="},
    {"Mcp_Name": "=?base64?cGxh!!W4=?="},
    ids=str,
)
def test_headers_contradicting_the_body_are_refused(
    modern_scribe: Http, headers: dict[str, str | None]
) -> None:
    reply = modern_scribe.modern("tools/call", {"name": "plain"}, id=3, **headers)

    assert refused(reply, 400, "Header mismatch")["code"] == -32020


@cases(
    {"MCP_Protocol_Version": " 2026-07-28 "},
    {"mcp_METHOD": "tools/call\t", "Mcp_Method": None},
    {"Mcp_Name": " plain "},
    {"Mcp_Name": "=?base64?cGxhaW4=?="},
    ids=str,
)
def test_equivalent_header_forms_are_accepted(
    modern_scribe: Http, headers: dict[str, str | None]
) -> None:
    with modern_scribe.modern("tools/call", {"name": "plain"}, **headers) as reply:
        assert reply.status == 200


@cases(
    ({"region": "us"}, {"Mcp_Param_Region": "us"}, True),
    ({"region": "us"}, {"mcp_param_REGION": "us"}, True),
    ({"region": "Grüße"}, {"Mcp_Param_Region": "=?base64?R3LDvMOfZQ==?="}, True),
    ({"region": "=?base64?x"}, {"Mcp_Param_Region": "=?base64?x"}, True),
    ({"region": None}, {}, True),
    ({}, {}, True),
    ({"deep": {"size": 42}}, {"Mcp_Param_Size": "42.0"}, True),
    ({"region": "us"}, {}, False),
    ({"region": "us"}, {"Mcp_Param_Region": "eu"}, False),
    ({}, {"Mcp_Param_Region": "eu"}, False),
    ({"region": "Hello"}, {"Mcp_Param_Region": "=?base64?SGVsbG8?="}, False),
    ({"deep": {"size": 42}}, {"Mcp_Param_Size": "43"}, False),
    ({"deep": {"size": 42}}, {"Mcp_Param_Size": "many"}, False),
    ({"region": "us"}, {"Mcp_Param_Region": "us", "Mcp_Param_Other": "x"}, True),
)
def test_parameter_headers_must_match_the_arguments(
    modern_scribe: Http, arguments: Any, headers: dict[str, str], fits: bool
) -> None:
    params = {"name": "query", "arguments": arguments}
    with modern_scribe.modern("tools/call", params, **headers) as reply:
        assert reply.status == (200 if fits else 400), reply.json()


def test_modern_client_response_is_refused(bridge: Bridge) -> None:
    http = bridge(*SCRIBE, "modern")
    response = {"jsonrpc": "2.0", "id": 1, "result": {}}

    refused(http.post(response, MCP_Protocol_Version=MODERN), 400, "no responses")
    with http.post(notification("x"), MCP_Protocol_Version=MODERN) as reply:
        assert reply.status == 202


def test_modern_request_to_a_legacy_server_suggests_initialize(bridge: Bridge) -> None:
    """With an error code of 2026-07-28, a client of both eras would not fall back."""
    http = bridge(*SCRIBE)

    for _ in range(2):
        error = refused(http.modern("server/discover"), 400, "initialize")
        assert error["code"] not in {-32020, -32021, -32022, -32601}
    session(http)


def test_exited_modern_process_is_replaced(bridge: Bridge) -> None:
    http = bridge(*SCRIBE, "modern")

    refused(http.modern("leave"), 502, "status 3")
    with http.modern("again") as reply:
        assert reply.status == 200
