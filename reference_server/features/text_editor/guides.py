"""The texts of the prompts. Pure."""

from __future__ import annotations

VIEW_GUIDE = """\
## Text editor tool, read-only

The tool `text_editor` shows the files of this workspace. This server writes nothing.

- `command`: `"view"`
- `path`: a file or a directory, relative to the root
- `view_range`: `[first_line, last_line]`, optional, for files; `-1` as last line is the end

```json
{"command": "view", "path": "src/main.py", "view_range": [1, 50]}
```

A file comes as numbered lines; number and tab are not part of the file. A directory comes as the
names in it, two levels deep.
"""

EDITOR_GUIDE = """\
## Text editor tool

The tool `text_editor` views, creates and edits text files of this workspace. Every call names a
`command` and a `path` relative to the root.

### view: show a file or a directory

- `view_range`: `[first_line, last_line]`, optional, for files; `-1` as last line is the end

```json
{"command": "view", "path": "src/main.py", "view_range": [1, 50]}
```

A file comes as numbered lines; number and tab are not part of the file.

### create: make a new file

The file must not exist yet; missing directories are made.

- `file_text`: all of its content

```json
{"command": "create", "path": "src/utils.py", "file_text": "def helper():\\n    pass\\n"}
```

### str_replace: replace text in a file

- `old_str`: the text to replace; it must occur exactly once in the file
- `new_str`: what takes its place

```json
{"command": "str_replace", "path": "src/main.py", "old_str": "def old():\\n    pass", "new_str": \
"def new():\\n    return True"}
```

`old_str` matches character by character: keep the white space at both ends of every line, and
take in enough lines around the change to make it unique.

### insert: put lines after a line

- `insert_line`: the number of the line to insert after; `0` is the top of the file
- `new_str`: the lines

```json
{"command": "insert", "path": "src/main.py", "insert_line": 5, "new_str": "# New comment\\n"}
```

### undo_edit: take back the last edit of a file

```json
{"command": "undo_edit", "path": "src/main.py"}
```

### Good practice

1. Before an edit, view the file.
2. Make `old_str` unique with the lines around the change.
3. Make small, focused edits instead of replacing large blocks.
4. After an edit, look at the snippet in the result, or view the file again.
"""

GIT_WORKFLOW = """\
## Git workflow for file changes

After changing files with `text_editor`, commit and push the changes with git commands. Run them
with the shell tool you have; this server runs no commands and does not show `.git`.

### Steps

1. See what has changed.

   ```bash
   git status
   git diff
   ```

2. Stage the changes.

   ```bash
   git add <modified_files>
   git diff --staged
   ```

3. Commit them with a message that says what they do.

   ```bash
   git commit -m "feat: description of the changes"
   ```

4. Push to the remote branch.

   ```bash
   git push origin <branch_name>
   ```

### If the push is refused because the remote has moved

1. Pull with rebase.

   ```bash
   git pull --rebase origin <branch_name>
   ```

2. If there are conflicts, resolve the conflict markers with `text_editor`, then go on.

   ```bash
   git add <resolved_files>
   git rebase --continue
   ```

3. Push again.

### Notes

- Commit and push before you call the task done.
- If authentication fails, report it; do not look for credentials.
"""

EDIT_FILE = """\
Edit the file {path} with the tool `text_editor`.

Task:
{task}

1. {look}
2. Make the change with small `str_replace` or `insert` edits.
3. Look at the snippet each edit gives back, and correct what is not as it should be.
4. Change other files only where the task cannot do without it, and say which and why.
"""

LOOK_BELOW = "Read the file; it is attached as it is now."
LOOK_THERE = "View the file in ranges (`view_range`); it is too long to be attached."

TASKS = (
    "Correct the spelling in comments and texts.",
    "Describe every public function in a comment or docstring.",
    "Remove code that nothing uses.",
    "Simplify the code and keep what it does.",
)
"""Completions of the argument ``task``."""
