"""Write the pages that follow the code, settings.md and reference.md: `python -m docs.generate`.

A test compares the committed pages with what this script writes.
"""

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any, Never, Union, get_args, get_origin

import typer

from longtable import graph
from longtable.app.program import app
from longtable.app.settings.settings_tables import KEYS, VARIABLES, option_of
from longtable.base.errors import RunFailedError
from longtable.base.events import Event
from longtable.graph import CompactionPolicy, Context, Conversation, LongtableError

HERE = Path(__file__).parent
COMMAND = "python -m docs.generate"

OTHER_VARIABLES = {
    "LONGTABLE_CONFIG": ("`--config`", "The settings file."),
    "LONGTABLE_PRICES": (
        "`--prices`",
        "Price table of `longtable usage`; without it `[prices]` of the settings file counts.",
    ),
    "OPENAI_API_KEY": (
        "",
        "Key of the model's provider. Providers other than OpenAI have variables of their own.",
    ),
    "LONGTABLE_API_KEY": ("", "Key for `--base-url`; wins over `OPENAI_API_KEY`."),
    "LONGTABLE_STORE_KEY": (
        "",
        (
            "Passphrase that encrypts a new store, and archive files. On a server it encrypts"
            " archive files only."
        ),
    ),
    "LONGTABLE_LOG": ("", "Log to standard error: `json` (one object per line) or `text`."),
    "LONGTABLE_LOG_LEVEL": ("", "Level of that log, `INFO` by default."),
}
"""Environment variables that set no key of the settings file, with their options."""


def main() -> None:
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")


def settings_page() -> str:
    """Return settings.md: the settings file, the fields of `Context` and `CompactionPolicy`, and
    the environment variables.
    """
    return f"""# Settings

*This page is written by `{COMMAND}` from the descriptions in the code.*

## Settings file

The command line, Studio, servers and MCP read one file, `longtable.toml`. `longtable init` writes one in which every
line is a comment. `longtable config` prints what holds and where each value comes from: an option, a variable, a file
with its line, or the default.

```toml
[model]
name = "openai:gpt-4o-mini"
limit = "32k"

[database]
url = "shop.db"

[compaction]
preset = "analyst"
keep_rounds = 4
```

An option wins over an environment variable, and a variable over the file. If `--config` or `LONGTABLE_CONFIG` names a
file, only that file is read. Otherwise two files are read: the one in your settings folder (`longtable init --user`
writes it there), and then `longtable.toml` in the current folder, which wins where both set a key. A relative path starts at the
folder of the file that holds it. If an option, a variable or the second file sets a preset of compaction, all fields of compaction
from the sources below it are dropped: `--compaction topics` means the fields of `topics` alone. The file may have 65,536 bytes.

The file in the current folder may be a stranger's, which came with other files. So some of its keys do not count, and a note
says which. To make them count, name the file with `--config`. They are:

- `base_url`, `[store]`, `[fallbacks]`, `[models]`, and a server as the database;
- all `[databases.NAME]`, if your own file names a database or a policy, or if one of them is a server;
- `policy.file`, if your own file sets one;
- `private` and `approve_sql`, if they protect less than what holds without the file;
- each key of `[limits]` and `team.max_calls`, if it is above the number in your own file, or above the default, and
  `[rate_limit]`, if your own file has one.

All other keys count, so the file may choose the model, and a file as the database.

Keys and passwords have no place in the file: it is refused, with the name of the variable to use. Variables such as `$HOME` in
its texts are not replaced. On a server `store.url` has no effect, because the server keeps its threads itself.

{table(("key", "variable", "meaning"), _keys())}
| `[databases.NAME]` |  | One of [several databases](database.md#several-databases), in place of `[database]`: `url` or `url_env` (the variable that holds it), `policy`, `query_seconds`, `query_rows`. |
| `[models.NAME]` |  | A model with a name of your own, for `--model`, `choices`, `summarizer` and `fallbacks`: `provider` (openai by default), `model` (its name there; NAME by default), `base_url`, `api_key_env` (the variable that holds its key). |
| `[prices."gpt-4o*"]` |  | What a model costs for a million tokens: `input`, `output`, `cached`, `cache_write`, `reasoning`. |

Settings of a run are fields of `Context`. They come with each run, from a program, from Studio's form or from a client
of a server. Settings of compaction are fields of `CompactionPolicy` and belong to the graph. Both are checked when they
are built: a wrong value raises `ConfigError`, which names the field, the value and what is allowed.

## Context

{table(("field", "default", "meaning"), _settings(Context))}

An operator's settings, `build_graph(operator=Context(...))`, hold for every run. A client may only be stricter: see
[servers](servers.md#what-the-operator-sets).

## CompactionPolicy

`build_graph(policy=CompactionPolicy(...))`. Shares are of the model's limit. [Compaction](compaction.md) explains how
they work together.

{table(("field", "default", "meaning"), _settings(CompactionPolicy))}

## Environment variables

The command line and servers read these. An option of the command line wins over its variable. `make chat` reads them
from a file `.env`, too; `.env.example` lists them.

{table(("variable", "option", "meaning"), _variables())}
"""


def reference_page() -> str:
    """Return reference.md: public names, the methods of `Conversation`, events and errors."""
    return f"""# Reference

*This page is written by `{COMMAND}` from the descriptions in the code.*

## Public names

All stand in `longtable.graph`. Everything else is internal and may change.

{table(("name", "meaning"), ((f"`{_call(name)}`", _first_paragraph(getattr(graph, name))) for name in graph.__all__))}

## Methods of Conversation

Each has an asynchronous twin with an `a` in front: `aask`, `astream`.

{table(("method", "meaning"), _methods())}

## Events

`Conversation.stream` yields these dictionaries. In a graph of your own they are LangGraph's stream mode `custom`, except
`token`, `reasoning` and `answer`.

{table(("type", "meaning", "fields"), _events())}

## Errors

Each error has a `code` for programs, a message for developers (`str(error)`), and a sentence for people in English and
Chinese (`error.user_text(language)`). All are subclasses of `LongtableError`.

{table(("code", "class", "meaning"), _errors())}
"""


PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "reference.md": reference_page,
}


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    """Return text for a cell of a table: one line, without what would end the cell or begin a
    tag.
    """
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;")


def _settings(cls: Any) -> Iterable[tuple[str, str, str]]:
    documented = _attribute_docs(cls)
    for field in dataclasses.fields(cls):
        description = field.metadata.get("description") or documented.get(field.name)
        if not description:
            raise ValueError(
                f"{cls.__name__}.{field.name} has no description: give it one beside the field"
            )
        yield f"`{field.name}`", _default(field.default), description


def _default(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else f"`{value}`"


def _attribute_docs(cls: type) -> dict[str, str]:
    """Return the string below each annotated field of a class, by the field's name."""
    [node] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    body = node.body if isinstance(node, ast.ClassDef) else []
    docs: dict[str, str] = {}
    for field, below in pairwise(body):
        text = (
            below.value.value
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            else None
        )
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, str)
        ):
            docs[field.target.id] = text
    return docs


def _keys() -> Iterable[tuple[str, str, str]]:
    for place, (description, variable) in KEYS.items():
        if place[0] == "compaction" and not description:
            continue
        yield f"`{'.'.join(place)}`", f"`{variable}`" if variable else "", description
        if place == ("compaction", "preset"):
            yield (
                "`compaction.` ...",
                "",
                "Each field of [CompactionPolicy](#compactionpolicy) that differs from the preset.",
            )


def _variables() -> Iterable[tuple[str, str, str]]:
    options = {
        option
        for command in _commands(typer.main.get_command(app))
        for each in command.params
        for option in each.opts
    }
    for name, place in VARIABLES.items():
        option = f"--{option_of(name).replace('_', '-')}"
        yield f"`{name}`", f"`{option}`" if option in options else "", KEYS[place].description
    yield from ((f"`{name}`", *texts) for name, texts in OTHER_VARIABLES.items())


def _commands(command: Any) -> Iterable[Any]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from _commands(each)


def _first_paragraph(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n\n")[0]


def _methods() -> Iterable[tuple[str, str]]:
    names = [
        name
        for name in dir(Conversation)
        if not name.startswith("_") and callable(getattr(Conversation, name))
    ]
    for name in names:
        if not (name.startswith("a") and name[1:] in names):
            method = getattr(Conversation, name)
            yield f"`{name}({_parameters(method)})`", _first_paragraph(method)


def _call(name: str) -> str:
    """Return a public name with its parameters; settings have a page of their own, errors and
    `State` are not called.
    """
    thing = getattr(graph, name)
    if isinstance(thing, type) and (
        thing in (Context, CompactionPolicy) or issubclass(thing, (dict, Exception))
    ):
        return name
    if hasattr(thing, "open"):
        return f"{name}.open({_parameters(thing.open)})"
    return f"{name}({_parameters(thing)})"


def _parameters(function: Callable[..., object]) -> str:
    """Return the parameters of a function without types; defaults that are long or no plain value
    are dots.
    """
    parts: list[str] = []
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.KEYWORD_ONLY and "*" not in "".join(parts):
            parts.append("*")
        if each.name != "self" and each.annotation is not Never:
            star = "*" if each.kind is each.VAR_POSITIONAL else ""
            parts.append(
                f"{star}{each.name}{'' if each.default is each.empty else f'={_plain_value(each.default)}'}"
            )
    return ", ".join(parts)


def _plain_value(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"
    plain = value is None or isinstance(value, (str, bool, float, tuple))
    return repr(value) if plain and len(repr(value)) < 40 else "..."


def _events() -> Iterable[tuple[str, str, str]]:
    for event in get_args(Event):
        hints = event.__annotations__
        fields = ", ".join(f"`{name}`" for name in hints if name != "type")
        [kind] = get_args(_plain(hints["type"]))
        yield f"`{kind}`", _first_paragraph(event), fields


def _plain(hint: Any) -> Any:
    """Return a hint without what surrounds its `Literal`."""
    while get_origin(hint) in (Union, UnionType) or (
        get_args(hint) and not isinstance(get_args(hint)[0], str)
    ):
        hint = get_args(hint)[0]
    return hint


def _errors() -> Iterable[tuple[str, str, str]]:
    errors: dict[str, type[LongtableError]] = {}

    def walk(kind: type[LongtableError]) -> None:
        for each in kind.__subclasses__():
            if each.__module__ == LongtableError.__module__ and not issubclass(
                each, RunFailedError
            ):
                errors[each.__name__] = each
                walk(each)

    walk(LongtableError)
    for name, kind in sorted(errors.items(), key=lambda item: (item[1].code, item[0])):
        yield f"`{kind.code}`", f"`{name}`", re.sub(r"\s+", " ", _first_paragraph(kind))


if __name__ == "__main__":
    main()
