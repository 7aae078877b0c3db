"""Words of others, shortened for a report."""

from mcp_touchstone.report.text import last_lines


def test_reason_is_shown_before_a_long_stack() -> None:
    frames = [f"main.init.func{n}()\n\t/src/main.go:{n} +0x1" for n in range(8)]
    words = "\n".join(["panic: no engine was found", "", "goroutine 1 [running]:", *frames])

    assert last_lines(words)[:2] == ["panic: no engine was found", "goroutine 1 [running]:"]


def test_indented_lines_are_shown_if_there_is_room_or_nothing_else() -> None:
    assert last_lines("  a\n\n b\n") == ["  a", " b"]
    assert last_lines("\n".join(f" {n}" for n in range(20)))[-1] == " 19"
