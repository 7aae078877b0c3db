"""Mutation testing: which small changes of a package do its tests not notice?

    python scripts/mutation.py --each 40 mcp_touchstone.judging tests/judging -m "not slow"

The tests run once under coverage. Then a fork of this process takes over one changed function after
the other, and runs the tests that reach the changed line. A test that works through another process
does not see the change, and data outside of functions is not changed. The spare tests at the end
notice nothing that the other tests do not notice too; see which lines were changed before you act.

``mutation_scores.toml`` has scores. A lower one with equal options is exit status 1.
"""

import argparse
import ast
import collections
import gc
import json
import os
import random
import signal
import sys
import time
import tomllib
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

import coverage
import pytest
from _pytest.runner import runtestprotocol

SCORES = Path(__file__).with_name("mutation_scores.toml")
"""Package -> the share of changes that its tests notice, and how they were made."""

SWAPS: dict[type, Any] = {ast.Eq: ast.NotEq, ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.In: ast.NotIn}
SWAPS |= {ast.Is: ast.IsNot, ast.And: ast.Or, ast.Add: ast.Sub}
SWAPS |= {new: old for old, new in SWAPS.items()}


def change(node: Any) -> bool:
    """Change a node in place; return whether that was possible."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in SWAPS:
            node.ops = [SWAPS[type(operator)]()]
        case ast.BoolOp(op=operator) | ast.BinOp(op=operator) if type(operator) in SWAPS:
            node.op = SWAPS[type(operator)]()
        case ast.If(test=ast.Name() | ast.Call() | ast.Attribute() | ast.UnaryOp()):
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Expr(value=ast.Call()) | ast.Return(value=ast.Call() | ast.Name() | ast.BinOp()):
            node.value = ast.Constant(None)
        case ast.Constant(value=int(value)):
            node.value = not value if isinstance(value, bool) else value + 1
        case ast.Constant(value=str(value)) if value.isidentifier():
            node.value = f"{value}_"
        case _:
            return False
    return True


def functions(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """Return the code of all functions inside of other code by name and line."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    found = {(each.co_qualname, each.co_firstlineno): each for each in inner}
    return found | {place: deep for each in inner for place, deep in functions(each).items()}


class Mutation:
    """A plugin of pytest that runs the tests once, and then again for each change."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.seconds = options, dict[str, float]()
        self.kills: list[set[str]] = []
        self.score = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        """Run everything in place of pytest."""
        self.top = SimpleNamespace(listchain=lambda: [session])  # keeps what the session set up
        passed: list[str] = []
        cover = coverage.Coverage(None, source_pkgs=[self.options.package], config_file=False)
        cover.set_option("run:disable_warnings", ["module-not-measured"])
        with cover.collect():
            self.run(session.items, cover.switch_context, passed.append)
        items = {each.nodeid: each for each in session.items if each.nodeid in passed}
        spare = {name.partition("[")[0] for name in items}
        gc.unfreeze()  # what the tests have exempted from collections is not listed
        live = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
        gc.freeze()  # a fork then copies less
        for file in cover.get_data().measured_files():
            of_file = [each for each in live if each.__code__.co_filename == file]
            self.change_module(file, cover.get_data().contexts_by_lineno(file), items, of_file)
        left = [{name.partition("[")[0] for name in killed} for killed in self.kills if killed]
        self.score = len(left) / len(self.kills) if self.kills else 0.0
        print(f"\n{len(left)} of {len(self.kills)} changes were noticed. Spare tests:")
        while left:
            ((best, _),) = collections.Counter(n for killed in left for n in killed).most_common(1)
            spare.discard(best)
            left = [killed for killed in left if best not in killed]
        print(*sorted(spare), sep="\n")
        return True

    def run(self, items: list[Any], before: Any, passed: Any) -> None:
        """Run tests; name each before it begins, and when it has passed."""
        for item, following in zip(items, [*items[1:], self.top], strict=True):
            before(item.nodeid)
            began = time.monotonic()
            if not any(r.failed for r in runtestprotocol(item, log=False, nextitem=following)):
                passed(item.nodeid)
            self.seconds.setdefault(item.nodeid, time.monotonic() - began)

    def change_module(self, file: str, reached: Any, items: Any, live: list[Any]) -> None:
        """Make a sample of the possible changes of a module; print those that nobody notices."""
        text, places = Path(file).read_text("utf-8"), []
        for number, node in enumerate(ast.walk(ast.parse(text))):
            tests = [items[n] for n in reached.get(getattr(node, "lineno", 0), ()) if n in items]
            seconds = sum(self.seconds[each.nodeid] for each in tests)
            if tests and seconds < self.options.seconds and change(node):
                places.append((number, tests))
        chance = random.Random(f"{self.options.seed} {Path(file).name}")  # noqa: S311
        for number, tests in chance.sample(places, min(self.options.each, len(places))):
            tree = ast.parse(text)
            changed: Any = list(ast.walk(tree))[number]
            change(changed)
            code = functions(compile(ast.fix_missing_locations(tree), file, "exec"))
            self.kills.append(self.forked(live, code, tests))
            if not self.kills[-1]:
                line = ast.unparse(changed).partition("\n")[0]
                print(f"{file}:{changed.lineno}: now {line}", file=sys.__stderr__)

    def forked(self, live: list[Any], code: Any, items: list[Any]) -> set[str]:
        """Return the tests that fail with the changed code."""
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.setpgid(0, 0)
            for each in live:
                old = each.__code__
                new = code.get((old.co_qualname, old.co_firstlineno), old)
                each.__code__ = new if new.co_freevars == old.co_freevars else old
            say = partial(print, file=os.fdopen(write, "w"), flush=True)
            self.run(items, say, say)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as said:
            heard = collections.Counter(said)  # a name comes once if it began, twice if it passed
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return {name.strip() for name, times in heard.items() if times == 1}


def compared(options: argparse.Namespace, tests: list[str], score: float) -> int:
    """Compare a score with the kept one of the same changes and tests; return the exit status."""
    kept: dict[str, Any] = tomllib.loads(SCORES.read_text("utf-8")).get(options.package, {})
    made = {name: getattr(options, name) for name in ("each", "seconds", "seed")} | {
        "tests": " ".join(tests)
    }
    row = {**made, "noticed": round(score, 3)}
    if made != {name: kept.get(name) for name in made}:
        shown = "\n".join(f"{name} = {json.dumps(value)}" for name, value in row.items())
        print(f"\n{SCORES.name} has no score of these changes. This one is:\n")
        print(f'["{options.package}"]\n{shown}')
        return 0
    if score < kept["noticed"] - 0.0005:
        print(f"\n{score:.3f} of the changes were noticed; {SCORES.name} has {kept['noticed']}.")
        return 1
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("package")
    parser.add_argument("--each", type=int, default=30, help="changes of each module")
    parser.add_argument("--seconds", type=float, default=5.0, help="skip lines with longer tests")
    parser.add_argument("--seed", type=int, default=0, help="another one makes other changes")
    chosen, others = parser.parse_known_args()
    options = ["-q", "-p", "no:cacheprovider", "--timeout=30", *others]
    mutation = Mutation(chosen)
    status = int(pytest.main(options, plugins=[mutation]))
    sys.exit(status or compared(chosen, others, mutation.score))
