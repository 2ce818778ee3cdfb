"""What a command line or a server's environment says, checked, and where a user's files live."""

import difflib
import hashlib
import os
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from longtable.base.context import Context
from longtable.base.errors import ConfigError, InputError
from longtable.memory.policy import CompactionPolicy, analyst, rolling_chat, single_history, topics, window

MOST_THREAD_ID = 128
SAME, CODE = "same", "code"
SUMMARIZERS = (SAME, CODE)
"""Who writes summaries, besides a model by its name: the model that answers, or code."""
PRESETS: Mapping[str, Callable[[], CompactionPolicy]] = {
    made.__name__: made for made in (analyst, rolling_chat, single_history, window, topics)
}
"""Policies of compaction by the name that is asked for."""
_FLAGS = {**dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True), **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False)}
"""What the command line takes for yes and no."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One run's settings; None means the default. Raises `ConfigError` for a thread id that cannot be one."""

    database: str | None = None
    model: str | None = None
    base_url: str | None = None
    thread: str | None = None
    store: str | None = None
    model_limit: int | None = None
    approve_sql: str | None = None
    private: bool = False
    policy: str | None = None
    summarizer: str | None = None
    compaction: str | None = None
    project: str | None = None
    archive_on_compact: bool = False
    json: bool = False
    debug: bool = False

    def __post_init__(self) -> None:
        if self.thread is not None:
            check_thread_id(self.thread)
        if self.base_url is not None:
            check_base_url(self.base_url)
        self.compaction_policy()
        if self.summarizer and not (self.base_url or ":" in self.summarizer):
            check_choice("--summarizer", "LONGTABLE_SUMMARIZER", self.summarizer, SUMMARIZERS, "or another model as provider:name")

    def compaction_policy(self) -> CompactionPolicy | None:
        """Return the preset of compaction that was asked for, None for the default. Raises `ConfigError`."""
        if not self.compaction:
            return None
        name = self.compaction.replace("-", "_").lower()
        check_choice("--compaction", "LONGTABLE_COMPACTION", name, PRESETS)
        return PRESETS[name]()

    def context(self) -> Context:
        """Return these settings as those of a run. Raises `ConfigError`."""
        values: dict[str, Any] = {"model_limit": self.model_limit, "project": self.project, "privacy": "types" if self.private else ""}
        return Context(**values, approve_sql=cast("Any", self.approve_sql or ""))


def server_settings(environment: Mapping[str, str]) -> Settings:
    """Return what a server's environment says, "" being unset. Raises `ConfigError` for what is wrong or has no effect there."""

    def flag(name: str, default: str = "0") -> bool:
        value = environment.get(name) or default
        if value.lower() not in _FLAGS:
            raise ConfigError(f"{name} must be 1 or 0, found {value[:20]!r}")
        return _FLAGS[value.lower()]

    if environment.get("LONGTABLE_STORE"):
        raise ConfigError("LONGTABLE_STORE has no effect here: a server keeps its threads itself. Unset it for the server")
    archive = flag("LONGTABLE_ARCHIVE_ON_COMPACT", "1" if environment.get("LONGTABLE_ARCHIVE") else "0")
    if archive and not environment.get("LONGTABLE_ARCHIVE"):
        raise ConfigError("LONGTABLE_ARCHIVE_ON_COMPACT needs a folder on a server: name it in LONGTABLE_ARCHIVE")
    if environment.get("LONGTABLE_STORE_KEY") and (environment.get("LONGTABLE_RESULTS") or not environment.get("LONGTABLE_ARCHIVE")):
        raise ConfigError(
            "LONGTABLE_STORE_KEY encrypts only the archive of a server, neither threads nor results: "
            "set it with LONGTABLE_ARCHIVE and without LONGTABLE_RESULTS, or unset it for the server"
        )
    limit = environment.get("LONGTABLE_MODEL_LIMIT") or None
    if limit and not (limit.isascii() and limit.isdigit() and len(limit) <= 12 and int(limit)):
        raise ConfigError(f"LONGTABLE_MODEL_LIMIT must be a whole number of tokens, at least 1, found {limit[:20]!r}")
    settings = Settings(
        database=environment.get("LONGTABLE_DATABASE") or None,
        model=environment.get("LONGTABLE_MODEL") or None,
        base_url=environment.get("LONGTABLE_BASE_URL") or None,
        policy=environment.get("LONGTABLE_POLICY") or None,
        summarizer=environment.get("LONGTABLE_SUMMARIZER") or None,
        compaction=environment.get("LONGTABLE_COMPACTION") or None,
        model_limit=int(limit) if limit else None,
        approve_sql=environment.get("LONGTABLE_APPROVE_SQL") or None,
        private=flag("LONGTABLE_PRIVATE"),
        project=environment.get("LONGTABLE_PROJECT") or None,
        archive_on_compact=archive,
    )
    settings.context()
    return settings


def check_choice(option: str, variable: str, value: str, known: Collection[str], other: str = "") -> None:
    """Raise `ConfigError` for a value that is not among those known; it names the one most like it."""
    if value in known:
        return
    near = difflib.get_close_matches(value.lower(), known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    allowed = ", ".join([*known, *([other] if other else [])])
    raise ConfigError(f"{option} (or {variable}) must be one of {allowed}, found {value[:40]!r}{hint}")


def check_thread_id(thread: str) -> None:
    """Raise `ConfigError` unless the id is 1 to 128 printable characters without blanks at its ends."""
    if not 1 <= len(thread) <= MOST_THREAD_ID or not thread.isprintable() or thread != thread.strip():
        raise ConfigError(
            f"--thread must be 1 to {MOST_THREAD_ID} printable characters without blanks at its ends, "
            f"found {len(thread)} characters: {thread[:40]!r}"
        )


def check_text(text: str) -> None:
    """Raise `InputError` for text that no JSON and no database file can hold."""
    if "\0" in text:
        raise InputError("the message holds a NUL character: remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the message is not valid UTF-8 at character {error.start + 1}: send it as UTF-8") from error


def check_base_url(url: str) -> None:
    """Raise `ConfigError` unless a client can connect to the URL. It is not repeated: it may hold a password."""
    example = "as in http://127.0.0.1:8000/v1"
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"--base-url must begin with http:// or https://, {example}")
    if not url.isprintable() or " " in url:
        raise ConfigError(f"--base-url must hold neither blanks nor control characters, {example}")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:  # a bracket left open, a port that is no number or past 65,535, a label too long
        host, port = "", None
    if not host or port == 0:
        raise ConfigError(f"--base-url must name a host, an IPv6 address in brackets, and a port from 1 to 65,535 if any, {example}")


def check_apart(*, database: str, store: str) -> None:
    """Raise `ConfigError` when database and store are one file: threads would be written into the user's data."""
    from longtable.graph.persistence import open_persistence
    from longtable.tools.url import parse_url

    kept = open_persistence(store).path
    try:
        asked = parse_url(database).path
    except ConfigError:  # whoever opens it says what is wrong with it
        return
    if kept is not None and asked is not None and _same_file(kept, asked):
        raise ConfigError(
            f"--store and --database are the same file, {str(asked)!r}: threads are never kept in the database that is asked; "
            "name another file for --store, or leave it out"
        )


def _same_file(one: Path, other: Path) -> bool:
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return one.samefile(other)  # hard links, and names that differ in case alone where that is the same
    except OSError:  # one of them is not there
        return False


def new_thread_id() -> str:
    """Return a short id for a new thread."""
    return uuid.uuid4().hex[:8]


def cache_folder() -> Path:
    """Return the folder for files that can be made again."""
    from platformdirs import user_cache_path

    return user_cache_path("longtable", appauthor=False)


def store_url(given: str | None) -> str:
    """Return the store's URL: as given, else a file in the user's data folder."""
    if given:
        return given
    from platformdirs import user_data_path

    return f"sqlite:///{user_data_path('longtable', appauthor=False) / 'threads.db'}"


def results_folder(store: str) -> Path | None:
    """Return where a store's whole results are kept: beside its file, for a server in the data folder; None for memory://."""
    from longtable.graph.persistence import open_persistence

    path = open_persistence(store).path
    if path is not None:
        return path.with_name(f"{path.name}.results")
    parts = urlsplit(store)
    if parts.scheme == "memory":
        return None
    from platformdirs import user_data_path

    try:
        place = f"{parts.hostname}:{parts.port}{parts.path}"  # never the password: it may change
    except ValueError:  # several hosts
        place = parts.netloc.rpartition("@")[2] + parts.path
    return user_data_path("longtable", appauthor=False) / f"server-{hashlib.sha256(place.encode()).hexdigest()[:16]}.results"


def archive_folder(store: str) -> Path | None:
    """Return where the files of a store's compactions lie: beside its results; None for memory://."""
    results = results_folder(store)
    return results.with_suffix(".archive") if results else None


def key_for(*names: str) -> str | None:
    """Return the first of these environment variables that is set."""
    return next((value for name in names if (value := os.environ.get(name))), None)
