"""Answers everything soundly, as many seconds late as its argument says."""

import sys
import time

import kit


def answer(message):
    time.sleep(float(sys.argv[4]))
    return kit.sound(message)


kit.sound, kit.answer = kit.answer, answer
kit.serve()
