"""Ledgers: what is written is read back, files merge by line, and what is damaged is named and kept, not believed."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from fuelvk.base.errors import FormatError
from fuelvk.evidence import CLAIMS, Book, Place, Record, merge, read, update
from fuelvk.evidence.ledger import parse

PLACE = Place("vulkan", "llvmpipe (LLVM 15.0.6, 256 bits)", "llvmpipe Mesa 25.0.7")
OTHER = Place("cpu", "CPU reference", "x86_64 linux")
RECORD = Record(
    op="exp", backend="vulkan", impl="vulkan.unary", dtypes=("f32", "f32"), revision="0123456789abcdef",
    claim="ulp", promised="0.5 ULP", worst=0.4999999, where="(3,) for 1.5", inputs=1000, shapes=7, seed=20260801,
    protocol=1, date="2026-11-30", passed=True,
)  # fmt: skip


def test_a_record_survives_its_line() -> None:
    for record in (
        RECORD,
        replace(RECORD, worst=float("inf"), passed=False, where="", notes="ein Wörtchen"),
        replace(RECORD, counts={"wrong": 3}, worst=0.0),
        replace(RECORD, claim="sweep", source="fedcba9876543210"),
        replace(RECORD, host="x86_64-v3"),
    ):
        assert Record.parse(record.line()) == record
        assert "\n" not in record.line()
    keys = [part.split('"')[1] for part in RECORD.line().split(", ") if part.startswith(('"', '{"'))]
    assert keys == sorted(keys)


def test_the_instruction_set_is_a_record_s_and_tells_no_ledgers_apart(tmp_path: Path) -> None:
    old, new = replace(OTHER, host="x86_64-v3"), replace(OTHER, host="x86_64-v4")
    assert old == new == Place.parse(new.header()) and old.slug == new.slug
    update(tmp_path, old, [replace(RECORD, host="x86_64-v3")])
    update(tmp_path, new, [replace(RECORD, host="x86_64-v4", inputs=1)])
    (found,) = read(next(tmp_path.glob("*.jsonl"))).records.values()
    assert found.host == "x86_64-v4"  # fewer inputs, but of the processor at hand


def test_what_a_place_no_longer_runs_leaves_its_ledger(tmp_path: Path) -> None:
    other = replace(RECORD, op="tanh")
    swept = replace(RECORD, claim="sweep")
    update(tmp_path, PLACE, [RECORD, other, swept])
    update(
        tmp_path, PLACE, [], {RECORD.key[:4]: RECORD.revision}
    )  # the same revision: a smaller trial refused it
    assert len(update(tmp_path, PLACE, []).records) == 3
    left = update(tmp_path, PLACE, [], refused={RECORD.key[:4]: "f" * 16})
    assert set(left.records) == {other.key, swept.key}


def test_the_claims_are_those_of_a_guarantee() -> None:
    assert {"ulp", "relative", "absolute", "bound", "bit_stable", "batch_invariant", "canonical"} < set(
        CLAIMS
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"op": "exp", ', "", "op"),
        ('"revision": "0123456789abcdef"', '"revision": "xyz"', "revision"),
        ('"passed": true', '"passed": 1', "passed"),
        ('"claim": "ulp"', '"claim": "perfect"', "claim"),
        ('"inputs": 1000', '"inputs": -1', "inputs"),
        ('"dtypes": "f32,f32"', '"dtypes": "f33"', "dtypes"),
        ('"date": "2026-11-30"', '"date": "yesterday"', "date"),
        ('"seed": 20260801', '"seed": 1, "colour": "red"', "colour"),
        ("}", "", "JSON"),
    ],
)
def test_a_line_that_is_no_record_is_refused_with_the_reason(old: str, new: str, words: str) -> None:
    line = RECORD.line()
    assert old in line
    with pytest.raises(FormatError, match=words):
        Record.parse(line.replace(old, new))


def test_a_ledger_is_one_line_a_record_in_order(tmp_path: Path) -> None:
    rows = [replace(RECORD, op=op, claim=c) for op in ("tanh", "exp") for c in ("ulp", "canonical")]
    update(tmp_path, PLACE, rows)
    path = tmp_path / f"{PLACE.slug}.jsonl"
    lines = path.read_text().splitlines()
    assert len(lines) == 5
    assert [Record.parse(line).key for line in lines[1:]] == sorted(r.key for r in rows)
    before = path.read_bytes()
    update(tmp_path, PLACE, rows[:1])
    assert path.read_bytes() == before, "the same records give the same bytes"
    later = replace(RECORD, op="exp", date="2026-12-01", revision="f" * 16, passed=False)
    update(tmp_path, PLACE, [later])
    found = read(path)
    assert len(found.records) == 4
    assert found.records[later.key] == later


def test_of_two_records_of_one_claim_the_later_or_the_failed_one_counts() -> None:
    failed = replace(RECORD, passed=False)
    newer = replace(RECORD, date="2026-12-24")
    for rows, kept in (
        ((RECORD, failed), failed), ((failed, RECORD), failed), ((failed, newer), newer), ((newer, failed), newer),
    ):  # fmt: skip
        text = "\n".join([PLACE.header(), *(r.line() for r in rows)])
        assert parse(text, "x").records[RECORD.key] == kept


def test_damage_is_named_and_set_aside_and_the_rest_stands(tmp_path: Path) -> None:
    update(tmp_path, PLACE, [RECORD, replace(RECORD, op="tanh")])
    path = tmp_path / f"{PLACE.slug}.jsonl"
    broken = path.read_text().splitlines()
    broken[1] = broken[1][:-9]
    path.write_text("\n".join(broken) + "\n")
    found = read(path)
    assert [r.op for r in found.records.values()] == ["tanh"]
    assert len(found.problems) == 1
    assert f"{path.name}:2" in found.problems[0]
    book = Book.open([tmp_path])
    assert [r.op for _, r in book.of_revision(RECORD.revision)] == ["tanh"]
    assert path.name in book.problems[0]
    assert path.name in " ".join(update(tmp_path, PLACE, []).problems)
    assert path.with_name(path.name + ".aside").read_text() == broken[1] + "\n"
    assert not read(path).problems


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\xff\xfe", b'{"format": "other"}\n', b'{"format": "fuelvk-ledger", "version": 2}\n', b"[]"]
)  # fmt: skip
def test_a_foreign_file_is_named_and_kept(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"{PLACE.slug}.jsonl"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=path.name):
        read(path)
    book = Book.open([tmp_path, tmp_path / "none"])
    assert not book.sources
    assert path.name in book.problems[0]
    found = update(tmp_path, PLACE, [RECORD])
    assert path.name in found.problems[0]
    assert path.with_name(path.name + ".aside").read_bytes() == content + (
        b"" if content.endswith(b"\n") else b"\n"
    )
    assert read(path).records == {RECORD.key: RECORD}


def test_the_ledger_of_another_place_is_not_believed_under_this_name(tmp_path: Path) -> None:
    update(tmp_path, OTHER, [RECORD])
    (tmp_path / f"{OTHER.slug}.jsonl").rename(tmp_path / f"{PLACE.slug}.jsonl")
    assert "belongs to CPU reference" in update(tmp_path, PLACE, []).problems[0]
    assert not read(tmp_path / f"{PLACE.slug}.jsonl").records


def test_a_book_finds_revisions_in_all_its_ledgers(tmp_path: Path) -> None:
    own, shipped = tmp_path / "own", tmp_path / "shipped"
    update(shipped, PLACE, [replace(RECORD, passed=False), replace(RECORD, op="tanh", revision="a" * 16)])
    update(shipped, OTHER, [RECORD])
    update(own, PLACE, [RECORD])
    book = Book.open([own, shipped])
    assert set(book.places()) == {PLACE, OTHER}
    assert dict(book.of_revision(RECORD.revision)) == {PLACE: RECORD, OTHER: RECORD}
    assert [r.op for _, r in book.of_revision("a" * 16)] == ["tanh"]
    assert book.of_revision("b" * 16) == ()
    joined = {found.place: found for found in book.ledgers()}
    assert joined[PLACE].records[RECORD.key] == RECORD, "the user's own record counts"
    assert len(joined[PLACE].records) == 2


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    def write(number: int) -> None:
        for claim in ("ulp", "canonical"):
            update(tmp_path, PLACE, [replace(RECORD, op=f"op{number}", claim=claim)])

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(read(tmp_path / f"{PLACE.slug}.jsonl").records) == 16


def test_ledgers_of_two_folders_are_merged_record_by_record(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    kept = [
        replace(RECORD, op="a", date="2026-12-01"),
        replace(RECORD, op="b", passed=False),
        replace(RECORD, op="c"),
    ]
    update(mine, PLACE, kept)
    taken = [
        replace(RECORD, op="d"),
        replace(RECORD, op="e", date="2026-12-02"),
        replace(RECORD, op="f", worst=0.3),
    ]
    update(mine, PLACE, [replace(RECORD, op="e", passed=False), replace(RECORD, op="f", inputs=10**6)])
    update(other, PLACE, [replace(RECORD, op="a"), replace(RECORD, op="b"), *taken])
    update(other, OTHER, [replace(RECORD, backend="cpu")])
    assert {x.place: n for x, n in merge(mine, other)[0]} == {PLACE: 3, OTHER: 1}
    assert list(read(mine / f"{PLACE.slug}.jsonl").records.values()) == [*kept, *taken]
    before = {p.name: p.read_bytes() for p in mine.glob("*.jsonl")}
    assert [n for _, n in merge(mine, other)[0]] == [0, 0]
    assert {p.name: p.read_bytes() for p in mine.glob("*.jsonl")} == before


def test_a_damaged_ledger_is_named_and_the_others_are_merged(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    update(other, OTHER, [RECORD])
    update(other, PLACE, [RECORD])
    (other / "a.jsonl").write_bytes(b"\xff\xfe")
    (other / "z.jsonl").mkdir()
    with (other / f"{PLACE.slug}.jsonl").open("a") as file:
        file.write("{}\n")
    merged, problems = merge(mine, other)
    assert [(x.place, n) for x, n in merged] == [(OTHER, 1)]
    assert len(problems) == 3
    for name, problem in zip(("a.jsonl", f"{PLACE.slug}.jsonl", "z.jsonl"), problems, strict=True):
        assert "not merged" in problem
        assert name in problem
    assert [p.name for p in mine.glob("*.jsonl")] == [f"{OTHER.slug}.jsonl"]


def test_a_ledger_that_cannot_be_written_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FormatError, match="asked: .*seen: .*allowed: .*next: set FUELVK_LEDGER_DIR"):
        update(tmp_path / "file" / "ledgers", PLACE, [RECORD])
    path = tmp_path / f"{PLACE.slug}.jsonl"
    path.mkdir()
    with pytest.raises(FormatError, match=f"{path.name}.*next: move it away"):
        update(tmp_path, PLACE, [RECORD])
    assert "move it away" in Book.open([tmp_path]).problems[0]


def test_a_cut_off_file_is_named(tmp_path: Path) -> None:
    update(tmp_path, PLACE, [RECORD])
    path = tmp_path / f"{PLACE.slug}.jsonl"
    path.write_bytes(path.read_bytes()[:-200])
    (problem,) = Book.open([tmp_path]).problems
    assert path.name in problem
    assert "cut off" in problem
