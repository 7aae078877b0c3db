"""Servers that refuse many wrong elements at length; and good ones."""

import os
from typing import Any

from tests.fakes.server import STRINGS, Guard, Refused, takes

KNOWN = {"name", "arguments", "_meta", "protocolVersion", "capabilities", "clientInfo", "cursor"}


class CountsItems(Guard, families=("amplification",), tools=("read_file", "count")):
    """Refuses wrong items by the first of them."""

    def schema(self, tool: str) -> dict[str, Any]:
        return takes(items=STRINGS) if tool == "count" else super().schema(tool)

    def listed(self, tool: str) -> dict[str, Any]:
        return {**super().listed(tool), "annotations": {"readOnlyHint": True}}

    def count(self, items: list[Any]) -> str:
        wrong = [number for number, item in enumerate(items) if not isinstance(item, str)]
        if wrong:
            raise Refused(self.fault(wrong, items))
        return str(len(items))

    def fault(self, wrong: list[int], items: list[Any]) -> str:
        """Say what is wrong."""
        return f"items[{wrong[0]}] is no text"


class RepeatsItems(CountsItems, trips=set()):
    """Repeats wrong items in its refusal, three times as long."""

    def fault(self, wrong: list[int], items: list[Any]) -> str:
        return f"{items} are no texts"


class NamesEveryItem(CountsItems, trips={"amplification-arguments"}):
    """Has a sentence for each wrong item in its refusal."""

    def fault(self, wrong: list[int], items: list[Any]) -> str:
        return "\n".join(f"items[{number}] is {items[number]!r} and no text" for number in wrong)


class EndsAtManyItems(CountsItems, trips={"amplification-arguments"}):
    """Ends if it gets many items."""

    def count(self, items: list[Any]) -> str:
        if len(items) > 100_000:
            os._exit(1)
        return super().count(items)


class EndsAtAList(CountsItems, trips=set()):
    """Ends if the URI of a resource is a list, a short one too."""

    def other(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if isinstance(params.get("uri"), list):
            os._exit(1)
        return None


class NamesEveryMember(CountsItems, trips={"amplification-requests"}):
    """Has a sentence for each unknown member of params."""

    def other(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        odd = [name for name in params if name not in KNOWN]
        if not odd:
            return None
        said = "\n".join(
            f"the member {name!r} of the params of {method} is unknown" for name in odd
        )
        return {"error": {"code": -32602, "message": said * 2}}


class NamesEveryLevel(NamesEveryMember, trips={"amplification-requests"}):
    """Has a sentence for each unknown member of logging/setLevel only."""

    def other(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        return super().other(method, params) if method == "logging/setLevel" else None
