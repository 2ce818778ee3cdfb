"""Results outlive the process that wrote them."""

import json
from pathlib import Path

import pytest

from longtable.base.errors import ConfigError
from longtable.evaluation.journal import Journal
from longtable.evaluation.turn_results import TurnResult

KEY = ("m", True, "d", "f")


def result(turn: int = 1, **settings: object) -> TurnResult:
    return TurnResult(
        model="m",
        knowledge=True,
        dialogue="d",
        fingerprint="f",
        turn=turn,
        question="q\u2028\ud800",
        verdict="right",
        wanted=[["a"], [1]],
        tags=("x",),
        **settings,  # type: ignore[arg-type]  # by name
    )


def test_a_later_process_reads_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "run" / "journal.jsonl"
    with Journal(path, resume=False) as journal:
        journal.add(result(1, cost=0.5))
        journal.add(result(2))
    with Journal(path, resume=True) as journal:
        found = [json.dumps(each.as_json()) for each in journal.of_dialogue(KEY).values()]
        assert found == [json.dumps(each.as_json()) for each in (result(1, cost=0.5), result(2))]
        assert journal.of_dialogue((*KEY[:3], "other")) == {}


def test_a_line_that_a_kill_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, resume=False) as journal:
        journal.add(result(1))
        journal.add(result(2))
    whole = path.read_bytes()
    for cut in (1, 40):
        path.write_bytes(whole[:-cut])
        with Journal(path, resume=True) as journal:
            assert [*journal.of_dialogue(KEY)] == [1]
            journal.add(result(2))
        assert path.read_bytes() == whole
    path.write_bytes(whole[:5])
    with Journal(path, resume=True) as journal:
        journal.add(result(1))
    assert path.read_bytes().startswith(b'{"longtable_eval": 1, "about": {}}\n{"model"')


def test_a_run_is_not_mixed_with_another_one(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    other = pytest.raises(ConfigError, match="another `longtable eval` writes to")
    with Journal(path, resume=False), other:
        Journal(path, resume=True)
    with pytest.raises(ConfigError, match="continue it with --resume, replace it with --force"):
        Journal(path, resume=False)


@pytest.mark.parametrize("text", ["hello\n", '{"longtable_eval": 2}\n', "[]\n"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError, match="line 1: this is no journal"):
        Journal(path, resume=True)
    assert path.read_text() == text


def test_a_run_goes_on_with_the_same_settings_only(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, resume=False, about={"database": "a"}) as journal:
        journal.add(result())
    with pytest.raises(ConfigError, match="has database 'a', found 'b': go on with the same"):
        Journal(path, resume=True, about={"database": "b"})
    with Journal(path, resume=True, about={"database": "a"}) as journal:
        assert len(journal.of_dialogue(KEY)) == 1
