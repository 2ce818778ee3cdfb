"""Write a summary by code: the user's statements, the findings of answers, and each question with
its answer.

Text that no query can bring back stays longest: the user's own statements, which are in no
database, and figures in an answer that no query result of its round holds. The query ledger and the
pins are not part of this text.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.memory.counting.tokens import MOST_CHARS
from longtable.memory.messages.marks import speaker_of, turn_number
from longtable.memory.messages.rounds import split_rounds
from longtable.memory.pins.net import asks, is_request, is_rule, takes_back
from longtable.memory.pins.net import sentences as sentences_of
from longtable.memory.summary.summary_text import (
    CONSTRAINTS,
    DECISIONS,
    FACTS,
    OPEN,
    PREFERENCES,
    Finding,
    Numbered,
    clip,
    findings_in,
    flat,
    is_finding,
    join_sections,
    sections_of,
)

Count = Callable[[str], int]
Skip = Callable[[str, str], bool]
"""Function of a sentence and of the messages it comes from, such as "m3-m6". It returns True if the
sentence needs no line in the summary.
"""
STATED = {"en": "User said", "zh": "用户说过"}
FOUND = {"en": "Found", "zh": "得出"}
_LEFT_OUT = {
    "en": "{n} earlier findings are in the transcript only.",
    "zh": "另有 {n} 条更早的结论只在会话记录中。",
}
_LEFT_OUT_LINES = [
    re.compile("- " + re.escape(text).replace(re.escape("{n}"), r"(\d+)"))
    for text in _LEFT_OUT.values()
]
_WRITTEN = re.compile(
    rf"(?P<head>- (?:(?P<stated>{'|'.join(STATED.values())})|{'|'.join(FOUND.values())}):)"
    r" (?P<text>.*) \[m(?P<number>\d{1,9})\]",
    re.DOTALL,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
LEAST_DIGITS = 3
"""Fewest digits of a figure that is worth a line. Shorter figures are too common."""
FEW_WORDS = 5
"""A sentence with fewer words is kept together with its question, because it cannot be understood
alone.
"""
QUESTION_CHARS = 80
STATED_CHARS = 600
"""Most characters of one message's statements. Longer text is pasted material."""
_LONG_WORD = re.compile(r"[^\W\d_\u3400-\u9fff]{2,}")
_CHINESE_RUN = re.compile(r"[\u3400-\u9fff]{2,}")
_WORD = re.compile(r"[^\W\d_\u3400-\u9fff]{2,}|[\u3400-\u9fff]")
FULL_STOPS = (".", "。")
"""A sentence that ends with a full stop is no question, even if it holds a question word: "What we
call a bounce is a visit of one page."
"""
_LEAST_WORDS = re.compile(r"\b(?:\w+\W+){2}\w|(?:[\u3400-\u9fff]\W*){6}")
_TWO_DIGITS = re.compile(r"\d{2}")


@dataclass
class _Lines:
    """The lines that code wrote, oldest first, in three lists. `findings` are questions with
    answers, `found` are figures of answers, `stated` are statements of the user.
    """

    findings: list[Finding]
    found: list[str]
    stated: list[str]


def fallback_summary(
    previous: str,
    compacted: Sequence[Numbered],
    *,
    language: str,
    budget: int,
    count: Count,
    room_for_stated: int = 0,
    mark: Callable[[str], str] = str,
    skip: Skip = lambda sentence, ids: False,  # noqa: ARG005  # what a caller may hand in
    is_pinned: Callable[[str], bool] = lambda line: False,  # noqa: ARG005  # likewise
) -> str:
    """Make the next memory without a model, from the previous memory and the compacted rounds.

    The result is deterministic. It has at most `budget` tokens by `count`, and `room_for_stated`
    more for the user's statements. It is empty if not even the headings fit.

    If there is too little room, text is dropped in this order:

    1. lines of the previous memory that only repeat a pin of the view (`is_pinned`);
    2. questions with their answers: first clipped, then dropped, oldest first;
    3. figures of answers, and statements of the user;
    4. other lines of the previous memory, constraints last.

    A line says how many lines were dropped. `mark` returns a line with a note if one of its figures
    was corrected. `skip` returns True for a sentence that needs no line because a pin or another
    line holds it.
    """
    sections = [list(map(mark, section)) for section in sections_of(previous)]
    written, model_facts = _split(sections[FACTS], skip)
    for round_ in numbered_rounds(compacted):
        _add_round(written, round_, language, mark, skip)
    others = [
        model_facts,
        sections[OPEN],
        sections[DECISIONS],
        sections[PREFERENCES],
        sections[CONSTRAINTS],
    ]
    budget += min(room_for_stated, sum(count(line) + 1 for line in written.stated))
    empty = join_sections([[_note(10**6, language)], *([[]] * 4)], language)
    left_out = sum(map(left_out_in, sections[FACTS]))
    room = budget - count(empty)
    _drop_pinned(written, others, language, room, count, is_pinned)
    left_out += _give_way(written, others, language, room, count)
    facts = [_note(left_out, language)] if left_out else []
    facts += model_facts
    facts += written.stated
    facts += written.found
    facts += [finding.line(language) for finding in written.findings]
    text = join_sections([facts, *sections[1:]], language)
    return text if count(text) <= budget else ""


def is_codes_line(line: str) -> bool:
    """Return whether code wrote a line of a summary."""
    return bool(is_finding(line) or _WRITTEN.fullmatch(line))


def left_out_in(line: str) -> int:
    """Return the number in a line such as "- 3 earlier findings are in the transcript only.", 0 for
    any other line.
    """
    matches = (note.fullmatch(line) for note in _LEFT_OUT_LINES)
    return sum(int(match[1]) for match in matches if match)


def _note(gone: int, language: str) -> str:
    return f"- {_LEFT_OUT[language].format(n=gone)}"


def _split(facts: Iterable[str], skip: Skip) -> tuple[_Lines, list[str]]:
    """Separate the lines that code wrote earlier from the model's lines."""
    written = _Lines([], [], [])
    others: list[str] = []
    for line in facts:
        sentences = _WRITTEN.fullmatch(line)
        if is_finding(line):
            written.findings += findings_in(line)
        elif sentences:
            lines = written.stated if sentences["stated"] else written.found
            lines += _still_needed(line, sentences, skip)
        elif not left_out_in(line):
            others.append(line)
    return written, others


def _still_needed(line: str, written: re.Match[str], skip: Skip) -> list[str]:
    """Return a list with a line that code wrote, without the sentences that `skip` names. The list
    is empty if no sentence is left.
    """
    parts = list(sentences_of(written["text"]))
    number = int(written["number"])
    left = [part for part in parts if not skip(part, f"m{number}")]
    if left == parts:
        return [line]
    return [f"{written['head']} {' '.join(left)} [m{number}]"] if left else []


# -- reading a round -------------------------------------------------------------------------------


def numbered_rounds(compacted: Sequence[Numbered]) -> list[list[Numbered]]:
    """Split numbered messages into rounds. An answer whose question is not among the messages is a
    round of its own.
    """
    rest = iter(compacted)
    rounds: list[list[Numbered]] = []
    for round_ in split_rounds([message for _, message in compacted]):
        turn = 0
        rounds.append([])
        for message in round_:
            if turn and turn_number(message) not in (0, turn):
                rounds.append([])
            turn = turn_number(message) or turn
            rounds[-1].append(next(rest))
    return rounds


def _add_round(
    written: _Lines,
    round_: Sequence[Numbered],
    language: str,
    mark: Callable[[str], str],
    skip: Skip,
) -> None:
    """Add the lines of a round to `written`: the user's statements, the answer's figures that no
    result holds, and the rest of question and answer as one finding.
    """
    asked: list[str] = []
    answer = _conclusion(final_answer(round_))
    is_answered = any(isinstance(m, ToolMessage) for _, m in round_) or not _is_thanks(answer)
    for number, message in round_:
        if message.type == "human":
            stated, rest = _statements(_said(message), is_answered)
            asked.append(rest)
            new = [sentence for sentence in stated if not skip(sentence, f"m{number}")]
            if new:
                text = clip(flat(" ".join(new)), STATED_CHARS)
                written.stated.append(mark(f"- {STATED[language]}: {text} [m{number}]"))
    question = "\n".join(filter(None, asked))
    found, rest = _figures_found(answer, question, round_)
    last = round_[-1][0]
    found = [sentence for sentence in found if not skip(sentence, f"m{last}")]
    for sentence in found:
        text = clip(flat(sentence), STATED_CHARS)
        written.found.append(mark(f"- {FOUND[language]}: {text} [m{last}]"))
    if question.strip() or (rest.strip() and not (asked and _is_thanks(rest))):
        first = round_[0][0]
        ids = f"m{first}" if first == last else f"m{first}-m{last}"
        finding = Finding(question, rest, ids=ids)
        bare = Finding(question, rest).line(language)
        if not skip(bare, ids):
            written.findings += findings_in(mark(finding.line(language)))


def _is_thanks(answer: str) -> bool:
    """Return whether an answer only acknowledges the user's statement."""
    return len(answer) <= QUESTION_CHARS and not re.search(r"\d", answer)


def _statements(message: str, is_answered: bool) -> tuple[list[str], str]:
    """Return the sentences in which a user states something, and the rest of the message: its
    questions and requests.

    `is_answered`: True if the round has a query, or an answer that is more than thanks. Then a
    message of a single sentence counts as a request, even without a verb ("flights by carrier");
    in a longer message each sentence may be a statement. If False, a sentence that looks like a
    request counts as a statement ("Put the SQL under each answer.").
    """
    parts = list(sentences_of(message))
    stated = [part for part in parts if _is_stated(part, is_answered)]
    if not stated or (is_answered and len(parts) == 1):
        return [], message
    return stated, " ".join(part for part in parts if part not in stated)


def _is_stated(sentence: str, is_answered: bool) -> bool:
    if not _LEAST_WORDS.search(sentence):
        return False
    if is_rule(sentence) or takes_back(sentence):
        return True
    is_question = asks(sentence) and not sentence.endswith(FULL_STOPS)
    return not is_question and not (is_answered and is_request(sentence))


def _figures_found(answer: str, question: str, round_: Sequence[Numbered]) -> tuple[list[str], str]:
    """Return the sentences of an answer with a figure that no query result of the round holds, and
    the rest of the answer.
    """
    results = [str(message.text) for _, message in round_ if isinstance(message, ToolMessage)]
    known: set[str] = set()
    for text in results:
        known.update(map(_digits, _NUMBER.findall(text)))
    found: list[str] = []
    rest: list[str] = []
    for sentence in sentences_of(answer) if results else ():
        numbers = {_digits(number) for number in _NUMBER.findall(sentence)} - known
        if not any(len(number.replace(".", "")) >= LEAST_DIGITS for number in numbers):
            rest.append(sentence)
        elif len(_WORD.findall(sentence)) < FEW_WORDS:
            found.append(f"{clip(flat(question), QUESTION_CHARS)} {sentence}")
        else:
            found.append(sentence)
    return found, " ".join(rest) if results else answer


def _digits(number: str) -> str:
    return number.replace(",", "")


def final_answer(round_: Sequence[Numbered]) -> str:
    """Return the last message of the model in a round that calls no tool, "" if there is none."""
    for _, message in reversed(round_):
        if isinstance(message, AIMessage) and message.text.strip() and not message.tool_calls:
            return _said(message)
    return ""


def _said(message: BaseMessage) -> str:
    """Return a message's text, with the speaker's name before it if the message has a speaker."""
    speaker = speaker_of(message)
    return f"{speaker}: {message.text}" if speaker and message.text.strip() else str(message.text)


def _conclusion(answer: str) -> str:
    """Return an answer in one line, with only the first rows of each Markdown table. Other text
    stays whole.
    """
    lines: list[str] = []
    rows = 0
    for line in answer.splitlines():
        is_row = line.lstrip().startswith("|")
        rows = rows + 1 if is_row else 0
        if rows <= 7 and not re.fullmatch(r"\s*\|[\s:|-]+\|\s*", line):
            lines.append(line.strip().strip("|").replace("|", "/") if is_row else line)
    return " ; ".join(line.strip() for line in lines if line.strip())


# -- room ------------------------------------------------------------------------------------------


def _drop_pinned(
    written: _Lines,
    others: Sequence[list[str]],
    language: str,
    budget: int,
    count: Count,
    is_pinned: Callable[[str], bool],
) -> None:
    """Remove lines that only repeat a pin of the view, in place, until all lines fit the budget.
    Only lines in `others` are removed.
    """
    lines = [finding.line(language) for finding in written.findings]
    lines += chain(written.found, written.stated, *others)
    if sum(map(len, lines)) > MOST_CHARS * max(1, budget):
        excess = budget  # too long to be counted: all of them may go
    else:
        excess = sum(count(line) + 1 for line in lines) - budget
    for section in others:
        for line in list(section):
            if excess > 0 and is_pinned(line):
                section.remove(line)
                excess -= count(line) + 1


def _give_way(
    written: _Lines,
    others: Sequence[list[str]],
    language: str,
    budget: int,
    count: Count,
) -> int:
    """Shorten and drop lines in place, oldest first, until all lines fit the budget. Return how
    many lines were dropped.

    A running sum keeps this linear. A line counts as its own tokens plus one for the line break,
    which is never less than what the line adds to the joined text.
    """

    most_chars = MOST_CHARS * max(1, budget)

    def cost(line: str) -> int:
        # A line that is longer than the whole budget need not be counted.
        return count(line) + 1 if len(line) <= most_chars else max(1, budget) + 1

    findings = written.findings
    costs = [cost(finding.line(language)) for finding in findings]
    excess = sum(costs) - budget
    excess += sum(map(cost, chain(written.found, written.stated, *others)))
    for chars in CLIPS:
        for place, finding in enumerate(findings):
            if excess <= 0:
                return 0
            findings[place] = _clipped(finding, chars)
            smaller = cost(findings[place].line(language))
            excess -= costs[place] - smaller
            costs[place] = smaller
    gone = 0
    asked = sum(costs)
    while len(findings) > FEW_ASKED and excess > 0 and asked > LEAST_ASKED * budget:
        findings.pop(0)
        excess -= costs[gone]
        asked -= costs[gone]
        gone += 1
    before = len(written.found) + len(written.stated)
    excess = _drop_larger(written.found, written.stated, excess, cost)
    gone += before - len(written.found) - len(written.stated)
    while findings and excess > 0:
        excess -= cost(findings.pop(0).line(language))
        gone += 1
    for section in others:
        while section and excess > 0:
            excess -= cost(section.pop(0))
            gone += 1
    return gone


def _drop_larger(one: list[str], other: list[str], excess: int, cost: Count) -> int:
    """Drop lines until `excess` tokens are gone, each time from the list that takes more room.
    Return how many tokens are still too many.

    `one` has the answers' figures, `other` the user's statements; see `STATED_SHARE`.
    """
    lists = (one, other)
    orders = [_in_order_of_going(lines) for lines in lists]
    sizes = [sum(map(cost, lines)) for lines in lists]
    while excess > 0 and any(orders):
        larger = 0 if STATED_SHARE * sizes[0] >= sizes[1] else 1
        line = orders[larger].pop(0)
        lists[larger].remove(line)
        sizes[larger] -= cost(line)
        excess -= cost(line)
    return excess


STATED_SHARE = 2
"""While lines are dropped, the user's statements may take this many times the room of the answers'
figures.
"""
OFTEN = 3
"""A word that is in this many lines of a list says little about any of them."""
FORMULA = 0.75
"""If more than this share of a line's words is in `OFTEN` lines, the line is one of many that say
the same about different things.
"""


def _in_order_of_going(lines: Sequence[str]) -> list[str]:
    """Return the lines in the order in which they may be dropped. First come lines whose words many
    other lines repeat, then most other lines. Last come lines that take something back, because
    they correct an earlier line. Each group is oldest first.
    """
    words_of = {line: _words(line) for line in lines}
    counts = Counter(chain.from_iterable(words_of.values()))

    def is_unlike(line: str) -> bool:
        words = words_of[line]
        often = sum(counts[word] >= OFTEN for word in words)
        return often < FORMULA * len(words)

    def worth(line: str) -> tuple[bool, bool]:
        written = _WRITTEN.fullmatch(line)
        said = written["text"] if written else line
        return any(map(takes_back, sentences_of(said))), is_unlike(line)

    return sorted(lines, key=worth)


def _words(line: str) -> frozenset[str]:
    """Return the words of a line. Chinese text gives its pairs of neighbouring characters."""
    words = set(_LONG_WORD.findall(line.casefold()))
    for run in _CHINESE_RUN.findall(line):
        words.update(map("".join, pairwise(run)))
    return frozenset(words)


LEAST_ASKED = 0.15
"""Share of the room that the newest questions with their answers keep while other lines can be
dropped.
"""
FEW_ASKED = 2
"""Number of newest questions that stay, however long, while other lines can be dropped."""
CLIPS = (300, 120, 60)
"""Lengths in characters to which a question and its answer are clipped, one after the other, while
there is too little room.
"""


def _clipped(finding: Finding, chars: int) -> Finding:
    """Return a finding with question and answer clipped. If the answer is too long, only its
    sentences with figures are kept before it is clipped.
    """
    sql = finding.sql if chars >= 300 else ""
    answer = _figures_first(finding.answer) if len(finding.answer) > chars else finding.answer
    return Finding(clip(finding.question, chars), clip(answer, chars), sql, finding.ids)


def _figures_first(answer: str) -> str:
    parts = sentences_of(answer)
    told = " ".join(part for part in parts if _TWO_DIGITS.search(part))
    return told or answer
