"""The wire of the mutants with no fault in it: what a mutant adds must be its fault alone."""

from tests.mutants.kit import Fault, controls

controls("jsonrpc-base-protocol-support", of=Fault)(
    SaysNothingWrong="Passes every line on unchanged."
)
