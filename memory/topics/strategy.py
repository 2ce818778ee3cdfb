"""The strategy `topics`: compacted rounds are filed into documents by subject. Each section of a
document cites its source messages.
"""

import itertools
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from longtable.base.words import fold
from longtable.memory.compaction.compaction import Attempts, Draft, Job
from longtable.memory.pins.pins import pins_in, without_pins
from longtable.memory.policy import TOPICS
from longtable.memory.records import stored_topics
from longtable.memory.summary.code_summary import numbered_rounds
from longtable.memory.summary.summary_text import Numbered, coverage, packed, render_message
from longtable.memory.topics.artifacts import (
    Count,
    Section,
    fit_artifact,
    join,
    merge_sections,
    sections,
)
from longtable.memory.topics.drafts import (
    ASSIGN,
    MOST_ANSWER_CHARS,
    Analysis,
    Assignment,
    SubjectDraft,
    analyse_input,
    analyse_prompt,
    assign_input,
    cited_in,
    code_drafts,
    complete,
    enough_for,
    read_answer,
    read_drafts,
    shown,
    subject_of,
    topic_line,
)
from longtable.memory.topics.subjects import Words, overlap, rarity
from longtable.memory.topics.topics import (
    SUMMARY_CHARS,
    Topic,
    current,
    next_number,
    recently_used,
    render_topics,
    topics_of,
    unfiled,
    visible_topics,
)

REQUEST_SHARE = 0.6
"""Share of the model's window that a request may fill. The rest is for the answer, and a margin,
because the model's tokenizer may count differently.
"""
TRIES = 2

Result = TypeVar("Result")
Steps = Generator[list[BaseMessage], "str | Exception | None", Result]
"""A dialogue with the model, as a generator. It yields requests; the caller sends back the text of
each answer, or the exception of a failed request.
"""


@dataclass(frozen=True, kw_only=True)
class Filing:
    """The messages to file, the topics so far, and limits on sizes, in tokens by `count`. `window`
    is the model's window, None without a model.
    """

    messages: Sequence[Numbered]
    topics: Sequence[Topic]
    """The newest version of each topic."""
    language: str
    window: int | None
    count: Count
    budget: int
    """Most tokens of one artifact."""
    turn: int
    time: str
    changed: Mapping[str, Topic] = field(default_factory=dict)
    """Topics, by id, that lost text since they were written, because messages were excluded. Each
    of them gets a new version.
    """
    instructions: str | None = None
    pin_contract: str = ""
    """The model's instructions to quote rules of the user, which become pins."""
    first_number: int = 1
    """The lowest number that a new topic may have. The numbers used by undone compactions are not
    used again.
    """

    @property
    def prompt(self) -> str:
        """Return the system prompt of the analysis."""
        return analyse_prompt(self.language, self.instructions, self.pin_contract)

    @property
    def room(self) -> int:
        """Return the most tokens of a request."""
        return int((self.window or 0) * REQUEST_SHARE)


@dataclass(frozen=True)
class Filed:
    """The result of a filing: a new version of each topic that changed. `method` is "model" if a
    model found the topics of all messages, else "fallback".
    """

    topics: list[Topic]
    method: str
    reasons: list[str]
    answers: str = ""
    """The model's answers, which also quote rules of the user."""


class Filer:
    """Files messages into topics. It keeps the topics as they are now, the failures so far
    (`reasons`), and whether the model need not be asked any more (`silent`).
    """

    def __init__(self, job: Filing) -> None:
        self.job = job
        self.before = {topic.id: topic.version for topic in job.topics}
        rewritten = {
            id: replace(topic, version=topic.version + 1, time=job.time)
            for id, topic in job.changed.items()
        }
        self.topics = {topic.id: topic for topic in job.topics} | rewritten
        self.number = max(job.first_number, next_number(job.topics))
        self.changed: dict[str, None] = dict.fromkeys(rewritten)
        self.reasons: list[str] = []
        self.answers: list[str] = []
        self.silent = job.window is None

    def file(self) -> Steps[Filed]:
        """File all messages of the job. Each message's id is then in a returned topic."""
        by_model = bool(self.job.messages)
        for rounds, fits in _parts(self.job):
            if not fits:
                self.reasons.append("a message is longer than the summariser's window")
            drafts = (yield from self._analyse(rounds)) if fits else []
            by_model = by_model and bool(drafts)
            known = recently_used(self.topics.values())
            for draft in drafts or code_drafts(rounds, self.job.language):
                yield from self._put(draft, known)
        return Filed(
            [self.topics[id] for id in self.changed],
            "model" if by_model else "fallback",
            self.reasons,
            "\n".join(self.answers),
        )

    def _ask(self, system: str, asked: str) -> Steps[str | None]:
        """Ask the model and return its text. Return None if there is no model, if it fails or
        failed before, or if the request does not fit. Return "" if the answer is far too long.
        """
        if self.silent or self.job.count(system) + self.job.count(asked) > self.job.room:
            return None
        answer = yield [SystemMessage(system), HumanMessage(asked)]
        if isinstance(answer, Exception):
            self.reasons.append(f"the summariser failed: {type(answer).__name__}")
            self.silent = True
            return None
        if len(answer or "") > MOST_ANSWER_CHARS:
            self.reasons.append(f"the answer is longer than {MOST_ANSWER_CHARS:,} characters")
            return ""
        return answer or ""

    # -- 1. which topics are in these messages?

    def _analyse(self, rounds: list[list[Numbered]]) -> Steps[list[SubjectDraft]]:
        """Return the topics that the model finds in some rounds. If its answer has faults, the
        model is asked once more. Return an empty list if code has to find the topics.
        """
        job = self.job
        messages = list(itertools.chain.from_iterable(map(shown, rounds)))
        best: list[SubjectDraft] = []
        faults: list[str] = []
        if not messages:
            return []
        for _ in range(TRIES):
            fault = "; ".join(faults)
            request = analyse_input(messages, language=job.language, fault=fault)
            answer = yield from self._ask(job.prompt, request)
            if answer is None:
                return complete(best, rounds, job.language) if best else []
            self.answers.append(answer)
            analysis = read_answer(without_pins(answer), Analysis)
            drafts, faults = (
                ([], [analysis]) if isinstance(analysis, str) else read_drafts(analysis, rounds)
            )
            best = max(best, drafts, key=_count_cited)
            if not faults:
                break
            self.reasons += faults
        if not best:
            # Twice no analysis: the questions that follow would fare no better, and each costs
            # time.
            self.silent = True
            return []
        return complete(best, rounds, job.language)

    # -- 2. to which of the topics there are does it belong?

    def _put(self, draft: SubjectDraft, known: Sequence[Topic]) -> Steps[None]:
        """File a draft into one of the topics in `known`, or as a new topic. `known`: the topics
        that existed before the drafts of this request.
        """
        home, summary = yield from self._home(draft, [self.topics[topic.id] for topic in known])
        if home is None:
            id = f"t{self.number}"
            self.number += 1
            home = Topic(id, 0, draft.title, draft.summary, "", (), 0, self.job.time)
            artifact = join(draft.sections)
        else:
            artifact = join(merge_sections([*sections(home.artifact), *draft.sections]))
            summary = summary or _both(home.summary, draft.summary)
        self.changed[home.id] = None
        self.topics[home.id] = replace(
            home,
            version=self.before.get(home.id, 0) + 1,
            summary=(summary or draft.summary)[:SUMMARY_CHARS],
            artifact=fit_artifact(artifact, self.job.budget, self.job.count, self.job.language),
            message_ids=tuple(dict.fromkeys([*home.message_ids, *draft.ids])),
            turn=max(home.turn, draft.turn) or self.job.turn,
            time=self.job.time,
        )

    def _home(self, draft: SubjectDraft, known: Sequence[Topic]) -> Steps[tuple[Topic | None, str]]:
        """Return the topic that a draft belongs to, None if it needs a new topic, and a common
        summary of topic and draft, "" if the model gave none.
        """
        for topic in known:
            if fold(topic.title) == fold(draft.title):
                return topic, ""
        known = [topic for topic in known if topic.artifact]
        if not known:
            return None, ""
        ranked = _by_likeness(draft, known)
        offered = self._fitting([topic for _, topic in ranked])
        answer = yield from self._ask(
            ASSIGN[self.job.language], assign_input(offered, draft.title, draft.summary)
        )
        if answer is not None:
            choice = read_answer(answer, Assignment)
            names: dict[str | None, Topic | None] = {
                None: None,
                **{topic.id: topic for topic in offered},
            }
            if isinstance(choice, Assignment) and choice.topic in names:
                return names[choice.topic], choice.summary
            self.reasons.append("the answer names no topic there is")
        return next((topic for enough, topic in ranked if enough), None), ""

    def _fitting(self, topics: Sequence[Topic]) -> list[Topic]:
        """Return as many of the topics, in their order, as have lines that fill at most half a
        request. Return at least one.
        """
        left = self.job.room // 2
        offered = []
        for topic in topics:
            left -= self.job.count(topic_line(topic)) + 1
            if left < 0:
                break
            offered.append(topic)
        return offered or list(topics[:1])


def _parts(job: Filing) -> list[tuple[list[list[Numbered]], bool]]:
    """Split the messages into parts that fit one request. A round stays whole if it fits; a longer
    round is split between messages.

    Each part comes with True if it fits a request. A round with a message that is longer than a
    request does not fit.
    """
    rounds = numbered_rounds(job.messages)
    if job.window is None:
        return [(rounds, True)]
    room = job.room - job.count(job.prompt) - 400  # tags, and the fault of a first try
    whole = itertools.chain.from_iterable(_pieces(round_, job, room) for round_ in rounds)
    pieces = [(piece, _cost_shown(piece, job)) for piece in whole]
    parts: list[tuple[list[list[Numbered]], bool]] = []
    for fits, group in itertools.groupby(pieces, key=lambda piece: piece[1] <= room):
        # What code has to file stays together, so that it is grouped as a whole.
        if fits:
            parts += [(part, True) for part in packed(group, room)]
        else:
            parts.append(([piece for piece, _ in group], False))
    return parts


def _pieces(round_: list[Numbered], job: Filing, room: int) -> list[list[Numbered]]:
    costs = [_cost(item, job) for item in round_]
    if sum(costs) <= room or max(costs) > room:
        return [round_]
    return packed(zip(round_, costs, strict=True), room)


def _cost(item: Numbered, job: Filing) -> int:
    return job.count(render_message(*item)) + 1


def _cost_shown(messages: list[Numbered], job: Filing) -> int:
    return sum(_cost(item, job) for item in shown(messages))


def _count_cited(drafts: Sequence[SubjectDraft]) -> int:
    return len(cited_in(drafts))


def _by_likeness(draft: SubjectDraft, topics: Sequence[Topic]) -> list[tuple[bool, Topic]]:
    """Return the topics, the most similar to the draft first, each with True if it shares enough
    words with the draft. Of equally similar topics, the first in `topics` comes first.
    """
    about = _subject(draft.title, draft.summary, draft.sections)
    subjects = [_subject(topic.title, topic.summary, sections(topic.artifact)) for topic in topics]
    telling = rarity([about, *subjects])
    scores = [overlap(about, subject, telling) for subject in subjects]
    ranked = sorted(zip(scores, topics, strict=True), key=lambda pair: pair[0], reverse=True)
    return [(score >= enough_for(about), topic) for score, topic in ranked]


def _subject(title: str, summary: str, parts: Sequence[Section]) -> Words:
    titles = " ".join(part.title for part in parts)
    bodies = "\n".join(part.body for part in parts)
    return subject_of((title, 2.0), (summary, 1.0), (titles, 1.0), sql=bodies)


def _both(old: str, new: str) -> str:
    """Join two summaries into one line of items, the old items first. If the line is too long, its
    first items are dropped.
    """
    items = list(
        dict.fromkeys(
            item.strip() for item in f"{old}; {new}".replace("；", ";").split(";") if item.strip()
        )
    )
    while len(items) > 1 and len("; ".join(items)) > SUMMARY_CHARS:
        items.pop(0)
    return "; ".join(items)


ARTIFACT_SHARE = 0.5
"""Most tokens of one artifact, as a share of the tokens for all artifacts."""


@dataclass(frozen=True)
class Topics:
    """File messages with the summariser. Without a summariser, or if it fails, shared words and the
    tables in SQL decide.

    Topics are never made anew: each compaction only files the messages that are not filed yet, and
    removes text from messages excluded since.
    """

    name: str = TOPICS

    def attempts(self, job: Job) -> Attempts:
        """See `longtable.memory.compaction.compaction.Strategy`."""
        call_config = job.call_config
        count = job.call_config.counter.text
        before = topics_of(job.thread)
        newest = current(before)
        filed_before, again = unfiled(job.thread)
        reads = [
            (number, message)
            for number, message in job.reads
            if number > filed_before or number in again
        ]
        windows = [None] if call_config.window is None else [call_config.window, None]
        for window in windows:
            filed = yield from Filer(_filing(job, reads, window)).file()
            text = render_topics([*newest, *filed.topics], job.budget, count, job.language)
            share, unseen = coverage(reads, count)
            pins, ended = pins_in(filed.answers, [message for _, message in reads], job.thread.pins)
            yield Draft(
                text=text,
                method="model" if filed.method == "model" else "fallback",
                pins=pins,
                ended=ended,
                coverage=share,
                note="; ".join(filter(None, [unseen, *filed.reasons])),
                kept={"topics": _changes(filed.topics, before)},
            )


def _filing(job: Job, reads: Sequence[Numbered], window: int | None) -> Filing:
    """Return the input of a filing: messages, topics and limits. If `window` is None, the
    summariser is not used.
    """
    newest = current(topics_of(job.thread))
    visible = visible_topics(job.thread)
    stored = itertools.chain.from_iterable(map(stored_topics, job.thread.compactions))
    material = Filing(
        messages=reads,
        topics=newest,
        language=job.language,
        window=window,
        count=job.call_config.counter.text,
        budget=int(job.call_config.summary_tokens * ARTIFACT_SHARE),
        turn=job.turn,
        time=job.time,
    )
    return replace(
        material,
        changed={
            topic.id: topic for topic, old in zip(visible, newest, strict=True) if topic != old
        },
        instructions=job.instructions,
        pin_contract=job.pin_contract,
        first_number=next_number(map(Topic.from_json, stored)),
    )


def _changes(filed: Sequence[Topic], before: Sequence[Topic]) -> list[dict[str, Any]]:
    """Return the new versions of topics as a record keeps them: with the ids of newly filed
    messages only, so that records stay small.
    """
    changes = []
    filed_before = {topic.id: set(topic.message_ids) for topic in before}
    for topic in filed:
        known = filed_before.get(topic.id, set())
        changes.append(
            replace(
                topic, message_ids=tuple(id_ for id_ in topic.message_ids if id_ not in known)
            ).as_json()
        )
    return changes
