"""Special files whose readers wait: others have to be served meanwhile."""

from mcp_touchstone.attack.field import CONTROL
from mcp_touchstone.attack.reproduction import starved
from mcp_touchstone.attack.siege import PATIENCE, Siege
from mcp_touchstone.talk import Broken


def starve(siege: Siege, threat: str, name: str, count: int) -> None:
    """Read special files of the root at once and without waiting, then a plain one.

    Args:
        siege: what attacks.
        threat: what is judged.
        name: how their names begin; numbers follow, from one.
        count: how many there are.

    Raises:
        Broken: no plain file could be read before.
    """
    readers = siege.begin()
    if not readers:
        raise Broken("no plain file can be read")
    root, limit = str(siege.field.root), max(PATIENCE, siege.pace.reply)
    names = [f"{name}{n}" for n in range(1, count + 1)]
    expected, passed = "a plain file can be read all the same", f"{len(readers)} tools did"
    for binding in readers:
        for call in (binding.call(binding.spelled(one, root), root) for one in names):
            siege.wire.say(siege.wire.build(*call), required=False)
        method, params = binding.call(binding.spelled(CONTROL, root), root)
        reply = siege.wire.request(method, params, required=False, seconds=limit)
        if not siege.gave(reply, siege.field.control):
            found = f"{binding.tool or method}: {reply} while {count} pipes are read"
            told = starved(siege.scene, binding, names)
            siege.conclude(threat, found, expected=expected, passed="", at=reply, script=told)
            return
    siege.conclude(threat, "", expected=expected, passed=passed)
