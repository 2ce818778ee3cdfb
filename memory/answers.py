"""Read an answer: reasoning in its text, which is kept apart and sent back only where the provider
asks for it, markers that ask for earlier messages, and what is known of it, its metadata.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage

from longtable.memory.counting.usage import reported, reported_model
from longtable.memory.messages.marks import GIVEN, kind_of, marks_of, turn_number
from longtable.memory.messages.rounds import all_calls, split_rounds

REASONING = "reasoning_content"
"""Key in `additional_kwargs` of a message that is sent with its reasoning, and in the protocol."""
MARK = "reasoning"
"""Mark that keeps it in the transcript."""

Sent = Literal["never", "tool_rounds"]
"""`tool_rounds`: with every answer of a round that called tools."""

ASKED_BACK: Sequence[tuple[str, Sent]] = (
    (r"deepseek-?(r1|reasoner-?(0120|0528))", "never"),
    # V3.2 and V4; a round without tools is sent without, as the older ones want it
    (r"deepseek", "tool_rounds"),
    (r"kimi-.*thinking|kimi-k2\.[5-9]|kimi-k[3-9]", "tool_rounds"),
    (r"glm-(4\.[6-9]|[5-9])", "tool_rounds"),
)
"""The first pattern found in a model's name decides."""


def reasoning_sent(model: str) -> Sent:
    """Return when a model wants its reasoning back, by its name."""
    return next(
        (sent for pattern, sent in ASKED_BACK if re.search(pattern, model, re.IGNORECASE)), "never"
    )


def reasoning_of(message: BaseMessage) -> str:
    """Return the reasoning that is kept of an answer, "" where there is none."""
    if stored := _text(marks_of(message).get(MARK)):
        return stored
    return "\n\n".join(_blocks(message))


def separate_reasoning(message: BaseMessage) -> str:
    """Return the reasoning an answer came with beside its content."""
    return _text(message.additional_kwargs.get(REASONING))


def streamed_reasoning(message: BaseMessage) -> str:
    """Return the reasoning of an answer, or of a piece of one, as it comes from its provider:
    beside the content or within.
    """
    return separate_reasoning(message) or "".join(_blocks(message))


def without_reasoning(message: BaseMessage) -> BaseMessage:
    """Return an answer without the reasoning beside its content."""
    if REASONING not in message.additional_kwargs:
        return message
    return message.model_copy(
        update={
            "additional_kwargs": {
                k: v for k, v in message.additional_kwargs.items() if k != REASONING
            }
        }
    )


def with_reasoning(messages: Sequence[BaseMessage], sent: Sent) -> list[BaseMessage]:
    """Return a call's messages with the reasoning its model wants back."""
    if sent == "never":
        return list(messages)
    return [message for group in split_rounds(messages) for message in _with_reasoning(group)]


def _with_reasoning(group: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    if not any(isinstance(message, AIMessage) and all_calls(message) for message in group):
        return group
    return [
        (
            _sent_with(message, _text(marks_of(message).get(MARK)))
            if isinstance(message, AIMessage)
            else message
        )
        for message in group
    ]


def _sent_with(message: AIMessage, reasoning: str) -> AIMessage:
    if not reasoning:
        return message
    return message.model_copy(
        update={"additional_kwargs": {**message.additional_kwargs, REASONING: reasoning}}
    )


def _blocks(message: BaseMessage) -> list[str]:
    blocks = message.content if isinstance(message.content, list) else []
    return [text for block in blocks if isinstance(block, dict) and (text := _block(block))]


def _block(block: dict[str, Any]) -> str:
    """Return the text of Anthropic's thinking and of LangChain's reasoning blocks."""
    if block.get("type") not in {"thinking", "reasoning"}:
        return ""
    return _text(block.get("thinking") or block.get("reasoning"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


BEGIN = "<think>"
END = "</think>"
_THINKERS = re.compile(
    r"deepseek|qwen|qwq|think|\br1\b|glm|kimi|minimax|nemotron|magistral", re.IGNORECASE
)
"""Models of which an end without a beginning is taken for one; of another one it is what the answer
says.
"""


class ThinkTagParser:
    """Parts a stream, however its pieces are cut: only a tag that the text begins with opens
    reasoning.
    """

    def __init__(self) -> None:
        self._held = ""
        self._state = "begin"

    def feed(self, piece: str) -> tuple[str, str]:
        """Take a piece and return what is known of it: reasoning, and answer."""
        self._held += piece
        thought = ""
        if self._state == "begin":
            begun = self._held.lstrip()
            if begun.startswith(BEGIN):
                self._state = "within"
                self._held = begun.removeprefix(BEGIN).lstrip("\n")
            elif not BEGIN.startswith(begun):
                self._state = "beyond"
        if self._state == "within":
            thought, ended, rest = self._held.partition(END)
            if ended:
                thought = thought.rstrip("\n")
                self._state = "after"
                self._held = rest
            else:
                waits = next(
                    (
                        n
                        for n in range(min(len(END), len(thought)), 0, -1)
                        if END.startswith(thought[-n:])
                    ),
                    0,
                )
                end = len(thought) - waits
                self._held = thought[end:]
                thought = thought[:end]
        if self._state == "after":
            self._held = self._held.lstrip()
            self._state = "beyond" if self._held else "after"
        if self._state != "beyond":
            return thought, ""
        text = self._held
        self._held = ""
        return thought, text

    def close(self) -> tuple[str, str]:
        """Return what was held back; no piece may be fed after."""
        rest = self._held
        self._held = ""
        return (
            (rest, "") if self._state == "within" else ("", rest if self._state != "after" else "")
        )


def split_reasoning(answer: BaseMessage, model: str) -> BaseMessage:
    """Return a whole answer with such reasoning beside its content, where `separate_reasoning`
    finds it.
    """
    if (
        not isinstance(answer, AIMessage)
        or not isinstance(answer.content, str)
        or END not in answer.content
    ):
        return answer
    before, _, after = answer.content.partition(END)
    begun = before.lstrip().startswith(BEGIN)
    if not begun and (BEGIN in before or not _THINKERS.search(model)):
        return answer
    thought = "\n\n".join(
        filter(None, [separate_reasoning(answer), before.strip().removeprefix(BEGIN).strip()])
    )
    changes = {
        "content": after.lstrip(),
        "additional_kwargs": {**answer.additional_kwargs, REASONING: thought},
    }
    return answer.model_copy(update=changes)


KEYWORD_CHARS = 200

_SPACE = r"\s{0,8}"
_EMPHASIS = r"[*_`]{0,3}"
_ANY_CASE = r"NEED[\s_\\\-－＿]{0,3}CONTEXT"
_AS_TOLD = r"(?:NEED\\?[_＿]CONTEXT|(?-i:NEED[\s_\\\-－＿]{0,3}CONTEXT))"
# As soon as the colon is there it is a marker, whatever follows. In square brackets any writing is
# one; elsewhere only the words as they were told: "I need context: ..." is what an answer says.
_BEGINNING = re.compile(
    rf"(?:(?P<square>[\[［【]){_SPACE}{_EMPHASIS}{_SPACE}{_ANY_CASE}"
    rf"|(?P<other>[(（<＜{{｛〔〖「『《〈]){_SPACE}{_EMPHASIS}{_AS_TOLD}"
    rf"|(?P<emphasis>{_EMPHASIS})(?<![A-Za-z0-9]){_AS_TOLD})"
    rf"{_EMPHASIS}{_SPACE}(?(other)[:：>＞]|[:：])(?P<ended>{_EMPHASIS})",
    re.IGNORECASE,
)
_SQUARE = "]］】"
_CLOSING = {
    "(": ")）",
    "（": ")）",
    "<": "<>＞",
    "＜": "<>＞",
    "{": "}｝",
    "｛": "}｝",
    "〔": "〕",
    "〖": "〗",
    "「": "」",
    "『": "』",
    "《": "》",
    "〈": "〉",
}
"""What ends a marker that begins with a bracket of its own kind."""
_BARE = re.compile(rf"((?:(?![.!?](?:\s|$)|[。！？\r\n]).){{0,{KEYWORD_CHARS}}})")
"""A marker without brackets ends with its sentence."""
_QUOTES = "\"'`*“”‘’「」<> "


@dataclass(frozen=True)
class Marker:
    """A marker in a text, from `start` up to `end`. The keyword may be empty."""

    keyword: str
    start: int
    end: int


def find(text: str) -> Marker | None:
    """Return the first marker of a text.

    Case, blanks and the kind of brackets do not matter. A marker that is not closed ends with its
    line, one without brackets with its sentence.
    """
    begun = _BEGINNING.search(text)
    if begun is None:
        return None
    rest = _rest_of(begun).match(text, begun.end())
    assert rest is not None, "the pattern matches an empty rest"
    return Marker(" ".join(rest[1].split()).strip(_QUOTES), begun.start(), rest.end())


def _rest_of(begun: re.Match[str]) -> re.Pattern[str]:
    """Return the pattern of a marker's keyword and end."""
    if begun["emphasis"] and not begun["ended"]:
        closing = begun["emphasis"][0]
    elif begun["emphasis"] is not None:
        return _BARE
    else:
        closing = _SQUARE if begun["square"] else _CLOSING[begun["other"]]
    closing = re.escape(closing)
    return re.compile(rf"([^{closing}\r\n]{{0,{KEYWORD_CHARS}}})(?:</?{_AS_TOLD}>|[{closing}]*)")


def keywords_in(text: str) -> list[str]:
    """Return the keywords of a text's markers, each once, in order."""
    keywords: list[str] = []
    while marker := find(text):
        keywords.append(marker.keyword)
        text = text[marker.end :]
    return list(dict.fromkeys(keywords))


@dataclass(frozen=True, kw_only=True)
class Reported:
    """Tokens of the call an answer came from, as reported: cached ones within the input, reasoning
    ones within the output.
    """

    input: int
    output: int
    cached: int
    reasoning: int


@dataclass(frozen=True, kw_only=True)
class Passed:
    """Material that went with the call of an answer and was not kept. Size in tokens."""

    source: str
    tokens: int
    ms: int


@dataclass(frozen=True, kw_only=True)
class MessageMetadata:
    """One message's metadata; what is not known is empty."""

    kind: str
    """normal, summary, recalled, steered or excluded."""
    turn: int
    time: str
    run: str
    """Id of the run that opened the turn."""
    owner: str
    channel: str
    model: str
    provider: str
    instead_of: str
    """The model that was to answer, where a fallback did."""
    usage: Reported | None
    reasoning: str
    """The model's reasoning, apart from the content."""
    sources: tuple[int, int] | None
    """First and last message, by number, that a summary stands for."""
    notice: str
    """Code of the notice that this message is."""
    given: bool
    """A caller handed it in: no call of this thread's model made it."""
    passed: tuple[Passed, ...]
    """What context providers added to the call."""


def metadata_of(message: BaseMessage) -> MessageMetadata:
    """Return a message's metadata, whatever is broken in it."""
    marks = marks_of(message)
    tokens = reported(message) if isinstance(message, AIMessage) else None
    return MessageMetadata(
        kind=kind_of(message),
        turn=turn_number(message),
        **{
            name: _text(marks.get(name))
            for name in ("time", "run", "owner", "channel", "notice", "instead_of")
        },
        model=(reported_model(message) if isinstance(message, AIMessage) else "")
        or _text(marks.get("model")),
        provider=_text(message.response_metadata.get("model_provider")),
        usage=Reported(**tokens) if tokens else None,
        reasoning=reasoning_of(message),
        sources=_range(marks.get("sources")),
        given=marks.get(GIVEN) is True,
        passed=(
            tuple(filter(None, map(_passed, materials)))
            if isinstance(materials := marks.get("passed"), list)
            else ()
        ),
    )


def _range(value: Any) -> tuple[int, int] | None:
    whole = (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(number, int) for number in value)
    )
    return (value[0], value[1]) if whole else None


def _passed(value: Any) -> Passed | None:
    if not isinstance(value, dict) or not all(
        isinstance(value.get(name), int) for name in ("tokens", "ms")
    ):
        return None
    return Passed(source=_text(value.get("source")), tokens=value["tokens"], ms=value["ms"])
