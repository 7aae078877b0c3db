"""The script of the HTML report: what a reader does with the buttons."""

import json
import shutil
import subprocess

import pytest

from mcp_touchstone.report.html import SCRIPT

DOM = """
const asked = [], handlers = {};
const pre = {text: "curl 'http://127.0.0.1'", before(button) { this.button = button; }};
const nothing = () => {};
globalThis.addEventListener = nothing;
const selection = {removeAllRanges: nothing, addRange: (one) => asked.push(one.text)};
globalThis.getSelection = () => selection;
globalThis.document = {
  querySelector: () => null,
  querySelectorAll: (words) => (words === ".finding pre" ? [pre] : []),
  createRange: () => ({selectNodeContents(one) { this.text = one.text; }}),
  createElement: (name) => ({name, addEventListener: (on, what) => { handlers[on] = what; }}),
  execCommand: (command) => { asked.push(command); return ALLOWED; },
};
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize(("allowed", "said"), [("true", "copied"), ("false", "press Ctrl+C")])
def test_a_button_copies_the_script_beside_it(allowed: str, said: str) -> None:
    press = "handlers.click(); console.log(JSON.stringify([asked, pre.button.textContent]));"
    program = DOM.replace("ALLOWED", allowed) + SCRIPT.read_text("utf-8") + press

    done = subprocess.run(
        ["node", "-e", program], capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["curl 'http://127.0.0.1'", "copy"], said]
