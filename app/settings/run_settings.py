"""The checked settings of a command line or a server, and the places of a user's files."""

import hashlib
import json
import os
import shlex
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, Field

from longtable.app.demo import demo_path
from longtable.app.settings.settings_file import (
    FILE,
    check,
    did_you_mean,
    is_first_glossary,
    leaves,
    read_settings,
)
from longtable.app.settings.settings_tables import (
    KEYS,
    SAME,
    SUMMARIZERS,
    VARIABLES,
    NamedDatabaseTable,
    Place,
    SettingsTables,
    Values,
    is_file_url,
    option_of,
)
from longtable.base.context import STRICTER, Context, RequestLimits
from longtable.base.errors import ConfigError, InputError
from longtable.base.redaction import HIDDEN, redacted
from longtable.base.url import refuse_same_file
from longtable.memory.counting.prices import Price
from longtable.memory.policy import CompactionPolicy
from longtable.tools.engines.base import QueryLimits

KNOWLEDGE = "longtable_knowledge"
"""Name of the knowledge folder that is looked for."""
MOST_THREAD_ID = 128
CONFIG = "LONGTABLE_CONFIG"
TEAM_CALLS = 24
"""The most model calls in a turn of a team, unless a setting says otherwise."""
NO_TRUST = (
    "the file in the current folder may be a stranger's: name it with --config if you trust it"
)


class Settings(SettingsTables):
    """The settings of one run: the tables of the settings file, and options that only commands
    have.
    """

    config: str | None = None
    """The settings file that an option named, None if none was named."""
    thread: str | None = None
    as_json: bool = Field(default=False, alias="json")
    debug: bool = False
    sources: dict[str, str] = Field(default_factory=dict)
    """Where each value that is not a default comes from, by `table.key`: an option, a variable, or
    a file with its line.
    """
    notes: tuple[str, ...] = ()
    """Notes on settings in a file that are ignored, each with the reason."""

    def context(self) -> Context:
        """Return the `Context` of a run with these settings. Raises `ConfigError` for values that
        do not fit.
        """
        policy = self.policy
        tables = self.model.model_dump() | self.limits.model_dump()
        values: dict[str, Any] = {
            name: value for name, value in tables.items() if name in Context.__dataclass_fields__
        }
        values |= {
            "model_limit": self.model.limit,
            "project": self.project,
            "approve_sql": policy.approve_sql,
        }
        values["privacy"] = "types" if policy.private else None
        return Context(**{name: value for name, value in values.items() if value is not None})

    def price_table(self) -> dict[str, Price] | None:
        """Return the prices of models, None if no price is set."""
        prices = {name: Price(**price.model_dump()) for name, price in self.prices.items()}
        return prices or None

    def limits_of(self, what: str) -> dict[str, Any]:
        """Return the limits of a "request" or a "query". Their names come without this word, such
        as `rows` for `query_rows`.
        """
        limits = self.limits.model_dump(exclude_unset=True)
        return {
            name.removeprefix(f"{what}_"): value
            for name, value in limits.items()
            if name.startswith(f"{what}_")
        }

    def name_of(self, key: str, option: str) -> str:
        """Return the name by which messages call the value of `table.key`: the option or variable
        that set it, or the file and line with the key. If the value is a default, return `option`.
        """
        source = self.sources.get(key, option)
        return (
            f"{source}: {key}"
            if source not in VARIABLES and not source.startswith("--")
            else source
        )

    def continued(self, thread: str) -> str:
        """Return a thread's id and the options that were typed, as text for the shell. Options that
        contain a secret are left out.
        """
        typed: list[tuple[str, Any]] = [("--config", self.config)] if self.config else []
        for place in VARIABLES.values():
            option = self.sources.get(".".join(place), "")
            value = getattr(getattr(self, place[0]), place[1]) if len(place) > 1 else self.project
            if option.startswith("--") and redacted(str(value)) == str(value):
                typed.append((option, value))
        return " ".join(
            [
                shlex.quote(thread),
                *(
                    name if value is True else f"{name} {shlex.quote(str(value))}"
                    for name, value in typed
                ),
            ]
        )


def user_folder() -> Path:
    """Return the folder of the user's own settings file."""
    from platformdirs import user_config_path

    return user_config_path("longtable", appauthor=False)


def load_settings(
    options: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Return the settings that apply. Options override the environment, which overrides the
    settings file, which overrides the defaults. Raises `ConfigError`, which names the source of a
    wrong value.

    `options` have their names in Python (`base_url`, `config`, `thread` ...); an option that was
    not given is None. The settings file is the one that `config` or LONGTABLE_CONFIG names.
    Otherwise it is the user's own file, and the file in the current `folder` may override some of
    its settings.
    """
    environment = os.environ if environment is None else environment
    flags_set = {
        name: value
        for name, value in (options or {}).items()
        if value is not None and value is not False
    }
    values: Values = {}
    sources: dict[str, str] = {}
    notes: list[str] = []
    config = flags_set.get("config") or environment.get(CONFIG)
    own = user_folder() / FILE
    here = (folder or Path.cwd()) / FILE
    for path in (
        [Path(config).expanduser()]
        if config
        else [each for each in dict.fromkeys((own, here)) if os.path.lexists(each)]
    ):
        file = read_settings(path)
        file_values = file.values
        notes += file.notes
        if path == here != own and not config:
            file_values, untrusted = _trusted(file_values, values)
            notes += [
                f"{file.where(place)}: {'.'.join(place)} does not count: {NO_TRUST}"
                for place in untrusted
            ]
        _lay(values, sources, file_values, file.where)
    _add_knowledge(values, sources, notes, config, folder or Path.cwd())
    variables = {
        option_of(name): (value, name) for name in VARIABLES if (value := environment.get(name))
    }
    for layer in (variables, _typed(flags_set)):
        nested, names = _nested(layer)
        where = _namer(names)
        _lay(values, sources, check(nested, where, strict=False), where)
    check(values, lambda place: _all_sources(sources, ".".join(place)), strict=False)
    of_run = {
        name: flags_set[name] for name in ("config", "thread", "json", "debug") if name in flags_set
    }
    settings = Settings.model_validate(
        {**values, **of_run, "sources": sources, "notes": tuple(notes)}
    )
    _check_run(settings)
    return settings


def _typed(flags_set: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """Return each option's value and the option as it is typed, by its name in Python."""
    return {name: (value, f"--{name.replace('_', '-')}") for name, value in flags_set.items()}


def _add_knowledge(
    values: Values, sources: dict[str, str], notes: list[str], config: str | None, here: Path
) -> None:
    """Add the knowledge folder that stands beside a settings file which was named or is the user's
    own. One that only stands in the current folder may be a stranger's: a note tells of it.
    """
    if values.get("knowledge", {}).get("folder"):
        return
    file = Path(config).expanduser() if config else user_folder() / FILE
    beside = file.parent / KNOWLEDGE
    if beside.is_dir():
        values["knowledge"] = {"folder": str(beside.resolve())}
        sources["knowledge.folder"] = str(beside)
    elif (here / KNOWLEDGE).is_dir() and not is_first_glossary(here / KNOWLEDGE):
        notes.append(
            f"the folder {KNOWLEDGE} here does not count: it may be a stranger's. If you trust it:"
            f" --knowledge {KNOWLEDGE}"
        )


def _nested(layer: Mapping[str, tuple[Any, str]]) -> tuple[Values, dict[Place, str]]:
    """Return the values of options as tables, and the name of each setting for messages."""
    nested: Values = {}
    names: dict[Place, str] = {}
    for variable, place in VARIABLES.items():
        if option_of(variable) in layer:
            value, names[place] = layer[option_of(variable)]
            (nested.setdefault(place[0], {}) if len(place) > 1 else nested)[place[-1]] = value
    return nested, names


def _namer(names: Mapping[Place, str]) -> Callable[[Place], str]:
    # An error of the whole policy: its preset is all there is.
    return lambda place: names.get(place) or names[*place, "preset"]


def _lay(
    values: Values, sources: dict[str, str], layer: Values, where: Callable[[Place], str]
) -> None:
    """Put the values of one source over those of weaker sources. If the source sets a preset of
    compaction, all compaction settings of weaker sources are dropped; if it names one database, the
    several databases of weaker sources are.
    """
    if layer.get("database", {}).get("url") and "databases" in values:
        del values["databases"]
        for name in [name for name in sources if name.startswith("databases.")]:
            del sources[name]
    for table, value in layer.items():
        if table == "compaction" and "preset" in value:
            values.pop(table, None)
            for name in [name for name in sources if name.startswith("compaction.")]:
                del sources[name]
        values[table] = {**values.get(table, {}), **value} if isinstance(value, dict) else value
    sources |= {".".join(place): where(place) for place, _ in leaves(layer)}


def _all_sources(sources: Mapping[str, str], name: str) -> str:
    """Return a key or table together with all sources that set it or something in it."""
    names = dict.fromkeys(
        source for key, source in sources.items() if f"{key}.".startswith(f"{name}.")
    )
    return ": ".join([*([" and ".join(names)] if names else []), name])


def _trusted(file_values: Values, own: Values) -> tuple[Values, list[Place]]:
    """Return the values that a file which nobody named may set, and the places of its other values,
    which do not count. Such a file may come from a stranger, together with other files in the
    folder.

    `own` are the settings without this file.
    """
    entries = list(leaves(file_values))
    untrusted = [place for place, value in entries if not _is_free(place, value, own)]
    if any(place[0] == "databases" for place in untrusted):
        # All of several databases, or none: without one of them, a name means another one.
        untrusted = [place for place, _ in entries if place in untrusted or place[0] == "databases"]
    trusted: Values = {}
    for place, value in entries:
        if place in untrusted:
            continue
        inside = trusted
        for name in place[:-1]:
            inside = inside.setdefault(name, {})
        inside[place[-1]] = value
    return trusted, untrusted


def _is_free(place: Place, value: Any, own: Values) -> bool:
    """Return whether a file that nobody named may set this value. Such a file must not decide where
    data go, and must not weaken their protection.

    Every key that is not allowed here is refused.
    """
    table = own.get(place[0], {})
    before = table.get(place[-1]) if len(place) == 2 else None
    order = STRICTER["approve_sql"]
    match place:
        case ("policy", "approve_sql"):
            return order.index(value) >= order.index(before or "costly")
        case ("policy", "private"):
            return value or not before
        case ("policy", "file"):
            return before is None
        case ("limits", _) | ("team", "max_calls"):
            return bool(value <= (before or _default_limits()[".".join(place)]))
        case ("rate_limit", _):
            return "rate_limit" not in own
        case ("database", "url"):
            # A server would be sent PGPASSWORD. One database in place of several of one's own would
            # leave out their policies.
            return "databases" not in own and is_file_url(value)
        case ("databases", _, key):
            # In place of a database of one's own, they would leave out its policy.
            one = own.get("database", {}).get("url") or own.get("policy", {}).get("file")
            return not one and "databases" not in own and _is_free_of_several(key, value, own)
    return (
        place[0] in ("project", "model", "summarizer", "compaction", "team", "prices")
        and place[-1] != "base_url"
    )


def _is_free_of_several(key: str, value: Any, own: Values) -> bool:
    """Return whether a file that nobody named may set this value of one of several databases."""
    if key == "url":
        return is_file_url(value)
    if key.startswith("query_"):
        most = own.get("limits", {}).get(key) or _default_limits()[f"limits.{key}"]
        return bool(value <= most)
    return key == "policy"


def _default_limits() -> dict[str, Any]:
    """Return the default of each limit, by `table.key`."""
    context = Context()
    limits = {"request": asdict(RequestLimits()), "query": asdict(QueryLimits())}
    defaults: dict[str, Any] = {}
    for what, values in limits.items():
        defaults |= {f"limits.{what}_{name}": value for name, value in values.items()}
    of_turn = ("max_model_calls", "max_message_chars", "max_repairs")
    defaults |= {f"limits.{name}": getattr(context, name) for name in of_turn}
    return {**defaults, "team.max_calls": TEAM_CALLS}


def _check_run(settings: Settings) -> None:
    """Raise `ConfigError` for mistakes that can be found only when all settings are known."""
    if settings.thread is not None:
        check_thread_id(settings.thread)
    settings.context()
    name = settings.summarizer.name or SAME
    known = name in SUMMARIZERS or name in settings.models
    if not known and ":" not in name and not settings.model.base_url:
        raise ConfigError(
            f"{settings.name_of('summarizer.name', '--summarizer')} must be one of"
            f" {', '.join(SUMMARIZERS)}, or another model as provider:name, found"
            f" {name[:40]!r}{did_you_mean(name, SUMMARIZERS)}"
        )


def _source_within(settings: Settings, name: str) -> str:
    """Return the source of the first key set within a table, "default" if none is set."""
    within = (source for key, source in settings.sources.items() if key.startswith(f"{name}."))
    return next(within, "default")


SECRETS = ("OPENAI_API_KEY", "LONGTABLE_API_KEY", "LONGTABLE_STORE_KEY")
"""Environment variables that contain secrets."""


def setting_rows(settings: Settings, environment: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return name, value and source of each setting. A secret is shown as `***`; a setting without
    a value as "-".
    """
    context = settings.context()
    compaction = settings.compaction.policy() or CompactionPolicy()
    defaults = _default_limits()
    defaults |= {
        "model.name": "built-in analyst",
        "database.url": "the demo database",
        "store.url": store_url(None),
    }
    defaults |= {
        "summarizer.name": SAME,
        "compaction.preset": "analyst",
        "policy.approve_sql": context.approve_sql,
    }
    rows = []
    for place in KEYS:
        name = ".".join(place)
        table = getattr(settings, place[0])
        table = compaction if place[0] == "compaction" and place[1] != "preset" else table
        value = table if len(place) == 1 else getattr(table, place[1], None)
        preset = settings.sources.get("compaction.preset") if place[0] == "compaction" else None
        rows.append(
            (
                name,
                defaults.get(name) if value is None else value,
                settings.sources.get(name) or preset or _source_within(settings, name),
            )
        )
    for table in ("databases", "models", "prices"):
        for name, values in getattr(settings, table).items():
            places = {f"{table}.{name}.{key}": value for key, value in values}
            rows += [
                (place, value, settings.sources[place])
                for place, value in places.items()
                if place in settings.sources
            ]
    texts = [
        (name, value if isinstance(value, str) else _json(value), source)
        for name, value, source in rows
    ]
    safe_rows = [
        (name, "-" if text == "null" else redacted(text).replace(HIDDEN, "***"), source)
        for name, text, source in texts
    ]
    return safe_rows + [(name, "***", "environment") for name in SECRETS if environment.get(name)]


def _json(value: object) -> str:
    return json.dumps(
        value,
        ensure_ascii=False,
        default=lambda each: (
            each.model_dump(exclude_unset=True) if isinstance(each, BaseModel) else str(each)
        ),
    )


def server_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings that apply on a server. Raises `ConfigError` for environment variables
    that have no effect on a server.
    """
    environment = os.environ if environment is None else environment
    settings = load_settings(environment=environment)
    sources = settings.sources
    store = settings.store
    if sources.get("store.url") == "LONGTABLE_STORE":  # a file is the command line's, too
        raise ConfigError(
            "LONGTABLE_STORE has no effect here: a server keeps its threads itself. Unset it for"
            " the server"
        )
    if settings.row_parameters.owner is not None:
        raise ConfigError(
            f"{settings.name_of('row_parameters.owner', 'row_parameters.owner')} has no effect"
            " here: on a server each user sees their own rows. Take it out for the server"
        )
    archived = bool(store.archive) if store.archive_on_compact is None else store.archive_on_compact
    if archived and not store.archive:
        raise ConfigError(
            f"{sources['store.archive_on_compact']} needs a folder on a server: name it in"
            " LONGTABLE_ARCHIVE"
        )
    if environment.get("LONGTABLE_STORE_KEY") and (store.results or not store.archive):
        raise ConfigError(
            "LONGTABLE_STORE_KEY encrypts only the archive of a server, neither threads nor"
            " results: set it with LONGTABLE_ARCHIVE and without LONGTABLE_RESULTS, or unset it for"
            " the server"
        )
    return settings.model_copy(
        update={"store": store.model_copy(update={"archive_on_compact": archived})}
    )


running_settings = cache(server_settings)
"""Returns the settings of this server; they are read only once."""


def check_thread_id(thread: str) -> None:
    """Raise `ConfigError` unless the id has 1 to 128 printable characters and no blank at either
    end.
    """
    if (
        not 1 <= len(thread) <= MOST_THREAD_ID
        or not thread.isprintable()
        or thread != thread.strip()
    ):
        raise ConfigError(
            f"--thread must be 1 to {MOST_THREAD_ID} printable characters without blanks at its"
            f" ends, found {len(thread)} characters: {thread[:40]!r}"
        )


def check_text(text: str) -> None:
    """Raise `InputError` for a text that neither JSON nor a database file can store."""
    if "\0" in text:
        raise InputError("the message holds a NUL character: remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"the message is not valid UTF-8 at character {error.start + 1}: send it as UTF-8"
        ) from error


def check_apart(*, database: str, store: str) -> None:
    """Raise `ConfigError` if database and store are the same file, because threads would then be
    written into the user's data.
    """
    from longtable.store.persistence import open_persistence

    refuse_same_file(database, open_persistence(store).path, names=("--database", "--store"))


def new_thread_id() -> str:
    """Return a short id for a new thread."""
    return uuid.uuid4().hex[:8]


def cache_folder() -> Path:
    """Return the folder for files that can be rebuilt."""
    from platformdirs import user_cache_path

    return user_cache_path("longtable", appauthor=False)


def database_url(settings: Settings) -> str:
    """Return the URL of the database to query. If none is set, this is the URL of the demo
    database, which may not be built yet.
    """
    return settings.database.url or f"duckdb:///{demo_path(cache_folder())}"


def database_urls(settings: Settings) -> list[str]:
    """Return the URLs of all databases to query, without those whose variable is not set."""
    if not settings.databases:
        return [database_url(settings)]
    return list(filter(None, map(url_of_table, settings.databases.values())))


def url_of_table(table: NamedDatabaseTable) -> str:
    """Return the URL of one of several databases, "" if its variable is not set."""
    return table.url or os.environ.get(table.url_env or "", "").strip()


def asks_demo(settings: Settings) -> bool:
    """Return whether the settings name no database, so that the demo database is asked."""
    return not settings.database.url and not settings.databases


def store_url(url: str | None) -> str:
    """Return the URL of the store: `url` if it is given, otherwise a file in the user's data
    folder.
    """
    if url:
        return url
    from platformdirs import user_data_path

    return f"sqlite:///{user_data_path('longtable', appauthor=False) / 'threads.db'}"


def history_file(settings: Settings) -> Path | None:
    """Return the file in the user's data folder that keeps the history of the prompt. Return None
    if threads are encrypted or kept only in memory.
    """
    from platformdirs import user_data_path

    if store_url(settings.store.url).startswith("memory:") or key_for("LONGTABLE_STORE_KEY"):
        return None
    return user_data_path("longtable", appauthor=False) / "typed.jsonl"


def results_folder(store: str) -> Path | None:
    """Return the folder of the whole results of a store, None for memory://. It is beside the file
    of the store. If the store is a server, it is in the user's data folder.
    """
    from longtable.store.persistence import open_persistence

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
    return (
        user_data_path("longtable", appauthor=False)
        / f"server-{hashlib.sha256(place.encode()).hexdigest()[:16]}.results"
    )


def archive_folder(store: str) -> Path | None:
    """Return the folder of the archive files of a store, which is beside the folder of its results.
    Return None for memory://.
    """
    results = results_folder(store)
    return results.with_suffix(".archive") if results else None


def key_for(*names: str) -> str | None:
    """Return the value of the first of these environment variables that is set, None if none is."""
    return next((value for name in names if (value := os.environ.get(name))), None)
