"""What a person excludes is in no call from the next one on; topics keep their ids and versions
through it all.
"""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.graph import (
    CompactionPolicy,
    Context,
    ContextProvider,
    Conversation,
    MemoryTools,
    build_graph,
)
from longtable.nodes.calling.context_providers import ContextRequest
from tests.support.models import ScriptedModel, call
from tests.support.threads import CONTEXT, of_type, summariser, talk, talker, thread, values_of

WIDE = CONTEXT.replace(model_limit=8_000)
SUBJECTS = {
    "budget": "How is the Kingfisher budget split between tables budget and costs?",
    "staff": "Which staff of the employees table work in Lyon?",
    "shipping": "How long do the orders of the shipping table travel to Norway?",
}
BY_SUBJECT = CompactionPolicy(
    strategy="topics",
    trigger_messages=8,
    min_messages=0,
    keep_rounds=1,
    keep_messages=2,
    ahead=False,
)


def sent_after(conversation: Conversation, model: ScriptedModel) -> str:
    """Return all that the next call is sent."""
    conversation.ask("short")
    return "\n".join(str(message.content) for message in model.sent[-1])


def message_of(conversation: Conversation, words: str) -> str:
    return next(str(message.id) for message in conversation.history() if words in message.text)


def wandering(model: ScriptedModel, rounds: int, **more: Any) -> Conversation:
    conversation = thread(model, policy=BY_SUBJECT, **more)
    conversation.context = WIDE
    for n in range(rounds):
        for question in SUBJECTS.values():
            conversation.ask(f"{question} Part {n}.")
    return conversation


def test_lines_that_cite_it_or_nothing_leave_the_summary_at_once_and_the_others_stay() -> None:
    summary = """## Facts and findings
- the badge is 4711 [m1]
- numbers and a badge 4711 were named [m1-m4]
- somebody has a badge, 4711
- the second question was q1 [m3]
## Decisions
- none of the badge [m5, m1]"""
    model = talker()
    conversation = thread(
        model,
        summarizer=summariser(lambda _: AIMessage(summary)),
        policy=CompactionPolicy(ahead=False),
    )
    conversation.ask("q0 my badge is 4711")
    talk(conversation, 9, start=1)
    assert conversation.compact() is not None
    assert "4711" in conversation.view()[0].text
    conversation.exclude(message_of(conversation, "my badge is 4711"))
    shown = sent_after(conversation, model)
    assert "4711" not in shown
    assert "badge" not in shown
    assert "the second question was q1 [m3]" in shown
    conversation.include(message_of(conversation, "my badge is 4711"))
    assert "4711" in conversation.view()[0].text or "badge" not in str(
        values_of(conversation)["compactions"][-1]
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_topic_sections_titles_and_summaries_leave_at_once_and_the_topic_keeps_its_id(
    language: str,
) -> None:
    secret, words = {
        "en": (
            "How much was paid for the Zanzibar villa in the payments table?",
            ["Zanzibar", "villa"],
        ),
        "zh": ("桑给巴尔别墅在付款表里付了多少钱？", ["桑给巴尔", "别墅"]),
    }[language]
    model = ScriptedModel(
        say=lambda sent: AIMessage(f"It was {len(sent[-1].text)}. " + "And so on. " * 30)
    )
    conversation = thread(model, policy=BY_SUBJECT)
    conversation.context = WIDE
    conversation.ask(secret)
    for question in SUBJECTS.values():
        conversation.ask(question)
    assert conversation.compact() is not None
    assert all(word in conversation.view()[0].text for word in words)
    before = conversation.topics()
    conversation.exclude(message_of(conversation, secret))
    assert not any(word in str(conversation.topics()) for word in words)
    shown = sent_after(conversation, model)
    assert not any(word in shown for word in words)
    assert "Kingfisher" in shown
    assert conversation.compact() is not None
    after = {topic.id: topic for topic in conversation.topics()}
    assert [topic.id for topic in before] == list(after)[: len(before)]
    for topic in before:
        versions = after[topic.id].versions[: topic.version]
        assert [each.version for each in versions] == [each.version for each in topic.versions]
        touched = any(word in f"{topic.title}{topic.artifact}" for word in words)
        assert after[topic.id].version > topic.version or not touched
        assert versions == topic.versions or touched
    assert not any(word in str(conversation.topics()) for word in words)
    assert not any(word in sent_after(conversation, model) for word in words)
    conversation.include(message_of(conversation, secret))
    conversation.ask("short again")
    assert conversation.compact() is not None
    assert all(word in conversation.view()[0].text for word in words)
    again = {topic.id: topic for topic in conversation.topics()}
    assert all(again[topic.id].versions[: topic.version] == topic.versions for topic in before)


@pytest.mark.parametrize("by", ["code", "model"])
def test_topics_keep_ids_and_versions_through_many_compactions_exclusions_and_merges(
    by: str,
) -> None:
    def file(sent: Any) -> AIMessage:
        """Answer as a filer that names the first subject it sees, and finds it again by its
        name.
        """
        if "<memory-new>" in sent[-1].text:
            return AIMessage('{"topic": null}')
        found = []
        for subject in SUBJECTS:
            numbers = [
                int(line[2 : line.index("]")])
                for line in sent[-1].text.splitlines()
                if line.startswith("[m") and subject in line
            ]
            section = {
                "title": f"About {subject}",
                "sources": numbers,
                "body": f"{subject} was asked for",
            }
            found += (
                [{"title": subject.title(), "summary": subject, "sections": [section]}]
                if numbers
                else []
            )
        return AIMessage(json.dumps({"topics": found}))

    saver, store = InMemorySaver(), InMemoryStore()
    conversation = wandering(
        talker(),
        4,
        saver=saver,
        store=store,
        **({"summarizer": summariser(file)} if by == "model" else {}),
    )
    first = {topic.id: topic.versions[0] for topic in conversation.topics()}
    assert len(first) >= (3 if by == "model" else 1)
    for n in range(4, 18):
        for question in SUBJECTS.values():
            conversation.ask(f"{question} Part {n}.")
        if n % 4 == 0:
            conversation.exclude(message_of(conversation, f"{SUBJECTS['staff']} Part {n - 3}."))
        known = {topic.id: topic for topic in conversation.topics()}
        assert first.keys() <= known.keys()
        assert {known[id_].versions[0].time for id_ in first} == {
            topic.time for topic in first.values()
        }
        assert all(
            [each.version for each in topic.versions] == list(range(1, topic.version + 1))
            for topic in known.values()
        )
    records = values_of(conversation)["compactions"]
    assert len(records) > 5
    assert not any(record["rebuilt"] for record in records)
    if by == "model":
        assert sorted(topic.title for topic in conversation.topics()) == [
            "Budget",
            "Shipping",
            "Staff",
        ]


def test_the_event_of_a_compaction_names_the_topics_it_filed_into() -> None:
    conversation = wandering(talker(), 1)
    events = [
        dict(event)
        for event in conversation.stream(
            "And who works in Paris, of the staff of the employees table?"
        )
    ]
    events += talk(conversation, 4, start=1, words=2)
    filed = of_type(events, "context_compressed")[0]["topics"]
    assert filed == {topic.id: topic.title for topic in conversation.topics() if topic.id in filed}
    assert filed
    assert "topics" not in of_type(talk(thread(), 14), "context_compressed")[0]


def test_copies_that_recall_made_are_blanked_and_the_others_of_the_same_answer_stay() -> None:
    def say(sent: Any) -> AIMessage:
        if sent[-1].text.startswith("recall"):
            return call("recall_history", "c1", query="badge")
        return AIMessage("done" if isinstance(sent[-1], ToolMessage) else "noted")

    conversation = thread(
        model := ScriptedModel(say=say),
        memory_tools=MemoryTools(recall=True),
        policy=CompactionPolicy(strategy="window", keep_messages=6),
    )
    conversation.context = WIDE
    conversation.ask("my badge is 4711")
    conversation.ask("your badge is 0815")
    talk(conversation, 6, words=2)
    conversation.ask("recall")
    assert "4711" in sent_after(conversation, model)
    conversation.exclude(message_of(conversation, "my badge is 4711"))
    shown = sent_after(conversation, model)
    assert "4711" not in shown
    assert "0815" in shown
    assert "4711" in str(conversation.history())


def test_the_ledger_forgets_the_question_of_the_turn() -> None:
    @tool
    def run(sql: str) -> str:
        """Run."""
        return json.dumps({"sql": sql, "columns": ["n"], "rows": [[1]], "row_count": 1})

    def say(sent: Any) -> AIMessage:
        if isinstance(sent[-1], ToolMessage) or not sent[-1].text.startswith("count"):
            return AIMessage("noted " + "a " * 82)
        return call("run", f"c{len(sent)}", sql="SELECT count(*) FROM t")

    conversation = thread(
        model := ScriptedModel(say=say), tools=[run], policy=CompactionPolicy(ahead=False)
    )
    conversation.ask("count what Zanzibar has")
    talk(conversation, 9)
    assert conversation.compact() is not None
    assert "Zanzibar" in sent_after(conversation, model)
    conversation.exclude(message_of(conversation, "Zanzibar"))
    shown = sent_after(conversation, model)
    assert "Zanzibar" not in shown
    assert "SELECT count(*) FROM t" in shown


def test_a_context_provider_is_not_handed_what_was_excluded() -> None:
    handed: list[str] = []

    def provide(request: ContextRequest) -> str:
        handed.append(str(request.messages))
        return ""

    provider = ContextProvider(name="echo", provide=provide)
    graph = build_graph(model=talker(), hooks=[provider]).compile(checkpointer=InMemorySaver())
    conversation = Conversation(graph, "t", context=Context(model_limit=8_000))
    conversation.graph.invoke(
        {"messages": [HumanMessage("my badge is 4711")]},
        conversation.config,
        context=conversation.context,
    )
    conversation.exclude(message_of(conversation, "4711"))
    conversation.ask("and now?")
    assert "4711" in handed[0]
    assert "4711" not in handed[1]
