"""Run a chat: its turns, its commands, and the lines that the person types."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from longtable.app.commands.chat_commands import YES, Commands, LeaveChat, completions
from longtable.app.console.prompt import Prompt
from longtable.app.console.screen import Screen
from longtable.app.console.streams import language_of
from longtable.app.console.token_counts import limit_for, limit_needed
from longtable.app.console.translations import say
from longtable.app.session import Progress, Session, open_session, thread_state
from longtable.app.settings.run_settings import Settings, check_text, history_file
from longtable.base.errors import THE_MESSAGE, ContextTooLargeError
from longtable.base.events import ActionRequest, Event
from longtable.nodes.state import State, values_of

_NO = re.compile(
    r"(?:no?|否|不|拒绝)(?:[\s,:;.!，：；。！]+(?P<reason>.*))?", re.IGNORECASE | re.DOTALL
)
_EDIT = re.compile(r"(?:e|edit|改|修改)(?:[\s:：]+(?P<sql>.*))?", re.IGNORECASE | re.DOTALL)


@dataclass
class Approval:
    """The calls that wait for a decision, and the decisions so far, in the same order."""

    actions: Sequence[ActionRequest]
    decisions: list[dict[str, Any]] = field(default_factory=list)
    editing: bool = False
    """Whether the next line is the SQL that must run instead."""

    @property
    def number(self) -> int:
        """Return the number of the call that is being decided, counted from 1."""
        return len(self.decisions) + 1

    @property
    def complete(self) -> bool:
        """Return whether every call has its decision."""
        return len(self.decisions) == len(self.actions)

    def take(self, line: str) -> bool:
        """Take a line as a decision. Return False if the line is not a decision, and so a new
        message.
        """
        if self.editing:
            self._edit(line)
        elif YES.fullmatch(line):
            self.decisions.append({"type": "approve"})
        elif no := _NO.fullmatch(line):
            self.decisions.append({"type": "reject", "message": no["reason"] or ""})
        elif edit := _EDIT.fullmatch(line):
            if edit["sql"]:
                self._edit(edit["sql"])
            else:
                self.editing = True
        else:
            return False
        return True

    def _edit(self, sql: str) -> None:
        action = self.actions[len(self.decisions)]
        self.decisions.append(
            {
                "type": "edit",
                "edited_action": {"name": action["name"], "args": {**action["args"], "sql": sql}},
            }
        )
        self.editing = False


MOST_LINE = 1_000_000
"""The most bytes that are read of one piped line. The rest of a longer line is skipped."""


@dataclass(frozen=True)
class BadLine:
    """A piped line that cannot be a message."""

    number: int
    key: str
    values: dict[str, object]

    def sentence(self, language: str) -> str:
        """Return a sentence that tells what is wrong with the line."""
        return say(
            "line", language, number=self.number, reason=say(self.key, language, **self.values)
        )


@dataclass
class Course:
    """How a turn went: whether it began, called tools, got the result of a query, and ended with an
    answer and not with a notice.
    """

    began: bool = False
    called: bool = False
    queried: bool = False
    answered: bool = False
    cut_off: bool = False
    """Whether the provider cut the answer off at its token limit."""
    waits: bool = False
    """Whether the turn ended with calls that wait for approval."""

    def note(self, event: Event) -> None:
        """Record one event of the turn."""
        self.began = True
        if event["type"] in {"tool_started", "query_started"}:
            self.called = True
        if event["type"] == "query_finished":
            self.queried |= event["status"] == "success"
        if event["type"] == "answer":
            self.answered = event["status"] == "answered"
            self.cut_off = event["status"] == "cut_off"
            self.waits = event["status"] == "approval_requested"


class Chat:
    """One session, driven by synchronous code, so that the prompt and Ctrl-C work as usual."""

    def __init__(
        self, settings: Settings, screen: Screen, progress: Progress, *, answering: bool = True
    ) -> None:
        self.settings = settings
        self.screen = screen
        self.progress = progress
        self.answering = answering
        """Whether more input can come, so that a person can answer a question of the turn."""
        self.approval: Approval | None = None
        self.correction = ""
        self.shown_pair = ("", "")
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.session: Session

    def __enter__(self) -> "Chat":
        self.runner.__enter__()
        try:
            self.session = self.runner.run(
                self.stack.enter_async_context(open_session(self.settings, self.progress))
            )
        except BaseException:
            self.runner.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self.runner.run(self.stack.aclose())
        finally:
            self.runner.close()

    def resume(self) -> None:
        """Finish an interrupted turn and tell the person so."""
        if self.runner.run(self.session.conversation.aapprovals()):
            if self.answering:
                self.screen.note("approval_waits")
                self._play(self.session.conversation.astream())
            else:
                self.screen.note("approval_given_up")
        elif self.runner.run(self.session.conversation.apending()):
            self.screen.note("resuming")
            self._play(self.session.conversation.astream())

    def begin(self, failed: Callable[[Exception], None]) -> None:
        """Resume an interrupted turn at the start of a chat. Neither an error nor Ctrl-C ends the
        chat here.
        """
        try:
            self.resume()
        except KeyboardInterrupt:
            self.screen.note("cancelled")
        except Exception as error:
            failed(error)

    def turn(self, text: str) -> bool:
        """Run one turn, and return whether it came to an answer. Raises the `LongtableError` of the
        turn if it failed, `KeyboardInterrupt` if Ctrl-C cancelled it.
        """
        self.correction = ""  # it was for the question before
        self.screen.language = language_of(text)
        check_text(text)
        self.screen.asked(text)
        try:
            course = self._play(self.session.conversation.astream(text))
        except ContextTooLargeError as error:
            if error.what == THE_MESSAGE:
                raise
            self._limit_too_small("limit_below_tools", limit_for(error.need))
            return False
        return self._ended(course)

    def retry(self) -> None:
        """Run the newest turn again if it failed. Raises the `LongtableError` of the turn if it
        fails again.
        """
        course = self._play(self.session.conversation.astream())
        if course.began:
            self._ended(course)
        else:
            self.screen.note("nothing_to_retry")

    def _ended(self, course: Course) -> bool:
        if course.waits:
            return False
        if course.cut_off:
            self.screen.complain(say("cut_off", self.screen.language), code="cut_off")
            return False
        if course.answered and (course.queried or not course.called):
            return True
        # What tools returned was cut for the call to fit, and no query came of it: nobody can
        # answer from that.
        need = limit_needed(self.values(), self.session.conversation.context)
        if need is not None:
            self._limit_too_small("limit_too_small", need)
        return course.answered and need is None

    def _limit_too_small(self, key: str, need: int) -> None:
        self.screen.complain(
            say(key, self.screen.language, need=f"{need:,}", number=need), code="limit_too_small"
        )

    def _play(self, events: AsyncGenerator[Event, None]) -> "Course":
        course = Course()

        async def play() -> None:
            async with aclosing(events):
                # Lets go of the thread at once, also where the screen fails.
                last: Event | None = None
                async for last in events:
                    self.screen.event(last)
                if last is not None:
                    # Else another process had finished the turn by the time the thread was free.
                    course.note(last)

        try:
            # Ctrl-C cancels the task, hence model call and query, and raises KeyboardInterrupt
            self.runner.run(play())
        finally:
            self.screen.finish()
        if course.waits:
            self.approval = Approval(self.runner.run(self.session.conversation.aapprovals()))
            self._question()
        return course

    def _question(self) -> None:
        """Ask for the next decision if one is missing."""
        if self.approval is None or not self.answering:
            return
        count = len(self.approval.actions)
        key = (
            "approval_sql"
            if self.approval.editing
            else "approval_ask"
            if count == 1
            else "approval_ask_of"
        )
        self.screen.note(key, number=self.approval.number, count=count)

    def _decide(self, text: str, approval: Approval) -> None:
        if not approval.take(text):  # another message instead: it rejects what waits
            self.approval = None
            self.screen.note("approval_replaced")
            self.turn(text)
        elif not approval.complete:
            self._question()
        else:
            self.approval = None
            self._ended(self._play(self.session.conversation.astream(answer=approval.decisions)))

    def left_waiting(self) -> None:
        """When the chat ends, tell the person that queries still wait for a decision, and how to
        give it.
        """
        if self.approval is not None:
            key = "approval_left" if self.answering else "approval_needed"
            self.screen.complain(
                say(key, self.screen.language, id=self.settings.continued(self.session.thread_id)),
                code="approval_requested",
            )

    def line(self, text: str) -> None:
        """Run one line that the person typed: a command or a message. Raises `LeaveChat`,
        `KeyboardInterrupt`, or a `LongtableError`.
        """
        if text.startswith("/") and not text.startswith("/*"):  # /* begins a comment of SQL
            self.command(text)
            self._question()
        elif self.approval is not None:
            self._decide(text, self.approval)
        else:
            self.turn(text)

    def command(self, text: str) -> None:
        """Run a slash command."""
        Commands(self).run(text)

    def values(self) -> State:
        """Return the thread's values; empty before the first turn."""

        async def values() -> State:
            state = await thread_state(self.session.conversation)
            return values_of(state) if state.created_at is not None else {}

        return self.runner.run(values())


def piped_lines(stream: BinaryIO) -> Iterator[str | BadLine]:
    """Yield the text of each line that is not blank, or a `BadLine`. No more than one line of the
    longest allowed size is in memory.
    """
    number = 0
    while raw := stream.readline(MOST_LINE + 1):
        number += 1
        if len(raw) > MOST_LINE:
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(MOST_LINE)
            yield BadLine(number, "too_long", {"limit": f"{MOST_LINE:,}"})
            continue
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            yield BadLine(number, "not_utf8", {"place": error.start + 1})
            continue
        if "\0" in text:
            yield BadLine(number, "nul", {})
        elif text:
            yield text


def run_piped(chat: Chat, stream: BinaryIO, failed: Callable[[Exception], None]) -> None:
    """Answer the messages of a stream, one message in each line. If a line fails, the error is
    reported and the next line runs.
    """
    for line in piped_lines(stream):
        if isinstance(line, BadLine):
            chat.screen.complain(line.sentence(chat.screen.language))
            continue
        try:
            chat.line(line)
        except LeaveChat:
            return
        except Exception as error:
            failed(error)


def run_prompt(chat: Chat, failed: Callable[[Exception], None]) -> None:
    """Read lines at a prompt until the person leaves: by Ctrl-D, by /quit, or by pressing Ctrl-C
    twice in a row.
    """
    with Prompt(completions(chat.screen.language), history_file(chat.settings)) as prompt:
        interrupted = False
        while True:
            try:
                line = prompt.read()
            except KeyboardInterrupt:
                if interrupted:
                    return
                interrupted = True
                chat.screen.note("leave")
                continue
            except EOFError:
                return
            except UnicodeDecodeError as error:
                chat.screen.complain(say("not_utf8", chat.screen.language, place=error.start + 1))
                continue
            interrupted = False
            if not line:
                continue
            try:
                chat.line(line)
            except LeaveChat:
                return
            except KeyboardInterrupt:
                interrupted = True
                chat.screen.note("cancelled")
            except Exception as error:
                failed(error)
