"""`check --attest`, `--sign` and `verify`: a statement holds, and not after a byte was changed."""

import base64
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.report import attest
from mcp_touchstone.results.run import Execution
from mcp_touchstone.results.verdict import Outcome
from tests.commands import touchstone
from tests.conftest import HERE
from tests.runs import run_of

REVISION: Final = "2025-11-25"
SERVER: Final = (sys.executable, "-S", "toy_server.py")


def key(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a private and a public key."""
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    made = Ed25519PrivateKey.generate()
    forms = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private.write_bytes(made.private_bytes(serialization.Encoding.PEM, *forms))
    shown = serialization.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(made.public_key().public_bytes(serialization.Encoding.PEM, shown))
    return private, public


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a server, a signed statement on it, its report and its keys."""
    folder = tmp_path_factory.mktemp("attest")
    for name in ("toy_server.py",):
        (folder / name).write_text((HERE / name).read_text("utf-8"), "utf-8")
    private, _ = key(folder, "own")
    key(folder, "other")
    words = ["--select", "ping-empty-response", "--revision", REVISION, "--json", "run.json"]
    words += ["--attest", "run.att", "--sign", str(private), "-q"]
    done = touchstone("check", *words, "--", *SERVER, "echo", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def verify(folder: Path, *words: str) -> tuple[int, str]:
    """Return the exit status of `verify`, and what it printed."""
    done = touchstone("verify", *words, cwd=folder)
    return done.returncode, done.stdout + done.stderr


GOOD: Final = ("run.att", "--key", "own.pub", "--report", "run.json", "--", *SERVER, "echo")


def test_a_signed_statement_is_verified_offline(place: Path) -> None:
    status, said = verify(place, *GOOD)

    assert (status, "signed by the key" in said) == (0, True), said
    assert "result       PASSED" in said
    assert "conclusion   passed" in said
    assert "clause sets  2025-11-25/1" in said
    assert "does not prove" in said


def payload(place: Path) -> Any:
    """Return the statement in the envelope."""
    envelope = json.loads((place / "run.att").read_text("utf-8"))
    return json.loads(base64.b64decode(envelope["payload"]))


def test_the_statement_has_the_forms_of_its_specification(place: Path) -> None:
    made = payload(place)

    assert made["_type"] == "https://in-toto.io/Statement/v1"
    assert made["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert made["predicate"]["passedTests"] == [f"ping-empty-response@{REVISION}"]
    assert {one["name"] for one in made["subject"]} == {"toy_server.py", "offer.json"}
    for one in made["subject"]:
        assert len(one["digest"]["sha256"]) == 64


def test_no_byte_of_it_can_be_changed(place: Path, tmp_path: Path) -> None:
    envelope = json.loads((place / "run.att").read_text("utf-8"))
    data = base64.b64decode(envelope["payload"])
    for at in range(0, len(data), max(1, len(data) // 3)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        path = tmp_path / f"{at}.att"
        text = base64.b64encode(changed).decode()
        path.write_text(json.dumps({**envelope, "payload": text}), "utf-8")
        status, said = verify(place, str(path), "--key", "own.pub")
        assert (status, "is not of" in said) == (2, True), said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run.att", "--key", "other.pub"), "the signature is not of other.pub"),
        (("run.att",), "name the public key with --key"),
        (("run.att", "--key", "own.pem"), "it is no public key"),
        (("run.json",), "it is no statement on a test result"),
        (("none.att",), "none.att"),
    ],
)
def test_what_cannot_be_verified_is_one_line(
    place: Path, words: tuple[str, ...], said: str
) -> None:
    status, printed = verify(place, *words)

    assert (status, said in printed) == (2, True), printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("text", ["[]", "{", '{"payloadType": 1}', "null"])
def test_a_broken_envelope_is_one_line(place: Path, tmp_path: Path, text: str) -> None:
    broken = '{"payloadType": "application/vnd.in-toto+json", "payload": "x", "signatures": 5}'
    for content in (text, broken):
        (tmp_path / "b.att").write_text(content, "utf-8")
        status, printed = verify(place, str(tmp_path / "b.att"), "--key", "own.pub")
        assert (status, len(printed.splitlines())) == (2, 1), printed


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("subject", [{"name": ["a"]}]),
        ("subject", [5]),
        ("predicate", {"result": "PASSED", "configuration": [{"name": "r", "annotations": [1]}]}),
        ("predicate", {"configuration": [{"name": None}]}),
        ("predicate", []),
    ],
)
def test_a_statement_of_another_shape_is_one_line(
    place: Path, tmp_path: Path, member: str, value: object
) -> None:
    (tmp_path / "s.att").write_text(json.dumps({**payload(place), member: value}), "utf-8")
    status, printed = verify(place, str(tmp_path / "s.att"), "--", *SERVER)

    assert (status, len(printed.splitlines())) == (2, 1), printed


def test_a_changed_file_and_another_report_are_named(place: Path, tmp_path: Path) -> None:
    (tmp_path / "toy_server.py").write_text("pass\n", "utf-8")
    (tmp_path / "run.json").write_text("{}\n", "utf-8")
    words = [str(place / "run.att"), "--key", str(place / "own.pub"), "--report", "run.json"]
    status, said = verify(tmp_path, *words, "--", *SERVER)

    assert status == 1
    assert "toy_server.py: another digest" in said
    assert "run.json: another report" in said


def test_a_wrong_private_key_is_refused_before_the_run(place: Path, tmp_path: Path) -> None:
    words = ["--attest", str(tmp_path / "x"), "--sign", "own.pub", "--select", "ping", "-q"]
    done = touchstone("check", *words, "--", *SERVER, cwd=place)

    assert (done.returncode, "no private key" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "x").exists()


def test_a_run_that_came_to_nothing_has_no_statement() -> None:
    found = {("ping-empty-response", REVISION): Outcome.PASS}
    run = run_of(found, {"scenario": "s"}, execution=Execution(interrupted=True))

    with pytest.raises(UserError, match="interrupted"):
        attest.statement(run, {})
