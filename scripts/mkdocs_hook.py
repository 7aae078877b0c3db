"""Add pages to the site: generated ones, and those outside docs/.

This is a hook of MkDocs. It also rewrites links: a link to a page of the project leads to that
page on the site, and a link to any other file of the project becomes plain text.
"""

import os
import re
import runpy
import sys
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "policy.md",
    "reference_server/README.md": "reference-server.md",
    "src/mcp_touchstone/report/schema.json": "report.schema.json",
}
"""File of the project -> its path on the site."""

GENERATING: Final = ("pages.py", "witnesses.py", "attacked.py", "pairs.py")
"""Scripts whose ``pages`` returns generated pages."""

_SOURCES: Final = {page: source for source, page in PAGES.items()}
_LINK: Final = re.compile(r"\[([^\]\n]*)\]\(([^)\s:]+?)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages and the pages outside docs/."""
    outside = {page: (ROOT / source).read_text("utf-8") for source, page in PAGES.items()}
    sys.path.insert(0, str(ROOT))  # the scripts import each other
    for script in GENERATING:
        outside |= runpy.run_path(str(ROOT / "scripts" / script))["pages"]()
    for page, text in outside.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_more: Any) -> str:
    """Rewrite the links of one page, unless it was generated for the site."""
    name = page.file.src_uri
    source = _SOURCES.get(name, f"docs/{name}")
    if not (ROOT / source).is_file():
        return markdown

    def rewritten(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        file = Path(os.path.normpath(Path(source).parent / target)).as_posix()
        there = PAGES.get(file, "")
        if file.startswith("docs/") and not (ROOT / file).is_dir():
            there = file.removeprefix("docs/")
        if there:
            return f"[{text}]({os.path.relpath(there, Path(name).parent)}{anchor})"
        return text if (ROOT / file).exists() else match[0]

    return _LINK.sub(rewritten, markdown)
