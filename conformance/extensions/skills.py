"""The Skills extension (SEP-2640): ``io.modelcontextprotocol/skills``."""

import base64
import binascii
import hashlib
import re
import secrets
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from mcp_touchstone.suite import (
    Conversation,
    Kind,
    Record,
    Reply,
    Seen,
    ambient,
    brief,
    integral,
    list_in,
    listings,
    object_in,
    read_pages,
    scenario,
    value_in,
)

EXTENSION = "io.modelcontextprotocol/skills"
LIST, GET, DIRECTORY = "skills/list", "skills/get", "resources/directory/read"
MANIFEST, FOLDER = "/SKILL.md", "inode/directory"
INVALID = -32602
GOT, FILES, FOLDERS = 5, 20, 10
"""The most skills that are got, files that are read, and directories that are read."""

MOST_FILES, MOST_BYTES = 512, 16 * 2**20
LENGTHS = {"description": 1024, "compatibility": 500}
"""Fields of a frontmatter -> their greatest length in the Agent Skills specification."""

REQUIRED = ("name", "description")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
REG_NAME = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")
FIELD = re.compile(r"([A-Za-z0-9_-]+):(?:[ \t]+(.*))?")
TEXT = re.compile(r"""[A-Za-z][^"'#:{}\[\],&*|>%@`]*|"[^"\\]*"|'[^']*'""")
NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})

SETTING, RESOURCES = "skills-directory-setting", "skills-resources-capability"
LISTED, GOTTEN, UNKNOWN = "skills-list-answered", "skills-get-answered", "skills-get-unknown"
RESULT, TYPE, HINTS = "skills-result-shape", "skills-result-type", "skills-cache-hints"
ATOMIC, UNIQUE = "skills-entry-atomic", "skills-names-unique"
ENTRY, ARRAY, FILE = "skills-entry-shape", "skills-entry-resources", "skills-file-shape"
COMPLETE, INSIDE, LIMITS = "skills-resources-complete", "skills-resources-inside", "skills-limits"
NAMED, MANIFESTS = "skills-uri-ends-in-name", "skills-uri-of-manifest"
NAME, FORMAT, AUTHORITY = "skills-name-rules", "skills-format", "skills-authority"
READ, SIZE, HASH = "skills-files-read", "skills-size-true", "skills-digest-true"
PRESENT, SAME = "skills-frontmatter-present", "skills-frontmatter-identical"
DESCRIBED, PREFIX = "skills-manifest-described", "skills-meta-prefix"
ANSWERED, CHILDREN = "skills-directory-answered", "skills-directory-children"
SHAPE, REFUSED = "skills-directory-shape", "skills-directory-invalid"


# --- traffic


@ambient(RESULT, TYPE, HINTS, SHAPE)
def answers_requests_for_skills_in_the_right_form(record: Record) -> Iterator[Seen]:
    """Results of the extension have their members, their type and the hints for caches."""
    for n, method, params, result in _results(record):
        kind = result.get("resultType")
        if kind is not None:
            yield Seen(TYPE, kind == "complete", n, "complete", brief(kind))
        if method == DIRECTORY:
            items = result.get("resources")
            fine = isinstance(items, list) and all(map(_is_resource, items))
            yield Seen(SHAPE, fine, n, "an array of resources", brief(items))
            continue
        ttl, scope = result.get("ttlMs"), result.get("cacheScope")
        hinted = _is_count(ttl) and scope in ("public", "private")
        actual = f"ttlMs {brief(ttl)}, cacheScope {brief(scope)}"
        yield Seen(HINTS, hinted, n, "ttlMs and cacheScope", actual)
        if method == LIST:
            found = result.get("skills")
            yield Seen(RESULT, isinstance(found, list), n, "an array skills", brief(found))
        else:
            uri = value_in(result, "skill", "uri")
            fine = uri == params.get("uri") and "nextCursor" not in result
            expected = f"the skill {brief(params.get('uri'))}, and no nextCursor"
            yield Seen(RESULT, fine, n, expected, brief(result, 120))


def _results(record: Record) -> Iterator[tuple[int, str, dict[str, Any], dict[str, Any]]]:
    """Yield the line, method, params and result of requests of the extension."""
    spoken = record.profile.spoken.get(record.revision)
    if spoken is None or EXTENSION not in spoken.extensions:
        return
    for entry, message in record.answers(Kind.RESULT, LIST, GET, DIRECTORY):
        result = message.value["result"]
        if message.method and isinstance(result, dict):
            asked = record.asked_on(message.answers)
            yield entry.n, message.method, object_in(asked and asked.value, "params"), result


def _is_count(value: Any) -> bool:
    return integral(value) and value >= 0


def _is_resource(item: Any) -> bool:
    return isinstance(item, dict) and all(isinstance(item.get(m), str) for m in ("uri", "name"))


@ambient(ENTRY, ARRAY, FILE, COMPLETE, INSIDE, NAMED, MANIFESTS, NAME, FORMAT, AUTHORITY, LIMITS)
def describes_skills_as_the_extension_wants(record: Record) -> Iterator[Seen]:
    """Entries of skills have their members, valid names, and a complete list of their files."""
    for n, method, _, result in _results(record):
        found = result.get("skills") if method == LIST else [result.get("skill")]
        if method == DIRECTORY or not isinstance(found, list):
            continue
        for skill in found:
            front = object_in(skill, "frontmatter")
            words = (object_in(skill).get("uri"), front.get("name"), front.get("description"))
            fine = all(isinstance(word, str) for word in words)
            yield Seen(ENTRY, fine, n, "uri, name and description", brief(skill, 120))
            yield from _judge_files(n, object_in(skill), found)
            if fine:
                yield from _judge_words(n, skill["uri"], front)


def _judge_words(n: int, uri: str, front: dict[str, Any]) -> Iterator[Seen]:
    """Judge the URI and the frontmatter of an entry."""
    name, root = front["name"], _root(uri)
    segment = unquote(root.rpartition("/")[2])
    yield Seen(MANIFESTS, bool(segment), n, "a uri that ends in NAME/SKILL.md", brief(uri))
    if segment:
        yield Seen(NAMED, segment == name, n, f"{brief(name)} before /SKILL.md", brief(uri))
    parts = name.split("-")
    proper = all(part and part.isalnum() and part == part.lower() for part in parts)
    expected = "1 to 64 lowercase letters, digits and single hyphens"
    yield Seen(NAME, proper and len(name) <= 64, n, expected, brief(name, 80))
    for field, most in LENGTHS.items():
        value = front.get(field)
        if isinstance(value, str):
            expected, actual = f"{field} of 1 to {most} characters", f"{len(value)} characters"
            yield Seen(FORMAT, 0 < len(value) <= most, n, expected, actual)
    scheme, _, rest = uri.partition("://")
    if scheme == "skill":
        fine = REG_NAME.fullmatch(rest.partition("/")[0]) is not None
        yield Seen(AUTHORITY, fine, n, "a reg-name (RFC 3986)", brief(uri))


def _judge_files(n: int, skill: dict[str, Any], listed: list[Any]) -> Iterator[Seen]:
    """Judge the resources of an entry; ``listed`` are the entries beside it."""
    files = skill.get("resources")
    fine = isinstance(files, list) or files == "dynamic"
    yield Seen(ARRAY, fine, n, 'an array or "dynamic"', brief(files))
    if not isinstance(files, list):
        return
    for file in map(object_in, files):
        uri, digest, size = (file.get(member) for member in ("uri", "digest", "size"))
        proper = isinstance(digest, str) and DIGEST.fullmatch(digest) is not None
        fine = isinstance(uri, str) and proper and _is_count(size)
        yield Seen(FILE, fine, n, "uri, digest and size", brief(file, 120))
    own, uris = skill.get("uri"), [u for u in (object_in(f).get("uri") for f in files) if u]
    if not isinstance(own, str) or not all(isinstance(uri, str) for uri in uris):
        return
    if root := _root(own):
        nested = [u for u in map(_uri, listed) if u.startswith(f"{root}/") and u != own]
        missing = [uri for uri in (own, *nested) if uri not in uris]
        twice = [uri for uri, times in Counter(uris).items() if times > 1]
        actual = "; ".join([*(f"no {u}" for u in missing), *(f"{u} twice" for u in twice)])
        yield Seen(COMPLETE, not missing + twice, n, "each file once", actual)
        outside = [u for u in uris if not u.startswith(f"{root}/") or ".." in unquote(u).split("/")]
        yield Seen(INSIDE, not outside, n, f"URIs below {root}/", ", ".join(outside[:3]))
    sizes: list[Any] = [s for s in (object_in(f).get("size") for f in files) if _is_count(s)]
    fine = len(files) <= MOST_FILES and sum(sizes) <= MOST_BYTES
    actual = f"{len(files)} files of {sum(sizes)} bytes"
    yield Seen(LIMITS, fine, n, "no more than 512 files and 16 MiB", actual)


def _uri(skill: Any) -> str:
    """Return the uri of an entry; empty if it has none."""
    uri = object_in(skill).get("uri")
    return uri if isinstance(uri, str) else ""


def _root(uri: str) -> str:
    """Return the URI of the directory of a SKILL.md; empty if it is none."""
    root = uri.removesuffix(MANIFEST)
    return "" if root == uri or root.endswith(("/", ":")) else root


# --- lists and entries


def _skills(talk: Conversation) -> list[dict[str, Any]]:
    """Return the listed skills that have a uri, each once."""
    found = listings.items(read_pages(talk.wire, LIST), "skills")
    return [*{skill["uri"]: skill for skill in found if _uri(skill)}.values()]


def _get(talk: Conversation, uri: str) -> Reply:
    return talk.wire.request(GET, {"uri": uri})


@scenario(SETTING, RESOURCES, LISTED, ATOMIC, UNIQUE, GOTTEN, UNKNOWN)
def lists_and_returns_its_skills(talk: Conversation) -> None:
    """The skills are listed, each can be got, and an unknown one is refused."""
    settings, at = object_in(talk.spoken.extensions, EXTENSION), talk.server.opening
    if "directoryRead" in settings:
        value = settings["directoryRead"]
        passed = isinstance(value, bool)
        talk.judge(SETTING, passed, expected="a boolean", actual=brief(value), at=at)
    talk.judge.unseen(SETTING, "the server does not have the setting")
    passed = "resources" in talk.spoken.capabilities
    talk.judge(RESOURCES, passed, expected="the capability resources", actual="none", at=at)
    reply = talk.wire.request(LIST)
    if reply.is_error:
        reply = talk.wire.request(LIST)
    talk.judge.expect_result(reply, LISTED, "a list of skills, perhaps an empty one")
    _judge_pages(talk)
    _judge_get(talk)


def _judge_pages(talk: Conversation) -> None:
    pages = list(read_pages(talk.wire, LIST))
    last = pages[-1]
    on = [{*map(_uri, p)} for r in pages if isinstance(p := (r.result or {}).get("skills"), list)]
    twice = [
        uri for uri, times in Counter(u for page in on for u in page if u).items() if times > 1
    ]
    ends = last.result is not None and not isinstance(last.result.get("nextCursor"), str)
    expected, actual = "each skill on one page, up to the last page", ", ".join(twice[:3])
    if len(pages) > 1:
        talk.judge(ATOMIC, ends and not twice, expected=expected, actual=actual or last, at=last)
    talk.judge.unseen(ATOMIC, "skills/list has one page")
    names = Counter(_name(s) for s in _skills(talk))
    same = [name for name, times in names.items() if times > 1]
    if len(names) > 1 or same:
        talk.judge(UNIQUE, not same, expected="other names", actual=", ".join(same[:3]), at=last)
    talk.judge.unseen(UNIQUE, "no two skills are listed")


def _name(skill: dict[str, Any]) -> str:
    return brief(object_in(skill, "frontmatter").get("name"))


def _judge_get(talk: Conversation) -> None:
    skills = _skills(talk)
    for skill in skills[:GOT]:
        reply = _get(talk, skill["uri"])
        kept = reply.result is not None or skill["uri"] in map(_uri, _skills(talk))
        if kept:
            talk.judge.expect_result(reply, GOTTEN, f"the entry of {brief(skill['uri'])}")
    talk.judge.unseen(GOTTEN, "no skill is listed")
    nobody = f"skill://touchstone-{secrets.token_hex(8)}"
    roots = [root for root in map(_root, map(_uri, skills)) if root]
    for uri in (nobody + MANIFEST, roots[0] if roots else nobody):
        reply = _get(talk, uri)
        passed = reply.refused(INVALID)
        talk.judge.expect(reply, UNKNOWN, passed, f"error -32602 for {brief(uri)}")


@scenario(DESCRIBED, PREFIX)
def describes_the_manifests_of_its_skills(talk: Conversation) -> None:
    """Listed resources of skills are described by the frontmatter of the skill."""
    fronts = {skill["uri"]: object_in(skill, "frontmatter") for skill in _skills(talk)}
    for reply in read_pages(talk.wire, "resources/list"):
        for item in listings.items([reply], "resources"):
            front = fronts.get(_uri(item))
            if front is None:
                continue
            wanted = {"mimeType": "text/markdown"} | {
                m: front[m] for m in ("name", "description") if isinstance(front.get(m), str)
            }
            wrong = [f"{m} {brief(item.get(m))}" for m, v in wanted.items() if item.get(m) != v]
            expected, actual = "mimeType, name and description of the skill", ", ".join(wrong)
            talk.judge(DESCRIBED, not wrong, expected=expected, actual=actual, at=reply)
            bare = [key for key in object_in(item, "_meta") if key in front]
            expected = "keys with the prefix io.modelcontextprotocol.skills/"
            if "_meta" in item:
                talk.judge(PREFIX, not bare, expected=expected, actual=", ".join(bare), at=reply)
    talk.judge.unseen(DESCRIBED, "no resource of a skill is listed")
    talk.judge.unseen(PREFIX, "no listed resource of a skill has _meta")


# --- files


def _files(skill: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the files of an entry that have a URI; none of a dynamic one."""
    return [file for file in map(object_in, list_in(skill, "resources")) if _uri(file)]


def _entry(talk: Conversation, skill: dict[str, Any], uri: str) -> dict[str, Any]:
    """Return what skills/get has now of a file; empty if the file has gone."""
    now = object_in(_get(talk, skill["uri"]).result, "skill")
    if not _files(now):
        return {"uri": uri} if now and uri == skill["uri"] else {}
    return next((file for file in _files(now) if file["uri"] == uri), {})


@scenario(READ, SIZE, HASH, PRESENT, SAME)
def serves_the_files_of_its_skills(talk: Conversation) -> None:
    """Each file of a skill can be read, and is what its entry says."""
    left = FILES
    for skill in _skills(talk)[:GOT]:
        for file in [{"uri": skill["uri"]}] if not _files(skill) else _files(skill)[:left]:
            left -= 1
            uri = file["uri"]
            before = _entry(talk, skill, uri)
            reply = talk.wire.request("resources/read", {"uri": uri})
            first = object_in(next(iter(list_in(reply.result, "contents")), None))
            data = _bytes(first)
            if data is None:
                if _entry(talk, skill, uri):
                    expected = f"the content of {brief(uri)}"
                    talk.judge.expect(reply, READ, False, expected)
                continue
            talk.judge.expect(reply, READ, True, "the content")
            if before == _entry(talk, skill, uri):
                _judge_bytes(talk, before, reply, first, data)
            if uri == skill["uri"]:
                _judge_frontmatter(talk, skill, reply, data)
    talk.judge.unseen((READ, SIZE, HASH, PRESENT, SAME), "no file of a skill could be read")


def _bytes(contents: dict[str, Any]) -> bytes | None:
    """Return the content of a file; None if there is none."""
    if isinstance(text := contents.get("text"), str):
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(contents.get("blob", 0))
    except (TypeError, binascii.Error, ValueError):
        return None


def _judge_bytes(
    talk: Conversation, file: dict[str, Any], reply: Reply, contents: dict[str, Any], data: bytes
) -> None:
    """Judge size and digest of a file; ``file`` is its entry."""
    size, digest = file.get("size"), file.get("digest")
    if not integral(size) or not isinstance(digest, str) or not DIGEST.fullmatch(digest):
        return
    own = _sha256(data)
    if "text" in contents and digest in map(_sha256, _as_stored(data)):
        return
    actual = f"{len(data)} bytes"
    if talk.judge(SIZE, len(data) == size, expected=f"{size} bytes", actual=actual, at=reply):
        expected = f"{digest} of {brief(file['uri'])}"
        talk.judge(HASH, own == digest, expected=expected, actual=own, at=reply)


def _sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _as_stored(text: bytes) -> list[bytes]:
    """Return the files that a server may have read as this text."""
    crlf = text.replace(b"\n", b"\r\n")
    return [b"\xef\xbb\xbf" + text, crlf, b"\xef\xbb\xbf" + crlf]


def _judge_frontmatter(
    talk: Conversation, skill: dict[str, Any], reply: Reply, data: bytes
) -> None:
    fields, certain = _frontmatter(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    lacking = [name for name in REQUIRED if name not in fields]
    expected, actual = "YAML frontmatter with name and description", ", ".join(lacking)
    if certain or not fields:
        passed, actual = not lacking, f"no {actual}"
        talk.judge(PRESENT, passed, expected=expected, actual=actual, at=reply)
    front = skill.get("frontmatter")
    now = object_in(_get(talk, skill["uri"]).result, "skill").get("frontmatter")
    if isinstance(front, dict) and fields and now == front and {*REQUIRED} <= front.keys():
        wrong = [
            name
            for name in sorted({*front, *fields} if certain else {*front} & {*fields})
            if name not in front
            or name not in fields
            or front[name] != (fields[name] or front[name])
        ]
        expected = "the frontmatter of the file"
        talk.judge(SAME, not wrong, expected=expected, actual=", ".join(wrong), at=reply)


def _frontmatter(text: str) -> tuple[dict[str, str], bool]:
    """Return the fields of a SKILL.md, and whether these are all.

    The value of a field is empty if only a reader of YAML can say what it is.
    """
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != "---" or "---" not in map(str.rstrip, lines[1:]):
        return {}, True
    fields: dict[str, str] = {}
    certain, last = True, ""
    for line in lines[1 : 1 + [*map(str.rstrip, lines[1:])].index("---")]:
        field = FIELD.fullmatch(line.rstrip())
        if field:
            last, value = field[1], (field[2] or "").strip()
            plain = TEXT.fullmatch(value) is not None and value.lower() not in NOT_TEXT
            fields[last] = value.strip("\"'") if plain else ""
        elif line.strip() and not line.startswith("#"):
            certain = certain and bool(last) and line.startswith((" ", "\t", "-"))
            fields[last] = ""
    return fields, certain


# --- directories


@scenario(ANSWERED, CHILDREN, REFUSED)
def reads_the_directories_of_its_skills(talk: Conversation) -> None:
    """Directories of skills list their children; files and unknown directories are refused."""
    skills = _skills(talk)
    if object_in(talk.spoken.extensions, EXTENSION).get("directoryRead") is not True:
        skills = []
    left = FOLDERS
    for skill in (s for s in skills if _files(s) and _root(s["uri"])):
        root = _root(skill["uri"])
        below = [file["uri"] for file in _files(skill) if file["uri"].startswith(f"{root}/")]
        folders = {uri[: match.start()] for uri in below for match in re.finditer("/", uri)}
        for folder in sorted(f for f in folders if f == root or f.startswith(f"{root}/"))[:left]:
            left -= 1
            _judge_directory(talk, skill, folder, below)
    if skills:
        nobody = f"skill://touchstone-{secrets.token_hex(8)}"
        files = [skill["uri"] for skill in skills if _root(skill["uri"])]
        for uri in (*files[:1], nobody):
            reply = talk.wire.request(DIRECTORY, {"uri": uri})
            passed = reply.refused(INVALID)
            talk.judge.expect(reply, REFUSED, passed, f"error -32602 for {brief(uri)}")
    talk.judge.unseen(
        (ANSWERED, CHILDREN, REFUSED),
        "the server does not declare directoryRead, or lists no skill with files",
    )


def _judge_directory(
    talk: Conversation, skill: dict[str, Any], folder: str, below: list[str]
) -> None:
    replies = list(read_pages(talk.wire, DIRECTORY, {"uri": folder}))
    start, last = f"{folder}/", replies[-1]
    now = [file["uri"] for file in _files(object_in(_get(talk, skill["uri"]).result, "skill"))]
    if last.result is not None or any(uri.startswith(start) for uri in now):
        talk.judge.expect_result(last, ANSWERED, f"the children of {brief(folder)}")
    items = [*listings.items(replies, "resources")]
    if last.result is None or sorted(now) != sorted({*now, *below}):
        return
    kinds = {_uri(item).removeprefix(start): item.get("mimeType") for item in items}
    wanted = {uri.removeprefix(start).partition("/")[0] for uri in below if uri.startswith(start)}
    deep = [brief(_uri(i)) for i in items if not _is_child(_uri(i), start)]
    flat = [n for n in wanted if f"{start}{n}" not in below and kinds.get(n) != FOLDER]
    wrong = [*sorted(wanted - {*kinds}), *deep, *(f"{name} is no {FOLDER}" for name in flat)]
    expected, actual = f"the direct children of {brief(folder)}", ", ".join(wrong[:3])
    talk.judge(CHILDREN, not wrong, expected=expected, actual=actual, at=last)


def _is_child(uri: str, start: str) -> bool:
    name = uri.removeprefix(start)
    return uri.startswith(start) and bool(name) and "/" not in name
