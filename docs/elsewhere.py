"""What the site has beside the pages of this folder: those that stand elsewhere in the project.

A hook of MkDocs. A link to a page is bent to where the site has it; one to any other file of the
project, which the site does not have, becomes plain text.
"""

import os
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "policy.md",
    "reference_server/README.md": "reference-server.md",
    "src/mcp_touchstone/report/schema.json": "report.schema.json",
}
"""File of the project -> where the site has it."""

_SOURCES: Final = {page: source for source, page in PAGES.items()}
_LINK: Final = re.compile(r"\[([^\]\n]*)\]\(([^)\s:]+?)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that stand elsewhere."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_more: Any) -> str:
    """Bend the links of one page."""
    name = page.file.src_uri
    folder = Path(_SOURCES.get(name, f"docs/{name}")).parent

    def bent(match: re.Match[str]) -> str:
        words, target, anchor = match[1], match[2], match[3] or ""
        source = Path(os.path.normpath(folder / target)).as_posix()
        if source in PAGES:
            return f"[{words}]({PAGES[source]}{anchor})"
        if source.startswith("docs/") and not (ROOT / source).is_dir():
            return f"[{words}]({source.removeprefix('docs/')}{anchor})"
        return words if (ROOT / source).exists() else match[0]

    return _LINK.sub(bent, markdown)
