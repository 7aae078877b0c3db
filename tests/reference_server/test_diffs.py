"""Unified diffs: a matching diff is applied exactly, any other diff is refused."""

import difflib
import io
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reference_server.failure import ToolError
from reference_server.features.patching.diffs import NO_NEWLINE, apply
from tests.cases import cases

HEAD = "--- a/f\n+++ b/f\n"
THREE = "one\ntwo\nthree\n"
CHANGE = "@@ -2 +2 @@\n-two\n+new\n"


def lines_of(text: str) -> list[str]:
    return list(io.StringIO(text, newline=""))


def bare(line: str) -> str:
    return line.rstrip("\r\n")


def unified(before: list[str], after: list[str], context: int, newline: str = "\n") -> str:
    """Make a diff with difflib, and add the marker for a missing newline."""
    made = []
    for line in difflib.unified_diff(before, after, "a/f", "b/f", n=context):
        made.append(bare(line) + newline)
        if made[2:] and not line.endswith(("\n", "\r")):
            made.append(NO_NEWLINE + newline)
    return "".join(made)


def refusal(old: str, diff: str, names: tuple[str, ...] = ("f",)) -> ToolError:
    with pytest.raises(ToolError) as caught:
        apply(old, diff, names)
    assert "Nothing was" in caught.value.message
    return caught.value


CONTENT = st.sampled_from(
    ["", "a", "b", "a ", "\ta", "c\u2028d\x0c\x85", "-- x", "++ y", "@@ -1 +1 @@", " ", "\\ No"]
)


@st.composite
def texts(draw: st.DrawFn, newline: str) -> str:
    text = "".join(line + newline for line in draw(st.lists(CONTENT, max_size=12)))
    return text + draw(st.sampled_from(["", "", "end"]))


@st.composite
def pairs(draw: st.DrawFn, newline: str) -> tuple[str, str]:
    """Draw a text and a similar one."""
    before = draw(texts(newline))
    lines = lines_of(before)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines)))
        gone = draw(st.integers(0, 3))
        lines[at : at + gone] = lines_of(draw(texts(newline)))
    lines[:-1] = [bare(line) + newline for line in lines[:-1]]
    after = "".join(lines)
    assume(before != after)
    return before, after


@given(st.data(), st.sampled_from(["\n", "\r\n", "\r"]), st.integers(0, 4))
def test_difflib_diff_is_applied_exactly(data: st.DataObject, newline: str, n: int) -> None:
    before, after = data.draw(pairs(newline))
    assume(newline in before or newline == "\n")  # else nothing says what a newline is here
    diff_newline = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    diff = unified(lines_of(before), lines_of(after), n, diff_newline)
    made = apply(before, diff, ("f",))
    assert made.text == after
    signs = [line[:1] for line in lines_of(diff)[2:]]
    assert (made.hunks, made.added, made.removed) == (
        signs.count("@"),
        signs.count("+"),
        signs.count("-"),
    )


@given(st.data(), st.integers(0, 3))
def test_untouched_lines_of_a_mixed_newline_file_are_kept(data: st.DataObject, n: int) -> None:
    before = data.draw(
        st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["\n", "\r\n", "\r"])))
    )
    mixed = [content + newline for content, newline in before]
    # A CR before an empty LF line would be one newline.
    plain = [content + "\n" for content, _ in before]
    at = data.draw(st.integers(0, len(plain)))
    gone = data.draw(st.integers(0, 2))
    after = [
        *plain[:at],
        *data.draw(st.lists(st.sampled_from(["x\n", "y\n"]))),
        *plain[at + gone :],
    ]
    assume(after != plain)
    made = lines_of(apply("".join(mixed), unified(plain, after, n), ("f",)).text)
    assert [bare(line) for line in made] == [bare(line) for line in after]
    matcher = difflib.SequenceMatcher(None, plain, after)
    for i, j, size in matcher.get_matching_blocks():
        assert made[j : j + size] == mixed[i : i + size]


@cases(
    # one newline style: added lines have it
    *(("a\r\nb\r\n", "@@ -2 +2,2 @@\n-b\n+x\n+y\n", "a\r\nx\r\ny\r\n"),),
    *(("a\rb\r", "@@ -2 +2 @@\n-b\n+x\n", "a\rx\r"),),
    # several: that of the line replaced, else of the line before, else of the next
    *(("a\r\nb\n", "@@ -1,2 +1,2 @@\n-a\n-b\n+x\n+y\n", "x\r\ny\n"),),
    *(("a\r\nb\n", "@@ -1,2 +1,3 @@\n-a\n-b\n+x\n+y\n+z\n", "x\r\ny\nz\n"),),
    *(("a\r\nb\n", "@@ -1,0 +2 @@\n+x\n", "a\r\nx\r\nb\n"),),
    *(("a\r\nb\n", "@@ -0,0 +1 @@\n+x\n", "x\r\na\r\nb\n"),),
    *(("a\nb\r\nc\r", "@@ -3 +3,2 @@\n c\n+x\n", "a\nb\r\nc\rx\r"),),
    *(("a\nb\r\nc\r", "@@ -1,3 +1,4 @@\n a\n b\n c\n+x\n", "a\nb\r\nc\rx\r"),),
    *(("a\nb\r\nc", f"@@ -2,2 +2,2 @@\n b\n-c\n{NO_NEWLINE}\n+c\n", "a\nb\r\nc\r\n"),),
    # no newline at all yet: LF
    *(("", "@@ -0,0 +1,2 @@\n+x\n+y\n", "x\ny\n"),),
    *(("a", f"@@ -1 +1 @@\n-a\n{NO_NEWLINE}\n+b\n", "b\n"),),
    # the end of the file
    *(("a\nb", f"@@ -2 +2 @@\n-b\n{NO_NEWLINE}\n+c\n{NO_NEWLINE}\n", "a\nc"),),
    *(("a\r\nb", f"@@ -2 +2 @@\n-b\n{NO_NEWLINE}\n+b\n", "a\r\nb\r\n"),),
    *(("a\nb\n", f"@@ -2 +2 @@\n-b\n+b\n{NO_NEWLINE}\n", "a\nb"),),
    *(("a\nb", f"@@ -1,2 +1,2 @@\n-a\n+x\n b\n{NO_NEWLINE}\n", "x\nb"),),
    *(("a\nb", f"@@ -2 +1,0 @@\n-b\n{NO_NEWLINE}\n", "a\n"),),
    *(("a\n", "@@ -1 +0,0 @@\n-a\n", ""),),
    # a diff without its own last newline, and one with CRLF
    *((THREE, "@@ -2 +2 @@\n-two\n+new", "one\nnew\nthree\n"),),
    *((THREE, "@@ -2 +2 @@\r\n-two\r\n+new\r\n", "one\nnew\nthree\n"),),
    # lines that look like diff syntax
    *(("-- x\n", "@@ -1 +1 @@\n--- x\n+++ y\n", "++ y\n"),),
    *(("", "@@ -0,0 +1 @@\n+\\ No newline at end of file\n", NO_NEWLINE + "\n"),),
    *((THREE, "@@ -2 +2 @@ def heading\n-two\n+new\n", "one\nnew\nthree\n"),),
    *((THREE, "@@ -2,1 +2,1 @@ @@ -9 +9 @@\n-two\n+new\n", "one\nnew\nthree\n"),),
    *((THREE, "@@ -2 +2 @@\n+new\n-two\n", "one\nnew\nthree\n"),),
    *((THREE, "@@ -1 +1 @@\n-one\n+1\n@@ -2 +2 @@\n-two\n+2\n", "1\n2\nthree\n"),),
    *(("a\u2028b\x0c\x85c\n", "@@ -1 +1 @@\n-a\u2028b\x0c\x85c\n+x\u2028y\n", "x\u2028y\n"),),
    *(("a \n\tb\n", "@@ -1,2 +1,2 @@\n-a \n+a\n \tb\n", "a\n\tb\n"),),
)
def test_patched_text_is_exact(old: str, hunks: str, new: str) -> None:
    assert apply(old, HEAD + hunks, ("f",)).text == new


@cases(
    ("f", "--- f\n+++ f\n"),
    ("f", "--- a/f\n+++ b/f\n"),
    ("f", "diff --git a/f b/f\n--- a/f\n+++ b/f\n"),
    ("f", "diff --git a/f b/f\nindex 5626abf..814f4a4 100644\n--- a/f\n+++ b/f\n"),
    ("f", "diff --git f f\nindex 5626abf..814f4a4\n--- f\n+++ f\n"),
    ("f", "--- f\t2026-11-21 08:00:00.123456789 +0100\n+++ f\t2026-11-21 08:00:00 +0100\n"),
    ("f", "--- f\tSat Nov 21 08:00:00 2026\n+++ f\tSat Nov 21 08:00:00 2026\n"),
    ("d/x y", "--- a/d/x y\t\n+++ b/d/x y\t\n"),
    ("a/f", "--- a/f\n+++ a/f\n"),
    ("a/f", "--- a/a/f\n+++ b/a/f\n"),
    ("café", '--- "a/caf\\303\\251"\n+++ "b/caf\\303\\251"\n'),
    ("café", "--- a/café\n+++ b/café\n"),
    ('"', '--- "a/\\""\n+++ "b/\\""\n'),
)
def test_header_forms_of_common_tools_are_accepted(name: str, head: str) -> None:
    assert apply(THREE, head + CHANGE, (name,)).text == "one\nnew\nthree\n"


@pytest.mark.parametrize("context", [0, 1, 3])
@pytest.mark.parametrize("tool", ["git", "diff"])
def test_diffs_of_git_and_diff_are_applied(tool: str, context: int, tmp_path: Path) -> None:
    samples = [
        "",
        "a",
        "a\n",
        THREE,
        "one\n2\nthree",
        "\n\n",
        "x\r\ny\r\n",
        "x\r\nz\r\n",
        "é\n" * 9,
    ]
    for before in samples:
        for after in samples:
            if before == after or ("\r" in before) != ("\r" in after):
                continue
            diff = made_by(tool, before, after, context, tmp_path)
            assert apply(before, diff, ("f",)).text == after


def made_by(tool: str, before: str, after: str, context: int, place: Path) -> str:
    for name, text in (("before", before), ("after", after)):
        (place / name).mkdir(exist_ok=True)
        (place / name / "f").write_bytes(text.encode())
    command = {
        "git": ["git", "diff", "--no-index", "--no-color", f"-U{context}"],
        "diff": ["diff", f"-U{context}", "--label", "a/f", "--label", "b/f"],
    }[tool]
    try:
        done = subprocess.run(
            [*command, "before/f", "after/f"],
            capture_output=True,
            cwd=place,
            check=False,
            timeout=20,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(place)},
        )
    except FileNotFoundError:
        pytest.skip(f"no {tool} here")
    diff = done.stdout.decode()
    return diff.replace("a/before/f", "a/f").replace("b/after/f", "b/f")


@cases(
    ("", "NO_CHANGE"),
    (HEAD, "NO_CHANGE"),
    (HEAD + "@@ -0,0 +0,0 @@\n", "NO_CHANGE"),
    (HEAD + "@@ -1 +1 @@\n one\n", "NO_CHANGE"),
    (HEAD + "@@ -1 +1 @@\n-one\n+one\n", "NO_CHANGE"),
    (HEAD + "@@ -1 +1 @@\n-one\r\n+one\n", "NO_CHANGE"),
    (HEAD + "@@ -1,2 +1,2 @@\n one\n-WRONG\n+new\n", "CONTEXT_MISMATCH"),
    (HEAD + "@@ -1,2 +1,2 @@\n WRONG\n-two\n+new\n", "CONTEXT_MISMATCH"),
    (HEAD + "@@ -2 +2 @@\n-tw\n+new\n", "CONTEXT_MISMATCH"),
    (HEAD + "@@ -2 +2 @@\n-two \n+new\n", "CONTEXT_MISMATCH"),
    (HEAD + "@@ -2 +2 @@\n-twofold\n+new\n", "CONTEXT_MISMATCH"),
    (HEAD + "@@ -2 +2 @@\n-\n+new\n", "CONTEXT_MISMATCH"),
    (HEAD + "@@ -40,3 +40,3 @@\n one\n-two\n+new\n three\n", "CONTEXT_MISMATCH"),
    (HEAD + "@@ -1 +1 @@\n-two\n+new\n", "CONTEXT_MISMATCH"),
    (HEAD + "@@ -4 +4 @@\n-\n+x\n", "CONTEXT_MISMATCH"),
    (HEAD + "@@ -4,0 +5 @@\n+x\n", "CONTEXT_MISMATCH"),
    (HEAD + f"@@ -3 +3 @@\n-three\n{NO_NEWLINE}\n+x\n", "CONTEXT_MISMATCH"),
    (HEAD + f"@@ -2 +2 @@\n-two\n+x\n{NO_NEWLINE}\n", "CONTEXT_MISMATCH"),
    (HEAD + CHANGE + "@@ -99 +99 @@\n-nothere\n+x\n", "CONTEXT_MISMATCH"),
    (HEAD + "@@ -1,3 +1,9 @@\n one\n-two\n+new\n three\n", "INVALID_DIFF"),
    (HEAD + "@@ -1,1 +1,1 @@\n one\n-two\n+new\n three\n", "INVALID_DIFF"),
    (HEAD + "@@ -2 +2 @@\n-two\n+new\n+more\n", "INVALID_DIFF"),
    (HEAD + "@@ -2,2 +2 @@\n-two\n+new\n", "INVALID_DIFF"),
    (HEAD + "@@ -1,3 +1,3 @@\n", "INVALID_DIFF"),
    (HEAD + "@@ -2 +3 @@\n-two\n+new\n", "INVALID_DIFF"),
    (HEAD + "@@ -2 +1 @@\n-two\n+new\n", "INVALID_DIFF"),
    (HEAD + "@@ -1 +1,2 @@\n-one\n+x\n+y\n@@ -3 +3 @@\n-three\n+z\n", "INVALID_DIFF"),
    (HEAD + "@@ -4294967297,1 +1,1 @@\n-one\n+x\n", "INVALID_DIFF"),
    (HEAD + "@@ -9223372036854775808,1 +1,1 @@\n-one\n+x\n", "INVALID_DIFF"),
    (HEAD + f"@@ -{'9' * 5000} +1 @@\n-one\n+x\n", "INVALID_DIFF"),
    (HEAD + "@@ -1,999999999 +1,1 @@\n-one\n+x\n", "INVALID_DIFF"),
    (HEAD + "@@ -1,-1 +1,1 @@\n-one\n+x\n", "INVALID_DIFF"),
    (HEAD + "@@ -0,1 +0,1 @@\n-one\n+x\n", "INVALID_DIFF"),
    (HEAD + "@@ -01 +1 @@\n-one\n+x\n", "INVALID_DIFF"),
    (HEAD + "@@ -1. +1 @@\n-one\n+x\n", "INVALID_DIFF"),
    (HEAD + "@@ -\u0661 +1 @@\n-one\n+x\n", "INVALID_DIFF"),
    (HEAD + "@@ -1 +1 @@x\n-one\n+x\n", "INVALID_DIFF"),
    (HEAD + "@@@ -1 -1 +1 @@@\n-one\n+x\n", "INVALID_DIFF"),
    (HEAD + "@@ -3 +3 @@\n-three\n+x\n@@ -1 +1 @@\n-one\n+y\n", "INVALID_DIFF"),
    (HEAD + "@@ -1,2 +1,2 @@\n-one\n+x\n two\n@@ -2,2 +2,2 @@\n-two\n+y\n three\n", "INVALID_DIFF"),
    (HEAD + CHANGE + CHANGE, "INVALID_DIFF"),
    (HEAD + "@@ -1,2 +1,2 @@\n one\n*two\n+new\n", "INVALID_DIFF"),
    (HEAD + "@@ -1,2 +1,2 @@\n-one\n+new\n\n", "INVALID_DIFF"),
    (HEAD + CHANGE + "\n", "INVALID_DIFF"),
    (HEAD + CHANGE + "-- \n2.40\n", "INVALID_DIFF"),
    (HEAD + CHANGE + f"{NO_NEWLINE}\n{NO_NEWLINE}\n", "INVALID_DIFF"),
    (HEAD + f"@@ -1,2 +1,2 @@\n one\n{NO_NEWLINE}\n-two\n+new\n", "INVALID_DIFF"),
    (HEAD + f"@@ -1,2 +1,2 @@\n-one\n{NO_NEWLINE}\n+x\n two\n", "INVALID_DIFF"),
    (HEAD + f"@@ -3 +3,2 @@\n three\n{NO_NEWLINE}\n+x\n", "INVALID_DIFF"),
    (HEAD + f"@@ -3 +3,2 @@\n three\n+\n{NO_NEWLINE}\n", "INVALID_DIFF"),
    (HEAD + f"@@ -1 +1 @@\n{NO_NEWLINE}\n-one\n+x\n", "INVALID_DIFF"),
    (HEAD + "@@ -3 +3 @@\n-three\n+x\n\\ No newline\n", "INVALID_DIFF"),
    ("@@ -2 +2 @@\n-two\n+new\n", "INVALID_DIFF"),
    ("+++ b/f\n--- a/f\n" + CHANGE, "INVALID_DIFF"),
    ("--- a/f\n" + CHANGE, "INVALID_DIFF"),
    ("\n" + HEAD + CHANGE, "INVALID_DIFF"),
    ("this is not a diff\n", "INVALID_DIFF"),
    ("```diff\n" + HEAD + CHANGE + "```\n", "INVALID_DIFF"),
    (HEAD + CHANGE + "```\n", "INVALID_DIFF"),
    ("From 0000 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n---\n" + HEAD, "INVALID_DIFF"),
    ("*** f\n--- f\n***************\n*** 2 ****\n! two\n--- 2 ----\n! new\n", "INVALID_DIFF"),
    ("1c\nchanged\n.\n", "INVALID_DIFF"),
    ("1c\nchanged\n.\n!touch /tmp/x\n", "INVALID_DIFF"),
    ("1c1\n< one\n---\n> new\n", "INVALID_DIFF"),
    ("Index: f\n" + "=" * 67 + "\n" + HEAD + CHANGE, "INVALID_DIFF"),
    (HEAD + CHANGE + "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n", "MULTIPLE_FILES"),
    (HEAD + CHANGE + "diff --git a/g b/g\nold mode 100644\n", "MULTIPLE_FILES"),
    (HEAD + CHANGE + "Index: g\n", "MULTIPLE_FILES"),
    (HEAD + HEAD + CHANGE, "INVALID_DIFF"),
)
def test_invalid_or_mismatching_diff_is_refused(diff: str, code: str) -> None:
    error = refusal(THREE, diff)
    assert error.code == code
    assert error.field == "diffText"
    assert error.type == {"NO_CHANGE": "ValidationError", "CONTEXT_MISMATCH": "ConflictError"}.get(
        code, "ParseError"
    )


@cases(
    *("--- a/f\n+++ b/../out/x\n", "--- ../out/x\n+++ ../out/x\n", "--- a/f\n+++ /abs/x\n"),
    *("--- a/f\n+++ b/.git/config\n", "--- a/f\n+++ b/g\n", "--- a/g\n+++ b/f\n"),
    *("--- a/f\n+++ f\n", "--- f\n+++ b/f\n", "--- b/f\n+++ a/f\n", "--- a/f\n+++ a/f\n"),
    *("--- a/f\n+++ b/f \n", "--- a/f \n+++ b/f\n", "--- a//f\n+++ b//f\n"),
    *("--- a/a/f\n+++ b/a/f\n", "--- ./f\n+++ ./f\n", "--- a/F\n+++ b/F\n"),
    '--- "a/f"\n+++ "b/\\056\\056/x"\n',
    "--- a/lnk/../../x\n+++ b/lnk/../../x\n",
    "diff --git a/f b/../out/x\n--- a/f\n+++ b/f\n",
    "diff --git a/g b/g\n--- a/f\n+++ b/f\n",
    "diff --git f f\n--- a/f\n+++ b/f\n",
    "diff --git a/f b/../out/r\nsimilarity index 100%\nrename from f\nrename to ../out/r\n",
    "diff --git a/f b/.env\nsimilarity index 100%\ncopy from f\ncopy to .env\n",
    "diff --git a/evil b/evil\nnew file mode 120000\n--- /dev/null\n+++ b/evil\n",
    "diff --git a/sub b/sub\nnew file mode 160000\n--- /dev/null\n+++ b/sub\n",
)
def test_header_naming_another_file_is_refused(head: str) -> None:
    assert refusal(THREE, head + CHANGE).code == "WRONG_FILE"


@pytest.mark.parametrize("stamp", ["../../x", "../out/x", "\t2026", "a/b", '"x"', "\u202e"])
def test_invalid_header_timestamp_is_refused(stamp: str) -> None:
    assert refusal(THREE, f"--- a/f\t{stamp}\n+++ b/f\n{CHANGE}").code == "INVALID_DIFF"


@cases(
    "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n",
    "--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n",
    "--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n",
    "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
    "diff --git a/f b/f\nold mode 100644\nnew mode 104755\n" + HEAD + CHANGE,
    "diff --git a/f b/f\nold mode 100644\nnew mode 120000\n",
    "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
    "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n",
    "diff --git a/f b/f\nsimilarity index 100%\nrename from f\nrename to f\n",
    "diff --git a/f b/f\nindex 0000000..1111111 100644\nGIT binary patch\nliteral 5\n",
    "Binary files a/f and b/f differ\n",
)
def test_diff_that_changes_more_than_text_is_refused(special: str) -> None:
    assert refusal(THREE, special).code == "UNSUPPORTED_DIFF"


@cases(
    *(("a\nb", "@@ -2 +2 @@\n-b\n+c\n"), ("a\nb", "@@ -2,0 +3 @@\n+c\n")),
    *(("a\nb", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n"), ("b", "@@ -1,0 +2 @@\n+c\n")),
    *(("", "@@ -1 +1 @@\n-\n+x\n"), ("", "@@ -1,0 +2 @@\n+x\n"), ("", "@@ -2,0 +3 @@\n+x\n")),
    *(("a\n\n", "@@ -3 +3 @@\n-\n+x\n"),),
    ("a\rb\n", "@@ -1 +1 @@\n-a\rb\n+x\n"),  # a CR ends a line: of the file and of the diff
)
def test_mismatch_at_the_end_of_the_file_is_refused(old: str, hunk: str) -> None:
    assert refusal(old, HEAD + hunk).code in ("CONTEXT_MISMATCH", "INVALID_DIFF")


@given(st.text(max_size=40), st.text(alphabet="-+@ a\n\r\\0123,", max_size=60))
def test_any_text_as_diff_is_refused_or_applied(old: str, rest: str) -> None:
    for diff in (rest, HEAD + rest, HEAD + "@@ -1" + rest):
        try:
            apply(old, diff, ("f",))
        except ToolError:
            continue


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n"])
def test_many_hunks_take_linear_time(newline: str) -> None:
    count = 20_000
    old = "".join(f"line{n}{newline}" for n in range(2 * count))
    diff = HEAD + "".join(
        f"@@ -{2 * n + 1} +{2 * n + 1} @@\n-line{2 * n}\n+x\n" for n in range(count)
    )
    started = time.process_time()
    assert apply(old, diff, ("f",)).hunks == count
    assert time.process_time() - started < 5


def test_large_hunk_counts_are_refused_quickly() -> None:
    started = time.process_time()
    for count in (999_999_999, 100_000_000):
        refusal(THREE, f"{HEAD}@@ -1,{count} +1,{count} @@\n-one\n+x\n")
        refusal(THREE, f"{HEAD}@@ -{count} +{count} @@\n-one\n+x\n")
    assert time.process_time() - started < 1
