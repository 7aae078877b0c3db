"""The vocabulary of a suite file: what a scenario or an ambient rule may import, and no more."""

from mcp_touchstone import answer, arguments, drawn, listings, timestamps, uri_template
from mcp_touchstone.ambient import Record
from mcp_touchstone.attack import (
    auditing,
    blocking,
    crowding,
    fetching,
    filling,
    injecting,
    killing,
    opening,
    resembling,
    scripting,
    shells,
    walking,
)
from mcp_touchstone.attack.barrage import Barrage
from mcp_touchstone.attack.bindings import CHANGING as CHANGES
from mcp_touchstone.attack.bindings import IN_PLACE, Operation
from mcp_touchstone.attack.definitions import Definitions
from mcp_touchstone.attack.leaks import Leaks
from mcp_touchstone.attack.load import Load
from mcp_touchstone.attack.modes import Modes
from mcp_touchstone.attack.patching import Patches
from mcp_touchstone.attack.payload import Payload
from mcp_touchstone.attack.racing import race
from mcp_touchstone.attack.reach import Carriage
from mcp_touchstone.attack.shells import Shell
from mcp_touchstone.attack.siege import Siege
from mcp_touchstone.attack.sizes import Sizes
from mcp_touchstone.attack.swapping import swapped
from mcp_touchstone.attack.trickling import Trickle
from mcp_touchstone.attack.uris import Uris
from mcp_touchstone.attack.wandering import wander
from mcp_touchstone.clause import Breach
from mcp_touchstone.client import ASKED, CAPABILITIES, Client, willing
from mcp_touchstone.client_tasks import RELATED, TERMINAL, ClientTasks
from mcp_touchstone.connection import FULL_CAPABILITIES, META, Connection, Reply
from mcp_touchstone.conversation import Broken, Conversation
from mcp_touchstone.dialect import DIALECTS, allows, dialect_of, violations
from mcp_touchstone.dossier import Example, Exchange, is_read_only, may_be_task, task_support
from mcp_touchstone.framing import Fault, Kind, brief, id_key, integral, joined, type_name
from mcp_touchstone.matchers import (
    CLIENT_METHODS,
    META_KEY,
    base64_fault,
    capability_faults,
    covers,
    list_methods,
    object_in,
    outcome,
    same_outcome,
    wrong_types,
)
from mcp_touchstone.pending import Pending, Window
from mcp_touchstone.process import Step
from mcp_touchstone.properties import Draw, Found, Heard, Property, Say
from mcp_touchstone.questions import Question, input_requests, questions
from mcp_touchstone.recon import LISTS
from mcp_touchstone.revision import ALL, LATEST_LEGACY, LEGACY, MODERN, is_modern
from mcp_touchstone.rounds import Provoked, Round, altered
from mcp_touchstone.scenario import Seen, ambient, attack, catalogue, scenario
from mcp_touchstone.schema import Flaw
from mcp_touchstone.served import edit, served
from mcp_touchstone.session import LOOSE, Asked, Message, Phase, Role
from mcp_touchstone.shapes import Typed, each, shapes, typed
from mcp_touchstone.subscriptions import Subscription
from mcp_touchstone.task_states import Sighting, sightings
from mcp_touchstone.tasks import Task
from mcp_touchstone.transcript import Entry, Source
from mcp_touchstone.world import NOTE, traces

__all__ = [
    "ALL",
    "ASKED",
    "CAPABILITIES",
    "CHANGES",
    "CLIENT_METHODS",
    "DIALECTS",
    "FULL_CAPABILITIES",
    "IN_PLACE",
    "LATEST_LEGACY",
    "LEGACY",
    "LISTS",
    "LOOSE",
    "META",
    "META_KEY",
    "MODERN",
    "NOTE",
    "RELATED",
    "TERMINAL",
    "Asked",
    "Barrage",
    "Breach",
    "Broken",
    "Carriage",
    "Client",
    "ClientTasks",
    "Connection",
    "Conversation",
    "Definitions",
    "Draw",
    "Entry",
    "Example",
    "Exchange",
    "Fault",
    "Flaw",
    "Found",
    "Heard",
    "Kind",
    "Leaks",
    "Load",
    "Message",
    "Modes",
    "Operation",
    "Patches",
    "Payload",
    "Pending",
    "Phase",
    "Property",
    "Provoked",
    "Question",
    "Record",
    "Reply",
    "Role",
    "Round",
    "Say",
    "Seen",
    "Shell",
    "Siege",
    "Sighting",
    "Sizes",
    "Source",
    "Step",
    "Subscription",
    "Task",
    "Trickle",
    "Typed",
    "Uris",
    "Window",
    "allows",
    "altered",
    "ambient",
    "answer",
    "arguments",
    "attack",
    "auditing",
    "base64_fault",
    "blocking",
    "brief",
    "capability_faults",
    "catalogue",
    "covers",
    "crowding",
    "dialect_of",
    "drawn",
    "each",
    "edit",
    "fetching",
    "filling",
    "id_key",
    "injecting",
    "input_requests",
    "integral",
    "is_modern",
    "is_read_only",
    "joined",
    "killing",
    "list_methods",
    "listings",
    "may_be_task",
    "object_in",
    "opening",
    "outcome",
    "questions",
    "race",
    "resembling",
    "same_outcome",
    "scenario",
    "scripting",
    "served",
    "shapes",
    "shells",
    "sightings",
    "swapped",
    "task_support",
    "timestamps",
    "traces",
    "type_name",
    "typed",
    "uri_template",
    "violations",
    "walking",
    "wander",
    "willing",
    "wrong_types",
]
