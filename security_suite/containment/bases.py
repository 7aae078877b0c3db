"""Arguments that set the base of relative paths."""

from mcp_touchstone.security.suite import AttackSession, attack, attack_calls

TREES = ("base", "siblings", "links")


@attack("bases-argument", fixtures=TREES)
def keeps_named_bases_inside(session: AttackSession) -> None:
    """A base named in a call lies inside the root or is refused."""
    rows = session.payloads("root.rebase", via="args")
    attack_calls(session, "bases-argument", session.targeting.rebased(rows))


@attack("bases-smuggled", fixtures=TREES)
def takes_no_options_from_calls(session: AttackSession) -> None:
    """Arguments that no schema names do not change which files may be read."""
    session.open()
    root, leaks = str(session.tree.root), session.canaries.leaks_anyway
    shots = list(session.targeting.smuggled(session.payloads("root.rebase", via="args")))
    # a path that leaks alone is another finding
    shut = [shot for shot in shots if not leaks(shot.binding.call(shot.text, root))]
    if shots and not shut:
        why = "paths outside are read without any such argument"
        session.judge.unseen("bases-smuggled", why)
        return
    attack_calls(session, "bases-smuggled", shut)
