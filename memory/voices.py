"""Build the transcript as each voice of a team hears it, and find out whom a message mentions. The
functions are pure.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from longtable.memory.compaction.ledger import ledger_lines
from longtable.memory.messages.marks import COLLEAGUE, PRIVATE, mark_of, marked, turn_number
from longtable.memory.messages.rounds import all_calls, split_rounds

VOICE = "voice"
"""Mark of an answer, a tool call or a result: the id of the persona that made it."""
NARRATOR = "narrator"
"""Id of the voice of a mode's own text at the end of a turn. No persona may have this id."""
TEAM = "team"
"""Id under which tokens of all voices are added up, if the figures of each single voice would give
away a secret of a game.
"""
EVERYBODY = frozenset({"all", "everyone", "everybody", "所有人", "大家", "全体"})
"""Words that mention the whole team."""
SQL_CHARS = 300
"""Only this many characters of a colleague's query are shown to another voice."""


@dataclass(frozen=True, kw_only=True)
class Voice:
    """The persona that makes the next call, and what it hears."""

    id: str
    names: Mapping[str, str]
    """Display names of all personas of the team, by id."""
    words: Mapping[str, str]
    """The words that mention a persona (in the form that `fold` gives), each with the persona's id.
    """
    rounds: int | None = None
    """How many of the newest rounds the voice sees, None for all."""
    apart: int = 0
    """The turn in which the voice hears nothing of its colleagues, 0 if there is no such turn."""

    def hears(self, message: BaseMessage) -> bool:
        """Return whether the voice may know of a message."""
        if mark_of(message, VOICE) in (None, self.id):
            return True
        if mark_of(message, PRIVATE):
            return False
        return not self.apart or turn_number(message) != self.apart


def as_heard(messages: Sequence[BaseMessage], voice: Voice) -> list[BaseMessage]:
    """Return the messages as a voice hears them.

    The voice's own messages stay. A colleague's answer becomes a user message that begins with the
    colleague's name and ends with a line for the colleague's queries. The colleague's tool calls
    and results are left out. In the user's messages, mentions such as "@Ada" become plain names.
    """
    if voice.rounds is not None:
        newest = split_rounds(messages)[-voice.rounds :]
        messages = list(chain.from_iterable(newest))
    result: list[BaseMessage] = []
    work: list[BaseMessage] = []
    for message in messages:
        speaker = mark_of(message, VOICE)
        if work and speaker != mark_of(work[0], VOICE):
            result += _colleague(work, None, voice)
            work = []
        if message.type == "human":
            result.append(_without_mentions(message, voice))
        elif speaker is None:
            result.append(message)
        elif speaker == voice.id:
            result.append(_without_name(message, voice.names.get(voice.id, "")))
        elif voice.hears(message):
            if isinstance(message, AIMessage) and not all_calls(message):
                result += _colleague(work, message, voice)
                work = []
            else:
                work.append(message)
    return [*result, *(_colleague(work, None, voice) if work else ())]


def _colleague(
    work: Sequence[BaseMessage], answer: AIMessage | None, voice: Voice
) -> list[BaseMessage]:
    """Return a colleague's work and answer as a list of one user message. The list is empty if the
    colleague neither answered nor ran a query.
    """
    last = answer or work[-1]
    name = voice.names.get(str(mark_of(last, VOICE)), str(mark_of(last, VOICE)))
    words = str(answer.text).removeprefix(f"{name}: ") if answer else ""
    ran = [
        f"{line.handle or 'a query'}{f' in {line.database}' if line.database else ''}:"
        f" {' '.join(line.sql.split())[:SQL_CHARS]} -> {line.rows:,}"
        f" rows ({line.figures})"
        for line in ledger_lines(work)
    ]
    queries = f"[{name} ran {'; '.join(ran)}]" if ran else ""
    text = "\n".join(filter(None, [words, queries]))
    if not text:
        return []
    message = HumanMessage(f"{name}: {text}", id=last.id)
    return [marked(message, turn=turn_number(last), kind=COLLEAGUE)]


def _without_name(message: BaseMessage, name: str) -> BaseMessage:
    """Return a voice's own message without the voice's name. If the name stayed, the model would
    begin its answers with it.
    """
    content = message.content
    if message.type != "ai" or (
        message.name is None and not (isinstance(content, str) and content.startswith(f"{name}: "))
    ):
        return message
    return message.model_copy(
        update={
            "name": None,
            "content": content.removeprefix(f"{name}: ") if isinstance(content, str) else content,
        }
    )


# -- mentions --------------------------------------------------------------------------------------

_QUOTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"|“[^”]*”|‘[^’]*’|「[^」]*」|『[^』]*』|^[ \t]*>[^\n]*",
    re.DOTALL | re.MULTILINE,
)
"""Code and quotations, which mention nobody."""
_AT = re.compile(r"(?<![A-Za-z0-9._%+\-@＠])[@＠]")
"""An at sign that is not part of an e-mail address."""
_ANY_AT = re.compile("[@＠]")
_UNKNOWN = re.compile(r"[^\W_][\w.-]{0,39}")


@dataclass(frozen=True)
class Mentions:
    """The mentions in a text. `text`: the text with plain names in place of mentions; a mention at
    the beginning is removed.
    """

    text: str
    ids: Sequence[str] = field(default_factory=list)
    """Ids of the personas mentioned, in order, each once."""
    unknown: Sequence[str] = field(default_factory=list)
    """Words after an at sign that name nobody in the team."""


def fold(word: str) -> str:
    """Return a word in the form in which mentions are compared: with case, full-width letters and
    spaces normalised.
    """
    return " ".join(unicodedata.normalize("NFKC", word).casefold().split())


def mentions_in(text: str, words: Mapping[str, str], names: Mapping[str, str]) -> Mentions:
    """Return the mentions in a text. If several names fit after an at sign, the longest counts. At
    signs in code, quotations and e-mail addresses are skipped.
    """
    if "@" not in text and "＠" not in text:
        return Mentions(text)
    quoted = [match.span() for match in _QUOTED.finditer(text)]
    longest = max(map(len, [*words, *EVERYBODY]), default=0)
    ids: dict[str, None] = {}
    unknown: dict[str, None] = {}
    parts: list[str] = []
    done = 0
    for match in _ANY_AT.finditer(text):
        start, place = match.span()
        follows = bool(done) and start == done
        if not follows and not _AT.match(text, start):
            continue
        if start < done or any(a <= start < b for a, b in quoted):
            continue
        end, id_ = next(_names_at(text, place, longest, words), (place, ""))
        if not id_:
            if word := _UNKNOWN.match(text, place):
                unknown[word[0]] = None
            continue
        ids |= dict.fromkeys(names if id_ in EVERYBODY else [id_])
        before = " " if follows and "".join(parts).strip() else text[done:start]
        parts += [
            before,
            (
                ""
                if not "".join([*parts, before]).strip()
                else text[place:end]
                if id_ in EVERYBODY
                else names[id_]
            ),
        ]
        done = end
        if not parts[-1]:
            done += len(text[end:]) - len(text[end:].lstrip(" ,，:：、"))
    clean = "".join([*parts, text[done:]])
    return Mentions(clean if clean.strip() else text, list(ids), list(unknown))


def _names_at(
    text: str, place: int, longest: int, words: Mapping[str, str]
) -> Iterator[tuple[int, str]]:
    """Yield the names that begin at `place` in a text, the longest first: the index after the name,
    and the persona's id.
    """
    for end in range(min(len(text), place + longest), place, -1):
        word = fold(text[place:end])
        goes_on = (
            text[end - 1].isascii()
            and end < len(text)
            and text[end].isascii()
            and (text[end].isalnum() or text[end] == "_")
        )
        if (word in words or word in EVERYBODY) and not goes_on and not text[end - 1].isspace():
            yield end, words.get(word, word)


def _without_mentions(message: BaseMessage, voice: Voice) -> BaseMessage:
    content: Any = message.content
    if isinstance(content, str):
        clean: Any = mentions_in(content, voice.words, voice.names).text
    else:
        clean = [
            (
                {**part, "text": mentions_in(part["text"], voice.words, voice.names).text}
                if isinstance(part, dict) and isinstance(part.get("text"), str)
                else part
            )
            for part in content
        ]
    return message if clean == content else message.model_copy(update={"content": clean})
