"""The slash commands of a chat."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rich.text import Text

from longtable.app.console import render
from longtable.app.console.screen import make_console
from longtable.app.console.streams import clean, clean_line
from longtable.app.console.token_counts import usage_now
from longtable.app.console.translations import counted, say
from longtable.app.settings.run_settings import check_text
from longtable.base.errors import (
    DatabaseUnavailableError,
    MessageTooLongError,
    UnknownPinError,
)
from longtable.base.events import QueryFinished
from longtable.graph.kept_queries import STORE, database_of_turn
from longtable.knowledge.folder_reading import rivals_of
from longtable.memory.messages.marks import EXCLUDED, kind_of
from longtable.nodes.compacting.compaction_events import NOTHING_LEFT
from longtable.nodes.state import turn_of
from longtable.tools.cells import json_value
from longtable.tools.several.several_tools import errors_named

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from longtable.app.console.screen import Screen
    from longtable.app.session import Session
    from longtable.nodes.state import State
    from longtable.tools.catalog import Catalog
    from longtable.tools.database import QueryResult

COMMANDS = (
    "help",
    "history",
    "view",
    "reasoning",
    "compact",
    "undo",
    "retry",
    "edit",
    "exclude",
    "include",
    "pins",
    "pin",
    "unpin",
    "topics",
    "keep",
    "correct",
    "usage",
    "model",
    "threads",
    "tables",
    "table",
    "result",
    "quit",
)
MOST_WORDS = {
    "model": 1,
    "exclude": 1,
    "include": 1,
    "pins": 1,
    "unpin": 1,
    "table": 1,
    "pin": None,
    "keep": None,
    "correct": None,
    "edit": None,
    "result": None,
}
"""The most words that follow each command, None for any number. Commands in `CHOICES` take one
word; all other commands take none.
"""
CHOICES = {"compact": ("preview",), "reasoning": ("on", "off")}
"""The words of which each of these commands may take one."""
CLIP_VIEW = 600
YES = re.compile(r"(?:y|yes|是|好|批准)[.!。！]?", re.IGNORECASE)
"""What a person writes to agree."""


def completions(language: str) -> dict[str, str]:
    """Return the description of each command, by the text that is typed for it."""
    does = {f"/{name}": say(f"help_{name}", language) for name in COMMANDS}
    for name, words in CHOICES.items():
        does |= {f"/{name} {word}": "" for word in words}
    return does


Result = TypeVar("Result")


class LeaveChat(Exception):
    """The person wants to leave the chat."""


class RunningChat(Protocol):
    """The part of a chat that the commands use."""

    screen: "Screen"
    session: "Session"
    runner: asyncio.Runner
    correction: str
    """SQL that ran for /correct since the newest question and waits for a yes; "" without one."""
    shown_pair: tuple[str, str]
    """The question and the SQL that /keep showed last."""

    def values(self) -> "State":
        """Return the thread's values; empty before the first turn."""
        ...

    def retry(self) -> None:
        """Run the newest turn again if it failed."""

    def turn(self, text: str) -> bool:
        """Run one turn. Return whether it came to an answer."""
        ...


class Commands:
    """The slash commands of one chat."""

    def __init__(self, chat: RunningChat) -> None:
        self.chat = chat
        self.screen = chat.screen
        self.session = chat.session
        self.conversation = chat.session.conversation

    def run(self, text: str) -> None:
        """Run a command as it was typed. Raises `LeaveChat` for /quit, or the error that the
        conversation raised.
        """
        name, _, argument = text[1:].strip().partition(" ")
        actions: dict[str, Callable[[str], None]] = {
            command: getattr(self, f"_{command}") for command in COMMANDS
        }
        name = "quit" if name == "exit" else name
        words = argument.split()
        most = MOST_WORDS.get(name, 1 if name in CHOICES else 0)
        if name not in actions:
            self.screen.complain(say("unknown_command", self.screen.language, name=f"/{name}"))
        elif (most is not None and len(words) > most) or not set(words) <= set(
            CHOICES.get(name, words)
        ):
            does = say(f"help_{name}", self.screen.language)
            self.screen.complain(
                say(
                    "wrong_argument",
                    self.screen.language,
                    name=f"/{name}",
                    argument=clean_line(argument, 40),
                    does=does,
                )
            )
        else:
            actions[name](argument.strip())

    def _help(self, _: str) -> None:
        self.screen.show("help", render.commands(COMMANDS, self.screen.language))

    def _history(self, _: str) -> None:
        if self._has_turns():
            self.screen.show(
                "history",
                render.history(
                    self._wait(self.conversation.ahistory()), self.screen.language, most=CLIP_VIEW
                ),
            )

    def _view(self, _: str) -> None:
        if self._has_turns():
            self.screen.show("view", render.messages(self._wait(self.conversation.aview())))

    def _reasoning(self, argument: str) -> None:
        from longtable.memory.messages.reasoning import reasoning_of

        if argument in ("on", "off"):
            self.screen.reasoning = argument == "on"
            self.screen.note(f"reasoning_{argument}")
            return
        texts = (
            [
                text
                for message in self._wait(self.conversation.ahistory())
                if (text := reasoning_of(message))
            ]
            if self.chat.values()
            else []
        )
        if texts:
            self.screen.show("reasoning", render.plain(texts[-1]))
        else:
            self.screen.note("no_reasoning")

    # -- memory ------------------------------------------------------------------------------------

    def _compact(self, argument: str) -> None:
        if argument and (
            preview := (
                self._wait(self.conversation.acompact(preview=True)) if self.chat.values() else None
            )
        ):
            sizes = {
                "before": f"{preview.tokens_before:,}",
                "after": f"{preview.tokens_after_most:,}",
                "calls": preview.summariser_calls,
            }
            self.screen.note("compact_preview", first=preview.first, last=preview.last, **sizes)
            return
        event = (
            self._wait(self.conversation.acompact())
            if self.chat.values() and not argument
            else None
        )
        if event and event["type"] == "context_compaction_skipped":
            code = event["reasons"][0]["code"]
            if code in NOTHING_LEFT:
                self.screen.note(code)
                return
        if event:
            self.screen.event(event)
        else:
            self.screen.note("nothing_to_compact")

    def _undo(self, _: str) -> None:
        dropped = self._wait(self.conversation.aundo()) if self.chat.values() else None
        self.screen.note("undone" if dropped else "nothing_to_undo")

    def _retry(self, _: str) -> None:
        self.chat.retry()

    def _edit(self, text: str) -> None:
        if not self._has_argument(text, "edit"):
            return
        old = self._wait(self.conversation.ahistory()) if self.chat.values() else []
        in_view = [each for each in old if kind_of(each) != EXCLUDED]
        last = [str(each.id) for each in in_view[_last_question(in_view) :]]
        if not last:
            self.screen.note("nothing_to_edit")
            return
        self._leave_out(last)
        try:
            self.chat.turn(text)
        finally:
            new = self._wait(self.conversation.ahistory())[len(old) :]
            if not any(each.type == "human" and kind_of(each) != EXCLUDED for each in new):
                # The new question was refused.
                for message_id in last:
                    self._wait(self.conversation.ainclude(message_id))
                self.screen.note("edit_refused")

    def _exclude(self, argument: str) -> None:
        if self._has_argument(argument, "exclude") and self._has_turns():
            self._leave_out(_message_ids(argument, self._wait(self.conversation.ahistory())))

    def _leave_out(self, message_ids: Sequence[str]) -> None:
        pins = self._wait(self.conversation.apins())
        for message_id in message_ids:
            self._wait(self.conversation.aexclude(message_id))
        self.screen.note("excluded")
        still = {pin.id for pin in self._wait(self.conversation.apins())}
        for pin in (pin for pin in pins if pin.id not in still):
            self.screen.note("excluded_pin", id=pin.id, text=clean_line(pin.text, CLIP_VIEW))

    def _include(self, argument: str) -> None:
        if self._has_argument(argument, "include") and self._has_turns():
            message_ids = _message_ids(
                argument, history := self._wait(self.conversation.ahistory())
            )
            left_out = [
                str(each.id)
                for each in history
                if each.id in message_ids and kind_of(each) == EXCLUDED
            ]
            if not left_out and message_ids[0] != argument:
                self.screen.note("not_left_out", message=argument)
                return
            for message_id in left_out or message_ids[:1]:
                self._wait(self.conversation.ainclude(message_id))
            self.screen.note("included")

    def _pins(self, pin_id: str) -> None:
        pins = self._wait(self.conversation.apins()) if self.chat.values() else []
        if pin_id:
            self._restore(pin_id)
        elif pins:
            self.screen.show("pins", render.pins(pins, self.screen.language))
        else:
            self.screen.note("no_pins")

    def _pin(self, text: str) -> None:
        if re.fullmatch(r"p\d+|p[0-9a-f]{8}", text):  # an id, as /pins lists it: no words to keep
            self._restore(text)
        elif self._has_argument(text, "pin") and self._has_turns():
            check_text(text)
            if len(text) > (most := self.conversation.context.max_message_chars):
                raise MessageTooLongError(size=len(text), limit=most)
            self.screen.note("pinned", id=self._wait(self.conversation.apin(text)).id)

    def _restore(self, pin_id: str) -> None:
        if not self.chat.values() or not any(
            pin.id == pin_id for pin in self._wait(self.conversation.apins())
        ):
            raise UnknownPinError(pin_id)
        self.screen.note("pin_restored", id=self._wait(self.conversation.apin(pin_id)).id)

    def _unpin(self, pin_id: str) -> None:
        if self._has_argument(pin_id, "unpin") and self._has_turns():
            self._wait(self.conversation.aunpin(pin_id))
            self.screen.note("unpinned", id=pin_id)

    def _keep(self, words: str) -> None:
        """Show the pair that would be kept; keep it when the person says yes, in their own words if
        there are any after it.
        """
        if not self._has_folder() or not self._has_turns():
            return
        pair = self._wait(self.conversation.akept_pair())
        confirmed, _, own = words.partition(" ")
        if not YES.fullmatch(confirmed) or self.chat.shown_pair != pair:
            self.chat.shown_pair = pair
            question, sql = pair
            self.screen.show("keep", Text(f"{clean_line(question)}\n{clean(sql)}"))
            self.screen.note("keep_this")
            if turn_of(self.chat.values()).get("number", 1) > 1:
                self.screen.note("keep_alone")
            return
        self._write(question=own.strip() or None)
        self.chat.shown_pair = ("", "")

    def _correct(self, words: str) -> None:
        """Run the SQL that should have run, and keep it with the newest question when the person
        says yes.
        """
        if not self._has_folder() or not self._has_turns():
            return
        if not self._has_argument(words, "correct"):
            return
        if not YES.fullmatch(words):
            self.chat.correction = ""
            sql, database = self._database_of(words)
            result = self._wait(asyncio.to_thread(self.session.run, sql, database))
            self.chat.correction = words
            width = make_console().width
            shown = render.first_rows(shown_result(result), width, self.screen.language)
            self.screen.show("correct", shown)
            self.screen.note("correct_this")
        elif self.chat.correction:
            sql, database = self._database_of(self.chat.correction)
            self._write(sql=sql, database=database)
            self.chat.correction = ""
        else:
            self.screen.complain(say("correct_what", self.screen.language))

    def _database_of(self, words: str) -> tuple[str, str]:
        """Return the SQL of a correction and its database. Of several, a name before the SQL says
        which one, as in `web: SELECT ...`; without it, the one that the turn asked.
        """
        databases = self.session.databases
        name, colon, sql = words.partition(":")
        if not databases.are_several:
            return words, ""
        if colon and name.strip().isidentifier():
            return sql.strip(), databases.name_of(name)
        history = self._wait(self.conversation.ahistory())
        return words, database_of_turn(history, None)

    def _write(
        self, *, question: str | None = None, sql: str | None = None, database: str = ""
    ) -> None:
        """Keep a question and its SQL, and tell the file: a new one, or one that has both."""
        folder = self.session.knowledge
        before = folder.query_names() if folder else set[str]()
        keep = self.conversation.akeep(question=question, sql=sql, by=_user(), database=database)
        query = self._wait(keep)
        if query.name in before:
            key = "knowledge_there"
        elif query.place == STORE:
            key = "knowledge_in_store"
        else:
            key = "knowledge_added"
        self.screen.note(key, name=clean_line(query.place.file))
        taught = folder.current().queries if folder else ()
        for rival in rivals_of(query, taught):
            self.screen.note("knowledge_rival", name=rival.name)

    def _topics(self, _: str) -> None:
        topics = self._wait(self.conversation.atopics()) if self.chat.values() else []
        if topics:
            self.screen.show("topics", render.topics(topics, self.screen.language))
        else:
            self.screen.note("no_topics")

    def _usage(self, _: str) -> None:
        # Counted anew: since the gauge of the last call the answer came, and the thread may have
        # been changed.
        usage = usage_now(self.chat.values(), self.conversation.context)
        if usage:
            self.screen.show("usage", render.gauge(usage, self.screen.language))
        else:
            self.screen.note("no_usage")

    def _model(self, name: str) -> None:
        choices = self.session.choices
        if name and name not in choices:
            known = ", ".join(choices)
            key = "model_unknown" if known else "model_no_choices"
            self.screen.complain(
                say(key, self.screen.language, name=clean_line(name, 40), known=known)
            )
            return
        if name:
            self.conversation.context = self.conversation.context.replace(model=name)
        current = self.conversation.context.model or self.session.label
        self.screen.note("model_now", name=current, known=", ".join(choices) or "-")

    # -- the rest ----------------------------------------------------------------------------------

    def _threads(self, _: str) -> None:
        from longtable.graph.listing.thread_list import alist_threads

        infos = self._wait(alist_threads(self.session.persistence))
        if infos:
            self.screen.show("threads", render.threads(infos))
        else:
            self.screen.note("no_threads")

    def _tables(self, _: str) -> None:
        databases = self.session.databases
        if not databases.are_several:
            self.screen.show("tables", render.tables({"": databases.first.catalog()}))
            return
        catalogs: dict[str, Catalog] = {}
        for name, database in databases.items():
            try:
                with errors_named(name):
                    catalogs[name] = database.catalog()
            except DatabaseUnavailableError as error:
                self.screen.complain(error.user_text(self.screen.language))
        self.screen.show("tables", render.tables(catalogs))

    def _table(self, argument: str) -> None:
        results = self.screen.results
        if not results:
            self.screen.note("no_table")
            return
        digits = argument[:9]  # Python refuses to read a number of thousands of digits
        number = int(digits) if digits.isdecimal() else 0 if digits else len(results)
        if not 1 <= number <= len(results):
            text = clean_line(argument, 20)
            self.screen.complain(
                counted("no_such_table", self.screen.language, len(results), number=text)
            )
            return
        self.screen.show("table", render.whole_result(results[number - 1], make_console().width))

    def _result(self, argument: str) -> None:
        with self.session.reading():
            self._show_result(argument)

    def _show_result(self, argument: str) -> None:
        handle, _, file = argument.partition(" ")
        if not handle:
            known = ", ".join(
                meta.handle for meta in self.session.results.handles(self.session.thread_id)[-20:]
            )
            self.screen.complain(
                say("result_what" if known else "no_results", self.screen.language, handles=known)
            )
        elif file.strip():
            from longtable.app.console.result_files import save_result

            path = Path(file.strip()).expanduser()
            rows, formulas = save_result(self.session.results, self.session.thread_id, handle, path)
            self.screen.note(
                "result_saved" if rows != 1 else "result_saved_1",
                handle=handle,
                count=f"{rows:,}",
                file=path,
            )
            if formulas:
                self.screen.note("result_formulas", count=f"{formulas:,}")
        else:
            result = self._wait(self.conversation.aresult(handle))
            self.screen.show(
                "result", render.whole_result(shown_result(result), make_console().width)
            )

    def _quit(self, _: str) -> None:
        raise LeaveChat

    # -- inside ------------------------------------------------------------------------------------

    def _wait(self, call: Coroutine[Any, Any, Result]) -> Result:
        return self.chat.runner.run(call)

    def _has_turns(self) -> bool:
        """Return whether the thread has a turn. If it has none, tell the person."""
        has_turns = bool(self.chat.values())
        if not has_turns:
            self.screen.note("no_history")
        return has_turns

    def _has_folder(self) -> bool:
        """Return whether the chat has a knowledge folder. If it has none, tell the person."""
        if self.session.knowledge is None:
            self.screen.complain(say("no_folder", self.screen.language))
        return self.session.knowledge is not None

    def _has_argument(self, argument: str, command: str) -> bool:
        """Return whether a command has its argument. If not, tell the person what is missing."""
        if not argument:
            self.screen.complain(say(f"{command}_what", self.screen.language))
        return bool(argument)


def _user() -> str:
    """Return the name of the person's account, "" if the machine has none for it."""
    try:
        return getuser()
    except (KeyError, OSError):
        return ""


def _message_ids(argument: str, history: "Sequence[BaseMessage]") -> list[str]:
    """Return the ids of the messages that an argument names: by its number in the history, by its
    id, or by "last" for the last question and all messages after it.
    """
    if argument == "last":
        return [str(message.id) for message in history[_last_question(history) :]]
    # Python refuses to read a number of thousands of digits
    number = argument.removeprefix("m")[:9]
    if number.isdecimal() and 1 <= int(number) <= len(history):
        return [str(history[int(number) - 1].id)]
    return [argument]


def _last_question(history: "Sequence[BaseMessage]") -> int:
    return max(
        (place for place, message in enumerate(history) if message.type == "human"), default=0
    )


def shown_result(result: "QueryResult") -> QueryFinished:
    """Return a stored result in the form of the event of the query that made it."""
    rows = [list(map(json_value, row)) for row in result.rows]
    return QueryFinished(
        type="query_finished",
        call_id="",
        name="",
        status="success",
        ms=0,
        sql=result.sql,
        columns=list(result.columns),
        rows=rows,
    )
