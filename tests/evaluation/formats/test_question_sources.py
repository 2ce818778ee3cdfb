"""Files and folders of each format, by their names."""

import json
from pathlib import Path

import pytest

from longtable.base.errors import ConfigError
from longtable.evaluation.formats.question_sources import read_sources
from tests.support.evaluated import make_shop


def test_each_kind_is_read_and_doubled_ids_get_a_number(tmp_path: Path) -> None:
    (tmp_path / "q.toml").write_text('[[question]]\nid = "total"\nask = "?"\nsql = "SELECT 1"')
    (tmp_path / "strict.toml").write_text(
        '[bar]\nquestions = 0.5\n[[question]]\nask = "!"\nsql = "SELECT 1"'
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "total.yml").write_text("name: total\nprompt: x\nsql: SELECT 1")
    (tmp_path / "taught" / "queries").mkdir(parents=True)
    (tmp_path / "taught" / "queries" / "kept.sql").write_text("-- question: Kept?\nSELECT 1")
    make_shop(tmp_path / "shop.sqlite")
    entry = {"db_id": "shop", "question": "How many?", "query": "SELECT 1"}
    (tmp_path / "dev.json").write_text(json.dumps([entry]))
    names = ("q.toml", "strict.toml", "tests", "taught", "tests/total.yml", "dev.json")
    found = read_sources([tmp_path / name for name in names], databases=tmp_path)
    assert not found.problems
    ids = [dialogue.id for dialogue in found.dialogues]
    assert ids == ["total", "!", "total#2", "kept", "total#3", "shop-1"]
    assert found.bar.questions == 0.5


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("x")
    (tmp_path / "q.toml").write_bytes(b"\n\xff")
    with pytest.raises(ConfigError, match="questions are read from"):
        read_sources([tmp_path / "q.txt"])
    with pytest.raises(ConfigError, match="line 2: this is not UTF-8"):
        read_sources([tmp_path / "q.toml"])
    with pytest.raises(ConfigError, match="No such file"):
        read_sources([tmp_path / "gone.toml"])
    with pytest.raises(ConfigError, match="questions are read from"):
        read_sources([tmp_path / "gone"])
