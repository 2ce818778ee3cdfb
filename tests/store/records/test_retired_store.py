"""Folded messages retire to the archive: the live channel stays short, the transcript stays
whole.
"""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import ConfigError, UndoTooFarError
from longtable.graph import CompactionPolicy, Conversation, build_graph, open_persistence
from longtable.memory.messages.marks import EXCLUDED, kind_of
from tests.support.threads import CONTEXT, of_type, summariser, talk, talker, thread, values_of

SHORT = CompactionPolicy(retire_after=16)


def asked(conversation: Conversation, **page: int) -> list[str]:
    return [m.text.split()[0] for m in conversation.history(**page) if m.type == "human"]


def test_compacted_messages_retire_and_history_still_has_all_in_order() -> None:
    conversation = thread(policy=SHORT)
    events = talk(conversation, 60)
    values = values_of(conversation)
    assert len(values["messages"]) <= 40
    assert values["archive"]["count"] + len(values["messages"]) == 120
    assert (
        sum(event["messages"] for event in of_type(events, "messages_retired"))
        == values["archive"]["count"]
    )
    assert asked(conversation) == [f"q{n}" for n in range(60)]


def test_history_comes_in_pages_across_archive_and_live_messages() -> None:
    conversation = thread(policy=SHORT)
    talk(conversation, 30)
    whole = conversation.history()
    archived = values_of(conversation)["archive"]["count"]
    assert 0 < archived < 60
    pages = [conversation.history(start=start, limit=7) for start in range(1, 61, 7)]
    assert list(itertools.chain(*pages)) == whole
    assert conversation.history(start=archived, limit=2) == whole[archived - 1 : archived + 1]
    assert conversation.history(start=61) == []
    with pytest.raises(ConfigError, match="start=0"):
        conversation.history(start=0)


def test_retired_messages_are_the_ones_that_were_said_byte_for_byte() -> None:
    kept, retiring = thread(policy=CompactionPolicy(retire_after=None)), thread(policy=SHORT)
    for conversation in (kept, retiring):
        talk(conversation, 40)
    assert values_of(retiring)["archive"]["count"] > 0
    for one, other in zip(kept.history(), retiring.history(), strict=True):
        assert (one.type, one.content) == (other.type, other.content)
    assert kept.view()[1:][-1].content == retiring.view()[1:][-1].content


def test_the_memory_is_made_from_retired_originals_too() -> None:
    summarizer = summariser()
    conversation = thread(
        summarizer=summarizer, policy=CompactionPolicy(retire_after=16, rebuild_every=4)
    )
    talk(conversation, 50)
    rebuilt = [record for record in values_of(conversation)["compactions"] if record["rebuilt"]]
    assert rebuilt
    read = [sent[-1].text for sent in summarizer.sent if "(none)" in sent[-1].text]
    assert all("[m1] human: q0" in text for text in read)


def test_a_retired_message_can_be_excluded_and_included() -> None:
    conversation = thread(policy=SHORT)
    talk(conversation, 40)
    first = conversation.history(limit=1)[0]
    conversation.exclude(str(first.id))
    assert [kind_of(m) for m in conversation.history(limit=2)] == [EXCLUDED, "normal"]
    assert conversation.compact() is not None or talk(conversation, 6, start=40)
    assert "q0 " not in conversation.view()[0].text
    conversation.include(str(first.id))
    assert kind_of(conversation.history(limit=1)[0]) == "normal"


def test_the_newest_compaction_can_be_undone_and_those_before_cannot_once_retired() -> None:
    conversation = thread(policy=SHORT)
    talk(conversation, 40)
    assert values_of(conversation)["archive"]["count"] > 0
    assert conversation.undo() is not None
    assert asked(conversation) == [f"q{n}" for n in range(40)]
    with pytest.raises(UndoTooFarError):
        list(iter(conversation.undo, None))


def test_without_a_store_nothing_retires() -> None:
    graph = build_graph(model=talker(), policy=SHORT).compile(checkpointer=InMemorySaver())
    conversation = Conversation(graph, "t", context=CONTEXT)
    talk(conversation, 30)
    assert len(values_of(conversation)["messages"]) == 60


def test_a_thread_that_retired_says_what_it_needs_when_its_store_is_missing() -> None:
    conversation = thread(policy=SHORT)
    talk(conversation, 40)
    saver: Any = conversation.graph.checkpointer
    bare = Conversation(
        build_graph(model=talker(), policy=SHORT).compile(checkpointer=saver), "t", context=CONTEXT
    )
    with pytest.raises(ConfigError, match="store"):
        bare.history()
    assert bare.view() == conversation.view()
    assert bare.ask("and on").status == "answered"


def test_a_kill_between_writing_and_removing_loses_and_doubles_nothing() -> None:
    """The store is written, then the run dies before its checkpoint: the next preparation writes
    the same numbers again.
    """

    class Dying(InMemoryStore):
        deaths = 3

        def batch(self, ops: Any) -> Any:
            ops = list(ops)
            done = super().batch(ops)
            archives = any(op.namespace[1] == "archive" for op in ops if hasattr(op, "value"))
            if archives and Dying.deaths:
                Dying.deaths -= 1
                raise KeyboardInterrupt
            return done

    conversation = thread(store=Dying(), policy=SHORT)
    n = 0
    while n < 40:
        try:
            talk(conversation, 1, start=n)
        except KeyboardInterrupt:
            # The answer was given: only the preparation is missing.
            assert not conversation.pending()
        n += 1
    assert Dying.deaths == 0
    assert asked(conversation) == [f"q{n}" for n in range(40)]
    assert len({m.id for m in conversation.history()}) == 80


def test_a_real_file_async_keeps_the_whole_transcript_over_a_restart(tmp_path: Path) -> None:
    async def session(start: int, turns: int) -> list[str]:
        async with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
            graph = build_graph(model=talker(), policy=SHORT).compile(
                checkpointer=kept.checkpointer, store=kept.store
            )
            conversation = Conversation(graph, "t", context=CONTEXT)
            for n in range(start, start + turns):
                await conversation.aask(f"q{n} " + "w " * 82)
            return [m.text.split()[0] for m in await conversation.ahistory() if m.type == "human"]

    assert asyncio.run(session(0, 20)) == [f"q{n}" for n in range(20)]
    assert asyncio.run(session(20, 20)) == [f"q{n}" for n in range(40)]


def test_an_embedding_server_that_is_down_keeps_nothing_from_retiring() -> None:
    class Down(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise ConnectionError("no embeddings today")

    store = InMemoryStore(index={"dims": 8, "embed": Down(size=8), "fields": ["text"]})
    conversation = thread(store=store, policy=SHORT)
    talk(conversation, 40)
    assert values_of(conversation)["archive"]["count"] > 0
    assert asked(conversation) == [f"q{n}" for n in range(40)]


def test_any_thread_id_can_compact_and_retire() -> None:
    conversation = thread(policy=SHORT, thread_id="ann.lee@example.com/50%")
    assert of_type(talk(conversation, 30), "context_compressed")
    assert values_of(conversation)["archive"]["count"] > 0
    assert asked(conversation) == [f"q{n}" for n in range(30)]


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{folder}/t.db"])
def test_a_client_that_sends_the_whole_transcript_again_adds_only_what_is_new(
    url: str, tmp_path: Path
) -> None:
    with open_persistence(url.format(folder=tmp_path)) as kept:
        conversation = thread(policy=SHORT, saver=kept.checkpointer, store=kept.store)
        talk(conversation, 30)
        whole = conversation.history()
        assert values_of(conversation)["archive"]["count"] > 6
        bare: Any = [type(message)(content=message.content, id=message.id) for message in whole]
        conversation.graph.invoke(
            {"messages": [*bare, HumanMessage("q30 the new one")]},
            conversation.config,
            context=CONTEXT,
        )
        assert [m.text for m in conversation.history()[:-2]] == [m.text for m in whole]
        assert asked(conversation) == [f"q{n}" for n in range(31)]


def test_a_retired_message_sent_again_alone_opens_no_turn() -> None:
    conversation = thread(policy=SHORT)
    talk(conversation, 30)
    first = conversation.history(limit=1)[0]
    before = conversation.history()
    given: Any = {"messages": [HumanMessage(first.text, id=first.id)]}
    conversation.graph.invoke(given, conversation.config, context=CONTEXT)
    assert conversation.history() == before
