"""A conversation in which every lasting type of event is told, kept with what its streams told.

`python -m tests.support.full_talk STORE_FILE` prints the past turns of its thread as JSON, read by
a process of its own.
"""

import json
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.types import interrupt

from longtable.base.concurrency import SYNC, complete
from longtable.base.errors import LongtableError, ProviderUnavailableError
from longtable.base.events import Event
from longtable.graph import (
    CitedText,
    CompactionPolicy,
    Context,
    ContextProvider,
    Conversation,
    Database,
    KnowledgeFolder,
    MemoryTools,
    Persona,
    ResultStore,
    Team,
    Workflow,
    build_graph,
    open_persistence,
)
from longtable.store.locks import locks_of
from tests.support.models import ScriptedModel, call

CONTEXT = Context(model_limit=32_000, max_retries=0, owner="ann")
ROWS = 300
VERIFIED = (
    "-- question: How many people?\n-- checked by: Bo\n-- checked on: 2026-11-27\n"
    "SELECT count(*) FROM people\n"
)
QUERY = "SELECT n, n * 2.5 AS price FROM numbers"
USAGE = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}
Line = AIMessage | Exception


class LineModel(ScriptedModel):
    """Says its lines. One that begins with "Well" is thought over first, and one of a single word
    has its tokens reported.
    """

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for number, chunk in enumerate(super()._stream(*args, **kwargs)):
            if number == 0 and chunk.message.text.startswith("Well "):
                yield _beside(chunk, additional_kwargs={"reasoning_content": "Think first."})
            yield chunk
            if number == 0 and chunk.message.text.endswith("."):
                yield _beside(chunk, usage_metadata=USAGE)


def _beside(chunk: ChatGenerationChunk, **fields: Any) -> ChatGenerationChunk:
    """Return a chunk without text for the message of a chunk."""
    message = AIMessageChunk(content="", id=chunk.message.id, **fields)
    return ChatGenerationChunk(message=message)


@dataclass
class FullTalk:
    """One thread, and the events of each of its turns as they were streamed."""

    folder: Path
    lines: list[Line] = field(default_factory=list)
    spare: list[Line] = field(default_factory=list)
    """What the fallback model says."""
    told: dict[int, list[Event]] = field(default_factory=dict)
    conversation: Any = None

    def ask(
        self, text: str | None, *lines: Line | str, context: Context = CONTEXT, **more: Any
    ) -> list[Event]:
        """Run a turn, or continue it, and note what it told."""
        self.lines += [AIMessage(line) if isinstance(line, str) else line for line in lines]
        conversation: Conversation = self.conversation
        conversation.context = context
        events: list[Event] = []
        try:
            for event in conversation.stream(text, **more):
                events.append(event)
        except LongtableError:
            assert events[-1]["type"] == "failed"
        locks = locks_of(conversation.graph.checkpointer)
        complete(locks.wait_for_job(conversation.thread_id, SYNC))
        events += locks.events_of(conversation.thread_id)
        self.told.setdefault(conversation.turns(start=-1)[0].number, []).extend(events)
        assert not self.lines, "the model was not asked as often as expected"
        return events

    def say(self, _: Sequence[BaseMessage]) -> AIMessage:
        """Say the next line, or fail with it."""
        return _said(self.lines)

    def say_instead(self, _: Sequence[BaseMessage]) -> AIMessage:
        """Say the next line of the fallback model."""
        return _said(self.spare)

    def change_schema(self) -> None:
        """Add a table to the database."""
        with closing(sqlite3.connect(self.folder / "data.db")) as data:
            data.execute("CREATE TABLE added (id INTEGER)")
            data.commit()


def _said(lines: list[Line]) -> AIMessage:
    line = lines.pop(0)
    if isinstance(line, Exception):
        raise line
    return line


def make_database(folder: Path) -> None:
    """Write the database that is asked."""
    with closing(sqlite3.connect(folder / "data.db")) as data:
        data.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
        data.execute("CREATE TABLE numbers (n INTEGER)")
        data.executemany("INSERT INTO people VALUES (?, ?)", [(1, "Ada"), (2, "Bo")])
        data.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(ROWS)])
        data.commit()
    (folder / "knowledge" / "queries").mkdir(parents=True)
    (folder / "knowledge" / "queries" / "people.sql").write_text(VERIFIED)


@contextmanager
def opened(folder: Path, *, team: Team | None = None, thread: str = "t") -> Iterator[FullTalk]:
    """Open a thread over the database of a folder."""
    talk = FullTalk(folder)

    @tool
    def wait() -> str:
        """Wait, while the person says more."""
        return talk.conversation.steer("and in euros", wait=False).status  # type: ignore[no-any-return]

    @tool
    def ask_person(question: str) -> str:
        """Ask the person."""
        return str(interrupt({"question": question}))

    @tool
    def broken() -> str:
        """Break."""
        raise ValueError("it broke")

    def document(_: Any) -> CitedText:
        return CitedText("The year has 365 days.", cites=["calendar"])

    results = ResultStore(folder / "results")
    store = f"sqlite:///{folder / 'chat.db'}"
    with (
        Database.open(f"sqlite:///{folder / 'data.db'}") as database,
        open_persistence(store) as kept,
    ):
        graph = build_graph(
            model=LineModel(say=talk.say),
            database=database,
            results=results,
            tools=[wait, ask_person, broken],
            fallbacks=[] if team else [LineModel(say=talk.say_instead)],
            summarizer=False,
            memory_tools=MemoryTools(pins=True),
            policy=CompactionPolicy(keep_rounds=1),
            team=team,
            hooks=[
                KnowledgeFolder(folder / "knowledge"),
                ContextProvider(name="document", provide=document),
            ],
        ).compile(checkpointer=kept.checkpointer, store=kept.store)
        talk.conversation = Conversation(graph, thread, context=CONTEXT, results=results)
        yield talk


def calls(*each: AIMessage) -> AIMessage:
    """Return one message with the calls of these messages."""
    made = [{**one.tool_calls[0], "id": f"c{place}"} for place, one in enumerate(each)]
    return AIMessage("Let me look. ", tool_calls=made)


def talk_fully(talk: FullTalk) -> None:
    """Run turns that tell every lasting type of event, but those of a team."""
    words = "About herons and otters. " * 20
    talk.ask(
        f"How many numbers? {words}",
        call("run_sql", sql=QUERY),
        call("run_sql", sql="SELECT nothing FROM numbers"),
        call("show_chart", handle="r1", wish="line"),
        f"Well there are 300 numbers, and 17.31 more. {words}",
    )
    talk.ask(
        "How many people? Always answer in euros.",
        calls(
            call("run_sql", sql="SELECT count(*) FROM people"), call("broken"), call("list_tables")
        ),
        call("remember", quote="Always answer in euros."),
        "Two.",
    )
    _decide(talk)
    talk.ask("Wait a little.", call("wait"), "In euros, then.")
    talk.change_schema()
    talk.spare.append(AIMessage("The other model answers."))
    talk.ask("What is new?", ProviderUnavailableError("away"))
    talk.ask("Ask me.", call("ask_person", question="Which year?"))
    talk.ask(None, "2026, then.", answer="2026")
    _remember(talk)
    _fail(talk)
    talk.ask("Bye.", "Bye.")


def _decide(talk: FullTalk) -> None:
    """Let a person approve, change and reject queries."""
    asking = CONTEXT.replace(approve_sql="always")
    people = call("run_sql", sql="SELECT name FROM people")
    talk.ask("Names?", calls(people, people, people), context=asking)
    edited = {"name": "run_sql", "args": {"sql": "SELECT id FROM people"}}
    decisions = [
        {"type": "approve", "by": "Bo"},
        {"type": "edit", "edited_action": edited},
        {"type": "reject", "message": "too many"},
    ]
    talk.ask(None, "Ada and Bo.", answer=decisions, context=asking)


def _remember(talk: FullTalk) -> None:
    """Compact the thread, and bring originals back by the tool."""
    compacted = talk.conversation.compact()
    assert compacted["type"] == "context_compressed", compacted
    talk.told[talk.conversation.turns(start=-1)[0].number].append(compacted)
    talk.ask(
        "What of the herons?",
        call("recall_history", query="herons otters"),
        "You spoke of herons.",
    )


def _fail(talk: FullTalk) -> None:
    """Run a turn that fails, and leave it."""
    talk.spare.append(ProviderUnavailableError("away, too"))
    talk.ask("Will it fail?", ProviderUnavailableError("away"))
    assert talk.conversation.turns(start=-1)[0].status == "provider_unavailable"


TEAM = Team(
    Persona("analyst", "You write SQL.", color="blue"),
    Persona("checker", "You check.", color="red"),
    Persona("reviewer", "You judge."),
    mode=Workflow(),
)


def talk_in_a_team(talk: FullTalk) -> None:
    """Run a turn of three voices."""
    talk.ask(
        "How many people?",
        call("run_sql", sql="SELECT count(*) FROM people"),
        "There are 2 people, not 99.5.",
        "I agree.",
        "The analyst is right.",
    )


def main(file: str) -> None:
    """Print the turns of the thread "t"."""
    with opened(Path(file).parent) as talk:
        print(json.dumps([asdict(turn) for turn in talk.conversation.turns()]))


if __name__ == "__main__":
    main(sys.argv[1])
