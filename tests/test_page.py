"""The HTML report in a browser: no complaint on its console, filters, squares, keyboard."""

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.report import html
from tests.test_reports import EVIL, MIXED, NEW, run

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


class Browser:
    """Speaks the DevTools protocol over a pair of pipes."""

    def __init__(self, profile: Path) -> None:
        theirs, self._out = os.pipe()
        self._in, back = os.pipe()
        words = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu"]
        words += ["--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={profile}"]
        program = f'exec 3<&{theirs} 4>&{back}; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", program, "-", *words, "--remote-debugging-pipe", "about:blank"],
            pass_fds=(theirs, back), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs)
        os.close(back)
        self._ids = itertools.count(1)
        self._rest = b""
        self._session = ""
        self.complaints: list[Any] = []
        pages = self.ask("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in pages if one["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        message: dict[str, Any] = {"id": next(self._ids), "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == message["id"]:
                found: dict[str, Any] = answer["result"]
                return found
            self._note(answer)

    def open(self, path: Path) -> None:
        self.ask("Page.navigate", url=path.as_uri())
        while self._note(self._read()) != "Page.loadEventFired":
            pass

    def value(self, expression: str) -> Any:
        answer = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.ask(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key,
                windowsVirtualKeyCode=code, **text,
            )  # fmt: skip

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def _note(self, event: dict[str, Any]) -> str:
        if event.get("method") in {
            "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded",
        }:  # fmt: skip
            self.complaints.append(event["params"])
        return str(event.get("method"))

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._in, 65536)
            assert piece, "the browser went away"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    path = tmp_path / "report.html"
    path.write_text(html.render(run(MIXED, actual=EVIL)), "utf-8")
    made = Browser(tmp_path / "profile")
    made.open(path)
    yield made
    complaints = made.complaints
    made.close()
    assert complaints == []


SHOWN = "document.querySelector('output').textContent"
FOCUS = "(document.activeElement.dataset.chapter || document.activeElement.tagName)"


def choose(name: str, value: str) -> str:
    return (
        f"(() => {{ const it = document.querySelector('select[name={name}]'); it.value = '{value}';"
        " it.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def test_filters_show_what_fits(browser: Browser) -> None:
    assert browser.value(SHOWN) == "4 of 4 shown"
    browser.value(choose("outcome", "warn"))
    assert browser.value(SHOWN) == "1 of 4 shown"
    browser.value(choose("revision", NEW))
    assert browser.value(SHOWN) == "0 of 4 shown"
    assert browser.value("document.querySelector('.nothing').hidden") is False
    browser.value("document.querySelector('[type=reset]').click()")
    browser.value("new Promise((done) => setTimeout(done, 50))")
    assert browser.value(SHOWN) == "4 of 4 shown"


def test_a_square_shows_its_findings_by_keyboard_alone(browser: Browser) -> None:
    browser.press("Tab", 9)
    assert browser.value(FOCUS) == "basic/lifecycle"
    for _ in range(2):
        browser.press("Tab", 9)
    assert browser.value(FOCUS) == "basic/ping"
    browser.press("Enter", 13)

    assert browser.value(SHOWN) == "1 of 4 shown"
    assert browser.value(FOCUS) == "SUMMARY"


def test_what_a_server_says_stays_text(browser: Browser) -> None:
    assert browser.value("document.querySelectorAll('img, script[src], iframe').length") == 0
    assert browser.value("document.querySelectorAll('script').length") == 1
    assert "<script>alert(1)</script>" in browser.value(
        "document.querySelector('.guilty code').textContent"
    )
