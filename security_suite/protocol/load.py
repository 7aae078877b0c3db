"""More than is read, more than is answered at once, long lines, many failures."""

from mcp_touchstone.suite import Load, Siege, Trickle, attack

FLOOD = 1000
STORM = 200


@attack(
    "load-idle",
    "load-oversize",
    "load-memory",
    "load-flood",
    "load-unread",
    "load-cancel",
    "load-stderr",
    "load-descriptors",
    fixtures=("base",),
    lasts=True,
)
def bears_too_much_at_once(siege: Siege) -> None:
    """A server answers on after floods, long lines, unread outputs and storms of cancellations."""
    Trickle(siege).idle("load-idle", "frame.timing")
    load = Load(siege)
    load.swell("load-oversize", "load-memory", load.lines("frame.oversize"))
    load.flood("load-flood", FLOOD)
    load.unread("load-unread")
    load.storm("load-cancel", STORM)
    load.spend("load-descriptors")
    load.deaf("load-stderr")
