"""Answers every request with an error."""

import json, sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        error = {"code": -32603, "message": "license expired"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
