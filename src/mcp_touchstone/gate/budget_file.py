"""Budgets as a ratchet: a file of token counts that a run must not exceed."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.results.budgets import NAMES, TOKENIZER, Budgets
from mcp_touchstone.runtime.input_file import InputFile

ALLOWANCE: Final = "allowance"
USUAL: Final = 0.05
"""The share by which a count may grow if the file does not say another one."""

HEAD: Final = f"""\
# Estimated tokens ({TOKENIZER}) that the lists and the largest result of the server may have.
# A run fails if one grows by more than the allowance, a share. --update-budget writes the file.
"""


def load(path: Path) -> dict[str, float]:
    """Read the budgets by name, and the allowance.

    Raises:
        UserError: the file cannot be read, or has a wrong key or value.
    """
    found = InputFile(path, missing="--update-budget writes the file").toml()
    keys = (*NAMES, ALLOWANCE)
    for key, value in found.items():
        if key not in keys:
            hint = nearest(key, keys) or f"; the keys are {', '.join(keys)}"
            raise UserError(f"{path}: unknown key {key!r}{hint}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UserError(f"{path}: {key} must be a number that is not negative")
    return found


def hold(costs: Budgets, path: Path) -> Budgets:
    """Compare the costs of a run with a file.

    Raises:
        UserError: as for ``load``.
    """
    limits = load(path)
    share = limits.pop(ALLOWANCE, USUAL)
    over = (
        f"{name}: {costs.tokens[name]} tokens, {limit:g} and {share:.0%} more are allowed"
        for name, limit in limits.items()
        if costs.tokens.get(name, 0) > limit * (1 + share)
    )
    return replace(costs, name=path.name, over=tuple(over))


def update(costs: Budgets, path: Path) -> None:
    """Write the costs of a run as budgets; keep the allowance of the file.

    Raises:
        UserError: the file exists and cannot be read, or cannot be written.
    """
    share = load(path).get(ALLOWANCE, USUAL) if path.exists() else USUAL
    lines = [f"{name} = {costs.tokens[name]}" for name in NAMES if name in costs.tokens]
    try:
        path.write_text("\n".join([f"{HEAD}{ALLOWANCE} = {share}", *lines, ""]), "utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
