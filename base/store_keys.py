"""Keys of what a store keeps beside the checkpoints. They are stored data: a changed key loses what
older versions wrote.
"""

from typing import Literal, get_args

Namespace = tuple[str, ...]

THREADS: Namespace = ("longtable", "threads")
"""The thread index: one item a thread, by its id."""
BELLS, USAGE = ("longtable", "bells"), ("longtable", "usage")
"""One item a thread whose inbox is not empty; one a deleted thread, with the tokens that it
took.
"""
TURNS: Namespace = ("longtable", "turns")
"""One item an owner: when the last turns began, for the rate limit."""

Kind = Literal["archive", "archived", "compactions", "records", "inbox", "audit", "recall", "words"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What a store keeps of one thread.

`archive` holds retired messages by number, `archived` their numbers by message id, `recall` the
texts of live messages that were made searchable by meaning, `words` the index of the words of
retired messages: its keys are numbers and hold no word.
"""
NODE = "\x1f"
"""Separates a thread's id from the node of a parent graph whose memory it is."""


def thread_namespace(kind: Kind, thread_id: str) -> Namespace:
    """Return the namespace of one kind of data of a thread; that of a node in another graph's
    thread is below the thread's.
    """
    return ("longtable", kind, *(label(part) for part in thread_id.split(NODE)))


def label(thread_id: str) -> str:
    """Return a thread's id as a store accepts it in a namespace: without dots, never empty."""
    return thread_id.replace("%", "%25").replace(".", "%2E") or "%"
