"""A server in an image: says in its version what it may do there. Standard library only."""

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path


def can_write(path: str) -> bool:
    """Return whether a file can be made in a folder."""
    with suppress(OSError):
        Path(path, "made").write_text("by the server")
        return True
    return False


def facts(folders: list[str]) -> str:
    """Return what the container allows, as JSON."""
    status = dict(
        line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines()
    )
    limits = Path("/proc/self/limits").read_text()
    return json.dumps(
        {
            "writes": [folder for folder in ("/", "/tmp", *folders) if can_write(folder)],  # noqa: S108
            "uid": os.getuid(),
            "capabilities": int(status["CapBnd"], 16),
            "privileges": status["NoNewPrivs"],
            "devices": sorted(
                line.split(":")[0].strip()
                for line in Path("/proc/net/dev").read_text().splitlines()[2:]
            ),
            "token": os.environ.get("TOKEN"),
            "variables": sorted(os.environ),
            "file size": next(
                line.split()[3] for line in limits.splitlines() if line.startswith("Max file size")
            ),
            "first": Path("/proc/1/cmdline").read_text().startswith(sys.executable),
        }
    )


def main() -> None:
    """Answer initialize and ping; with ``stubborn`` ignore the end of input and SIGTERM."""
    if sys.argv[1:] == ["stubborn"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    version = facts(sys.argv[1:])
    for line in sys.stdin:
        message = json.loads(line)
        reply = {"jsonrpc": "2.0", "id": message.get("id")}
        if "id" not in message:
            continue
        if message["method"] == "initialize":
            reply["result"] = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {},
                "serverInfo": {"name": "image", "version": version},
            }
        elif message["method"] == "ping":
            reply["result"] = {}
        else:
            reply["error"] = {"code": -32601, "message": "no"}
        print(json.dumps(reply), flush=True)
    while sys.argv[1:] == ["stubborn"]:
        signal.pause()


if __name__ == "__main__":
    main()
