"""Servers whose lines or messages are odd."""

import itertools, json, os, sys

from kit import ARGUMENT, answer, gives, lists, plain, say, serve


def prints_a_banner():
    """Greets on stdout, then never answers."""
    print("Welcome to the demo server v1.2!", flush=True)
    for _ in sys.stdin:
        pass


def writes_invalid_utf8():
    """Answers in Latin-1."""

    def named(reply):
        reply["result"]["serverInfo"]["name"] = "Pr\u00fcfstein"
        return json.dumps(reply, ensure_ascii=False).encode("latin-1") + b"\n"

    serve(initialize=named)


def answers_every_id_twice():
    """Gives every answer twice."""
    serve(lambda reply: (plain(reply) + b"\n") * 2)


def answers_before_it_is_asked():
    """Guesses the next ids and answers them beforehand."""

    def early(reply):
        guess = {"jsonrpc": "2.0", "id": reply["id"] + 1, "result": {}}
        return plain(reply) + b"\n" + plain(guess) + b"\n"

    serve(lambda reply: early(reply) if isinstance(reply["id"], int) else reply)


def answers_in_deep_json():
    """Answers ping with a hundred thousand arrays in one another."""
    deep = b"[" * 100_000 + b"]" * 100_000
    serve(ping=lambda reply: b'{"jsonrpc":"2.0","id":%d,"result":{"x":%s}}\n' % (reply["id"], deep))


def answers_in_huge_numbers():
    """Answers ping with numbers of a million digits, and not-a-number."""
    line = b'{"jsonrpc":"2.0","id":%d,"result":{"x":%s,"y":1e999999,"z":NaN}}\n'
    serve(ping=lambda reply: line % (reply["id"], b"9" * 1_000_000))


def nests_deeply():
    """Nests the schema of its tool, or all its results, 900 deep; the argument says which."""
    sys.setrecursionlimit(10_000)
    if ARGUMENT == "schema":
        schema = {"type": "string"}
        for _ in range(300):
            below = {"type": "array", "items": {"anyOf": [schema, {"type": "null"}]}}
            schema = {"type": "object", "properties": {"p": below}, "required": ["p"]}
        serve(tools_list=lists({"inputSchema": schema}))
    deep = gives(_meta={"deep": json.loads('{"a":[' * 450 + "1" + "]}" * 450)})
    serve(lambda reply: deep(reply) if "result" in reply else reply)


def answers_over_many_lines():
    """Prints its answers pretty, one bracket a line."""
    serve(lambda reply: json.dumps(reply, indent=1).encode() + b"\n")


def speaks_another_protocol():
    """Frames its messages with lengths, as language servers do."""
    serve(lambda reply: b"Content-Length: %d\r\n\r\n%s" % (len(plain(reply)), plain(reply)))


def speaks_http():
    """Answers everything as a web server does."""
    for _ in sys.stdin.buffer:
        body = b"<html><body><h1>400 Bad Request</h1></body></html>"
        head = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n" % len(body)
        os.write(1, head + body + b"\r\n")


def has_an_id_of_a_megabyte():
    """Asks its client under an id of a megabyte, which each answer has to repeat."""
    question = plain({"jsonrpc": "2.0", "id": "x" * 2**20, "method": "ping"}) + b"\n"
    serve(lambda reply: question + plain(reply) + b"\n")


def changes_its_tools_at_every_list():
    """Lists other tools each time it is asked."""
    counts = itertools.count(1)

    def changed(reply):
        count = next(counts)
        return lists(*({"name": f"echo_{count}_{n}"} for n in range(count)))(reply)

    serve(tools_list=changed)


def forgets_what_came_with_an_array():
    """Reads all that lies there and drops it after an array, which is served in a read of its own."""
    refused = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no request"}}
    rest = b""
    while chunk := os.read(0, 65536):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if isinstance(message, list):
                say(refused)
                break
            if not isinstance(message.get("method"), str):
                say({**refused, "id": message.get("id")})
            elif (reply := answer(message)) is not None:
                say(reply)
