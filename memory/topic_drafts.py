"""Topics as they come out of some messages, before they are filed: as a model proposes them, or made by code alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from langchain_core.messages import AIMessage, ToolMessage

from longtable.memory.artifacts import FENCE, Section, clean, merge_sections, same
from longtable.memory.filing_prompts import SUMMARY_CHARS, TITLE_CHARS, Analysis
from longtable.memory.lexical import Words, keywords, overlap, rarity, terms, words
from longtable.memory.rounds import split_rounds
from longtable.memory.stamps import is_recalled, turn_number
from longtable.memory.summary import Numbered

SAME_SUBJECT, SAME_WORDS = 0.3, 0.15
"""Share of a text, by weight, that another must have to be about the same subject; the second where no SQL names tables.

Tuned on two wandering talks, held out on two others (tests/memory/test_topics_grouping.py): of pairs of questions filed
together 82 % belong together, of pairs that do 93 % are filed together; without any SQL 72 % and 72 %.
"""
STAY = 0.1
"""What speaks for the topic of the round before."""
TABLE, TABLE_WEIGHT = "table ", 8.0
THIN = 2
"""A question with fewer content words than this belongs to what was spoken of before: "and in June?"."""
BODY_CHARS, BODY_LINES, QUESTION_CHARS = 1_200, 14, 600

_WORDLESS = {"en": "(no words)", "zh": "（无文字）"}
_QUESTION = {"en": "Question", "zh": "问题"}
_TABLES = re.compile(r"\b(?:from|join)\s+([\w.\"`\[\]]+)", re.IGNORECASE)

Round = Sequence[Numbered]


@dataclass(frozen=True)
class Draft:
    """One topic found in some messages, and the messages that are filed with it, cited or not."""

    title: str
    summary: str
    sections: tuple[Section, ...]
    filed: tuple[Numbered, ...] = ()

    @property
    def ids(self) -> list[str]:
        """Return the ids of the messages filed with it."""
        return [message.id for _, message in self.filed if message.id]

    @property
    def turn(self) -> int:
        """Return the newest turn among them."""
        return max((turn_number(message) for _, message in self.filed), default=0)


def rounds_of(messages: Sequence[Numbered]) -> list[list[Numbered]]:
    """Split numbered messages into rounds."""
    rest = iter(messages)
    return [[next(rest) for _ in round_] for round_ in split_rounds([message for _, message in messages])]


def shown(messages: Round) -> list[Numbered]:
    """Return the messages whose words are new: a recalled one is filed, but never told again."""
    return [(number, message) for number, message in messages if not is_recalled(message)]


# -- from a model's proposal ----------------------------------------------------------------------------------------


def read_drafts(analysis: Analysis, rounds: Sequence[Round]) -> tuple[list[Draft], list[str]]:
    """Return a model's topics with only real citations, and what is wrong with them, for the model to mend.

    A section that cites none of the messages is left out: its text comes from nowhere.
    """
    known = {number for round_ in rounds for number, _ in shown(round_)}
    drafts: dict[str, Draft] = {}
    unsourced: list[str] = []
    for topic in analysis.topics:
        parts = [Section(part.title[:TITLE_CHARS], tuple(known.intersection(part.sources)), part.body) for part in topic.sections]
        unsourced += [part.title for part in parts if not part.sources or not part.body.strip()]
        kept = [part for part in parts if part.sources and part.body.strip()]
        if kept:
            key = same(topic.title)
            before = drafts[key].sections if key in drafts else ()
            title, summary = clean(Section(topic.title, (), "")).title[:TITLE_CHARS], topic.summary[:SUMMARY_CHARS]
            drafts[key] = Draft(title, drafts[key].summary if key in drafts else summary, tuple(merge_sections([*before, *kept])))
    found = list(drafts.values())
    faults = [f"these sections cite no message that was shown, or are empty: {'; '.join(unsourced[:5])}"] if unsourced else []
    if missed := [number for round_ in uncovered(found, rounds) for number, _ in shown(round_)]:
        faults.append(f"no section cites messages {', '.join(f'm{n}' for n in missed[:30])}")
    return found, faults


def uncovered(drafts: Sequence[Draft], rounds: Sequence[Round]) -> list[Round]:
    """Return the rounds of which no draft cites anything."""
    cited = {number for draft in drafts for part in draft.sections for number in part.sources}
    return [round_ for round_ in rounds if (told := shown(round_)) and not any(number in cited for number, _ in told)]


def complete(drafts: Sequence[Draft], rounds: Sequence[Round], language: str) -> list[Draft]:
    """File every message of the rounds with the drafts.

    A message goes to each draft that cites it; one that none cites goes with its round; a round that none cites becomes
    a section made by code, in the draft of the round before it.
    """
    cited = [{number for part in draft.sections for number in part.sources} for draft in drafts]
    filed: list[list[Numbered]] = [[] for _ in drafts]
    added: list[list[Section]] = [[] for _ in drafts]
    owner = next((i for round_ in rounds for i, numbers in enumerate(cited) if any(n in numbers for n, _ in round_)), 0)
    for round_ in rounds:
        shares = [sum(n in numbers for n, _ in round_) for numbers in cited]
        if any(shares):
            owner = shares.index(max(shares))
        elif shown(round_):
            added[owner].append(section_of(round_, language))
        for number, message in round_:
            for i in [i for i, numbers in enumerate(cited) if number in numbers] or [owner]:
                filed[i].append((number, message))
    return [
        replace(draft, sections=tuple(merge_sections([*draft.sections, *added[i]])), filed=tuple(filed[i]))
        for i, draft in enumerate(drafts)
    ]


# -- by code --------------------------------------------------------------------------------------------------------


def code_drafts(rounds: Sequence[Round], language: str) -> list[Draft]:
    """Group rounds into topics by the words and tables of their questions, one section a round, sources exact.

    A follow-up of few words stays with the round before it. Deterministic; O(rounds x groups).
    """
    about = [subject_of((question_of(round_), 2.0), sql=_sql(round_)) for round_ in rounds]
    telling = rarity(about)
    groups: list[list[Round]] = []
    subjects: list[dict[str, float]] = []
    here = -1
    for round_, subject in zip(rounds, about, strict=True):
        scores = [overlap(subject, group, telling) + (STAY if i == here else 0) for i, group in enumerate(subjects)]
        best = max(range(len(scores)), key=scores.__getitem__, default=-1)
        if best >= 0 and scores[best] >= enough_for(subject):
            here = best
        elif here < 0 or len(set(terms(question_of(round_)))) >= THIN:
            groups.append([])
            subjects.append({})
            here = len(groups) - 1
        groups[here].append(round_)
        for term, weight in subject.items():
            subjects[here][term] = max(weight, subjects[here].get(term, 0.0))
    return [_draft(group, language) for group in groups]


def subject_of(*weighted: tuple[str, float], sql: str) -> Words:
    """Return what some texts with their SQL are about: their words, and the tables, which tell more than a word does."""
    return {**words(*weighted), **{f"{TABLE}{table.casefold()}": TABLE_WEIGHT for table in tables_in(sql)}}


def enough_for(subject: Words) -> float:
    """Return the overlap that makes something about the same subject as this."""
    return SAME_SUBJECT if any(term.startswith(TABLE) for term in subject) else SAME_WORDS


def tables_in(sql: str) -> list[str]:
    """Return the names of the tables in a text that holds SQL, as far as they can be told without parsing it."""
    return [name.strip('"`[]').split(".")[-1].strip('"`[]') for name in _TABLES.findall(sql)]


def question_of(round_: Round) -> str:
    """Return what the user asked in a round, "" where nobody did."""
    return next((str(message.text) for _, message in shown(round_) if message.type == "human"), "")


def section_of(round_: Round, language: str) -> Section:
    """Return a round as a section: the question as its title, answer and SQL as its text, all its messages as sources."""
    told = shown(round_) or list(round_)
    question, answer, sql = " ".join(question_of(round_).split()), _answer(told), _sql(told)
    lines = [_shortened(answer)] if answer else []
    if len(question) > TITLE_CHARS:
        lines.append(f"{_QUESTION[language]}: {_clip(question, QUESTION_CHARS)}")
    if sql:
        lines.append(f"SQL: {' '.join(sql.split())}" if FENCE in sql else f"{FENCE}sql\n{sql.strip()}\n{FENCE}")
    title = question or " ".join(answer.split()) or _WORDLESS[language]
    return clean(Section(_clip(title, TITLE_CHARS), tuple(n for n, _ in told), "\n".join(lines) or _WORDLESS[language]))


def _draft(group: Sequence[Round], language: str) -> Draft:
    parts = merge_sections([section_of(round_, language) for round_ in group])
    tables = list(dict.fromkeys(table for round_ in group for table in tables_in(_sql(round_))))
    names = [*tables[:4], *keywords([question_of(round_) for round_ in group], 8)]
    summary = "; ".join(dict.fromkeys(name.casefold() for name in names))
    return Draft(parts[0].title, summary[:SUMMARY_CHARS], tuple(parts), tuple(item for round_ in group for item in round_))


def _answer(round_: Round) -> str:
    spoken = [str(message.text) for _, message in round_ if isinstance(message, AIMessage) and not message.tool_calls]
    return next((text for text in reversed(spoken) if text.strip()), "")


def _sql(round_: Round) -> str:
    """Return the last SQL of a round that ran, "" without one."""
    failed = {message.tool_call_id for _, message in round_ if isinstance(message, ToolMessage) and message.status == "error"}
    calls = [call for _, message in round_ if isinstance(message, AIMessage) for call in message.tool_calls if call["id"] not in failed]
    return next((str(call["args"]["sql"]) for call in reversed(calls) if isinstance(call["args"].get("sql"), str)), "")


def _shortened(answer: str) -> str:
    lines = [line.rstrip() for line in answer.strip().splitlines() if line.strip()]
    kept = "\n".join(lines[:BODY_LINES])
    if len(kept) > BODY_CHARS or len(lines) > BODY_LINES:
        return f"{kept[:BODY_CHARS]} … ({len(answer):,} characters)"
    return kept


def _clip(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 2]} …"
