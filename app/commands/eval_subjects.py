"""Open what `longtable eval` asks: databases, and graphs with a model, as the settings say."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from longtable.app.console.screen import demo_progress
from longtable.app.models import BUILT_IN
from longtable.app.program import RunOptions
from longtable.app.session import (
    demo_database,
    graph_arguments,
    knowledge_of,
    open_database,
    open_results,
)
from longtable.app.settings.row_settings import seen_by_owner
from longtable.app.settings.run_settings import (
    Settings,
    check_apart,
    database_url,
    load_settings,
)
from longtable.base.url import parse_url
from longtable.evaluation.cost_estimate import SAMPLE_THREAD, SilentModel, first_call_tokens
from longtable.evaluation.evaluator import Subject
from longtable.evaluation.question_set import Dialogue
from longtable.memory.counting.prices import Price, price_of

if TYPE_CHECKING:
    from longtable.base.context import Context
    from longtable.graph import Conversation, Database, Persistence, ResultStore
    from longtable.graph.thread_state import Graph
    from longtable.graph.wiring.build import ConversationGraph
    from longtable.knowledge.folder import KnowledgeFolder

ANY_LIMIT = 10_000_000
"""The limit of the model that is asked to count a call."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def settings_of_models(options: RunOptions, models: Sequence[str]) -> dict[str, Settings]:
    """Return the settings with each model by its name. Without a model, return the settings as they
    are, whose model may be the built-in analyst.
    """
    if not models:
        settings = load_settings(options)
        return {settings.model.name or BUILT_IN: settings}
    return {name: load_settings({**options, "model": name}) for name in models}


def subjects_of(settings: Mapping[str, Settings], *, also_without: bool) -> list[Subject]:
    """Return what is evaluated: each model, with the knowledge folder if the settings name one.
    With `also_without`, each model is evaluated without the folder, too.
    """
    subjects: list[Subject] = []
    for name, each in settings.items():
        subject = Subject(
            model=name,
            knowledge=bool(each.knowledge.folder),
            paid=_is_paid(each),
            prices=each.price_table(),
        )
        subjects.append(subject)
        if also_without and subject.knowledge:
            subjects.append(replace(subject, knowledge=False))
    return subjects


def _is_paid(settings: Settings) -> bool:
    """Return whether calls of the model may cost money: it is neither built in nor on this
    computer.
    """
    name = settings.model.name
    named = settings.models.get(name or "")
    url = (named.base_url if named else None) or settings.model.base_url
    return bool(name) and not (url and urlsplit(url).hostname in LOOPBACK)


@dataclass
class EvalHost:
    """Opens databases one after the other, and keeps all threads in one store."""

    settings: Mapping[str, Settings]
    """By the name of a model."""
    persistence: "Persistence"
    results: "ResultStore"
    _knowledge: "dict[str, KnowledgeFolder | None]" = field(default_factory=dict)
    _arguments: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def in_folder(
        cls, settings: Mapping[str, Settings], persistence: "Persistence", results: Path
    ) -> "EvalHost":
        """Return a host that keeps results in a folder. Raises `ConfigError` if a model cannot be
        opened.
        """
        host = cls(settings, persistence, open_results(results))
        for name, each in settings.items():
            host._arguments[name] = _arguments_of(each)
            host._knowledge[name] = knowledge_of(each)
        return host

    @contextmanager
    def open(self, database: str) -> "Iterator[OpenedDatabase]":
        """Open the database that a question names, "" for the one of the settings."""
        any_settings = next(iter(self.settings.values()))
        settings = _on_database(any_settings, database)
        url = database_url(settings)
        if not settings.database.url:
            demo_database(demo_progress)
        check_apart(database=url, store=self.persistence.url)
        with closing(open_database(settings)) as opened:
            location = parse_url(url)
            is_sqlite = location.dialect == "sqlite" and not location.load
            seen = seen_by_owner(opened, settings)
            yield OpenedDatabase(self, settings, seen, location.path if is_sqlite else None)

    def graph(self, subject: Subject, database: "Database") -> "Graph":
        """Return the graph of a subject over a database, compiled."""
        built = self._built(subject, database, {})
        return built.compile(
            checkpointer=self.persistence.checkpointer, store=self.persistence.store
        )

    def first_call(self, subject: Subject, dialogue: Dialogue) -> int:
        """Return the tokens of the call with which a subject begins a dialogue. No model is
        asked.
        """
        from longtable.graph import Conversation, open_persistence

        context = self.context(subject)
        silent = {"model": SilentModel(), "models": {}, "fallbacks": [], "summarizer": None}
        with self.open(dialogue.database) as opened, open_persistence("memory://") as persistence:
            built = self._built(subject, opened.database, silent)
            graph = built.compile(checkpointer=persistence.checkpointer, store=persistence.store)
            limited = context.replace(model_limit=context.model_limit or ANY_LIMIT)
            conversation = Conversation(graph, SAMPLE_THREAD, context=limited)
            return first_call_tokens(conversation, dialogue.turns[0].text)

    def price(self, subject: Subject) -> Price | None:
        """Return the price of a subject's model, None if the settings have none."""
        named = self.settings[subject.model].models.get(subject.model)
        bare = subject.model.partition(":")[2] or subject.model
        return price_of((named.model if named else None) or bare, subject.prices or {})

    def context(self, subject: Subject) -> "Context":
        """Return the settings of a subject's turns."""
        return self.settings[subject.model].context().replace(channel="cli")

    def _built(
        self, subject: Subject, database: "Database", other: Mapping[str, Any]
    ) -> "ConversationGraph":
        from longtable.graph import build_graph

        knowledge = self.knowledge(subject)
        arguments = {**self._arguments[subject.model], **other}
        hooks = [knowledge] if knowledge else []
        return build_graph(database=database, results=self.results, hooks=hooks, **arguments)

    def knowledge(self, subject: Subject) -> "KnowledgeFolder | None":
        """Return the knowledge folder of a subject, None if it is asked without."""
        return self._knowledge[subject.model] if subject.knowledge else None


class OpenedDatabase:
    """One open database with the graphs of all subjects. Safe for threads."""

    def __init__(
        self, host: EvalHost, settings: Settings, database: "Database", file: Path | None
    ) -> None:
        self.database = database
        self.file = file
        self._host = host
        self._settings = settings
        self._lock = threading.Lock()
        self._graphs: dict[str, Graph] = {}

    def conversation(self, subject: Subject, thread: str) -> "Conversation":
        """Return a conversation of a subject on a thread."""
        from longtable.graph import Conversation

        with self._lock:
            if subject.label not in self._graphs:
                self._graphs[subject.label] = self._host.graph(subject, self.database)
            graph = self._graphs[subject.label]
        return Conversation(
            graph,
            thread,
            context=self._host.context(subject),
            results=self._host.results,
            knowledge=self._host.knowledge(subject),
        )

    def reopened(self, file: Path) -> "Database":
        """Open a copy of the database with the same policy and limits."""
        opened = open_database(_on_database(self._settings, f"sqlite:///{file}"))
        return seen_by_owner(opened, self._settings)


def _on_database(settings: Settings, url: str) -> Settings:
    """Return the settings with another database, "" for their own."""
    if not url:
        return settings
    return settings.model_copy(
        update={"database": settings.database.model_copy(update={"url": url})}
    )


def _arguments_of(settings: Settings) -> dict[str, Any]:
    """Return the arguments of `build_graph`, without the limit on how often a person may ask."""
    arguments = graph_arguments(settings)
    return {**arguments, "limits": replace(arguments["limits"], rate=None)}
