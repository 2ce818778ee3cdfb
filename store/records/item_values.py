"""Read the values of one namespace of a store, without the other fields of its items.

The stores that `longtable.store.persistence` opens read these values with SQL of their own, in less
than half the time of a search. A caller's own store is searched.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Protocol, cast, runtime_checkable

from langgraph.store.base import BaseStore, SearchItem, SearchOp

from longtable.base.stored import Namespace
from longtable.store.damage import item_value

MOST_ITEMS = 1_000_000
KeyValue = tuple[str, dict[str, Any]]
IsWanted = Callable[[str, dict[str, Any]], bool]
"""Whether to return an item, given by its key and value."""


@runtime_checkable
class ValueReader(Protocol):
    """A store that can read values by itself. The methods do what the functions below do."""

    def values_in(self, namespace: Namespace) -> Iterator[KeyValue]: ...

    def newest_in(self, namespace: Namespace, is_wanted: IsWanted, most: int) -> list[KeyValue]: ...


def values_in(store: BaseStore, namespace: Namespace) -> Iterator[KeyValue]:
    """Return key and value of each item in a namespace. Items of namespaces below it are left out.
    All are read when the function is called, and decoded one by one.
    """
    if isinstance(store, ValueReader):
        return store.values_in(namespace)
    (items,) = store.batch([SearchOp(namespace, limit=MOST_ITEMS)])
    found = cast("list[SearchItem]", items or [])
    return ((item.key, item.value) for item in found if item.namespace == namespace)


def newest_in(
    store: BaseStore, namespace: Namespace, is_wanted: IsWanted, most: int
) -> list[KeyValue]:
    """Return key and value of the wanted items in a namespace, at most `most`. They are sorted by
    their field "updated" and by their key, the greatest first.
    """
    if isinstance(store, ValueReader):
        return store.newest_in(namespace, is_wanted, most)
    return newest_of(values_in(store, namespace), is_wanted, most)


def newest_of(items: Iterable[KeyValue], is_wanted: IsWanted, most: int) -> list[KeyValue]:
    """Return the wanted items, at most `most`, in the order of `newest_in`."""
    wanted = [(key, value) for key, value in items if is_wanted(key, value)]
    wanted.sort(key=_last_use, reverse=True)
    return wanted[:most]


def first_wanted(
    rows: Iterable[tuple[str, object]], is_wanted: IsWanted, most: int
) -> list[KeyValue]:
    """Return the first wanted items of rows, each with a key and a value as JSON. No row is read
    after the last of them.
    """
    wanted = (item for item in decoded(rows) if is_wanted(*item))
    return list(islice(wanted, min(most, MOST_ITEMS)))


def decoded(rows: Iterable[tuple[str, object]]) -> Iterator[KeyValue]:
    """Decode rows of a key and a value as JSON, one by one."""
    return ((key, item_value(text)) for key, text in rows)


def _last_use(item: KeyValue) -> tuple[str, str]:
    key, value = item
    return str(value.get("updated") or ""), key
