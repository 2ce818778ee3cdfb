"""The arguments of `build_graph` besides models, database and tools: groups of options, and
hooks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from longtable.base.context import RequestLimits
from longtable.base.errors import ConfigError, check_type
from longtable.knowledge.folder import KnowledgeFolder
from longtable.memory.compaction.compaction import Strategy
from longtable.nodes.arriving.rate_limit import RateLimit
from longtable.nodes.calling.context_providers import ContextProvider
from longtable.store.records.archive_files import ArchiveFiles
from longtable.tools.several.databases import Databases
from longtable.tools.sql.verdict import CostThresholds

MOST_SECONDS = 86_400


@dataclass(frozen=True, kw_only=True)
class Summarizer:
    """Who writes the summaries, and how.

    `model`: None means the conversation's model; if that model declares that it writes no summaries
    (`writes_summaries = False`), code writes them. False also means code. `seconds`: the longest
    that one call may take. `prompt` replaces the built-in instructions.
    """

    model: BaseChatModel | Literal[False] | None = None
    seconds: float = 120.0
    prompt: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.seconds, int | float) or not 0 < self.seconds <= MOST_SECONDS:
            raise ConfigError(
                f"Summarizer.seconds must be over 0 and at most {MOST_SECONDS:,}, found"
                f" {self.seconds!r}"
            )


@dataclass(frozen=True, kw_only=True)
class MemoryTools:
    """The tools with which the model reaches its memory.

    `recall`: the model can search compacted messages. A model that cannot call tools asks by a
    marker in its text. `pins`: the model can pin the user's standing statements with `remember` and
    `forget`, if its limit is at least 8,000 tokens. None means yes, unless the model declares that
    it writes no summaries or your own tools have these names.
    """

    recall: bool = True
    pins: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of turns, requests and queries: how many turns an owner may begin, how large a request
    may be, and how costly a query must be to wait for approval. With several databases, `cost` may
    be a mapping of their names; those that it does not name have the defaults.
    """

    rate: RateLimit | None = None
    request: RequestLimits | None = None
    cost: CostThresholds | Mapping[str, CostThresholds] | None = None

    def __post_init__(self) -> None:
        check_type("Limits.rate", self.rate, RateLimit, optional=True)
        check_type("Limits.request", self.request, RequestLimits, optional=True)
        if not isinstance(self.cost, Mapping):
            check_type("Limits.cost", self.cost, CostThresholds, optional=True)
            return
        for name, cost in self.cost.items():
            check_type(f"Limits.cost[{name!r}]", cost, CostThresholds)

    def cost_of(self, databases: Databases) -> dict[str, CostThresholds]:
        """Return the thresholds of each database by its name. Raises `ConfigError` for thresholds
        of a database that is not there.
        """
        if not isinstance(self.cost, Mapping):
            return dict.fromkeys(databases, self.cost or CostThresholds())
        for name in self.cost:
            if name not in databases:
                raise ConfigError(
                    f"Limits.cost names the database {name!r}, which is not given: the databases"
                    f" are {', '.join(databases) or 'one without a name'}"
                )
        return {name: self.cost.get(name, CostThresholds()) for name in databases}


@dataclass(frozen=True)
class Footer:
    """A text below each answer, for people. No model is sent this text.

    `text` is a function that returns it for the thread's id and the messages of the turn; "" means
    no text.
    """

    text: Callable[[str, Sequence[BaseMessage]], str]


Hook = ContextProvider | Strategy | ArchiveFiles | Footer | KnowledgeFolder
"""An extension that runs with a turn: it brings material for the calls, writes the memory, writes
files of compacted messages, adds a text below the answer, or holds what the data's owner teaches.
"""


@dataclass(frozen=True)
class Hooks:
    """The hooks, sorted by kind."""

    providers: Sequence[ContextProvider] = ()
    strategies: Sequence[Strategy] = ()
    archive: ArchiveFiles | None = None
    footer: Footer | None = None
    knowledge: KnowledgeFolder | None = None


def hooks_by_kind(hooks: Sequence[Hook]) -> Hooks:
    """Return the hooks, sorted by kind. Raises `ConfigError` for anything that is not a hook, for
    two providers with the same name, and for a second archive, footer or knowledge folder.
    """
    providers: list[ContextProvider] = []
    strategies: list[Strategy] = []
    archives: list[ArchiveFiles] = []
    footers: list[Footer] = []
    folders: list[KnowledgeFolder] = []
    for hook in hooks:
        if isinstance(hook, ContextProvider):
            providers.append(hook)
        elif isinstance(hook, ArchiveFiles):
            archives.append(hook)
        elif isinstance(hook, Footer):
            footers.append(hook)
        elif isinstance(hook, KnowledgeFolder):
            folders.append(hook)
        elif isinstance(getattr(hook, "name", None), str) and hasattr(hook, "attempts"):
            strategies.append(hook)
        else:
            raise ConfigError(
                "each of hooks is a ContextProvider, a strategy (an object with name and"
                " attempts), ArchiveFiles, a Footer or a KnowledgeFolder, found"
                f" {type(hook).__name__}"
            )
    names = sorted(provider.name for provider in providers)
    if len({*names}) != len(names):
        raise ConfigError(f"two context providers share a name: {', '.join(names)}")
    if max(len(archives), len(footers), len(folders)) > 1:
        raise ConfigError("hooks hold at most one ArchiveFiles, one Footer and one KnowledgeFolder")
    return Hooks(
        providers,
        strategies,
        archives[0] if archives else None,
        footers[0] if footers else None,
        folders[0] if folders else None,
    )


RENAMED = {
    "summary_seconds": "summarizer=Summarizer(seconds=...)",
    "memory_prompt": "summarizer=Summarizer(prompt=...)",
    "recall": "memory_tools=MemoryTools(recall=...)",
    "pin_tools": "memory_tools=MemoryTools(pins=...)",
    "context_providers": "hooks=[ContextProvider(...)]",
    "strategies": "hooks=[...]",
    "archive_on_compact": "hooks=[ArchiveFiles(folder)]",
    "footer": "hooks=[Footer(...)]",
    "rate_limit": "limits=Limits(rate=...)",
    "request_limits": "limits=Limits(request=...)",
    "cost": "limits=Limits(cost=...)",
    "output_schema": "output_channels of the compiled graph, or output_keys of a run",
}
"""Arguments of `build_graph` in earlier versions, and their replacements."""


def check_no_old_arguments(names: Sequence[str]) -> None:
    """Raise `ConfigError` for an argument of an earlier version, `TypeError` for an argument that
    never existed.
    """
    for name in names:
        if name not in RENAMED:
            raise TypeError(f"build_graph() got an unexpected keyword argument {name!r}")
        raise ConfigError(f"build_graph({name}=...) is now {RENAMED[name]}")
