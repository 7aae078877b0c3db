"""Each faulty gateway on each pair of transports of its two hops."""

import sys

from mcp_touchstone.catalog import revision as rev
from tests.gateway import test_gateway

OURS = (sys.executable, "-m", "mcp_touchstone")
BRIDGE = (*OURS, "bridge", "--port", "{port}", "--")
OVER_HTTP = (sys.executable, str(test_gateway.HERE / "over_http.py"))

PAIRS = ("stdio to stdio", "stdio to HTTP", "HTTP to stdio", "HTTP to HTTP")
WORDS = {**test_gateway.STATELESS, **test_gateway.MEMBERS, **test_gateway.MESSAGES}
"""Clause -> the words of the fault that breaks it."""

EVERY = [*WORDS.items(), *test_gateway.HELD_BACK.items()]
"""The clauses with their faults; some have two."""

UNSEEN = {
    ("gateway-answers-once", "HTTP to stdio"): "our bridge has no stream for a second answer",
    ("gateway-answers-once", "HTTP to HTTP"): "our bridge has no stream for a second answer",
    ("gateway-progress-late", "HTTP to stdio"): "it comes in another stream, in no known order",
    ("gateway-progress-late", "HTTP to HTTP"): "it comes in another stream, in no known order",
}
"""The pairs in which a fault is none, each with the reason."""


def revision(clause: str) -> str:
    """Return the revision in which its fault is one."""
    legacy = clause in test_gateway.MEMBERS or clause in test_gateway.MESSAGES
    return rev.LATEST_LEGACY if legacy else rev.LATEST_MODERN


def command(words: str, pair: str) -> tuple[str, ...]:
    """Return the command of the gateway with a fault."""
    over_http = pair.endswith("HTTP")
    faulty = OVER_HTTP if over_http else test_gateway.FAULTY
    behind = (*faulty, *words.split(), "--", "{url}" if over_http else "{server}")
    return (*BRIDGE, *behind) if pair.startswith("HTTP") else behind
