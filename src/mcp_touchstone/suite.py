"""The vocabulary of a suite file: what a scenario or an ambient rule may import, and no more."""

from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.catalog.revision import LATEST_LEGACY, LATEST_MODERN, LEGACY, is_modern
from mcp_touchstone.catalog.scenario import (
    Place,
    Seen,
    Share,
    Unopened,
    ambient,
    catalogue,
    scenario,
)
from mcp_touchstone.connection import answers as answer
from mcp_touchstone.connection import mrtr
from mcp_touchstone.connection.client_tasks import RELATED, TERMINAL, ClientTasks
from mcp_touchstone.connection.connection import FULL_CAPABILITIES, META, Reply
from mcp_touchstone.connection.mrtr import Provoked, Round, altered
from mcp_touchstone.connection.pending import (
    Pending,
    Window,
    came_instead,
    first_response,
    read_pages,
    strays,
    tagged,
)
from mcp_touchstone.connection.profile import ASKED, CAPABILITIES, Client, willing
from mcp_touchstone.connection.raw_http import (
    CANCELLATION,
    UNANSWERED,
    Change,
    HttpAnswer,
    marked_arguments,
)
from mcp_touchstone.connection.server_profile import (
    Example,
    Request,
    is_read_only,
    may_be_task,
    task_support,
)
from mcp_touchstone.connection.server_requests import Question, input_requests, questions
from mcp_touchstone.connection.subscriptions import Subscription
from mcp_touchstone.connection.tasks import Task
from mcp_touchstone.discovery.recon import LISTS
from mcp_touchstone.judging import authorization, clients, listings, long_texts
from mcp_touchstone.judging.ambient import Record, beside_json
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.judging.file_resources import edit, find_file_resource
from mcp_touchstone.judging.guarded import attempt, challenged, guarded, harmless_requests
from mcp_touchstone.judging.schema_rules import Typed, each, shapes, typed
from mcp_touchstone.judging.used_server import Broken
from mcp_touchstone.parts import part as parts
from mcp_touchstone.properties import examples as drawn
from mcp_touchstone.properties.runner import BrokenClause, Draw, Heard, Property, Say
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.runtime.scratch import NOTE, traces
from mcp_touchstone.samples import from_schema as arguments
from mcp_touchstone.samples import uri_template
from mcp_touchstone.transport.http_endpoint import is_loopback
from mcp_touchstone.transport.http_exchange import BODY_KEPT
from mcp_touchstone.transport.process import Step
from mcp_touchstone.wire import timestamps
from mcp_touchstone.wire.events import CREDENTIALS, Happened
from mcp_touchstone.wire.exchange import Exchange as HttpExchange
from mcp_touchstone.wire.framing import (
    REST_OF_A_LINE_FEED,
    Fault,
    Kind,
    brief,
    id_key,
    integral,
    list_in,
    loads,
    object_in,
    type_name,
    value_in,
)
from mcp_touchstone.wire.http_headers import MARK as HEADER_MARK
from mcp_touchstone.wire.http_headers import PRIMITIVE as HEADER_TYPES
from mcp_touchstone.wire.http_headers import Mark as HeaderMark
from mcp_touchstone.wire.http_headers import decoded, fits_header
from mcp_touchstone.wire.http_headers import mark_fault as header_mark_fault
from mcp_touchstone.wire.http_headers import marks as header_marks
from mcp_touchstone.wire.lifecycle import LOOSE, Asked, Message, Phase, Role
from mcp_touchstone.wire.matchers import (
    CLIENT_METHODS,
    META_KEY,
    base64_fault,
    capability_faults,
    covers,
    guessable,
    normalised,
    outcome,
    refused_output,
    same_outcome,
    wrong_types,
)
from mcp_touchstone.wire.near_miss import CURES, EMBEDDED, Slip, near_miss
from mcp_touchstone.wire.schema import Flaw
from mcp_touchstone.wire.schema_dialect import (
    DIALECTS,
    allows,
    dangling,
    dialect_of,
    misfit,
    violations,
)
from mcp_touchstone.wire.task_states import Sighting, sightings
from mcp_touchstone.wire.transcript import Entry, Source

__all__ = [
    "ASKED",
    "BODY_KEPT",
    "CANCELLATION",
    "CAPABILITIES",
    "CLIENT_METHODS",
    "CREDENTIALS",
    "CURES",
    "DIALECTS",
    "EMBEDDED",
    "FULL_CAPABILITIES",
    "HEADER_MARK",
    "HEADER_TYPES",
    "LATEST_LEGACY",
    "LATEST_MODERN",
    "LEGACY",
    "LISTS",
    "LOOSE",
    "META",
    "META_KEY",
    "NOTE",
    "RELATED",
    "REST_OF_A_LINE_FEED",
    "TERMINAL",
    "UNANSWERED",
    "Asked",
    "Breach",
    "Broken",
    "BrokenClause",
    "Change",
    "Client",
    "ClientTasks",
    "Conversation",
    "Draw",
    "Entry",
    "Example",
    "Fault",
    "Flaw",
    "Happened",
    "HeaderMark",
    "Heard",
    "HttpAnswer",
    "HttpExchange",
    "Kind",
    "Message",
    "Pending",
    "Phase",
    "Place",
    "Property",
    "Provoked",
    "Question",
    "Record",
    "Reply",
    "Request",
    "Role",
    "Round",
    "SafePath",
    "Say",
    "Seen",
    "Share",
    "Sighting",
    "Slip",
    "Source",
    "Step",
    "Subscription",
    "Task",
    "Typed",
    "Unopened",
    "Window",
    "allows",
    "altered",
    "ambient",
    "answer",
    "arguments",
    "attempt",
    "authorization",
    "base64_fault",
    "beside_json",
    "brief",
    "came_instead",
    "capability_faults",
    "catalogue",
    "challenged",
    "clients",
    "covers",
    "dangling",
    "decoded",
    "dialect_of",
    "drawn",
    "each",
    "edit",
    "find_file_resource",
    "first_response",
    "fits_header",
    "guarded",
    "guessable",
    "harmless_requests",
    "header_mark_fault",
    "header_marks",
    "id_key",
    "input_requests",
    "integral",
    "is_loopback",
    "is_modern",
    "is_read_only",
    "list_in",
    "listings",
    "loads",
    "long_texts",
    "marked_arguments",
    "may_be_task",
    "misfit",
    "mrtr",
    "near_miss",
    "normalised",
    "object_in",
    "outcome",
    "parts",
    "questions",
    "read_pages",
    "refused_output",
    "same_outcome",
    "scenario",
    "shapes",
    "sightings",
    "strays",
    "tagged",
    "task_support",
    "timestamps",
    "traces",
    "type_name",
    "typed",
    "uri_template",
    "value_in",
    "violations",
    "willing",
    "wrong_types",
]
