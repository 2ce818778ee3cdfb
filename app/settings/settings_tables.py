"""What a settings file, `longtable.toml`, may contain: its tables and keys, how each value is
checked, and the team that its tables describe.
"""

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_type_hints
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    ValidationInfo,
    create_model,
)

from longtable.base.context import MOST_SECONDS, MOST_TURNS, Context, RequestLimits
from longtable.base.settings_base import NAME, TEXT
from longtable.memory.policy import (
    CompactionPolicy,
    analyst,
    rolling_chat,
    single_history,
    topics,
    window,
)

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from longtable.nodes.team.mode_hook import Mode
    from longtable.nodes.team.team import Team

SAME = "same"
CODE = "code"
SUMMARIZERS = (SAME, CODE)
"""What may be given in place of a model that writes the summaries: the model that answers (`same`),
or code.
"""
BACKSLASH = (
    r": in double quotes a backslash begins a code; put a Windows path in single quotes, as in"
    r" 'C:\data\shop.db'"
)
PRESETS: Mapping[str, Callable[[], CompactionPolicy]] = {
    made.__name__: made for made in (analyst, rolling_chat, single_history, window, topics)
}
"""The presets of compaction, by name."""
Place = tuple[str, ...]
"""The place of a setting: a table, or a table and a key."""
Values = dict[str, Any]


class Table(BaseModel):
    """Base of the tables: every key is optional, an unknown one is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, protected_namespaces=(), validate_default=False
    )


def _as_in(kind: type, name: str) -> Any:
    """Return the check of a field of `Context` or `RequestLimits`, for a key that sets this
    field.
    """
    return GetPydanticSchema(
        lambda _, handler: handler.generate_schema(get_type_hints(kind, include_extras=True)[name])
    )


def _tokens(value: object) -> object:
    if isinstance(value, str) and (
        match := re.fullmatch(r"([0-9]{1,9})(k|m)?", value.strip().lower(), re.ASCII)
    ):
        value = int(match[1]) * {"k": 1_000, "m": 1_000_000}.get(match[2] or "", 1)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100_000_000:
        raise ValueError(
            "must be a whole number of tokens from 1 to 100,000,000, or thousands as in 32k"
        )
    return value


def _base_url(url: str) -> str:
    """Check that a client can connect to the URL, and return it. Messages do not repeat the URL,
    because it may contain a password.
    """
    example = "as in http://127.0.0.1:8000/v1"
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"must begin with http:// or https://, {example}")
    if not url.isprintable() or " " in url:
        raise ValueError(f"must hold neither blanks nor control characters, {example}")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port
        host.encode("idna")
    except ValueError:
        # A bracket left open, a port that is no number or past 65,535, a label too long.
        host = ""
        port = None
    if not host or port == 0:
        raise ValueError(
            "must name a host, an IPv6 address in brackets, and a port from 1 to 65,535 if any,"
            f" {example}"
        )
    return url


def _one_of(names: Collection[str]) -> AfterValidator:
    def check(name: str) -> str:
        name = name.replace("-", "_").lower()
        if name not in names:
            raise ValueError(f"must be one of {', '.join(map(repr, names))}")
        return name

    return AfterValidator(check)


def is_file_url(text: str) -> bool:
    """Return whether a URL names a file, and not a server or a database in memory."""
    scheme, separator, rest = text.partition("://")
    return not separator or (
        scheme.lower() in ("sqlite", "duckdb", "files")
        and rest.startswith("/")
        and rest != "/:memory:"
    )


def _anchored(text: str, info: ValidationInfo) -> str:
    """Return the URL or path of a file. A relative path is resolved against the folder of the
    settings file. The URL of a server is returned unchanged.
    """
    if info.context is None or not is_file_url(text):
        return text
    if not text.isprintable():  # "C:\temp" is a tab within
        raise ValueError(f"must hold no control character{BACKSLASH}")
    scheme, separator, rest = text.rpartition("://")
    path = info.context / Path(rest.removeprefix("/") if separator else rest).expanduser()
    return f"{scheme}:///{path}" if separator else str(path)


def _variable_name(text: str | None) -> str | None:
    """Check the name of an environment variable, and return it. Messages do not repeat the name,
    because the key itself may have been written in its place.
    """
    if text is not None and not re.fullmatch(r"[A-Z][A-Z0-9_]{0,80}", text, re.ASCII):
        raise ValueError("must be the name of a variable that holds the key, as in DEEPSEEK_KEY")
    return text


Text = Annotated[str, TEXT]
FilePlace = Annotated[Text, AfterValidator(_anchored)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Seconds = Annotated[float, Field(ge=0.1, le=86_400)]
Price = Annotated[float, Field(ge=0, le=1_000_000)]


class ModelTable(Table):
    """The model that answers."""

    name: Text | None = None
    base_url: BaseUrl | None = None
    limit: Annotated[int, BeforeValidator(_tokens)] | None = None
    choices: list[Text] = []
    temperature: Annotated[float | None, _as_in(Context, "temperature")] = None
    reasoning_effort: Annotated[str | None, _as_in(Context, "reasoning_effort")] = None
    thinking: Annotated[bool | int | None, _as_in(Context, "thinking")] = None
    request_timeout: Annotated[float | None, _as_in(Context, "request_timeout")] = None
    max_retries: Annotated[int | None, _as_in(Context, "max_retries")] = None
    prompt_cache: Annotated[str | None, _as_in(Context, "prompt_cache")] = None
    prompt_cache_key: Annotated[bool | None, _as_in(Context, "prompt_cache_key")] = None


class SummarizerTable(Table):
    """Who writes summaries."""

    name: Text | None = None
    seconds: Seconds | None = None


class DatabaseTable(Table):
    """The database that is asked."""

    url: FilePlace | None = None


class NamedDatabaseTable(Table):
    """One of several databases that are asked in one conversation."""

    url: FilePlace | None = None
    url_env: Annotated[str | None, AfterValidator(_variable_name)] = None
    policy: FilePlace | None = None
    query_seconds: Seconds | None = None
    query_rows: Count | None = None


class PolicyTable(Table):
    """What the model may read and see."""

    file: FilePlace | None = None
    private: bool = False
    approve_sql: Literal["never", "costly", "always"] | None = None


def _function_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", text, re.ASCII):
        raise ValueError("must be module:function, as in people:rows_of")
    return text


class RowParametersTable(Table):
    """Values of the parameters in the policy's row filters, by owner."""

    function: Annotated[str, AfterValidator(_function_name)] | None = None
    owners: dict[Text, dict[Text, bool | int | float | date | str]] = {}
    owner: Annotated[str, NAME] | None = None


class PresetTable(Table):
    """How to compact: a preset, and fields of `CompactionPolicy` that differ from it."""

    preset: Annotated[str, _one_of(PRESETS)] | None = None

    def policy(self) -> CompactionPolicy | None:
        """Return the policy: the preset with the fields that were set. Return None if nothing was
        set. Raises `ConfigError` for values that do not fit together.
        """
        fields = {name: getattr(self, name) for name in self.model_fields_set - {"preset"}}
        return (
            dataclasses.replace(PRESETS[self.preset or analyst.__name__](), **fields)
            if self.preset or fields
            else None
        )


_POLICY = {
    each.name: (get_type_hints(CompactionPolicy, include_extras=True)[each.name], each.default)
    for each in dataclasses.fields(CompactionPolicy)
}
# A file brings no strategies of its own, so an unknown one is a mistake here, not only when the
# graph is built.
_POLICY["strategy"] = (
    Annotated[str, _one_of(sorted({make().strategy for make in PRESETS.values()}))],
    CompactionPolicy.strategy,
)
_CompactionTable: Any = create_model(
    "CompactionTable", __base__=PresetTable, __doc__=PresetTable.__doc__, **_POLICY
)  # type: ignore[call-overload]  # fields by name


class KnowledgeTable(Table):
    """What the owner of the data teaches."""

    folder: FilePlace | None = None
    editors: Text | None = None


class StoreTable(Table):
    """Where threads, results and archives are kept."""

    url: FilePlace | None = None
    results: FilePlace | None = None
    results_url: Text | None = None
    archive: FilePlace | None = None
    archive_on_compact: bool | None = None


class LimitsTable(Table):
    """What one turn, one request and one query may take."""

    max_model_calls: Annotated[int | None, _as_in(Context, "max_model_calls")] = None
    max_message_chars: Annotated[int | None, _as_in(Context, "max_message_chars")] = None
    max_repairs: Annotated[int | None, _as_in(Context, "max_repairs")] = None
    request_messages: Annotated[int | None, _as_in(RequestLimits, "messages")] = None
    request_chars: Annotated[int | None, _as_in(RequestLimits, "chars")] = None
    request_bytes: Annotated[int | None, _as_in(RequestLimits, "bytes")] = None
    query_seconds: Seconds | None = None
    query_rows: Count | None = None


class RateLimitTable(Table):
    """How many turns a person may begin in a time."""

    turns: Annotated[int, Field(ge=1, le=MOST_TURNS)] = 20
    seconds: Annotated[int, Field(ge=1, le=MOST_SECONDS)] = 3_600


class FallbacksTable(Table):
    """Models that answer where the one before them fails before its answer begins."""

    models: list[Text] = []
    base_url: BaseUrl | None = None


class WebTable(Table):
    """The chat in the browser."""

    host: Text | None = None
    port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    hosts: list[Text] = []
    owner_header: Text | None = None
    proxies: list[Text] = []
    upload_megabytes: Annotated[int, Field(ge=1, le=10_000)] | None = None


class PersonaTable(Table):
    """One persona of the team."""

    id: Text
    prompt: str = ""
    name: str = ""
    nicknames: list[Text] = []
    aliases: list[Text] = []
    model: Text | None = None
    tools: list[Text] | None = None
    rounds: int | None = None
    color: str = ""


class TeamTable(Table):
    """Personas that answer together on one thread, and who of them speaks when."""

    use: bool | None = None
    projects: list[Text] = []
    mode: Literal["free_chat", "workflow", "quiz", "werewolf"] | None = None
    steps: list[Text] = []
    send_back: int | None = None
    together: bool | None = None
    quizmaster: Text | None = None
    questions: int | None = None
    seed: int | None = None
    max_calls: int | None = None
    compaction: Annotated[
        PresetTable | None,
        GetPydanticSchema(lambda _, handler: handler.generate_schema(_CompactionTable)),
    ] = None
    personas: list[PersonaTable] = []

    def answers(self, project: str | None) -> bool:
        """Return whether the team answers on the threads of a project."""
        use = self.use if self.use is not None else bool(self.model_fields_set - {"use"})
        return use and (not self.projects or project in self.projects)


class PriceTable(Table):
    """The price of one model for a million tokens each."""

    input: Price
    output: Price
    cached: Price | None = None
    reasoning: Price | None = None
    cache_write: Price | None = None


class NamedModelTable(Table):
    """A model with a name of its own: where it is, and which variable holds its key."""

    provider: Text = "openai"
    model: Text | None = None
    base_url: BaseUrl | None = None
    api_key_env: Annotated[str | None, AfterValidator(_variable_name)] = None


class SettingsTables(Table):
    """All that a settings file may hold."""

    project: Annotated[str, NAME] | None = None
    model: ModelTable = ModelTable()
    summarizer: SummarizerTable = SummarizerTable()
    database: DatabaseTable = DatabaseTable()
    policy: PolicyTable = PolicyTable()
    row_parameters: RowParametersTable = RowParametersTable()
    compaction: Annotated[
        PresetTable, GetPydanticSchema(lambda _, handler: handler.generate_schema(_CompactionTable))
    ] = PresetTable()
    knowledge: KnowledgeTable = KnowledgeTable()
    store: StoreTable = StoreTable()
    limits: LimitsTable = LimitsTable()
    rate_limit: RateLimitTable | None = None
    fallbacks: FallbacksTable = FallbacksTable()
    web: WebTable = WebTable()
    team: TeamTable = TeamTable()
    databases: Annotated[
        dict[Text, NamedDatabaseTable],
        Field(description="By a name; the first is the one of older threads."),
    ] = {}
    models: Annotated[
        dict[Text, NamedModelTable], Field(description="By a name of the operator's.")
    ] = {}
    prices: Annotated[
        dict[Text, PriceTable],
        Field(description="By the name of a model or a pattern, as in gpt-4o-mini*."),
    ] = {}


TABLES: Mapping[str, type[Table]] = {
    "model": ModelTable,
    "summarizer": SummarizerTable,
    "database": DatabaseTable,
    "policy": PolicyTable,
    "row_parameters": RowParametersTable,
    "compaction": _CompactionTable,
    "knowledge": KnowledgeTable,
    "store": StoreTable,
    "limits": LimitsTable,
    "rate_limit": RateLimitTable,
    "fallbacks": FallbacksTable,
    "web": WebTable,
    "team": TeamTable,
    "databases": NamedDatabaseTable,
    "models": NamedModelTable,
    "prices": PriceTable,
}
BY_NAME = (NamedDatabaseTable, NamedModelTable, PriceTable)
"""Tables that have one entry for each database or model, by its name."""


FIRST_FILE = (Path(__file__).parent / "first_settings.toml").read_text(encoding="utf-8")
FIRST_GLOSSARY = Path(__file__).parent / "first_glossary.toml"
"""The glossary that `longtable init` writes: an example, all of it comments."""
"""A settings file that sets nothing: it has every key below its description, commented out. The
descriptions of keys are read from this text.
"""
_DESCRIBED = re.compile(
    r"^(?:# )?\[(?P<table>\w+)\]$|^# (?!\w+ = |\[)(?P<text>.+?)(?:"
    r" \((?P<variable>LONGTABLE_\w+)\))?\n# (?P<key>\w+) = ",
    re.M,
)


class Key(NamedTuple):
    """The description of a key in the settings file, and the environment variable that sets it, ""
    if there is none.
    """

    description: str = ""
    variable: str = ""


def _keys() -> dict[Place, Key]:
    """Return the description of every key by its place, in the order of the file. Tables that have
    one entry for each database or model are left out.
    """
    places: list[Place] = [("project",)]
    for table_name, kind in TABLES.items():
        if kind not in BY_NAME:
            places += [(table_name, name) for name in kind.model_fields]
    keys = dict.fromkeys(places, Key())
    table: Place = ()
    for match in _DESCRIBED.finditer(FIRST_FILE):
        if match["table"]:
            table = (match["table"],)
        else:
            keys[*table, match["key"]] = Key(match["text"], match["variable"] or "")
    return keys


KEYS: Mapping[Place, Key] = _keys()
VARIABLES: Mapping[str, Place] = {
    key.variable: place for place, key in KEYS.items() if key.variable
}
"""For each environment variable, the place of the key that it sets. The command line's option has
the same name.
"""


def option_of(variable: str) -> str:
    """Return the Python name of the option that sets the same key as an environment variable. The
    options of `longtable web` have no prefix of their own.
    """
    return variable.removeprefix("LONGTABLE_").removeprefix("WEB_").lower()


# -- the team --------------------------------------------------------------------------------------


def team_of(table: TeamTable, open_model: "Callable[[str], BaseChatModel] | None" = None) -> "Team":
    """Return the team that a table describes. A persona's own model is opened by `open_model`;
    without this function, no persona has its own model.

    Raises `ConfigError` if the table does not describe a team.
    """
    from longtable.modes import Quiz, Werewolf
    from longtable.nodes.team.free_chat import FreeChat
    from longtable.nodes.team.personas import Persona
    from longtable.nodes.team.team import Team
    from longtable.nodes.team.workflow import Workflow

    def of(*names: str) -> Values:
        return {name: getattr(table, name) for name in names if name in table.model_fields_set}

    policy: Values = {"policy": table.compaction.policy()} if table.compaction else {}
    steps: dict[str, str] = {}
    for each in table.steps:
        step, _, who = each.partition("=")
        steps[step.strip()] = who.strip()
    modes: Mapping[str, Callable[[], Mode]] = {
        "free_chat": lambda: FreeChat(**of("together"), **policy),
        "workflow": lambda: Workflow(
            *steps,
            roles={step: who for step, who in steps.items() if who},
            **of("send_back"),
            **policy,
        ),
        "quiz": lambda: Quiz(**of("quizmaster", "questions"), **policy),
        "werewolf": lambda: Werewolf(**{"seed": 1, **of("seed")}, **policy),
    }
    personas = [
        Persona(
            **{
                **each.model_dump(exclude_unset=True),
                "model": open_model(each.model) if open_model and each.model else None,
            }
        )
        for each in table.personas or map(PersonaTable.model_validate, DEFAULT_PERSONAS)
    ]
    return Team(*personas, mode=modes[table.mode or "workflow"](), **of("max_calls"))


DEFAULT_PERSONAS = (
    {
        "id": "analyst",
        "aliases": ["分析师"],
        "color": "cyan",
        "prompt": "Answer the question with SQL. Say which filters you applied.",
    },
    {
        "id": "checker",
        "aliases": ["核查员"],
        "color": "yellow",
        "tools": ["check_sql", "run_sql", "fetch_result"],
        "prompt": (
            "Check the analyst's newest query with check_sql, then get its figures another way. "
            "Say what is right, what is not, and by which query."
        ),
    },
    {
        "id": "reviewer",
        "aliases": ["审核员"],
        "color": "green",
        "tools": [],
        "prompt": (
            "Judge whether the question was answered and the check passed. If not, send the work"
            " back with what to correct. Else give the person the answer in a sentence or two."
        ),
    },
)
"""The team that is used if the settings name no personas."""
