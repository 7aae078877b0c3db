"""The names that a file of the security suite may import."""

from mcp_touchstone.bindings import command_line
from mcp_touchstone.bindings.argument_roles import (
    ArgumentRole,
    Pointer,
    assemble,
    containers,
    dry_run,
    extend,
    put,
    slots,
    texts,
)
from mcp_touchstone.bindings.binding import (
    CARRYING,
    CHANGING,
    IN_PLACE,
    Binding,
    Call,
    Operation,
    Style,
)
from mcp_touchstone.bindings.call_variants import DANGER, ways
from mcp_touchstone.bindings.canary import Area, Canary
from mcp_touchstone.bindings.file_naming import TEXT
from mcp_touchstone.catalog.attack_level import Tier
from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.catalog.revision import is_modern
from mcp_touchstone.catalog.scenario import Place, attack
from mcp_touchstone.connection.pending import read_pages
from mcp_touchstone.connection.raw_http import Change, HttpAnswer
from mcp_touchstone.connection.server_profile import LISTS, Example, Spoken, is_read_only
from mcp_touchstone.connection.tasks import Task
from mcp_touchstone.judging.talk import hear_late_answers
from mcp_touchstone.judging.used_server import Broken
from mcp_touchstone.runtime import git_repo
from mcp_touchstone.runtime.inotify import OpenWatcher
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.samples import from_regex, uri_template
from mcp_touchstone.samples.from_schema import (
    BRIEF,
    CANDIDATES,
    Places,
    candidates,
    required,
    words,
)
from mcp_touchstone.security import glob_search as walking
from mcp_touchstone.security import line_payloads, payload, reachability, rlimits
from mcp_touchstone.security import script_payloads as scripting
from mcp_touchstone.security.attack_session import PATIENCE, SECRET, AttackSession
from mcp_touchstone.security.bind_calls import OWN
from mcp_touchstone.security.bind_tools import Binder
from mcp_touchstone.security.call_attack import (
    NAMELESS,
    attack_calls,
    attack_carrying,
    attack_paths,
)
from mcp_touchstone.security.file_facts import FileFacts, unique
from mcp_touchstone.security.fixture_tree import CONTROL, PLANTED, commit_name
from mcp_touchstone.security.http_caller import HttpCaller, served
from mcp_touchstone.security.http_listener import RequestListener
from mcp_touchstone.security.line_attack import NOBODY, LineAttack, LineHit
from mcp_touchstone.security.line_payloads import LinePayload
from mcp_touchstone.security.name_exchanger import NameExchanger
from mcp_touchstone.security.name_server import NameServer
from mcp_touchstone.security.payload import CANARY, URL, Payload, fill
from mcp_touchstone.security.reachability import Carriage, lexical
from mcp_touchstone.security.repro_calls import found_if, killed, starved, waited
from mcp_touchstone.security.repro_calls import script as scripted_calls
from mcp_touchstone.security.repro_script import recreated
from mcp_touchstone.security.resource_usage import ResourceUsage, cpu_share
from mcp_touchstone.security.tally import DEATHS, TimeBudget, shown, whose
from mcp_touchstone.security.targeting import FILE, FOLDER, AttackCall
from mcp_touchstone.security.tree_snapshot import Fact, changes, take
from mcp_touchstone.security.trigger import Trigger
from mcp_touchstone.transport.pipes import PIPE, OutputStream
from mcp_touchstone.transport.process import now, sleep
from mcp_touchstone.wire.exchange import Exchange
from mcp_touchstone.wire.framing import brief, encode, id_key
from mcp_touchstone.wire.http_headers import SESSION, VERSION
from mcp_touchstone.wire.lifecycle import Role
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry, Source, Transcript

__all__ = [
    "BRIEF",
    "CANARY",
    "CANDIDATES",
    "CARRYING",
    "CHANGING",
    "CONTROL",
    "DANGER",
    "DEATHS",
    "FILE",
    "FOLDER",
    "IN_PLACE",
    "LISTS",
    "NAMELESS",
    "NOBODY",
    "OWN",
    "PATIENCE",
    "PIPE",
    "PLANTED",
    "SECRET",
    "SESSION",
    "TEXT",
    "URL",
    "VERSION",
    "Area",
    "ArgumentRole",
    "AttackCall",
    "AttackSession",
    "Binder",
    "Binding",
    "Breach",
    "Broken",
    "Call",
    "Canary",
    "Carriage",
    "Change",
    "Entry",
    "Example",
    "Exchange",
    "Fact",
    "FileFacts",
    "HttpAnswer",
    "HttpCaller",
    "LineAttack",
    "LineHit",
    "LinePayload",
    "NameExchanger",
    "NameServer",
    "OpenWatcher",
    "Operation",
    "OutputStream",
    "Payload",
    "Place",
    "Places",
    "Pointer",
    "Reply",
    "RequestListener",
    "ResourceUsage",
    "Role",
    "SafePath",
    "Source",
    "Spoken",
    "Style",
    "Task",
    "Tier",
    "TimeBudget",
    "Transcript",
    "Trigger",
    "assemble",
    "attack",
    "attack_calls",
    "attack_carrying",
    "attack_paths",
    "brief",
    "candidates",
    "changes",
    "command_line",
    "commit_name",
    "containers",
    "cpu_share",
    "dry_run",
    "encode",
    "extend",
    "fill",
    "found_if",
    "from_regex",
    "git_repo",
    "hear_late_answers",
    "id_key",
    "is_modern",
    "is_read_only",
    "killed",
    "lexical",
    "line_payloads",
    "now",
    "payload",
    "put",
    "reachability",
    "read_pages",
    "recreated",
    "required",
    "rlimits",
    "scripted_calls",
    "scripting",
    "served",
    "shown",
    "sleep",
    "slots",
    "starved",
    "take",
    "texts",
    "unique",
    "uri_template",
    "waited",
    "walking",
    "ways",
    "whose",
    "words",
]
