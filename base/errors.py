"""All errors that longtable raises on purpose. They have one base class.

Each error has three audiences. The developer and the log read `str(error)`: the expected value, the
actual value, and what to do. A program reads `error.code` and the attributes. A person reads
`error.user_text(language)`: one short sentence without internals (no SQL, path, URL, key or stack).

    LongtableError
        ConfigError
            UnknownSettingError
            MissingExtraError
            KnowledgeNotWritableError
        InputError
            EmptyMessageError
            UnknownModelError
            UsedIdError
            MessageTooLongError
            HistoryMessageTooLongError
            RequestLimitError
                TooManyMessagesError
                RequestTooLongError
                RequestTooLargeError
            RateLimitedError
            TooManyTurnsError
            InvalidTextError
            WrongRoleError
            NotPrivateError
            ContextTooLargeError
            NothingToKeepError
            WrongRatingError
        ThreadNotFoundError
        TurnPendingError
        WrongDecisionError
        NothingAskedError
        ThreadBusyError
        UnknownTurnError
        ThreadExistsError
        ThreadFormatError
        UnknownMessageError
        EditRefusedError
        UnknownPinError
        UnknownTopicError
        UndoTooFarError
        PersistenceError
            DamagedThreadError
                LostMessagesError
            NewerStoreError
            StoreKeyError
            ArchiveGapError
            ArchiveFormatError
        UnknownArchiveError
        RecallRefusedError
        PinRefusedError
        DatabaseError
            DatabaseUnavailableError
            QueryRefusedError
                UnknownTableError
            QueryFailedError
            QueryTimeoutError
            ConnectionWaitError
            TooManyRowsError
            ResultTooLargeError
                QueryMemoryError
                TempSpaceError
            WorkerLostError
            QueryCancelledError
            RowParameterError
            OtherRowsError
            UnknownDatabaseError
        ProviderError
            ProviderAuthError
            ProviderQuotaError
            ProviderRateLimitedError
            ProviderUnavailableError
            ProviderRefusedError
            ProviderProtocolError
            ModelContextOverflowError
"""

import math
import re
import shlex
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

from typing_extensions import TypedDict

from longtable.base.extras import install_extra
from longtable.base.redaction import redacted


class Reason(TypedDict):
    """The reason why something failed or went wrong. `code` is for programs, `message` for a model
    or a person.
    """

    code: str
    message: str


@cache
def sentences() -> Mapping[str, Mapping[str, str]]:
    """Return the sentences for people, by error code and language."""
    return tomllib.loads(
        (Path(__file__).parent / "error_sentences.toml").read_text(encoding="utf-8")
    )


class LongtableError(Exception):
    """Base of every error this package raises on purpose."""

    code: ClassVar[str] = "error"
    """The class name in snake case without "Error", unless the class sets another code."""
    language: str = ""
    """The person's language, if it is known when the error is raised."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).lower()

    def __init__(self, *args: object) -> None:
        # In one place: whatever a client or a driver put into its words, no error of ours repeats a
        # key.
        super().__init__(*(redacted(each) if isinstance(each, str) else each for each in args))

    def user_text(self, language: str = "en") -> str:
        """Return one short sentence for the person. `language` is "en" or "zh"; any other value
        gives English.
        """
        keys = (
            self.sentence,
            *(kind.code for kind in type(self).__mro__ if issubclass(kind, LongtableError)),
        )
        texts = next(sentences()[key] for key in keys if key in sentences())
        return texts.get(language, texts["en"]).format_map(vars(self))

    @property
    def sentence(self) -> str:
        """Return the key of the error's sentence in `error_sentences.toml`."""
        return self.code

    def dict(self) -> dict[str, str]:
        """Return the JSON that Agent Server sends for an error raised outside the nodes. The
        sentence is in the person's language, or in English and Chinese if that is unknown.
        """
        languages = [self.language] if self.language else ["en", "zh"]
        return {
            "error": type(self).__name__,
            "message": " ".join(map(self.user_text, languages)),
            "code": self.code,
        }


class RunFailedError(RuntimeError):
    """The error that clients of a server see in place of the error that ended a run. Its text is
    the sentence for the person, because servers pass the text of an error on to their clients.

    If it replaces a `LongtableError`, it is also an instance of that error's class and has the same
    attributes. The developer's text goes to the log.
    """

    code: str

    def dict(self) -> dict[str, str]:
        """Return the JSON that Agent Server sends for the error."""
        return {"error": type(self).__name__, "message": str(self), "code": self.code}


def client_error(error: Exception, text: str, code: str) -> RunFailedError:
    """Return the `RunFailedError` that replaces `error` when a run on a server fails. `text`: the
    sentence for the person.
    """
    kind = type(error)
    typed = isinstance(error, LongtableError)
    bases = (RunFailedError, kind) if typed else (RunFailedError,)
    copy: RunFailedError = RunFailedError.__new__(
        type(kind.__name__, bases, {"__module__": kind.__module__, "code": code}), text
    )
    copy.__dict__.update(vars(error) if typed else {})
    return copy


class ConfigError(LongtableError):
    """A setting is wrong or missing. The message names the setting and says what is allowed.

    `name` (of the setting) and `wanted` (the allowed values) are for the sentence to the person;
    they never repeat input of a client. `says`: the key of another sentence in
    `error_sentences.toml`.
    """

    def __init__(self, message: str, *, name: str = "", wanted: str = "", says: str = "") -> None:
        super().__init__(message)
        self.name = name
        self.wanted = wanted
        self.says = says

    @property
    def sentence(self) -> str:
        return self.says or ("bad_request" if self.wanted else self.code)


class UnknownSettingError(ConfigError):
    """There is no setting of this name.

    The sentence for the person has the name only if it consists of letters and underscores, because
    a client may send anything. `near`: the most similar setting, "" if there is none.
    """

    code = ConfigError.code

    def __init__(self, message: str, *, name: str = "", near: str = "") -> None:
        plain = re.fullmatch(r"[a-z][a-z_]{0,39}", name, re.ASCII | re.IGNORECASE)
        super().__init__(message, name=name if plain else "")
        self.near = near

    @property
    def sentence(self) -> str:
        kind = "setting" if self.name else "name"
        return f"unknown_{kind}" if self.near else f"unknown_{kind}.far"


def check_type(name: str, value: object, kind: type, *, optional: bool = False) -> None:
    """Raise `ConfigError` if an argument is not of type `kind`. None is allowed if `optional`."""
    if not isinstance(value, kind) and not (optional and value is None):
        raise ConfigError(
            f"{name} must be {kind.__name__}{' or None' * optional}, found {type(value).__name__}"
        )


class MissingExtraError(ConfigError):
    """An optional part of longtable is not installed. The message names the extra and the command
    that installs it.
    """

    def __init__(self, what: str, extra: str, *, instead: str = "") -> None:
        super().__init__(
            f"{what} without the extra `{extra}`:"
            f" {install_extra(extra)}{instead and f', or {instead}'}"
        )
        self.extra = extra


AWAITED = (
    "this store belongs to an event loop: call what is awaited there (aask, astream, ainvoke ...),"
    " or use one from `open_persistence`"
)
"""Text of the error if a blocking call would wait for the very event loop that it blocks."""


# -- what a person sent ----------------------------------------------------------------------------


class KnowledgeNotWritableError(ConfigError):
    """The files of a knowledge folder cannot be written."""


class InputError(LongtableError):
    """The input was refused before anything was written."""


class EmptyMessageError(InputError):
    """The message holds no text."""

    def __init__(self) -> None:
        super().__init__(
            "the message is empty: send at least one character that is not white space"
        )


class UnknownModelError(InputError):
    """The operator offers no model of this name; nothing was written."""

    def __init__(self, *, name: str, known: str) -> None:
        super().__init__(
            f"Context.model must be one of the operator's models ({known or 'there are none'}),"
            f" found {name!r}"
        )
        self.name = name
        self.known = known


class UsedIdError(InputError, ConfigError):
    """The id of a message belongs to another message of the thread; nothing was written."""

    def __init__(self, *, message_id: str, **_: object) -> None:
        super().__init__(
            f"the id {message_id!r} belongs to another message of this thread: give this message an"
            " id of its own"
        )
        self.message_id = message_id


class MessageTooLongError(InputError):
    """One message is over the input limit; nothing was written."""

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(
            f"the message has {size:,} characters, the limit is {limit:,}: shorten it or raise"
            " Context.max_message_chars"
        )
        self.size = size
        self.limit = limit


class HistoryMessageTooLongError(InputError):
    """A message of a history that a caller handed in is longer than any input that the model's
    limit allows; nothing was written.

    `size` and `limit` are in characters. `place`: the message's place in the input, from 1. `role`:
    the role of its author.
    """

    def __init__(self, *, place: int, role: str, size: int, limit: int) -> None:
        super().__init__(
            f"message {place:,} of the input (role {role!r}) has {size:,} characters, a model of"
            f" this limit can take {limit:,} at most: shorten it, hand it in as several messages,"
            " raise Context.model_limit or use a model with a larger limit"
        )
        self.place = place
        self.role = role
        self.size = size
        self.limit = limit


class RequestLimitError(InputError):
    """The messages of one request together are over a limit; nothing was written. `size` and
    `limit` are in the error class's `unit`.
    """

    unit: ClassVar[str] = "parts"
    setting: ClassVar[str] = ""

    def __init__(self, *, size: int, limit: int) -> None:
        what = f"the request has {size:,} {self.unit}, the limit is {limit:,}"
        super().__init__(f"{what}: send less, or raise RequestLimits.{self.setting}")
        self.size = size
        self.limit = limit


class TooManyMessagesError(RequestLimitError):
    """One request holds more messages than allowed."""

    unit = "messages"
    setting = "messages"


class RequestTooLongError(RequestLimitError):
    """The messages of one request hold more characters than allowed."""

    unit = "characters"
    setting = "chars"


class RequestTooLargeError(RequestLimitError):
    """One request holds more bytes than allowed, images included."""

    unit = "bytes"
    setting = "bytes"


class TooManyTurnsError(InputError):
    """As many turns are running in this process as are allowed; nothing was written."""

    def __init__(self, *, most: int) -> None:
        super().__init__(
            f"{most:,} turns are running: wait for the end of one, or raise RunningTurns.most"
        )
        self.most = most


class RateLimitedError(InputError):
    """The owner has begun as many turns as are allowed in a period; nothing was written. `wait_s`:
    seconds until the next turn may begin.
    """

    def __init__(self, *, turns: int, seconds: int, wait_s: float) -> None:
        super().__init__(
            f"{turns:,} turns in {seconds:,} s are allowed to one owner: wait {wait_s:g} s, or"
            " raise RateLimit.turns"
        )
        self.turns = turns
        self.seconds = seconds
        self.wait_s = wait_s
        self._minutes = round(seconds / 60, 1)
        self._wait_minutes = math.ceil(wait_s / 60)

    @property
    def sentence(self) -> str:
        return f"{self.code}.minutes" if self.seconds >= 120 else self.code


class InvalidTextError(InputError):
    """The message holds lone surrogates (halves of a UTF-16 pair), which are not valid text."""

    def __init__(self) -> None:
        super().__init__(
            "the message holds lone surrogates: decode its bytes as UTF-8 with errors='replace'"
            " before sending it"
        )


class WrongRoleError(InputError):
    """A message of the input has a role that is not allowed. Either it is not a message of the
    user, the model or a tool, or it is the last message and not the user's.
    """

    def __init__(self, *, role: str) -> None:
        super().__init__(
            "an input holds messages of the user, of the model and of tools, and the last must be"
            f" the user's (role 'human'), found {role!r}: put the question last, and what a model"
            " is to obey into Context.system_prompt"
        )
        self.role = role


class NotPrivateError(InputError):
    """The privacy setting withholds cells from the model, but the model was shown cells in earlier
    turns of the thread; nothing was written.
    """

    def __init__(self) -> None:
        super().__init__(
            "Context.privacy is 'types', but in earlier turns of this thread the model was shown"
            " cells, and its answers may quote them: begin a new thread, or leave privacy 'off'"
        )


THE_MESSAGE = "the newest message"
SYSTEM_PROMPT = "the system prompt"
TOOLS = "the tools"
"""`THE_MESSAGE`, `SYSTEM_PROMPT` and `TOOLS` name the part of a call that is too large."""


class ContextTooLargeError(InputError):
    """The text that must be sent word for word does not fit the model's limit. `need` and `budget`
    are in tokens.
    """

    def __init__(self, *, need: int, budget: int, what: str = THE_MESSAGE) -> None:
        super().__init__(
            f"too large: {what}: the call needs {need:,} tokens, the limit less the reserve is"
            f" {budget:,}: {'pass fewer tools' if what == TOOLS else 'shorten it'}, raise"
            " Context.model_limit or use a model with a larger limit"
        )
        self.need = need
        self.budget = budget
        self.what = what

    @property
    def sentence(self) -> str:
        return {SYSTEM_PROMPT: f"{self.code}.system", TOOLS: f"{self.code}.tools"}.get(
            self.what, self.code
        )


# -- threads and their files -----------------------------------------------------------------------


class ThreadNotFoundError(LongtableError):
    """No thread of this id is in the store."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"no thread {thread_id!r} in this store: list what is there with `longtable threads`"
        )
        self.thread_id = thread_id


class TurnPendingError(LongtableError):
    """The thread has an interrupted turn, which must be finished first."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"thread {thread_id!r} has an interrupted turn: finish it by resume(), or ask again,"
            " then do this"
        )
        self.thread_id = thread_id


class WrongDecisionError(LongtableError):
    """A person's answer or decision does not fit the question that a turn waits for. The question
    is still open; nothing was written.
    """


class NothingAskedError(LongtableError):
    """No turn of the thread waits for a person's answer."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"thread {thread_id!r} waits for no answer: look at `Conversation.approvals()` and"
            " `Conversation.waiting()`"
        )
        self.thread_id = thread_id


class ThreadBusyError(LongtableError):
    """Another run works on the thread.

    `stored` is False if this run wrote nothing. It is True if this run's message is in the thread
    and the other run continued from there. It is None if the other run came while the message was
    being written; the thread's history then shows whether the message is there.
    """

    def __init__(self, thread_id: str, *, stored: bool | None = False) -> None:
        found = {
            False: "another run works on it: nothing of this one was written, send it again",
            True: (
                "another run went on with it: the message of this one stays, the rest was not"
                " written"
            ),
            None: (
                "another run went on with it while the message of this one was on its way in: see"
                " in its history whether it is there"
            ),
        }[stored]
        super().__init__(f"thread {thread_id!r} is busy: {found}")
        self.thread_id = thread_id
        self.stored = stored

    @property
    def sentence(self) -> str:
        return {False: self.code, True: f"{self.code}.stored", None: f"{self.code}.unknown"}[
            self.stored
        ]


class UnknownTurnError(LongtableError):
    """The thread has no turn of this number."""

    def __init__(self, turn: int, *, turns: int) -> None:
        super().__init__(f"the thread has turns 1 to {turns:,}, found {turn:,}: name one of them")
        self.turn = turn
        self.turns = turns


class ThreadExistsError(LongtableError):
    """A thread of this id already exists; nothing was written."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"a thread {thread_id!r} is in this store already: choose another id, or delete that"
            " one first"
        )
        self.thread_id = thread_id


class ThreadFormatError(LongtableError):
    """An exported thread cannot be read: the file is of another kind, cut off, changed, or of a
    newer version. Nothing was written.
    """


class UnknownMessageError(LongtableError):
    """The thread has no message of this id."""

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"the thread has no message {message_id!r}: /history, or Conversation.history() in"
            " Python, lists those that it has"
        )
        self.message_id = message_id


class EditRefusedError(LongtableError):
    """An edit of a message in the thread's state is not possible; nothing was written."""


class UnknownPinError(LongtableError):
    """The thread has no pin of this id."""

    def __init__(self, pin_id: str) -> None:
        super().__init__(
            f"the thread has no pin {pin_id!r}: /pins, or Conversation.pins() in Python, lists"
            " those that it has"
        )
        self.pin_id = pin_id


class NothingToKeepError(InputError):
    """A turn has no question, or no query that gave a result, to keep as a verified query."""


class WrongRatingError(InputError):
    """A rating has a turn that is not there, a score other than 1 or -1, or too long a comment."""


class UnknownTopicError(LongtableError):
    """The thread has no topic of this id."""

    def __init__(self, topic_id: str) -> None:
        super().__init__(
            f"the thread has no topic with id {topic_id!r}: take the `id` of one of"
            " `Conversation.topics()`"
        )
        self.topic_id = topic_id


class UndoTooFarError(LongtableError):
    """The messages that this compaction covers have retired to the archive, so the view before it
    cannot be restored.
    """

    def __init__(self, archived: int) -> None:
        super().__init__(
            f"{archived:,} messages, and compactions before this one, retired to the archive since:"
            " only newer ones can be undone; `Conversation.history()` still has every message"
        )
        self.archived = archived


class PersistenceError(LongtableError):
    """The file or server that keeps the threads cannot be opened, read or written."""


class DamagedThreadError(PersistenceError):
    """The stored data of one thread cannot be read.

    Other threads are not affected. The damaged thread can be deleted, or a new thread can be made
    of its readable turns (a fork).
    """

    def __init__(self, thread_id: str, *, what: str, why: str) -> None:
        argument = shlex.quote(thread_id)
        super().__init__(
            f"thread {thread_id!r} is damaged, {what} cannot be read ({why}): `longtable threads"
            f" fork {argument}` (`Conversation.fork()`) makes a new thread of the turns that can be"
            f" read, `longtable threads delete {argument}` deletes it"
        )
        self.thread_id = thread_id
        self.what = what
        self.why = why


class LostMessagesError(DamagedThreadError):
    """Rows of a thread are gone from the store, and some of the thread's messages with them.
    `wanted`: how many messages the thread had. `found`: how many are in the store.
    """

    def __init__(self, thread_id: str, *, wanted: int, found: int, **_: object) -> None:
        argument = shlex.quote(thread_id)
        PersistenceError.__init__(
            self,
            f"thread {thread_id!r} has lost messages: it held {wanted:,}, and of those not all are"
            f" among the {found:,} in the store: restore the store from a backup, or go on without"
            f" them: `longtable threads fork {argument}` (`Conversation.fork()`) makes a new thread"
            f" of those that are left, `longtable threads delete {argument}` deletes it",
        )
        self.thread_id = thread_id
        self.wanted = wanted
        self.found = found
        self.what = "messages that it held"
        self.why = "rows are gone from the store"


class NewerStoreError(PersistenceError):
    """The store was written by a later version of longtable; nothing in the store was changed."""

    def __init__(self, *, found: int, known: int) -> None:
        super().__init__(
            f"the conversation store is of schema {found}, this version of longtable knows up to"
            f" {known}: update longtable"
        )
        self.found = found
        self.known = known


class StoreKeyError(PersistenceError):
    """The key does not fit the store. Either the store is encrypted and the key is missing or
    wrong, or the store is not encrypted but a key was given.
    """


class UnknownArchiveError(LongtableError):
    """The thread has no archive file with this key, or the text is not a key."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"this thread has no archive file {key[:60]!r}: take a key that its list of files has"
        )


class ArchiveGapError(PersistenceError):
    """Requested messages are missing in the archive. `missing`: the gaps, each as (first, last)
    number in the transcript.
    """

    def __init__(self, missing: list[tuple[int, int]], *, what: str = "messages") -> None:
        spans = ", ".join(
            str(first) if first == last else f"{first} to {last}" for first, last in missing[:5]
        )
        more = f" and {len(missing) - 5} more gaps" if len(missing) > 5 else ""
        super().__init__(
            f"the archive lacks {what} {spans}{more}: give the store that the thread was kept in, or"
            " restore its file"
        )
        self.missing = missing


class ArchiveFormatError(PersistenceError):
    """A message has content that cannot be archived, or an archived message cannot be read. Nothing
    was written.
    """


# -- what a model asks to recall -------------------------------------------------------------------


class RecallRefusedError(LongtableError):
    """The arguments of a call of recall are not usable. The message tells the model how to ask."""


class PinRefusedError(LongtableError):
    """A model asked to make or end a pin, but this is not allowed. The message says why."""


# -- the database ----------------------------------------------------------------------------------


Problem = Literal[
    "syntax",
    "unknown_name",
    "ambiguous",
    "type",
    "refused",
    "too_slow",
    "too_big",
    "unavailable",
    "other",
]
"""The kind of fault in a query. It is the same for all engines, whatever their error texts say."""


class DatabaseError(LongtableError):
    """Base of all errors about the database that is asked, and about queries."""

    problem: Problem = "other"
    line: int | None = None
    """Line of the fault in the SQL as the model wrote it, from 1; None if it is not known. `column`
    likewise.
    """
    column: int | None = None
    nearest: tuple[str, ...] = ()
    """Names that the query probably meant, the likeliest first."""
    database: str = ""
    """The name of the database, if there are several and it is known. The text begins with it."""

    def __str__(self) -> str:
        text = super().__str__()
        return f"database {self.database}: {text}" if self.database else text


class DatabaseUnavailableError(DatabaseError):
    """The database is missing, unreadable, locked, or not a database of the kind its URL says."""

    problem = "unavailable"

    @property
    def sentence(self) -> str:
        return f"{self.code}.named" if self.database else self.code


class QueryRefusedError(DatabaseError):
    """A wall refused the statement. `rule` names the rule, `hint` an allowed alternative."""

    def __init__(
        self,
        reason: str,
        *,
        rule: str,
        hint: str = "",
        line: int | None = None,
        column: int | None = None,
        nearest: tuple[str, ...] = (),
    ) -> None:
        super().__init__(f"{reason}: {hint}" if hint else reason)
        self.reason = reason
        self.rule = rule
        self.hint = hint
        self.problem = (
            "syntax" if rule == "syntax" else "unknown_name" if rule == "table" else "refused"
        )
        self.line = line
        self.column = column
        self.nearest = nearest


class QueryFailedError(DatabaseError):
    """The database could not run the statement. `hint` suggests a change."""

    def __init__(
        self,
        reason: str,
        *,
        hint: str = "",
        problem: Problem = "other",
        line: int | None = None,
        column: int | None = None,
        nearest: tuple[str, ...] = (),
    ) -> None:
        place = f", at line {line}, column {column}" if line and column else ""
        super().__init__(f"{reason}{place} ({hint})" if hint else f"{reason}{place}")
        self.reason = reason
        self.hint = hint
        self.problem = problem
        self.line = line
        self.column = column
        self.nearest = nearest


class UnknownTableError(QueryRefusedError, QueryFailedError):
    """No table of this name can be read. Whether it is missing or not permitted is not revealed."""


class QueryTimeoutError(DatabaseError):
    """The statement ran longer than allowed. `limit_s`: the seconds allowed. `killed`: True if the
    process that ran the query had to be killed.
    """

    problem = "too_slow"

    def __init__(self, *, limit_s: float, killed: bool = False) -> None:
        super().__init__(
            f"the query was stopped after {limit_s:g} s: filter or aggregate more, or raise"
            " QueryLimits.seconds"
        )
        self.limit_s = limit_s
        self.killed = killed


class ConnectionWaitError(DatabaseError):
    """No connection to the database server became free in time, so the query was not started.
    `waited_s`: the seconds waited. `connections`: the number of connections.
    """

    problem = "unavailable"

    def __init__(self, *, waited_s: float, connections: int) -> None:
        super().__init__(
            f"all {connections} connections to the database were busy for {waited_s:.3g} s, so the"
            " query was not started: ask again later"
        )
        self.waited_s = waited_s
        self.connections = connections


class TooManyRowsError(DatabaseError):
    """The result has more rows than allowed; nothing of it is returned."""

    problem = "too_big"

    def __init__(self, *, limit: int) -> None:
        super().__init__(f"the result has more than {limit:,} rows: aggregate, filter or add LIMIT")
        self.limit = limit


class ResultTooLargeError(DatabaseError):
    """The result, or one of its rows or values, is larger than `limit` bytes. Nothing of the result
    is returned.
    """

    problem = "too_big"

    def __init__(self, *, limit: int, what: str = "the result") -> None:
        super().__init__(f"{what} is larger than {limit:,} bytes: select fewer columns or rows")
        self.limit = limit


class QueryMemoryError(ResultTooLargeError):
    """The engine would need more memory for the query than `limit` bytes."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit, what="the query's memory")


class TempSpaceError(ResultTooLargeError):
    """The engine would need more temporary space on disk for the query than `limit` bytes."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit, what="the query's temporary space")


class RowParameterError(DatabaseError):
    """A query needs a row parameter that is missing, has another type, or could not be read. The
    query did not run. `name` is the parameter's name, "" if it is about all of them.
    """

    problem = "refused"

    def __init__(self, reason: str, *, name: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.name = name


class OtherRowsError(DatabaseError):
    """A stored result was made for other row parameters or other row filters than those that hold
    now. Running its SQL again gives the rows that may be seen now.
    """

    problem = "refused"

    def __init__(self, handle: str) -> None:
        super().__init__(
            f"the rows of {handle} were read under other row parameters: run its query again"
        )
        self.handle = handle


class UnknownDatabaseError(DatabaseError):
    """A call names no database though there are several, or one that is not there. `name` is what
    it named; `known` are the names of the databases, empty if there is only one.
    """

    problem = "unknown_name"

    def __init__(self, name: str, *, known: tuple[str, ...], near: str = "") -> None:
        names = ", ".join(known)
        if not known:
            reason = (
                f"there is no database {name!r}: this conversation asks one database, so leave out"
                " `database`"
            )
        elif not name:
            reason = f"say which database to ask: `database` must be one of {names}"
        else:
            hint = f"; did you mean {near}?" if near else "."
            reason = f"there is no database {name!r}{hint} The databases are {names}"
        super().__init__(reason)
        self.name = name
        self.known = known
        self.nearest = (near,) if near else ()


class WorkerLostError(DatabaseError):
    """The process that ran the query ended before it answered; the database and other queries are
    unaffected.
    """

    problem = "too_big"


class QueryCancelledError(DatabaseError):
    """The turn was cancelled, and with it the query."""

    def __init__(self) -> None:
        super().__init__("the query was cancelled")


# -- the model's provider --------------------------------------------------------------------------


class ProviderError(LongtableError):
    """The model's provider gave no answer that can be used. The turn can be resumed, and nothing of
    the thread is lost.
    """


class ProviderAuthError(ProviderError):
    """The provider refused the key (401, 403)."""


class ProviderQuotaError(ProviderError):
    """The account at the provider is empty or over its quota (402, or 429 with
    `insufficient_quota`). Waiting does not help.
    """


class ProviderRateLimitedError(ProviderError):
    """The provider asks to wait (429). `retry_after`: how many seconds to wait, None if the
    provider does not say.
    """

    def __init__(self, message: str, *, retry_after: float | None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    @property
    def sentence(self) -> str:
        return self.code if self.retry_after is None else f"{self.code}.wait"


class ProviderUnavailableError(ProviderError):
    """The provider cannot be reached, failed (5xx), or broke the stream. `retry_after`: after how
    many seconds to ask again, None if the provider does not say.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ProviderRefusedError(ProviderError):
    """The provider refused the request (another 4xx).

    `content`: True if it refused the content of the messages; then the turn is closed. `left_out`:
    True if this turn's messages were therefore left out of the view. It is False if a call was
    refused even without the messages refused earlier; then nothing more is removed from the view.
    """

    def __init__(self, message: str, *, content: bool = False, left_out: bool = False) -> None:
        super().__init__(message)
        self.content = content
        self.left_out = left_out

    @property
    def sentence(self) -> str:
        return (
            f"{self.code}.{'message' if self.left_out else 'again'}" if self.content else self.code
        )


class ProviderProtocolError(ProviderError):
    """The server answered, but not in the protocol that the client speaks. It may be no model
    server, or the URL may be wrong.
    """


class ModelContextOverflowError(ProviderError):
    """The provider says that the request exceeds the model's context, and further compaction did
    not help.
    """
