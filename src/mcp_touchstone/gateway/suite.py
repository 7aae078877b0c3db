"""The names that a file of rules on gateways may import; no ``check`` of a server needs them."""

from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.catalog.revision import META, is_modern
from mcp_touchstone.catalog.scenario import Seen, ambient, catalogue
from mcp_touchstone.connection.server_profile import LISTS
from mcp_touchstone.judging import hops
from mcp_touchstone.judging.gateway_talk import SOON, ExchangeTalk, NoSecondClientError, exchange
from mcp_touchstone.parts import callers, rich_upstream, second, troubled, upstream
from mcp_touchstone.parts import part as parts
from mcp_touchstone.wire.exchange import Exchange as HttpExchange
from mcp_touchstone.wire.framing import Kind, brief, id_key, list_in, object_in, value_in
from mcp_touchstone.wire.lifecycle import Role
from mcp_touchstone.wire.transcript import Source

__all__ = [
    "LISTS",
    "META",
    "SOON",
    "Breach",
    "ExchangeTalk",
    "HttpExchange",
    "Kind",
    "NoSecondClientError",
    "Role",
    "Seen",
    "Source",
    "ambient",
    "brief",
    "callers",
    "catalogue",
    "exchange",
    "hops",
    "id_key",
    "is_modern",
    "list_in",
    "object_in",
    "parts",
    "rich_upstream",
    "second",
    "troubled",
    "upstream",
    "value_in",
]
