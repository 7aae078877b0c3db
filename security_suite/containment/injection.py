"""Arguments that a program behind a tool takes for more than a name."""

from mcp_touchstone.suite import Siege, attack, injecting, scripting


@attack("injection-options", fixtures=("base",), lasts=True)
def passes_no_options_on(siege: Siege) -> None:
    """What begins with a dash is a name, or refused: no program takes it for an option."""
    injecting.options(siege, "injection-options", "args.option")


@attack("injection-commands", fixtures=("base",), lasts=True)
def runs_no_argument(siege: Siege) -> None:
    """What stands in an argument is run by no shell and evaluated by nobody."""
    injecting.commands(siege, "injection-commands", "args.shell", "args.eval")


@attack("injection-scripts", fixtures=("base", "siblings", "links", "script"))
def does_no_harm_by_scripts(siege: Siege) -> None:
    """What a script names lies inside the root, and it runs nothing."""
    scripting.lead_out(siege, "injection-scripts", "script.path", "script.exec")
