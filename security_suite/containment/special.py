"""Pipes, and the folders in which the kernel shows processes."""

from mcp_touchstone.suite import Operation, Siege, attack, blocking


@attack("special-pipes", fixtures=("base", "special"))
def reads_on_beside_blocked_pipes(siege: Siege) -> None:
    """A plain file can be read while eight pipes are being read."""
    blocking.starve(siege, "special-pipes", "fifo", 8)


@attack("special-procfs", fixtures=("base", "links"))
def shows_nothing_of_its_process(siege: Siege) -> None:
    """Neither the environment nor anything outside comes back by way of /proc."""
    rows = [
        row for row in siege.payloads("file.proc-dev") if row.text.startswith("/proc/") and row.live
    ]
    siege.judge_shots("special-procfs", siege.shots(rows, {Operation.READ}))
