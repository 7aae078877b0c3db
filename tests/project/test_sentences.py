"""The rows of the sentences of the specification, and the script that finds these sentences."""

from collections import defaultdict
from pathlib import Path

import pytest

from mcp_touchstone.catalog.loader import CLIENTS, load
from scripts import pages, sentences

PAGE = """---
title: You MUST NOT read this
---
{/* nor MUST you this */}
The server **MUST** answer, see [there](/a#b). It may wait. The client _SHOULD_
wait [too][x].

[x]: /MUST

## A `Second` part

Servers **MUST**:

1. Keep order
   and time. Nothing else.
   - A part.
2. Say when:
   - it ends
   - it MAY end

```json
{"a": "MUST"}
```

- Not of the list above
- A client SHOULD show:
  ```
  MUST
  ```
- MUST NOT stop

| | must |
|---|---|
| null | Client MUST omit it |
"""

FOUND = [
    ("p", "MUST", "The server MUST answer, see there."),
    ("p", "SHOULD", "The client SHOULD wait too."),
    ("p#a-second-part", "MUST", "Servers MUST: Keep order and time."),
    ("p#a-second-part", "MUST", "Servers MUST: A part."),
    ("p#a-second-part", "MUST", "Servers MUST: Say when: it ends"),
    ("p#a-second-part", "MAY", "Servers MUST: Say when: it MAY end"),
    ("p#a-second-part", "SHOULD", "A client SHOULD show:"),
    ("p#a-second-part", "MUST NOT", "MUST NOT stop"),
    ("p#a-second-part", "MUST", "null Client MUST omit it"),
]


def test_the_sentences_of_a_page_are_found_with_their_section_and_key_word() -> None:
    found = [(one.section, one.keyword, one.words) for one in sentences.sentences("p", PAGE)]

    assert found == FOUND


def test_the_digest_changes_with_the_words_and_the_section_but_not_with_the_markup() -> None:
    def digest(text: str) -> str:
        (found,) = sentences.sentences("p", text)
        return found.digest

    assert digest("It **MUST** [end](/a).") == digest("It MUST\nend.")
    others = {digest("It MUST end."), digest("It MUST not end."), digest("# A\n\nIt MUST end.")}
    assert len(others) == 3


def test_a_changed_sentence_and_a_lost_one_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old, kept = sentences.sentences("basic/a", "It MUST end.\n\nIt MAY start.\n")
    data = tmp_path / "sentences.csv"
    data.write_text(
        "digest,keyword,binds,fate,section,places\n"
        f"{old.digest},MUST,server,open,basic/a,2025-11-25:1\n"
        f"{kept.digest},MAY,server,apart,basic/a,2024-11-05..2025-11-25:2\n",
        "utf-8",
    )
    monkeypatch.setattr(sentences, "DATA", data)
    listed = "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"
    files = dict.fromkeys((f"docs/specification/{r}/basic/a.mdx" for r in listed), "It MAY start.")
    files["docs/docs.json"] = "".join(f'"specification/{revision}/basic/a"' for revision in listed)
    files["docs/specification/2025-11-25/basic/a.mdx"] += " It MUST stop."

    new, lost = sentences.changes(files.__getitem__)

    assert new.startswith("2025-11-25 basic/a has a new sentence (")
    assert new.endswith("): It MUST stop.")
    assert lost == f"2025-11-25 basic/a lacks sentence 1 ({old.digest})"


def test_each_row_has_one_reason_or_a_clause_for_each_of_its_revisions() -> None:
    clauses = {one.id: one for one in (*load().catalogue, *load(CLIENTS).catalogue)}
    for row in sentences.rows():
        if row.fate[0] in pages.FATES:
            assert len(row.fate) == 1, row
        else:
            cited = [clauses[one].source.keys() & row.places.keys() for one in row.fate]
            assert all(cited), row
            assert set().union(*cited) == row.places.keys(), row
        assert row.binds in {"server", "client", "both", "neither"}


def test_the_clauses_of_a_row_judge_only_sides_that_its_sentence_binds() -> None:
    side = dict.fromkeys((one.id for one in load().catalogue), "server")
    side |= dict.fromkeys((one.id for one in load(CLIENTS).catalogue), "client")
    for row in sentences.rows():
        judged = {side[one] for one in row.fate if one in side}
        assert row.binds == "both" or judged <= {row.binds}, row


def test_the_sentences_of_each_section_are_numbered_without_gaps() -> None:
    numbers = defaultdict(list)
    for row in sentences.rows():
        for revision, number in row.places.items():
            numbers[revision, row.section].append(number)

    assert [one for one in numbers.items() if sorted(one[1]) != [*range(1, len(one[1]) + 1)]] == []


def test_a_colour_follows_the_clauses_of_a_sentence() -> None:
    clauses = {one.id: one for one in (*load().catalogue, *load(CLIENTS).catalogue)}

    def mark(*fate: str, binds: str = "server", revision: str = "2025-11-25") -> str:
        return pages._mark(
            sentences.Row("0", "MUST", binds, fate, "p", {revision: 1}), clauses, revision
        )

    whole, of_client = "lifecycle-version-echo", "client-initialize-first"
    assert mark(whole) == pages.JUDGED
    assert mark("tools-name-unique") == mark("tools-name-unique", whole) == pages.PART
    assert mark(whole, "endpoint-single-path") == pages.PART
    assert mark(whole, binds="both") == mark(of_client, binds="both") == pages.PART
    assert mark(whole, of_client, binds="both") == mark(of_client, binds="client") == pages.JUDGED
    assert mark("endpoint-single-path") == pages.UNSEEN
    assert mark("open") == mark("client-initialize-alone") == pages.OPEN
    assert mark("apart") == pages.APART


def test_a_sentence_for_both_sides_counts_for_each_by_the_clauses_of_that_side() -> None:
    clauses = {one.id: one for one in (*load().catalogue, *load(CLIENTS).catalogue)}

    def marks(*fate: str) -> list[str]:
        row = sentences.Row("0", "MUST", "both", fate, "p", {"2025-11-25": 1})
        counts = [[*pages._counts([row], clauses, "2025-11-25", s)] for s in ("server", "client")]
        return [[*pages.STATES][count.index(1)] for count in counts]

    of_server, of_client = "lifecycle-version-echo", "client-initialize-first"
    assert marks(of_server, of_client) == [pages.JUDGED, pages.JUDGED]
    assert marks(of_server) == [pages.JUDGED, pages.OPEN]
    assert marks(of_client) == [pages.OPEN, pages.JUDGED]
    assert marks("endpoint-single-path") == [pages.UNSEEN, pages.UNSEEN]
    assert marks("hidden") == [pages.UNSEEN, pages.UNSEEN]
