"""Fold the oldest rounds into memory: plan, summarise, pass the gate, append one record."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from longtable.graph.context import Context
from longtable.graph.events import ContextCompactionSkipped, ContextCompressed
from longtable.graph.state import State, frame_of, thread_of, turn_of
from longtable.memory import summary as text
from longtable.memory.gate import Candidate, objections
from longtable.memory.plan import Fold, plan_fold
from longtable.memory.tokens import fingerprint
from longtable.memory.view import Frame, measure

NAMESPACE = ("longtable", "compactions")
PRIVATE: RunnableConfig = {"tags": ["nostream", "langsmith:nostream"], "run_name": "summarise", "callbacks": []}
"""Keeps the summariser's tokens out of every stream of the user's run: no callbacks of the run reach it, and two tags say
so to LangGraph and to agent-chat-ui."""
TRIES = 2
WINDOW_SHARE = 0.75
"""Share of the summariser's window that its input may fill; the rest is for its prompt and for another tokenizer's count."""

Update = dict[str, Any]
Ask = Generator[list[BaseMessage], "str | Exception | None", "Outcome"]
"""A fold as a conversation with the summariser: yields requests, is sent texts or what went wrong, returns the outcome."""


@dataclass(frozen=True)
class Outcome:
    """A new record, or None and why there is none. `reasons` also tells what happened on the way to a record.

    `tokens`: what the view had before, where it stays when there is no record; the breaker waits from there.
    """

    record: dict[str, Any] | None
    reasons: list[str]
    tokens: int = 0


@dataclass(frozen=True)
class Compact:
    """The node. Without a summariser the fallback writes every memory. A fold that fails never fails the turn."""

    summarizer: BaseChatModel | None
    summarizer_limit: Callable[[Frame], int]
    clock: Callable[[], datetime]

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> Update:
        started = time.perf_counter()
        job = self._job(state, runtime)
        known = runtime.store.get(job.namespace, job.id) if job and runtime.store else None
        outcome = Outcome(dict(known.value), []) if known else self._drive(job)
        if job and outcome.record and runtime.store and not known:
            runtime.store.put(job.namespace, job.id, outcome.record, index=False)
        return _conclude(state, outcome, runtime, started)

    async def acall(self, state: State, *, runtime: Runtime[Context]) -> Update:
        """Do the same without blocking the event loop on the summariser."""
        started = time.perf_counter()
        job = await asyncio.to_thread(self._job, state, runtime)
        known = await runtime.store.aget(job.namespace, job.id) if job and runtime.store else None
        outcome = Outcome(dict(known.value), []) if known else await self._adrive(job)
        if job and outcome.record and runtime.store and not known:
            await runtime.store.aput(job.namespace, job.id, outcome.record, index=False)
        return _conclude(state, outcome, runtime, started)

    def _job(self, state: State, runtime: Runtime[Context]) -> "Job | None":
        context = runtime.context or Context()
        frame = frame_of(state, context)
        messages, compactions = thread_of(state)
        turn = turn_of(state)
        asked = turn.get("status") == "compacting"
        fold = plan_fold(messages, compactions, frame, asked=asked)
        if fold is None:
            return None
        thread_id = (runtime.execution_info.thread_id if runtime.execution_info else None) or "-"
        return Job(
            id=record_id(messages, fold, frame),
            namespace=(*NAMESPACE, thread_id),
            messages=messages,
            compactions=compactions,
            fold=fold,
            frame=frame,
            instructions=context.memory_prompt,
            turn=turn.get("number", 0),
            time=self.clock().isoformat(timespec="seconds"),
            window=self.summarizer_limit(frame) if self.summarizer else None,
        )

    def _drive(self, job: "Job | None") -> Outcome:
        steps, answer = fold_steps(job), None
        while not isinstance(request := _advance(steps, answer), Outcome):
            answer = self._ask(request)
        return request

    async def _adrive(self, job: "Job | None") -> Outcome:
        steps, answer = fold_steps(job), None
        # Counting and the fallback take time on a long thread: off the event loop.
        while not isinstance(request := await asyncio.to_thread(_advance, steps, answer), Outcome):
            answer = await self._aask(request)
        return request

    def _ask(self, request: list[BaseMessage]) -> str | Exception:
        assert self.summarizer is not None, "a fold without a summariser asks nothing"
        try:
            return str(self.summarizer.invoke(request, PRIVATE).text)
        except Exception as error:  # a summariser that fails in any way must not fail the turn: the outcome says so
            return error

    async def _aask(self, request: list[BaseMessage]) -> str | Exception:
        assert self.summarizer is not None, "a fold without a summariser asks nothing"
        try:
            return str((await self.summarizer.ainvoke(request, PRIVATE)).text)
        except Exception as error:  # as above
            return error


def _advance(steps: "Ask", answer: str | Exception | None) -> "list[BaseMessage] | Outcome":
    try:
        return steps.send(answer)
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome


@dataclass(frozen=True, kw_only=True)
class Job:
    """All that one fold needs, as values. `window`: the summariser's input limit in tokens, None without a summariser."""

    id: str
    namespace: tuple[str, ...]
    messages: Sequence[BaseMessage]
    compactions: Sequence[Mapping[str, Any]]
    fold: Fold
    frame: Frame
    instructions: str | None
    turn: int
    time: str
    window: int | None

    @property
    def language(self) -> str:
        """Return the language the memory is written in: that of the users so far."""
        return text.language_of(self.messages[: self.fold.end])

    @property
    def folded(self) -> list[text.Numbered]:
        """Return the messages to fold with their places in the transcript, from 1."""
        return [(i + 1, self.messages[i]) for i in range(self.fold.start, self.fold.end)]

    @property
    def previous(self) -> str:
        """Return the memory before this fold."""
        return str(self.fold.previous["summary"]) if self.fold.previous else ""

    @property
    def replaced_tokens(self) -> int:
        """Return the tokens of what the new memory stands for."""
        return self.fold.folded_tokens + self.frame.counter.text(self.previous)


def record_id(messages: Sequence[BaseMessage], fold: Fold, frame: Frame) -> str:
    """Return the fold's identity: covered ids and contents, the memory before, the policy's version."""
    digest = hashlib.sha256(f"{fold.previous['id'] if fold.previous else ''}/{frame.policy.version}".encode())
    for message in messages[fold.start : fold.end]:
        digest.update(f"/{message.id}/".encode() + fingerprint(message))
    return digest.hexdigest()[:24]


def fold_steps(job: Job | None) -> Ask:
    """Write the new memory: by the summariser, once more with the reason, then by the fallback; each passes the gate."""
    if job is None:
        return Outcome(None, ["there is nothing to fold"])
    reasons: list[str] = []
    if job.window is not None:
        for _ in range(TRIES):
            summary = yield from _summarise(job, job.window, reasons[-1] if reasons else "")
            if isinstance(summary, Exception):
                reasons.append(f"the summariser failed: {type(summary).__name__}")
                break
            record, why = _judge(job, summary, "model")
            if record:
                return Outcome(record, reasons)
            reasons.append("; ".join(why))
    budget = min(job.fold.summary_budget, int(job.replaced_tokens * (1 - job.frame.policy.margin)))
    summary = text.fallback_summary(job.previous, job.folded, language=job.language, budget=budget, count=job.frame.counter.text)
    record, why = _judge(job, summary, "fallback")
    return Outcome(record, reasons if record else [*reasons, *why], job.fold.tokens_before)


def _summarise(job: Job, window: int, reason: str) -> Generator[list[BaseMessage], str | Exception | None, str | Exception]:
    """Ask for the summary; input longer than the window goes in parts, each merged into the memory so far."""
    words = max(60, job.fold.summary_budget // 2)
    system = SystemMessage(text.summary_prompt(job.language, words=words, instructions=job.instructions))
    summary = job.previous
    for part in _parts(job, window):
        asked = text.summary_input(summary, part, clip_tool_chars=job.frame.policy.clip_tool_chars, reason=reason)
        answer = yield [system, HumanMessage(asked)]
        if isinstance(answer, Exception):
            return answer
        summary = text.clean_summary(answer or "", language=job.language, messages=job.fold.end)
        if not summary:
            return ""
    return summary


def _parts(job: Job, window: int) -> list[list[text.Numbered]]:
    """Split the folded messages into parts that fit the summariser's window beside prompt, memory and answer."""
    count = job.frame.counter.text
    room = max(256, int(window * WINDOW_SHARE) - 2 * job.fold.summary_budget)
    parts: list[list[text.Numbered]] = [[]]
    used = 0
    for number, message in job.folded:
        tokens = count(text.render_message(number, message, clip_tool_chars=job.frame.policy.clip_tool_chars))
        if parts[-1] and used + tokens > room:
            parts.append([])
            used = 0
        parts[-1].append((number, message))
        used += tokens
    return parts


def _judge(job: Job, summary: str, method: str) -> tuple[dict[str, Any] | None, list[str]]:
    record = _record(job, summary, method)
    after = measure(job.messages, [*job.compactions, record], job.frame)
    candidate = Candidate(
        summary=summary,
        summary_tokens=record["summary_tokens"],
        replaced_tokens=job.replaced_tokens,
        view_tokens=after.total,
        view_before=job.fold.tokens_before,
        budget=job.frame.threshold_tokens,
        kept_tokens=after.total - after.memory,
        margin=job.frame.policy.margin,
        summary_budget=job.fold.summary_budget,
    )
    why = objections(candidate)
    return (None, why) if why else ({**record, "tokens_after": after.total}, [])


def _record(job: Job, summary: str, method: str) -> dict[str, Any]:
    fold = job.fold
    folded = job.messages[fold.start : fold.end]
    coverage = _coverage(job) if method == "model" else 1.0
    return {
        "id": job.id,
        "previous": fold.previous["id"] if fold.previous else None,
        "from_id": job.messages[0].id,
        "to_id": folded[-1].id,
        "count": fold.end,
        "folded": len(folded),
        "summary": summary,
        "language": job.language,
        "method": method,
        "coverage": coverage,
        "coverage_note": "" if coverage == 1 else f"tool results over {job.frame.policy.clip_tool_chars} characters were clipped",
        "summary_tokens": job.frame.counter.text(summary),
        "folded_tokens": fold.folded_tokens,
        "tokens_before": fold.tokens_before,
        "tokens_after": 0,
        "policy_version": job.frame.policy.version,
        "turn": job.turn,
        "time": job.time,
    }


def _coverage(job: Job) -> float:
    """Return tokens of text the summariser was shown / tokens of text folded."""
    count, clip = job.frame.counter.text, job.frame.policy.clip_tool_chars
    full = sum(count(message.text) for _, message in job.folded)
    seen = sum(count(message.text[:clip] if message.type == "tool" else message.text) for _, message in job.folded)
    return round(seen / full, 4) if full else 1.0


def _conclude(state: State, outcome: Outcome, runtime: Runtime[Context], started: float) -> Update:
    turn = turn_of(state)
    record = outcome.record
    if record is None:
        runtime.stream_writer(ContextCompactionSkipped(type="context_compaction_skipped", reasons=outcome.reasons))
        return {"turn": {**turn, "breaker": outcome.tokens or turn.get("breaker")}}
    runtime.stream_writer(
        ContextCompressed(
            type="context_compressed",
            id=record["id"],
            original_tokens=record["tokens_before"],
            compressed_tokens=record["tokens_after"],
            messages=record["folded"],
            method=record["method"],
            reasons=outcome.reasons,
            ms=round((time.perf_counter() - started) * 1000),
        )
    )
    return {"compactions": [record], "turn": {**turn, "breaker": None}}
