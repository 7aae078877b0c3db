"""The HTML report in a browser: console messages, filters, squares, keyboard, display."""

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
from tests import canned
from tests.report.test_reports import EVIL, MIXED, NEW, run

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser here: needs chromium or google-chrome on PATH"
)


class Browser:
    """A browser that is controlled by the DevTools protocol over a pair of pipes."""

    def __init__(self, profile: Path) -> None:
        theirs, self._out = os.pipe()
        self._in, back = os.pipe()
        words = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu"]
        words += ["--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={profile}"]
        program = f'exec 3<&{theirs} 4>&{back}; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", program, "-", *words, "--remote-debugging-pipe", "about:blank"],
            pass_fds=(theirs, back),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
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
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **text,
            )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def _note(self, event: dict[str, Any]) -> str:
        if event.get("method") in {
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
        }:
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


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture
def browser(chromium: Browser, tmp_path: Path) -> Iterator[Browser]:
    path = tmp_path / "report.html"
    path.write_text(html.render(run(MIXED, actual=EVIL)), "utf-8")
    chromium.ask("Emulation.clearDeviceMetricsOverride")
    chromium.ask("Emulation.setEmulatedMedia", media="", features=[])
    chromium.open(path)
    yield chromium
    complaints, chromium.complaints = chromium.complaints, []
    assert complaints == []


SHOWN = "document.querySelector('output').textContent"
FOCUS = "(document.activeElement.dataset.chapter || document.activeElement.tagName)"


def choose(name: str, value: str) -> str:
    return (
        f"(() => {{ const it = document.querySelector('select[name={name}]'); it.value = '{value}';"
        " it.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def test_filters_show_matching_findings(browser: Browser) -> None:
    assert browser.value(SHOWN) == "4 of 4 shown"
    browser.value(choose("outcome", "warn"))
    assert browser.value(SHOWN) == "1 of 4 shown"
    browser.value(choose("revision", NEW))
    assert browser.value(SHOWN) == "0 of 4 shown"
    assert browser.value("document.querySelector('.nothing').hidden") is False
    browser.value("document.querySelector('[type=reset]').click()")
    browser.value("new Promise((done) => setTimeout(done, 50))")
    assert browser.value(SHOWN) == "4 of 4 shown"


def test_square_shows_its_findings_by_keyboard(browser: Browser) -> None:
    browser.value("document.querySelector('button[data-chapter]').focus()")
    assert browser.value(FOCUS) == "basic/lifecycle"
    for _ in range(2):
        browser.press("Tab", 9)
    assert browser.value(FOCUS) == "basic/ping"
    browser.press("Enter", 13)

    assert browser.value(SHOWN) == "1 of 4 shown"
    assert browser.value(FOCUS) == "SUMMARY"


def test_server_output_is_escaped(browser: Browser) -> None:
    assert browser.value("document.querySelectorAll('img, script[src], iframe').length") == 0
    assert browser.value("document.querySelectorAll('script').length") == 1
    assert "<script>alert(1)</script>" in browser.value(
        "document.querySelector('.guilty code').textContent"
    )


class Display:
    """A report with every kind of content, under chosen display settings."""

    def __init__(self, browser: Browser, path: Path) -> None:
        self.browser = browser
        path.write_text(html.render(canned.run(since=canned.since())), "utf-8")
        browser.open(path)

    def show(self, *, scheme: str = "light", media: str = "", width: int = 1100) -> None:
        self.browser.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.browser.ask("Emulation.setEmulatedMedia", media=media, features=[feature])

    def style(self, selector: str, name: str) -> str:
        found: str = self.browser.value(
            f"getComputedStyle(document.querySelector('{selector}')).{name}"
        )
        return found


@pytest.fixture
def display(browser: Browser, tmp_path: Path) -> Display:
    return Display(browser, tmp_path / "canned.html")


CONTRASTS = """
[...document.querySelectorAll('.counts li, .legend span, summary *, dt, dd, .wire .n, h1, h2, a')]
.filter((it) => it.offsetParent && it.textContent.trim()).map((it) => {
  const channels = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  let back = it, paint = [0, 0, 0, 0];
  while (back && (paint.length > 3 && paint[3] === 0)) {
    paint = channels(getComputedStyle(back).backgroundColor);
    back = back.parentElement;
  }
  const [a, b] = [light(channels(getComputedStyle(it).color)), light(paint)].sort((x, y) => y - x);
  return [it.tagName + '.' + it.className, (a + 0.05) / (b + 0.05)];
}).sort((x, y) => x[1] - y[1])[0]
"""
"""The element with the lowest contrast, and its contrast ratio by WCAG."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_sufficient_in_light_and_dark_mode(display: Display, scheme: str) -> None:
    display.show(scheme=scheme)
    paper = display.style("body", "backgroundColor")

    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 20, 25)"}[scheme]
    name, contrast = display.browser.value(CONTRASTS)
    assert contrast >= 4.5, name


def test_print_view_is_white_and_unfolds_all_findings(display: Display) -> None:
    display.show(scheme="dark", media="print")
    unfolded = "document.querySelectorAll('.finding[open]').length"
    all_of_them = display.browser.value("document.querySelectorAll('.finding').length")

    assert display.style("body", "backgroundColor") == "rgb(255, 255, 255)"
    assert display.style(".filters", "display") == "none"
    assert [display.style(one, "fontSize") for one in ("dt", "dd")] == ["9.9px", "11px"]
    before = display.browser.value(unfolded)
    display.browser.value("dispatchEvent(new Event('beforeprint'))")
    assert before < display.browser.value(unfolded) == all_of_them
    display.browser.value("dispatchEvent(new Event('afterprint'))")
    assert display.browser.value(unfolded) == before
    assert len(display.browser.ask("Page.printToPDF")["data"]) > 10_000


def test_narrow_screen_needs_no_horizontal_page_scrolling(display: Display) -> None:
    display.show(width=390)

    assert display.browser.value("document.documentElement.scrollWidth") <= 390
    wide = "[...document.querySelectorAll('.since td')].every((it) => it.offsetHeight < 60)"
    assert display.browser.value(wide)


def test_tab_key_reaches_filters_and_findings_in_order(display: Display) -> None:
    display.show()
    seen = []
    for _ in range(40):
        display.browser.press("Tab", 9)
        focus = "document.activeElement"
        seen.append(
            display.browser.value(
                f"({focus}.name || {focus}.type || {focus}.tagName).toLowerCase()"
            )
        )
        visible = display.browser.value(f"getComputedStyle({focus}).outlineStyle")
        assert visible != "none" or seen[-1] == "body", seen
    order = [
        name for number, name in enumerate(seen) if name != "body" and name not in seen[:number]
    ]

    assert order[:6] == ["outcome", "level", "revision", "chapter", "reset", "summary"]
    assert {*order[6:]} == {"a", "button"}


def test_finding_is_folded_by_keyboard(display: Display) -> None:
    display.show()
    first = "document.querySelector('.finding')"
    display.browser.value(f"{first}.querySelector('summary').focus()")

    assert display.browser.value(f"{first}.open") is True
    display.browser.press("Enter", 13)
    assert display.browser.value(f"{first}.open") is False
