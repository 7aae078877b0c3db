"""Build hook: real wheels carry the suites inside the package; editable ones read the checkout."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SUITES = ("conformance", "security_suite", "reference_server")


class ShipSuites(BuildHookInterface[Any]):
    """Places the root directories under ``mcp_touchstone/_suites`` of a standard wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add each suite file, unless the wheel is an editable one."""
        if version != "standard":
            return
        for suite in SUITES:
            for path in sorted(Path(self.root, suite).rglob("*")):
                if path.suffix in {".py", ".toml", ".json"} and "__pycache__" not in path.parts:
                    inside = path.relative_to(self.root).as_posix()
                    build_data["force_include"][str(path)] = f"mcp_touchstone/_suites/{inside}"
