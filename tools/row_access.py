"""Whose rows a query may read: the row parameters of the person who asks.

A policy's row filters, such as `region = :region`, name parameters. Their values come from the
operator's side, by owner, and are read once a turn:

    source = RowSource(lambda owner: {"region": regions[owner]}, policy.row_filters)
    with reading_as(source.access("ann")):
        database.run("SELECT count(*) FROM orders")

Within the block, every query of this thread of execution, and every stored result, is bound to
these values. Outside of such a block there are none, and a query that needs one is refused.
"""

import hashlib
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import cast
from uuid import UUID

from longtable.base.errors import ConfigError, RowParameterError
from longtable.tools.sql.verdict import Mark

RowValue = str | int | float | bool | Decimal | date | datetime | UUID
RowParameters = Mapping[str, RowValue]
ReadParameters = Callable[[str | None], Mapping[str, object]]
"""Function of an operator that returns the row parameters of an owner. None stands for a run
without a trusted owner.
"""
VALUE_TYPES = (str, bool, int, float, Decimal, date, UUID)
"""The types of a parameter's value; `datetime` is a `date`."""
KINDS: Mapping[str, tuple[type, ...]] = {
    "text": (str, UUID),
    "number": (int, float, Decimal),
    "boolean": (bool,),
    "time": (date,),
}
"""The types that fit each kind of column."""
MOST_CHARS = 10_000
_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
_log = logging.getLogger("longtable.rows")


def checked_parameters(values: object) -> dict[str, RowValue]:
    """Return row parameters as a dict. Raises `RowParameterError` if they are no mapping of names
    to single values; the error repeats no value.
    """
    if not isinstance(values, Mapping):
        raise RowParameterError(
            f"row parameters must be a mapping of names to values, found {type(values).__name__}"
        )
    checked: dict[str, RowValue] = {}
    for name, value in values.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise RowParameterError(
                "the name of a row parameter must be a word of letters, digits and underscores,"
                f" found {str(name)[:40]!r}"
            )
        if value is None:
            continue  # missing
        if not isinstance(value, VALUE_TYPES):
            raise RowParameterError(
                f"the row parameter {name!r} must be one text, number, boolean, date or time,"
                f" found {type(value).__name__}",
                name=name,
            )
        too_long = isinstance(value, str) and (len(value) > MOST_CHARS or "\x00" in value)
        if too_long or (isinstance(value, float | Decimal) and not isfinite(value)):
            raise RowParameterError(
                f"the row parameter {name!r} has a value that no column holds", name=name
            )
        checked[name] = value
    return checked


class RowAccess:
    """The rows that one person may read in one turn. The parameters are read when they are first
    needed, and only once. Threads may share it.

    `filters` are those of the policy; `others` are those of further databases that are asked with
    the same parameters.
    """

    def __init__(
        self,
        read: Callable[[], object],
        filters: Mapping[str, str],
        others: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self._read = read
        self._filters = filters
        self._others = others
        self._lock = threading.Lock()
        self._parameters: dict[str, RowValue] | None = None
        self._failure: RowParameterError | None = None

    @property
    def parameters(self) -> dict[str, RowValue]:
        """Return the parameters. Raises `RowParameterError` if they cannot be read."""
        with self._lock:
            if self._parameters is None and self._failure is None:
                try:
                    self._parameters = checked_parameters(self._read())
                except RowParameterError as error:
                    self._failure = error
                except Exception as error:  # whatever the operator's function raises
                    _log.error("row parameters could not be read: %s", type(error).__name__)
                    self._failure = RowParameterError(
                        "the row parameters of this person could not be read"
                    )
            if self._failure is not None:
                raise self._failure
            return cast("dict[str, RowValue]", self._parameters)

    @property
    def key(self) -> str:
        """Return the key of these rows: the same for the same filters and parameters. Parameters
        that cannot be read have a key that no other access has.
        """
        return self.key_of(self._filters)

    def key_of(self, filters: Mapping[str, str]) -> str:
        """Return the key of the rows of a database with these filters."""
        try:
            return rows_key(filters, self.parameters)
        except RowParameterError:
            return f"none-{id(self):x}"

    @property
    def keys(self) -> frozenset[str]:
        """Return the keys of the rows of all databases that are asked."""
        return frozenset(map(self.key_of, [self._filters, *self._others]))


class JoinedAccess(RowAccess):
    """The rows of several databases that are each bound to parameters of their own."""

    def __init__(self, accesses: Sequence[RowAccess]) -> None:
        super().__init__(dict, {})
        self._accesses = accesses

    @property
    def keys(self) -> frozenset[str]:
        """Return the keys of the rows of all databases that are asked."""
        return frozenset(access.key for access in self._accesses)


def rows_key(filters: Mapping[str, str], parameters: RowParameters) -> str:
    """Return the key of the rows that filters and parameters leave. It tells neither."""
    parts = [sorted(filters.items())]
    typed = sorted((name, type(value).__name__, str(value)) for name, value in parameters.items())
    text = repr([parts, typed]).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16, person=b"longtable rows").hexdigest()


class RowSource:
    """Where the row parameters of each owner come from. `filters` are those of the policy, `others`
    those of further databases. If `fixed` is given, it is everybody's access, and `read` is not
    asked.
    """

    def __init__(
        self,
        read: ReadParameters,
        filters: Mapping[str, str],
        *,
        others: Sequence[Mapping[str, str]] = (),
        fixed: RowAccess | None = None,
    ) -> None:
        if not callable(read):
            raise ConfigError(
                "row_parameters must be a function that returns the row parameters of an owner,"
                f" found {type(read).__name__}"
            )
        self._read = read
        self._filters = filters
        self._others = others
        self._fixed = fixed

    def access(self, owner: str | None) -> RowAccess:
        """Return the access of an owner. Nothing is read before it is needed."""
        if self._fixed is not None:
            return self._fixed
        return RowAccess(lambda: self._read(owner), self._filters, self._others)


class RunRows:
    """The accesses of one run of a graph, so that parameters are read once in it. It is made by the
    process that runs the graph, and never comes from a client.

    `trusts_context`: whether the program itself named the owner. A client's claim is not trusted.
    """

    def __init__(self, *, trusts_context: bool) -> None:
        self.trusts_context = trusts_context
        self._lock = threading.Lock()
        self._accesses: dict[tuple[int, str | None], tuple[RowSource, RowAccess]] = {}

    def access(self, source: RowSource, owner: str | None) -> RowAccess:
        """Return the access of an owner; the same one whenever it is asked for."""
        with self._lock:
            key = (id(source), owner)
            if key not in self._accesses:
                self._accesses[key] = source, source.access(owner)
            return self._accesses[key][1]


_CURRENT: ContextVar[RowAccess | None] = ContextVar("longtable_row_access", default=None)


def current_access() -> RowAccess | None:
    """Return the access that holds here, None if there is none."""
    return _CURRENT.get()


def current_keys() -> frozenset[str]:
    """Return the keys of the rows that may be read here, empty if there is no access."""
    access = current_access()
    return access.keys if access is not None else frozenset()


@contextmanager
def reading_as(access: RowAccess | None) -> Iterator[None]:
    """Bind all queries and stored results within the block to an access, or with None to none."""
    token = _CURRENT.set(access)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def bound_values(marks: Sequence[Mark], parameters: RowParameters) -> list[RowValue]:
    """Return the values for the marks of a SQL text, in the order of the text. Raises
    `RowParameterError` if one is missing or does not fit the column it is compared with.
    """
    values: list[RowValue] = []
    for name, kind in marks:
        value = parameters.get(name)
        if value is None:
            raise RowParameterError(
                f"which rows may be read is not known: the row parameter {name!r} is missing",
                name=name,
            )
        if not fits(value, kind):
            raise RowParameterError(
                f"the row parameter {name!r} must be a {kind}, found {type(value).__name__}",
                name=name,
            )
        values.append(value)
    return values


def fits(value: RowValue, kind: str) -> bool:
    """Return whether a value can be compared with a column of this kind."""
    if kind not in KINDS:
        return True
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "time" and isinstance(value, str):
        return _is_time(value)
    return isinstance(value, KINDS[kind])


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
