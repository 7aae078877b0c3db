"""Print how many clauses are checked, which mutants break them, and why the rest is not checked."""

from mcp_touchstone.catalog.loader import load, mutants
from mcp_touchstone.report import coverage

if __name__ == "__main__":
    for line in coverage.text(coverage.measure(load(), mutants())):
        print(line)
