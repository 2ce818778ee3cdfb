"""Every error longtable raises on purpose: one base, a flat tree.

Three audiences. The developer and the log read `str(error)`: what was wanted, what was found, what to do. A program
reads `error.code` and the attributes. A person reads `error.user_text(language)`: one short sentence without
internals (no SQL, path, URL, key or stack).
"""

import shlex
from typing import ClassVar, Literal, TypedDict

from longtable.base.extras import install_extra
from longtable.base.redaction import redacted


class Reason(TypedDict):
    """Why something did not happen, or what went wrong on the way: a code for programs, words for a model or a person."""

    code: str
    message: str


class LongtableError(Exception):
    """Base of every error this package raises on purpose."""

    code: ClassVar[str] = "error"
    short: ClassVar[dict[str, str]] = {"en": "Something went wrong.", "zh": "出错了。"}

    def __init__(self, *told: object) -> None:
        # In one place: whatever a client or a driver put into its words, no error of ours repeats a key.
        super().__init__(*(redacted(each) if isinstance(each, str) else each for each in told))

    def user_text(self, language: str = "en") -> str:
        """Return one short sentence for the person, in `language` ("en" or "zh"; others read English)."""
        return self.short.get(language, self.short["en"])

    def dict(self) -> dict[str, str]:
        """Return what Agent Server sends for an error raised outside the nodes: both languages, since the person's is unknown."""
        return {"error": type(self).__name__, "message": f"{self.user_text('en')} {self.user_text('zh')}", "code": self.code}


class RunFailedError(RuntimeError):
    """What leaves a run on a server in place of an error: the person's sentence. Servers pass on the text of this base.

    If it replaces a typed error, it is also an instance of that class and has its attributes. The developer's text goes to the log.
    """

    code: str

    def dict(self) -> dict[str, str]:
        """Return what Agent Server sends of it."""
        return {"error": type(self).__name__, "message": str(self), "code": self.code}


def client_error(error: Exception, text: str, code: str) -> RunFailedError:
    """Return what leaves a run on a server in place of an error, with `text` for the person."""
    kind = type(error)
    typed = isinstance(error, LongtableError)
    named = type(kind.__name__, (RunFailedError, kind) if typed else (RunFailedError,), {"__module__": kind.__module__})
    made: RunFailedError = RunFailedError.__new__(named, text)
    made.__dict__.update(vars(error) if typed else {}, code=code)
    return made


class ConfigError(LongtableError):
    """A setting is wrong or missing; the message names it and says what is allowed."""

    code = "config"
    short: ClassVar[dict[str, str]] = {"en": "A setting or an argument does not fit.", "zh": "有一项设置或参数不合适。"}


class MissingExtraError(ConfigError):
    """An optional part is not installed; the message names its extra and the command that installs it."""

    code = "missing_extra"
    short: ClassVar[dict[str, str]] = {
        "en": "An optional part of longtable is not installed.",
        "zh": "longtable 的一个可选组件没有安装。",
    }

    def __init__(self, what: str, extra: str, *, instead: str = "") -> None:
        otherwise = f", or {instead}" if instead else ""
        super().__init__(f"{what} without the extra `{extra}`: {install_extra(extra)}{otherwise}")
        self.extra = extra


AWAITED = "this store belongs to an event loop: call what is awaited there (aask, astream, ainvoke ...), or use one from `open_persistence`"
"""Told where a call would block the event loop it waits for."""


# -- what a person sent ---------------------------------------------------------------------------------------------


class InputError(LongtableError):
    """The input was refused before anything was written."""

    code = "input"
    short: ClassVar[dict[str, str]] = {"en": "This message cannot be accepted.", "zh": "无法接受这条消息。"}


class EmptyMessageError(InputError):
    """The message holds no text."""

    code = "empty_message"
    short: ClassVar[dict[str, str]] = {"en": "The message is empty: please type a question.", "zh": "消息是空的：请输入一个问题。"}

    def __init__(self) -> None:
        super().__init__("the message is empty: send at least one character that is not white space")


class MessageTooLongError(InputError):
    """One message is over the input limit; nothing was written."""

    code = "message_too_long"

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(f"the message has {size:,} characters, the limit is {limit:,}: shorten it or raise Context.max_message_chars")
        self.size, self.limit = size, limit

    def user_text(self, language: str = "en") -> str:
        if language == "zh":
            return f"消息有 {self.size:,} 个字符，上限是 {self.limit:,}：请缩短。"
        return f"The message has {self.size:,} characters, the limit is {self.limit:,}: please shorten it."


class RequestLimitError(InputError):
    """The messages of one request together are over a limit; nothing was written. `size` and `limit` in the unit of its class."""

    code = "request_limit"
    unit: ClassVar[dict[str, str]] = {"en": "parts", "zh": "个部分"}
    setting: ClassVar[str] = ""

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(f"the request has {size:,} {self.unit['en']}, the limit is {limit:,}: send less, or raise Context.{self.setting}")
        self.size, self.limit = size, limit

    def user_text(self, language: str = "en") -> str:
        if language == "zh":
            return f"这次请求有 {self.size:,} {self.unit['zh']}，上限是 {self.limit:,}：请减少内容。"
        return f"This request has {self.size:,} {self.unit['en']}, the limit is {self.limit:,}: please send less."


class TooManyMessagesError(RequestLimitError):
    """One request holds more messages than allowed."""

    code = "too_many_messages"
    unit: ClassVar[dict[str, str]] = {"en": "messages", "zh": "条消息"}
    setting = "max_request_messages"


class RequestTooLongError(RequestLimitError):
    """The messages of one request hold more characters than allowed."""

    code = "request_too_long"
    unit: ClassVar[dict[str, str]] = {"en": "characters", "zh": "个字符"}
    setting = "max_request_chars"


class RequestTooLargeError(RequestLimitError):
    """One request holds more bytes than allowed, images included."""

    code = "request_too_large"
    unit: ClassVar[dict[str, str]] = {"en": "bytes", "zh": "字节"}
    setting = "max_request_bytes"


class RateLimitedError(InputError):
    """The owner has begun as many turns as allowed in a time; nothing was written. `wait_s`: seconds until the next may begin."""

    code = "rate_limited"

    def __init__(self, *, turns: int, seconds: int, wait_s: float) -> None:
        super().__init__(f"{turns:,} turns in {seconds:,} s are allowed to one owner: wait {wait_s:g} s, or raise RateLimit.turns")
        self.turns, self.seconds, self.wait_s = turns, seconds, wait_s

    def user_text(self, language: str = "en") -> str:
        if language == "zh":
            return f"{self.seconds:,} 秒内最多 {self.turns:,} 次提问：请在 {self.wait_s:g} 秒后重试。"
        return f"No more than {self.turns:,} questions in {self.seconds:,} s: try again in {self.wait_s:g} s."


class InvalidTextError(InputError):
    """The message holds lone surrogates, which are no text."""

    code = "invalid_text"
    short: ClassVar[dict[str, str]] = {"en": "The message holds characters that are not text.", "zh": "消息含有无效字符。"}

    def __init__(self) -> None:
        super().__init__("the message holds lone surrogates: decode its bytes as UTF-8 with errors='replace' before sending it")


class WrongRoleError(InputError):
    """A message of the input is none of the user, the model or a tool, or the last one is not the user's."""

    code = "wrong_role"

    def __init__(self, *, role: str) -> None:
        super().__init__(
            f"an input holds messages of the user, of the model and of tools, and the last must be the user's (role 'human'), "
            f"found {role!r}: put the question last, and what a model is to obey into Context.system_prompt"
        )
        self.role = role


class NotPrivateError(InputError):
    """Cells are to be withheld in a thread that has turns whose cells the model was shown; nothing was written."""

    code = "not_private"
    short: ClassVar[dict[str, str]] = {
        "en": "Earlier turns of this conversation were not private: please begin a new one.",
        "zh": "本会话之前的轮次未启用隐私设置：请新建会话。",
    }

    def __init__(self) -> None:
        super().__init__(
            "Context.privacy is 'types', but in earlier turns of this thread the model was shown cells, and its answers may quote them: "
            "begin a new thread, or leave privacy 'off'"
        )


SYSTEM_AND_TOOLS = "what surrounds every message (system prompt and tools)"


class ContextTooLargeError(InputError):
    """What must be sent word for word does not fit the model's limit. Sizes in tokens."""

    code = "context_too_large"
    short: ClassVar[dict[str, str]] = {
        "en": "This message does not fit the model's context: please shorten it.",
        "zh": "这条消息超出了模型的上下文：请缩短。",
    }

    def __init__(self, *, need: int, budget: int, what: str = "the newest message with system prompt and tools") -> None:
        super().__init__(
            f"{what} needs {need:,} tokens, the budget is {budget:,}: "
            "shorten it, raise Context.model_limit or use a model with a larger limit"
        )
        self.need, self.budget, self.what = need, budget, what

    def user_text(self, language: str = "en") -> str:
        if self.what != SYSTEM_AND_TOOLS:
            return super().user_text(language)
        if language == "zh":
            return f"模型上限太小：仅指令和工具就需要 {self.need:,} 个 token，可用 {self.budget:,} 个。"
        return f"The model's limit is too small: instructions and tools alone need {self.need:,} tokens, {self.budget:,} may be used."


# -- threads and their files ----------------------------------------------------------------------------------------


class ThreadNotFoundError(LongtableError):
    """No thread of this id is in the store."""

    code = "thread_not_found"
    short: ClassVar[dict[str, str]] = {"en": "There is no such conversation.", "zh": "没有这个会话。"}

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"no thread {thread_id!r} in this store: list what is there with `longtable threads`")
        self.thread_id = thread_id


class TurnPendingError(LongtableError):
    """A turn was interrupted and must be finished first."""

    code = "turn_pending"
    short: ClassVar[dict[str, str]] = {"en": "The last turn is not finished yet.", "zh": "上一轮尚未完成。"}

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"thread {thread_id!r} has an interrupted turn: finish it by resume() or retry(), or ask again, then do this")
        self.thread_id = thread_id


class WrongDecisionError(LongtableError):
    """An answer to what a turn waits for does not fit the question, which still stands; nothing was written."""

    code = "wrong_decision"
    short: ClassVar[dict[str, str]] = {
        "en": "This is no answer to what is asked: approve, edit or reject.",
        "zh": "回答与问题不符：请批准、修改或拒绝。",
    }


class NothingAskedError(LongtableError):
    """No turn of the thread waits for a person's answer."""

    code = "nothing_asked"
    short: ClassVar[dict[str, str]] = {"en": "Nothing waits for an answer.", "zh": "没有等待回答的问题。"}

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"thread {thread_id!r} waits for no answer: look at `Conversation.approvals()` and `Conversation.waiting()`")
        self.thread_id = thread_id


class ThreadBusyError(LongtableError):
    """Another run works on the thread.

    `stored`: False, nothing of this run was written; True, its message is in the thread, and another run went on from
    there; None, that happened while its message was on its way in: the history tells.
    """

    code = "thread_busy"

    def __init__(self, thread_id: str, *, stored: bool | None = False) -> None:
        found = {
            False: "another run works on it: nothing of this one was written, send it again",
            True: "another run went on with it: the message of this one stays, the rest was not written",
            None: "another run went on with it while the message of this one was on its way in: see in its history whether it is there",
        }[stored]
        super().__init__(f"thread {thread_id!r} is busy: {found}; `Conversation` queues its turns instead")
        self.thread_id, self.stored = thread_id, stored

    def user_text(self, language: str = "en") -> str:
        if self.stored is False:
            zh, en = (
                "会话正忙：这条消息未被接收，请再发一次。",
                "This conversation is busy: your message was not taken in, please send it again.",
            )
        elif self.stored:
            zh, en = "会话中另一条消息先得到处理，这一轮已中止。", "Another message went on with this conversation; this turn was stopped."
        else:
            zh = "会话中另一条消息先得到处理；请先确认这条消息是否已在会话中。"
            en = "Another message went on with this conversation: please look whether yours is in it before you send it again."
        return zh if language == "zh" else en


class UnknownTurnError(LongtableError):
    """The thread has no turn of this number."""

    code = "unknown_turn"
    short: ClassVar[dict[str, str]] = {"en": "There is no such turn in this conversation.", "zh": "会话中没有这一轮。"}

    def __init__(self, turn: int, *, turns: int) -> None:
        super().__init__(f"the thread has turns 1 to {turns:,}, found {turn:,}: name one of them")
        self.turn, self.turns = turn, turns


class ThreadExistsError(LongtableError):
    """A thread of this id is there already; nothing was written."""

    code = "thread_exists"
    short: ClassVar[dict[str, str]] = {"en": "There is a conversation of this id already.", "zh": "已有同名的会话。"}

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"a thread {thread_id!r} is in this store already: choose another id, or delete that one first")
        self.thread_id = thread_id


class ThreadFormatError(LongtableError):
    """An exported thread cannot be read: another kind of file, cut off, changed, or of a newer version; nothing was written."""

    code = "thread_format"
    short: ClassVar[dict[str, str]] = {
        "en": "This file is not a conversation that can be read here.",
        "zh": "无法读取这个文件中的会话。",
    }


class UnknownMessageError(LongtableError):
    """The thread has no message of this id."""

    code = "unknown_message"
    short: ClassVar[dict[str, str]] = {"en": "There is no such message in this conversation.", "zh": "会话中没有这条消息。"}

    def __init__(self, message_id: str) -> None:
        super().__init__(f"the thread has no message with id {message_id!r}: take the `id` of a message of `Conversation.history()`")
        self.message_id = message_id


class UnknownPinError(LongtableError):
    """The thread has no pin of this id."""

    code = "unknown_pin"
    short: ClassVar[dict[str, str]] = {"en": "There is no such pinned statement.", "zh": "没有这条固定的内容。"}

    def __init__(self, pin_id: str) -> None:
        super().__init__(f"the thread has no pin with id {pin_id!r}: take the `id` of one of `Conversation.pins()`")
        self.pin_id = pin_id


class UnknownTopicError(LongtableError):
    """The thread has no topic of this id."""

    code = "unknown_topic"
    short: ClassVar[dict[str, str]] = {"en": "There is no such topic.", "zh": "没有这个主题。"}

    def __init__(self, topic_id: str) -> None:
        super().__init__(f"the thread has no topic with id {topic_id!r}: take the `id` of one of `Conversation.topics()`")
        self.topic_id = topic_id


class UndoTooFarError(LongtableError):
    """The messages behind this compaction have retired to the archive: the view before it cannot be had again."""

    code = "undo_too_far"
    short: ClassVar[dict[str, str]] = {"en": "This can no longer be undone.", "zh": "这一步已无法撤销。"}

    def __init__(self, archived: int) -> None:
        super().__init__(
            f"{archived:,} messages, and compactions before this one, retired to the archive since: only newer ones can be undone; "
            "`Conversation.history()` still has every message"
        )
        self.archived = archived


class PersistenceError(LongtableError):
    """The file that keeps the threads cannot be opened or written."""

    code = "persistence"
    short: ClassVar[dict[str, str]] = {"en": "The conversation store cannot be used.", "zh": "无法使用会话存储。"}


class DamagedThreadError(PersistenceError):
    """The stored data of one thread cannot be read.

    Other threads are unaffected; this one can be deleted, or forked from its readable turns.
    """

    code = "damaged_thread"
    short: ClassVar[dict[str, str]] = {
        "en": "This conversation is damaged and cannot be read.",
        "zh": "这个会话已损坏，无法读取。",
    }

    def __init__(self, thread_id: str, *, what: str, why: str) -> None:
        argument = shlex.quote(thread_id)
        super().__init__(
            f"thread {thread_id!r} is damaged, {what} cannot be read ({why}): `longtable threads fork {argument}` (`Conversation.fork()`) "
            f"makes a new thread of the turns that can be read, `longtable threads delete {argument}` deletes it"
        )
        self.thread_id, self.what, self.why = thread_id, what, why


class NewerStoreError(PersistenceError):
    """The store was written by a later version of longtable; nothing was changed in it."""

    code = "newer_store"
    short: ClassVar[dict[str, str]] = {
        "en": "The conversation store was written by a newer version of this program.",
        "zh": "会话存储由本程序的较新版本写入。",
    }

    def __init__(self, *, found: int, known: int) -> None:
        super().__init__(f"the conversation store is of schema {found}, this version of longtable knows up to {known}: update longtable")
        self.found, self.known = found, known


class StoreKeyError(PersistenceError):
    """The store is encrypted and the key is missing or another one, or it is not encrypted and a key was given."""

    code = "store_key"
    short: ClassVar[dict[str, str]] = {"en": "The key does not fit the conversation store.", "zh": "密钥与会话存储不符。"}


class UnknownArchiveError(LongtableError):
    """The thread has no archive file of this key, or it is no key."""

    code = "unknown_archive"
    short: ClassVar[dict[str, str]] = {"en": "There is no such archive file.", "zh": "没有这个归档文件。"}

    def __init__(self, key: str) -> None:
        super().__init__(f"this thread has no archive file {key[:60]!r}: take a key that its list of files has")


class ArchiveGapError(PersistenceError):
    """Archived messages that were asked for are not there. `missing`: their numbers in the transcript, as (first, last)."""

    code = "archive_gap"

    def __init__(self, missing: list[tuple[int, int]], *, what: str = "messages") -> None:
        told = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in missing[:5])
        more = f" and {len(missing) - 5} more gaps" if len(missing) > 5 else ""
        super().__init__(f"the archive lacks {what} {told}{more}: give the store that the thread was kept in, or restore its file")
        self.missing = missing


class ArchiveFormatError(PersistenceError):
    """A message holds what cannot be archived, or an archived one cannot be read; nothing was written."""

    code = "archive_format"


# -- what a model asks to recall --------------------------------------------------------------------------------------


class RecallRefusedError(LongtableError):
    """A recall was asked for in a way that can find nothing; the message tells the model how to ask."""

    code = "recall_refused"
    short: ClassVar[dict[str, str]] = {"en": "Earlier messages cannot be searched like this.", "zh": "无法这样查找之前的消息。"}


# -- the database ---------------------------------------------------------------------------------------------------


Problem = Literal["syntax", "unknown_name", "ambiguous", "type", "refused", "too_slow", "too_big", "unavailable", "other"]
"""What is wrong with a query, whichever engine says so and in whatever words."""


class DatabaseError(LongtableError):
    """Base of what the database side raises."""

    code = "database"
    problem: Problem = "other"
    line: int | None = None
    """Where in the SQL as it was asked, both from 1; None where that is not known."""
    column: int | None = None
    nearest: tuple[str, ...] = ()
    """Names that were probably meant, the likeliest first."""
    short: ClassVar[dict[str, str]] = {"en": "The database cannot answer this.", "zh": "数据库无法回答。"}


class DatabaseUnavailableError(DatabaseError):
    """The database is missing, unreadable, locked, or not a database of the kind its URL says."""

    code = "database_unavailable"
    problem = "unavailable"
    short: ClassVar[dict[str, str]] = {"en": "The database cannot be opened.", "zh": "无法打开数据库。"}


class QueryRefusedError(DatabaseError):
    """A wall refused the statement. `rule` names the rule, `hint` says what would be allowed."""

    code = "query_refused"
    short: ClassVar[dict[str, str]] = {"en": "This query is not allowed: only reading is.", "zh": "不允许这个查询：只能读取。"}

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
        self.reason, self.rule, self.hint = reason, rule, hint
        self.problem = "syntax" if rule == "syntax" else "unknown_name" if rule == "table" else "refused"
        self.line, self.column, self.nearest = line, column, nearest


class QueryFailedError(DatabaseError):
    """The database could not run the statement. `hint` says what to change."""

    code = "query_failed"

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
        self.reason, self.hint, self.problem = reason, hint, problem
        self.line, self.column, self.nearest = line, column, nearest


class UnknownTableError(QueryRefusedError, QueryFailedError):
    """No table of this name can be read: it is not there, or not permitted; which of the two is not told."""

    code = "unknown_table"
    short: ClassVar[dict[str, str]] = {"en": "There is no such table.", "zh": "没有这个表。"}


class QueryTimeoutError(DatabaseError):
    """The statement ran longer than allowed. Seconds."""

    code = "query_timeout"
    problem = "too_slow"

    def __init__(self, *, limit_s: float) -> None:
        super().__init__(f"the query was stopped after {limit_s:g} s: filter or aggregate more, or raise QueryLimits.seconds")
        self.limit_s = limit_s


class ConnectionWaitError(DatabaseError):
    """No connection to the server came free in time: the query never began. Seconds, and how many connections there are."""

    code = "connection_wait"
    problem = "unavailable"
    short: ClassVar[dict[str, str]] = {"en": "The database is busy: try again later.", "zh": "数据库繁忙：请稍后重试。"}

    def __init__(self, *, waited_s: float, connections: int) -> None:
        super().__init__(
            f"all {connections} connections to the database were busy for {waited_s:.3g} s, so the query was not started: ask again later"
        )
        self.waited_s, self.connections = waited_s, connections


class TooManyRowsError(DatabaseError):
    """The result has more rows than allowed; nothing of it is returned."""

    code = "too_many_rows"
    problem = "too_big"

    def __init__(self, *, limit: int) -> None:
        super().__init__(f"the result has more than {limit:,} rows: aggregate, filter or add LIMIT")
        self.limit = limit


class ResultTooLargeError(DatabaseError):
    """The result is larger than allowed (bytes), or one value or row of it; nothing of it is returned."""

    code = "result_too_large"
    problem = "too_big"

    def __init__(self, *, limit: int, what: str = "the result") -> None:
        super().__init__(f"{what} is larger than {limit:,} bytes: select fewer columns or rows")
        self.limit = limit


class QueryMemoryError(ResultTooLargeError):
    """The engine would need more memory for the query than it may have. Bytes."""

    code = "query_memory"

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit, what="the query's memory")


class TempSpaceError(ResultTooLargeError):
    """The engine would need more temporary space on disk for the query than it may have. Bytes."""

    code = "temp_space"

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit, what="the query's temporary space")


class QueryCancelledError(DatabaseError):
    """The turn was cancelled, and with it the query."""

    code = "query_cancelled"

    def __init__(self) -> None:
        super().__init__("the query was cancelled")


# -- the model's provider -------------------------------------------------------------------------------------------


class ProviderError(LongtableError):
    """The model's provider did not answer. The turn can be resumed; nothing of the thread is lost."""

    code = "provider"
    short: ClassVar[dict[str, str]] = {"en": "The model did not answer. You can try again.", "zh": "模型没有回答。可以重试。"}


class ProviderAuthError(ProviderError):
    """The provider refused the key (401, 403)."""

    code = "provider_auth"
    short: ClassVar[dict[str, str]] = {"en": "The model's provider refused the key.", "zh": "模型服务拒绝了密钥。"}


class ProviderRateLimitedError(ProviderError):
    """The provider asks to wait (429). `retry_after` in seconds, None when it does not say."""

    code = "provider_rate_limited"

    def __init__(self, message: str, *, retry_after: float | None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def user_text(self, language: str = "en") -> str:
        wait = f"{self.retry_after:g}" if self.retry_after is not None else None
        if language == "zh":
            return f"模型服务繁忙：请在 {wait} 秒后重试。" if wait else "模型服务繁忙：请稍后重试。"
        return f"The model's provider is busy: try again in {wait} s." if wait else "The model's provider is busy: try again later."


class ProviderUnavailableError(ProviderError):
    """The provider cannot be reached, failed (5xx), or broke the stream. `retry_after` in seconds, where it says when to ask again."""

    code = "provider_unavailable"
    short: ClassVar[dict[str, str]] = {
        "en": "The model's provider is not reachable. You can try again.",
        "zh": "无法连接模型服务。可以重试。",
    }

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ProviderRefusedError(ProviderError):
    """The provider refused the request (another 4xx).

    `content`: for what its messages hold, so that the turn is closed; `left_out`: its messages left the view. If the call
    is refused even without earlier refused messages, nothing more is removed from the view.
    """

    code = "provider_refused"
    short: ClassVar[dict[str, str]] = {"en": "The model's provider refused the request.", "zh": "模型服务拒绝了请求。"}

    def __init__(self, message: str, *, content: bool = False, left_out: bool = False) -> None:
        super().__init__(message)
        self.content, self.left_out = content, left_out

    def user_text(self, language: str = "en") -> str:
        if not self.content:
            return super().user_text(language)
        if self.left_out:
            if language == "zh":
                return "模型服务拒绝了这条消息：它保留在会话记录中，但不再发给模型。可以继续提问，或重试。"
            return "The model's provider refused this message: it stays in the history but leaves the model's view. Ask on, or try again."
        if language == "zh":
            return "已略去之前被拒绝的消息，模型服务仍然拒绝：请排除较早的消息，或换一个模型。"
        return "The model's provider refused again, without what it refused before: exclude an earlier message, or use another model."


class ProviderProtocolError(ProviderError):
    """The server answered, but not in the protocol its client speaks: no model server, or a wrong URL."""

    code = "provider_protocol"
    short: ClassVar[dict[str, str]] = {
        "en": "The model's server gave an answer that cannot be read: check its URL.",
        "zh": "模型服务的回答无法解读：请检查其地址。",
    }


class ModelContextOverflowError(ProviderError):
    """The provider says the request is over its context, and folding harder did not help."""

    code = "model_context_overflow"
    short: ClassVar[dict[str, str]] = {
        "en": "The conversation does not fit the model's context.",
        "zh": "会话超出了模型的上下文。",
    }
