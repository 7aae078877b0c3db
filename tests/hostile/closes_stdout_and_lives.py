"""Answers initialize, then closes its output and stays."""

import json, os, sys, time

message = json.loads(sys.stdin.readline())
if message["method"] == "initialize":
    result = {
        "protocolVersion": message["params"]["protocolVersion"],
        "capabilities": {},
        "serverInfo": {"name": "half", "version": "1"},
    }
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
os.close(1)
for _ in sys.stdin:
    pass
