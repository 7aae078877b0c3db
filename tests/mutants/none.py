"""The wire of the mutants with no fault in it: what a mutant adds must be its fault alone."""

from tests.mutants.kit import Fault, control


@control("jsonrpc-base-protocol-support")
class SaysNothingWrong(Fault):
    """Passes every line on unchanged."""
