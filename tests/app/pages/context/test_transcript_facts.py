"""The facts of archived messages are read once for each thread."""

from longtable.app.pages.context.panel_data import panel_thread
from longtable.app.pages.context.transcript_facts import MOST_THREADS, ArchiveFacts, facts_of
from longtable.graph import CompactionPolicy, Conversation
from tests.app.pages.context.panel_talk import long_talk
from tests.graph.running.test_past_turns import CountingStore
from tests.support.threads import talk, thread

SMALL = CompactionPolicy(retire_after=10)


def test_only_what_was_archived_since_the_last_time_is_read() -> None:
    store = CountingStore()
    conversation = thread(store=store, policy=SMALL)
    talk(conversation, 40)
    archive = ArchiveFacts()
    first = panel_thread(conversation, archive)
    assert list(first.facts) == list(map(facts_of, conversation.history()))
    archived = first.thread.archived
    assert archived > 40
    store.read = 0
    assert panel_thread(conversation, archive).facts == first.facts
    assert store.read <= 6
    talk(conversation, 4)
    store.read = 0
    later = panel_thread(conversation, archive)
    assert store.read <= 6 + later.thread.archived - archived
    assert list(later.facts) == list(map(facts_of, conversation.history()))


def test_a_thread_in_the_place_of_a_deleted_one_has_facts_of_its_own() -> None:
    archive = ArchiveFacts()
    conversation = long_talk(30, policy=SMALL)
    before = panel_thread(conversation, archive)
    conversation.delete()
    talk(conversation, 30)
    after = panel_thread(conversation, archive)
    assert list(after.facts) == list(map(facts_of, conversation.history()))
    assert after.facts[0].id != before.facts[0].id


def test_facts_of_few_threads_are_kept() -> None:
    archive = ArchiveFacts()
    conversation = long_talk(14, policy=SMALL)
    for number in range(MOST_THREADS + 1):
        archive._keep(f"t{number}", ())
    panel_thread(conversation, archive)
    assert len(archive._kept) == MOST_THREADS
    assert "t0" not in archive._kept


def test_a_new_conversation_has_no_archive() -> None:
    conversation: Conversation = long_talk(1)
    assert len(panel_thread(conversation, ArchiveFacts()).facts) == 2
