"""Each line of the memory is there word for word and names the originals that it stands on."""

from langchain_core.messages import AIMessage, HumanMessage

from longtable.app.pages.context.memory_lines import Sources, memory_lines
from longtable.app.pages.context.transcript_facts import facts_of
from longtable.memory.compaction.ledger import LedgerLine, render_ledger
from longtable.memory.messages.marks import marked
from longtable.memory.pins.pin_lines import render_pins
from longtable.memory.pins.pins import Pin, make_pin
from longtable.memory.summary.summary_text import render_memory
from tests.app.pages.context.panel_talk import data_of, long_talk

QUESTION = marked(HumanMessage("Always in dollars.", id="q"), turn=1)
TRANSCRIPT = [QUESTION, marked(AIMessage("Yes.", id="a"), turn=1)]


def lines_of(text: str, pins: list[Pin], messages: int = 2) -> dict[str, list[tuple[int, int]]]:
    lines = memory_lines(
        render_memory(text, "en"),
        Sources.of(list(map(facts_of, TRANSCRIPT)), pins),
        messages=messages,
    )
    written = render_memory(text, "en").split("\n")[1:-1]
    assert ["".join(piece.text for piece in line.pieces) for line in lines] == [
        line for line in written if line.strip()
    ]
    return {
        "".join(piece.text for piece in line.pieces): [
            (piece.first, piece.last) for piece in (*line.pieces, *line.sources) if piece.first
        ]
        for line in lines
    }


def test_a_conversations_memory_opens_its_originals() -> None:
    data = data_of(long_talk(12))
    text = next(part.text for part in data.parts if part.kind == "memory")
    shown = ["".join(piece.text for piece in line.pieces) for line in data.memory.lines]
    assert shown == [line for line in text.split("\n")[1:-1] if line.strip()]
    cited = [piece for line in data.memory.lines for piece in line.pieces if piece.first]
    assert ("m1-m2", 1, 2) in [(piece.text, piece.first, piece.last) for piece in cited]
    assert all(1 <= piece.first <= piece.last <= data.messages for piece in cited)
    assert data.memory.covered > 0


def test_citations_are_links_and_other_words_are_not() -> None:
    text = "## Facts\n- one [m1] and two [m1, m2] and [m1-m2]\n- none [m9], [x](m1) [m99999999]"
    found = lines_of(text, [])
    assert found["- one [m1] and two [m1, m2] and [m1-m2]"] == [(1, 1), (1, 2), (1, 2)]
    assert found["- none [m9], [x](m1) [m99999999]"] == []


def test_runs_apart_are_links_apart() -> None:
    found = lines_of("- three [m1, m3-m4]", [], messages=9)
    assert found["- three [m1, m3-m4]"] == [(1, 1), (3, 4)]


def test_the_example_of_the_introduction_is_no_link() -> None:
    found = lines_of("- x", [], messages=50)
    intro = next(line for line in found if "[m12] is message 12" in line)
    assert found[intro] == []


def test_pins_and_queries_name_where_they_come_from() -> None:
    pins = [make_pin("Always in dollars.", QUESTION, by="model"), make_pin("By hand.", turn=1)]
    query = LedgerLine(1, "How many?", "SELECT 1", rows=1)
    unknown = LedgerLine(7, "Why?", "SELECT 7", rows=1)
    text = f"{render_pins(pins, 'en')}\n{render_ledger([query, unknown], 'en')}"
    found = lines_of(text, pins)
    spans = {line[:12]: spans for line, spans in found.items()}
    assert spans['- "Always in'] == [(1, 1)]
    assert spans['- "By hand."'] == []
    assert spans['- T1 "How ma'] == [(1, 2)]
    assert spans['- T7 "Why?" '] == []
