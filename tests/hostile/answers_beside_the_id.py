"""Answers everything at once, but not as an answer: its argument says what is wrong with it."""

import base64
import json
import os
import sys

import kit

KIND = sys.argv[4]

MEMBERS = {
    "string": lambda said: {**said, "id": str(said["id"])},
    "wrapped": lambda said: {**said, "id": {"id": said["id"]}},
    "null": lambda said: {**said, "id": None},
    "constant": lambda said: {**said, "id": 1},
    "missing": lambda said: {name: value for name, value in said.items() if name != "id"},
    "capital": lambda said: {name.capitalize(): value for name, value in said.items()},
}
LINES = {
    "twice encoded": lambda said: json.dumps(json.dumps(said)).encode(),
    "repr": lambda said: repr(said).encode(),
    "bytes": lambda said: repr(json.dumps(said).encode()).encode(),
    "logged": lambda said: b"INFO 12:00:01 send " + json.dumps(said).encode(),
    "spinner": lambda said: "\r⠋ ready ".encode() + json.dumps(said).encode(),
    "sse": lambda said: b"data: " + json.dumps(said).encode(),
    "separators": lambda said: b"\x1e" + json.dumps(said).encode(),
    "zeros": lambda said: json.dumps(said).encode() + b"\0",
    "base64": lambda said: base64.b64encode(json.dumps(said).encode()),
    "bom": lambda said: b"\xef\xbb\xbf" + json.dumps(said).encode(),
    "utf-16-le": lambda said: json.dumps(said).encode("utf-16-le"),
    "utf-16-be": lambda said: json.dumps(said).encode("utf-16-be"),
    "utf-32-le": lambda said: json.dumps(said).encode("utf-32-le"),
    "utf-32-be": lambda said: json.dumps(said).encode("utf-32-be"),
    "quoted": lambda said: b"DEBUG sends " + json.dumps(said).encode() + b"\n" + plain(said),
}


def plain(said):
    return json.dumps(said).encode()


def end_of_line():
    return "\n".encode(KIND) if KIND.startswith("utf-") else b"\n"


def say(said):
    if KIND == "stderr":
        print(json.dumps(said), file=sys.stderr, flush=True)
    elif KIND in LINES:
        write(LINES[KIND](said) + end_of_line())
    else:
        write(plain(MEMBERS[KIND](said) if "id" in said else said) + b"\n")


def write(data):
    while data:
        data = data[os.write(1, data) :]


kit.say = say
kit.serve()
