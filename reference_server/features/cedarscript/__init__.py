"""The CEDARScript tools: edit commands for code, carried out by a library in a separate process.

    text --scan--> scripts --worker: policy--> commands --stage--> texts --worker--> texts and diffs
    texts and diffs --stage--> an edit of the workspace, unless it is a dry run

The library is an optional extra. Without it, the tools ``list_capabilities`` and ``explain_error``
are offered, and the other two are not. ``list_capabilities`` then returns the reason.
"""
