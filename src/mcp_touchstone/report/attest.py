"""A statement on a run that travels: in-toto, test-result predicate; signed as a DSSE envelope.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
https://github.com/in-toto/attestation/blob/main/spec/predicates/test-result.md
https://github.com/secure-systems-lab/dsse/blob/master/envelope.md
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.loader import SUITES, home, renamed
from mcp_touchstone.catalog.sdk import PackageOrigin
from mcp_touchstone.discovery.origin import IMAGE, digests
from mcp_touchstone.report import machine
from mcp_touchstone.report.text import masked
from mcp_touchstone.results.advice import advice
from mcp_touchstone.results.clause_sets import kept
from mcp_touchstone.results.run import Conclusion, Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.input_file import InputFile
from mcp_touchstone.runtime.members import Members
from mcp_touchstone.version import __version__

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://in-toto.io/attestation/test-result/v0.1"
PAYLOAD: Final = "application/vnd.in-toto+json"
EXTRA: Final = "signatures require securesystemslib: pip install 'mcp-touchstone[sign]'"
OFFER: Final = "offer.json"

PROVES_NOT: Final = (
    "It does not prove that the server is good, that it was run where you run it, that packages "
    "it depends on are unchanged, or who has the key."
)

LARGEST: Final = 32 << 20
"""Bytes of a statement, and of a key."""

Json = dict[str, Any]


def statement(run: Run, environment: Mapping[str, str]) -> Json:
    """Return the statement on a run.

    Raises:
        UserError: not all was judged, or the package of the server has no digest.
    """
    if run.conclusion not in {Conclusion.PASSED, Conclusion.FAILED}:
        raise UserError(f"--attest: there is no statement on a run that came to: {run.conclusion}")
    by_outcome: dict[Outcome, dict[str, None]] = {}
    for verdict in run.verdicts:
        by_outcome.setdefault(verdict.outcome, {})[f"{verdict.clause.id}@{verdict.revision}"] = None
    warned = list(by_outcome.get(Outcome.WARN, ()))
    word = "FAILED" if run.conclusion is Conclusion.FAILED else "WARNED" if warned else "PASSED"
    return {
        "_type": STATEMENT,
        "subject": list(_subjects(run)),
        "predicateType": PREDICATE,
        "predicate": {
            "result": word,
            "configuration": list(_configuration(run, environment)),
            "passedTests": list(by_outcome.get(Outcome.PASS, ())),
            "warnedTests": warned,
            "failedTests": list(by_outcome.get(Outcome.FAIL, ())),
        },
    }


def _subjects(run: Run) -> Iterator[Json]:
    if run.subject.command:
        yield from subjects(run.subject.sdk.origin)
    yield {"name": OFFER, "digest": {"sha256": _sha(_canonical(run.offer))}}


def subjects(origin: PackageOrigin | None) -> Iterator[Json]:
    """Yield the registry's digest of a package, and that of each file.

    Raises:
        UserError: they cannot be had.
    """
    files = digests(origin)
    if origin is not None and origin.seal:
        kind, _, value = origin.seal.partition(":" if origin.kind == IMAGE else "-")
        if origin.kind != IMAGE:
            try:
                value = base64.b64decode(value.split()[0], validate=True).hex()
            except (binascii.Error, IndexError):
                raise UserError(f"{origin.name}: npm's integrity is no digest") from None
        name = origin.name if origin.kind == IMAGE else f"pkg:npm/{origin.name}@{origin.version}"
        yield {"name": name, "digest": {kind: value}}
    for name, digest in files.items():
        yield {"name": name, "digest": {"sha256": digest}}


def _configuration(run: Run, environment: Mapping[str, str]) -> Iterator[Json]:
    text = masked(json.dumps(machine.document(run), indent=2) + "\n", environment)
    yield {"name": "report.json", "digest": {"sha256": _sha(text.encode())}}
    yield {
        "name": "mcp-touchstone",
        "uri": f"pkg:pypi/mcp-touchstone@{__version__}",
        "digest": {"sha256": own_digest()},
    }
    answer = advice(run)
    facts = {
        "command": masked(run.subject.shown, environment),
        "options": masked(" ".join(run.subject.again), environment),
        "started": run.execution.started,
        "conclusion": str(run.conclusion),
        "install": str(answer.word) if answer else "",
        "clause sets": {one.revision: one.name for one in kept(run, renamed)},
    }
    yield {"name": "run", "annotations": facts}


@lru_cache
def own_digest() -> str:
    """Return the SHA-256 of the code and the rules of this program."""
    found = hashlib.sha256()
    folders = [Path(__file__).parents[1], *(home() / name for name in SUITES.values())]
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".py", ".toml", ".json"}:
                found.update(path.relative_to(folder).as_posix().encode())
                found.update(path.read_bytes())
    return found.hexdigest()


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- signatures


def write(made: Json, path: Path, key: Path | None) -> None:
    """Write a statement; in a signed envelope if there is a private key (PEM, PKCS #8).

    Raises:
        UserError: the key or the file cannot be used.
    """
    document = made if key is None else signed(_canonical(made), key)
    try:
        path.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None


def signed(payload: bytes, key: Path) -> Json:
    """Return the envelope of a payload.

    Raises:
        UserError: the extra is not installed, or the key cannot be used.
    """
    try:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  (an extra)
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  (as above)
        from securesystemslib.dsse import Envelope  # noqa: PLC0415  (as above)
        from securesystemslib.signer import (  # type: ignore[attr-defined]  # noqa: PLC0415  (as above)
            CryptoSigner,
        )
    except ImportError:
        raise UserError(EXTRA) from None
    data = InputFile(key, most=LARGEST).data()
    try:
        private = serialization.load_pem_private_key(data, None)
        envelope = Envelope(payload, PAYLOAD, {})
        envelope.sign(CryptoSigner(private))
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UserError(f"{key}: it is no private key (PEM, PKCS #8, no password)") from error
    return dict(envelope.to_dict())


def opened(path: Path, key: Path | None) -> tuple[Json, str]:
    """Return the statement of a file, and who signed it, in words.

    Args:
        key: a public key (PEM).

    Raises:
        UserError: it is no such file, or the signature is not of the key.
    """
    document = Members.of(InputFile(path, most=LARGEST).json(), str(path))
    if "payloadType" not in document.value:
        if key is not None:
            raise UserError(f"{path}: it has no signature, so --key proves nothing")
        return _checked(document, path), "not signed: anybody may have written it"
    if document.get("payloadType", str) != PAYLOAD:
        raise UserError(f"{path}: the envelope holds something else than an in-toto statement")
    if key is None:
        raise UserError(f"{path}: it is signed: name the public key with --key")
    payload, name = _verified(document.value, path, key)
    try:
        inside = json.loads(payload)
    except (ValueError, RecursionError):
        raise UserError(f"{path}: the envelope holds no JSON") from None
    return _checked(Members.of(inside, str(path)), path), f"signed by the key {name}"


def _verified(document: Mapping[str, Any], path: Path, key: Path) -> tuple[bytes, str]:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  (an extra)
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  (as above)
        from securesystemslib import exceptions  # noqa: PLC0415  (as above)
        from securesystemslib.dsse import Envelope  # noqa: PLC0415  (as above)
        from securesystemslib.signer import (  # type: ignore[attr-defined]  # noqa: PLC0415  (as above)
            SSlibKey,
        )
    except ImportError:
        raise UserError(EXTRA) from None
    data = InputFile(key, most=LARGEST).data()
    try:
        public = SSlibKey.from_crypto(serialization.load_pem_public_key(data))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UserError(f"{key}: it is no public key (PEM)") from None
    try:
        envelope = Envelope.from_dict(dict(document))
    except (LookupError, ValueError, TypeError, AttributeError, exceptions.Error):
        raise UserError(f"{path}: the envelope is broken") from None
    try:
        envelope.verify([public], 1)
    except exceptions.Error:
        raise UserError(f"{path}: the signature is not of {key} on these bytes") from None
    return bytes(envelope.payload), public.keyid[:16]


def _checked(document: Members, path: Path) -> Json:
    kinds = (document.word("_type"), document.word("predicateType"))
    if kinds != (STATEMENT, PREDICATE):
        raise UserError(f"{path}: it is no statement on a test result")
    predicate = document.object("predicate")
    predicate.word("result")
    for one in (*document.objects("subject"), *predicate.objects("configuration")):
        one.get("name", str)
        one.object("annotations")
    return dict(document.value)


def facts(made: Json) -> Iterator[tuple[str, str]]:
    """Yield what a statement says about its run: a name, and its value in words."""
    for one in made["predicate"].get("configuration") or ():
        for name, value in (one.get("annotations") or {}).items():
            words = ", ".join(map(str, value.values())) if isinstance(value, dict) else str(value)
            if words:
                yield name, words


def differing(made: Json, origin: PackageOrigin | None) -> list[str]:
    """Return the subjects of a package that differ from a statement, in words.

    Raises:
        UserError: the package has no digests.
    """
    told = {
        one.get("name"): one.get("digest") for one in made["subject"] if one.get("name") != OFFER
    }
    now = {one["name"]: one["digest"] for one in subjects(origin)}
    words = {(True, True): "another digest", (True, False): "only in the statement"}
    return [
        f"{name}: {words.get((name in told, name in now), 'not in the statement')}"
        for name in sorted({*told, *now})
        if told.get(name) != now.get(name)
    ]
