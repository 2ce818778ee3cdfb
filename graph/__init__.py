"""The public API, on which other people's code relies.

Names are loaded on first use, so that `longtable --help` is quick. Every error class of
`longtable.base.errors` can be imported from here too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# isort: off
if TYPE_CHECKING:  # one import a module: the names stand together as _HOMES has them
    from longtable.base.context import Context as Context, RequestLimits as RequestLimits
    from longtable.base.errors import *  # noqa: F403
    from longtable.base.errors import ConfigError as ConfigError, LongtableError as LongtableError
    from longtable.graph.ratings import Rating as Rating
    from longtable.graph.ratings import ratings_of_threads as ratings_of_threads
    from longtable.graph.running.answers import Answer as Answer
    from longtable.graph.running.past_turns import PastTurn as PastTurn
    from longtable.graph.running.running_turns import RunningTurns as RunningTurns
    from longtable.store.records.archive_files import ArchiveFiles as ArchiveFiles
    from longtable.graph.wiring.build import build_graph as build_graph
    from longtable.graph.wiring.build_options import (
        Footer as Footer,
        Limits as Limits,
        MemoryTools as MemoryTools,
        Summarizer as Summarizer,
    )
    from longtable.graph.conversation import Conversation as Conversation
    from longtable.graph.embedding import (
        as_agent as as_agent,
        as_node as as_node,
        as_tool as as_tool,
        node_thread_id as node_thread_id,
    )
    from longtable.graph.opening import open_conversation as open_conversation
    from longtable.store.persistence import (
        Persistence as Persistence,
        open_persistence as open_persistence,
    )
    from longtable.graph.reports import (
        read_prices as read_prices,
        usage_of_threads as usage_of_threads,
    )
    from longtable.graph.threads import (
        delete_thread as delete_thread,
        import_thread as import_thread,
        move_thread as move_thread,
    )
    from longtable.graph.pruning import prune_threads as prune_threads
    from longtable.graph.listing.thread_list import list_projects as list_projects
    from longtable.graph.listing.thread_list import list_threads as list_threads
    from longtable.graph.listing.thread_search import search_threads as search_threads
    from longtable.memory.messages.metadata import MessageMetadata as MessageMetadata
    from longtable.memory.messages.metadata import metadata_of as metadata_of
    from longtable.memory.policy import CompactionPolicy as CompactionPolicy
    from longtable.memory.counting.prices import Price as Price
    from longtable.knowledge.entries import Term as Term
    from longtable.knowledge.entries import VerifiedQuery as VerifiedQuery
    from longtable.knowledge.folder import KnowledgeFolder as KnowledgeFolder
    from longtable.nodes.calling.context_providers import CitedText as CitedText
    from longtable.nodes.calling.context_providers import ContextProvider as ContextProvider
    from longtable.nodes.call_plans import next_view as next_view
    from longtable.nodes.state import State as State
    from longtable.nodes.team.workflow import Workflow as Workflow
    from longtable.nodes.team.team import Team as Team
    from longtable.nodes.team.free_chat import FreeChat as FreeChat
    from longtable.nodes.team.mode_hook import Mode as Mode
    from longtable.nodes.team.mode_hook import Scene as Scene
    from longtable.nodes.team.personas import Persona as Persona
    from longtable.nodes.arriving.rate_limit import RateLimit as RateLimit
    from longtable.tools.database import Database as Database
    from longtable.tools.results.result_store import ResultStore as ResultStore
    from longtable.tools.sql.verdict import CostThresholds as CostThresholds
    from longtable.tools.sql.table_policy import TablePolicy as TablePolicy

# isort: on

_HOMES = {
    "Answer": "longtable.graph.running.answers",
    "ArchiveFiles": "longtable.store.records.archive_files",
    "CompactionPolicy": "longtable.memory.policy",
    "ConfigError": "longtable.base.errors",
    "Context": "longtable.base.context",
    "CitedText": "longtable.nodes.calling.context_providers",
    "ContextProvider": "longtable.nodes.calling.context_providers",
    "KnowledgeFolder": "longtable.knowledge.folder",
    "Term": "longtable.knowledge.entries",
    "VerifiedQuery": "longtable.knowledge.entries",
    "Conversation": "longtable.graph.conversation",
    "CostThresholds": "longtable.tools.sql.verdict",
    "Database": "longtable.tools.database",
    "Footer": "longtable.graph.wiring.build_options",
    "FreeChat": "longtable.nodes.team.free_chat",
    "Limits": "longtable.graph.wiring.build_options",
    "LongtableError": "longtable.base.errors",
    "MemoryTools": "longtable.graph.wiring.build_options",
    "MessageMetadata": "longtable.memory.messages.metadata",
    "Mode": "longtable.nodes.team.mode_hook",
    "PastTurn": "longtable.graph.running.past_turns",
    "Persistence": "longtable.store.persistence",
    "Persona": "longtable.nodes.team.personas",
    "Price": "longtable.memory.counting.prices",
    "RateLimit": "longtable.nodes.arriving.rate_limit",
    "RequestLimits": "longtable.base.context",
    "ResultStore": "longtable.tools.results.result_store",
    "RunningTurns": "longtable.graph.running.running_turns",
    "Scene": "longtable.nodes.team.mode_hook",
    "State": "longtable.nodes.state",
    "Summarizer": "longtable.graph.wiring.build_options",
    "TablePolicy": "longtable.tools.sql.table_policy",
    "Team": "longtable.nodes.team.team",
    "Workflow": "longtable.nodes.team.workflow",
    "as_agent": "longtable.graph.embedding",
    "as_node": "longtable.graph.embedding",
    "as_tool": "longtable.graph.embedding",
    "build_graph": "longtable.graph.wiring.build",
    "delete_thread": "longtable.graph.threads",
    "import_thread": "longtable.graph.threads",
    "list_projects": "longtable.graph.listing.thread_list",
    "list_threads": "longtable.graph.listing.thread_list",
    "metadata_of": "longtable.memory.messages.metadata",
    "move_thread": "longtable.graph.threads",
    "next_view": "longtable.nodes.call_plans",
    "node_thread_id": "longtable.graph.embedding",
    "open_conversation": "longtable.graph.opening",
    "open_persistence": "longtable.store.persistence",
    "prune_threads": "longtable.graph.pruning",
    "Rating": "longtable.graph.ratings",
    "ratings_of_threads": "longtable.graph.ratings",
    "read_prices": "longtable.graph.reports",
    "search_threads": "longtable.graph.listing.thread_search",
    "usage_of_threads": "longtable.graph.reports",
}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


_MOVED = {"Quiz": "longtable.modes", "Werewolf": "longtable.modes"}


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        errors = import_module("longtable.base.errors")
        raise errors.ConfigError(f"{name} has moved: from {_MOVED[name]} import {name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name.endswith("Error") and hasattr(errors := import_module("longtable.base.errors"), name):
        return getattr(errors, name)
    raise AttributeError(f"module 'longtable.graph' has no attribute {name!r}")
