"""Names of stored data: none disappears, from the list or from the code."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from longtable.base import stored
from longtable.graph.export.thread_file import FORMAT
from longtable.graph.thread_state import NODES, OWNER
from longtable.graph.transcripts import REDUCING
from longtable.memory.messages.call_reports import AnswerReport, ToolReport
from longtable.memory.messages.marks import COLLEAGUE, EXCLUDED, RECALLED, STEERED, SUMMARY
from longtable.memory.pins.pins import Pin, PinEnd
from longtable.memory.records import Compaction, CompactionReport
from longtable.memory.thread import Edit
from longtable.nodes import state
from longtable.nodes.tally import Tally
from longtable.tools.results.result_store import DATA, META

ROOT = Path(__file__).parents[2]
WRITTEN_BY_0_1_0 = {
    "channels": "messages compactions edits archive learned brief usage turn",
    "nodes": "ingest estimate compact respond run_tools approve settle prepare",
    "kinds": "archive archived compactions records inbox audit recall",
}
"""Copied by hand: the list itself must not forget them."""
TYPES: dict[str, Any] = {
    "Compaction": Compaction,
    "CompactionReport": CompactionReport,
    "ToolReport": ToolReport,
    "AnswerReport": AnswerReport,
    "Edit": Edit,
    "PinEnd": PinEnd,
    "Turn": state.Turn,
    "StoredConfig": state.StoredConfig,
    "StoredVoice": state.StoredVoice,
    "Schema": state.Schema,
    "Learned": state.Learned,
    "Approval": state.Approval,
    "ArchiveCount": state.ArchiveCount,
    "Tally": Tally,
}


def product_text() -> str:
    rooms = ("base", "memory", "store", "tools", "nodes", "graph", "app")
    paths = [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    return "\n".join(path.read_text() for path in paths if path.name != "stored.py")


def test_the_first_versions_names_are_all_listed() -> None:
    assert set(WRITTEN_BY_0_1_0["channels"].split()) <= set(stored.CHANNELS)
    assert set(WRITTEN_BY_0_1_0["nodes"].split()) <= set(stored.NODES)
    assert set(WRITTEN_BY_0_1_0["kinds"].split()) <= set(stored.KINDS)


def test_the_channels_of_the_state_are_the_stored_ones() -> None:
    assert set(get_type_hints(state.State)) == set(stored.CHANNELS)


def test_the_nodes_of_the_graph_are_the_stored_ones() -> None:
    assert set(NODES) == set(stored.NODES)


@pytest.mark.parametrize("name", TYPES)
def test_a_record_has_every_stored_key_and_no_other(name: str) -> None:
    assert set(get_type_hints(TYPES[name])) == set(stored.KEYS[name].split())


def test_a_pin_is_stored_with_its_keys() -> None:
    apart = {"ended"}
    assert {field.name for field in fields(Pin)} - apart == set(stored.KEYS["Pin"].split())


def test_namespaces_are_written_as_before() -> None:
    assert stored.THREADS == ("longtable", "threads")
    assert stored.BELLS == ("longtable", "bells")
    assert stored.USAGE == ("longtable", "usage")
    assert stored.TURNS == ("longtable", "turns")
    assert stored.KNOWLEDGE == ("longtable", "knowledge")
    assert stored.MEANINGS == ("longtable", "meanings")
    assert stored.CHECKPOINT == "checkpoint"
    assert stored.thread_namespace("archive", "a.b%") == ("longtable", "archive", "a%2Eb%25")
    assert stored.thread_namespace("inbox", "t\x1fnode") == ("longtable", "inbox", "t", "node")


def test_kinds_of_messages_are_the_stored_ones() -> None:
    kinds = {RECALLED, STEERED, COLLEAGUE, EXCLUDED, SUMMARY}
    assert kinds == set(stored.KINDS_OF_MESSAGES)


@pytest.mark.parametrize("name", [*stored.MARKS, *stored.TABLES])
def test_a_mark_and_a_table_stand_in_the_code_under_their_name(name: str) -> None:
    assert re.search(rf"""["' ]{name}["' ]|\b{name}=""", product_text()), name


def test_files_metadata_and_the_export_have_their_names() -> None:
    assert (DATA, META) == stored.RESULT_FILES
    assert (OWNER, REDUCING) == stored.METADATA
    assert FORMAT == stored.EXPORT_FORMAT
