"""All names under which threads, stores and files have kept data since version 0.1.0.

The names are a contract. They must stay even if names in the code change: LangGraph drops an
unknown channel without an error, and a store returns nothing for an unknown key. If a stored name
must change, the code must read data under both names, and the version of the store goes up.
tests/base/test_stored.py compares the lists below with the code, and fails if a name is missing in
either.
"""

from typing import Literal, get_args

Namespace = tuple[str, ...]

THREADS: Namespace = ("longtable", "threads")
"""The thread index: one item for each thread, by its id."""
BELLS = ("longtable", "bells")
USAGE = ("longtable", "usage")
"""`BELLS` has one item for each thread with a non-empty inbox. `USAGE` has one item for each
deleted thread, with the tokens that the thread used.
"""
SPENDING: Namespace = ("longtable", "spending")
"""One item for each thread whose usage was reported: what its calls took, and of which state of the
thread. It is computed anew if it is missing.
"""
SEARCH: Namespace = ("longtable", "search")
SEARCH_TERMS: Namespace = ("longtable", "search_terms")
"""The index of the words of all threads. `SEARCH` has one item for each segment, `SEARCH_TERMS` the
shards of its terms. It is computed anew where it is missing.
"""
TURNS: Namespace = ("longtable", "turns")
"""One item for each owner. It has the times at which the owner's last turns began, for the rate
limit.
"""

KNOWLEDGE: Namespace = ("longtable", "knowledge")
MEANINGS: Namespace = ("longtable", "meanings")
"""Prefixes, followed by a hash of the path of a knowledge folder. `KNOWLEDGE` has one item for each
checked query that the folder could not hold, by its name. `MEANINGS` has one for each question that
is searched by meaning.
"""

SPENT: Namespace = ("longtable", "spent")
"""The prefix of the namespaces with what turns took, one namespace a thread; see `KINDS`."""
AUDIT: Namespace = ("longtable", "audit")
"""The prefix of the namespaces with the queries of threads, one a thread; see `KINDS`."""

Kind = Literal[
    "archive",
    "archived",
    "compactions",
    "records",
    "inbox",
    "audit",
    "recall",
    "words",
    "spent",
    "failures",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of data that a store keeps of one thread.

`archive` holds retired messages by number; `archived` holds their numbers by message id. `recall`
holds the texts of live messages that were made searchable by meaning. `words` holds the index of
the words of retired messages; its keys are numbers and contain no word. `spent` holds the tokens of
each turn, on a server only. `failures` has one item for each turn that failed, until the next turn
begins.
"""
NODE = "\x1f"
"""Separator in the id of a memory that belongs to a node of another graph: it stands between the
thread's id and the name of the node.
"""


def thread_namespace(kind: Kind, thread_id: str) -> Namespace:
    """Return the namespace of one kind of data of a thread. The namespace of a node in another
    graph's thread is below the namespace of that thread.
    """
    return ("longtable", kind, *(label(part) for part in thread_id.split(NODE)))


def label(thread_id: str) -> str:
    """Return a thread's id in a form that a store accepts in a namespace: without dots, never
    empty.
    """
    return thread_id.replace("%", "%25").replace(".", "%2E") or "%"


# -- names that the code uses at their own places --------------------------------------------------

CHANNELS = (
    "messages",
    "compactions",
    "edits",
    "archive",
    "learned",
    "brief",
    "usage",
    "turn",
    "ahead",
    "tally",
)
"""Channels of the state. The channel `brief` holds the call config."""
NODES = ("ingest", "estimate", "compact", "respond", "run_tools", "approve", "settle", "prepare")
"""Nodes of the graph. The checkpoint of an unfinished turn names the next node."""
MARKS = (
    "turn",
    "time",
    "kind",
    "tables",
    "described",
    "listing",
    "schema_changed",
    "given",
    "reasoning",
    "footer",
    "voice",
    "mode",
    "model",
    "instead_of",
    "passed",
    "material",
    "sent",
    "node",
    "sources",
    "private",
    "pooled",
    "verified",
    "report",
)
"""Marks of messages, in `additional_kwargs["longtable"]`."""
KINDS_OF_MESSAGES = ("recalled", "steered", "colleague", "excluded", "summary")
"""Values of the mark `kind`."""
KEYS = {
    "Compaction": (
        "id previous strategy kind from_id to_id count length folded summary pins ended ledger"
        " excluded rebuilt language method writer why_by_code coverage coverage_note"
        " summary_tokens folded_tokens tokens_before tokens_after policy_version turn time spent"
        " ledger_budget kept earlier folds merged replaces report"
    ),
    "CompactionReport": "ms reasons ahead archive",
    "ToolReport": "ms query sql database decision decided_by verified not_kept",
    "AnswerReport": "usage material recalls fallbacks color",
    "Edit": (
        "id op turn time pin pins quote message number record score comment why answer figures"
        " voice failure code text retry_after"
    ),
    "Pin": "id text message_id turn by speaker",
    "PinEnd": "pin quote message turn",
    "Turn": (
        "number status calls recalls searched overflows ceiling breaker skipped last run owner"
        " channel private schema bell joined approval footers one_by_one without refusal failure"
        " prepare unsupported_numbers voice mentioned reason calls_left alone"
    ),
    "StoredConfig": (
        "system schema tool_tokens model dialect limit window encoding policy pin_tools choice"
        " voices"
    ),
    "StoredVoice": (
        "name words system has_data tool_tokens model own_model limit encoding pin_tools rounds"
        " apart"
    ),
    "Schema": "hash budget card shown tables note rows databases",
    "Learned": "ratio samples limit recent",
    "Approval": "asked decided passed_over",
    "ArchiveCount": "count",
    "Tally": "count digest",
}
"""Keys of the records in the state, by their Python type."""
TABLES = ("longtable_meta", "longtable_leases", "longtable_writers")
"""Tables in a store's database, besides LangGraph's own."""
METADATA = ("longtable_owner", "reducing")
"""Keys in the metadata of a checkpoint."""
CHECKPOINT = "checkpoint"
"""Key in the thread index: the id of a stored checkpoint of the thread. The newest checkpoint is
this one or a later one.
"""
RESULT_FILES = ("data.parquet", "meta.json")
"""Files of one result, in `folder/<hash of the thread id>/<handle>/`."""
EXPORT_FORMAT = "longtable-thread"
"""The first value in the file of an exported thread."""
