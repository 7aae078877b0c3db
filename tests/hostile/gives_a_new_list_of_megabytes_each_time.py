"""Lists tools with a description of eight megabytes, and with another one each time."""

import itertools

import kit

numbers = itertools.count(1)


def answer(message):
    reply = kit.sound(message)
    if message.get("method") == "tools/list":
        text = f"{next(numbers)} " + "word " * (8 * 2**20 // 5)
        reply["result"] = {"tools": [{**kit.TOOL, "description": text}]}
    return reply


kit.sound, kit.answer = kit.answer, answer
kit.serve()
