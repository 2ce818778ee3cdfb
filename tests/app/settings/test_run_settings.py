"""What the command line was given is checked before anything is opened."""

import ast
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

from longtable.app.models import model_label, open_summarizer
from longtable.app.program import chat_options
from longtable.app.settings.run_settings import check_apart, load_settings, server_settings
from longtable.app.settings.settings_tables import PRESETS, VARIABLES
from longtable.base.errors import ConfigError
from longtable.graph import Context
from longtable.memory.policy import CompactionPolicy, rolling_chat
from tests.app.runner import PROGRAM, make_home

ROOT = Path(__file__).parents[3]
VARIABLE = re.compile(r"(LONGTABLE|OPENAI)_[A-Z_]+")


@pytest.mark.parametrize(
    "url",
    [
        "http://[bad",
        "http://[::1/v1",
        "http://a[b]/v1",
        "http://host:99999/v1",
        "http://host:0/v1",
        "http://host:-1",
        "http://host:abc",
        "http://host:1:2/v1",
        "http://",
        "http:///v1",
        "http://:80/v1",
        "http://a..b/v1",
        f"http://{'a' * 300}/v1",
        "http://ho st/v1",
        "http://host/v1\n",
        "http://host/\x1b[1m",
        "ftp://host/v1",
        "127.0.0.1:8000",
        "",
    ],
)
def test_a_base_url_that_no_client_can_use_is_a_setting_gone_wrong(url: str) -> None:
    with pytest.raises(ConfigError, match="--base-url") as caught:
        load_settings({"base_url": url, "model": "m"}, environment={})
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/v1",
        "https://host/v1",
        "http://[::1]:8000/v1",
        "http://me:pass@host:65535/v1",
        "http://bücher.example/v1",
    ],
)
def test_a_base_url_that_can_be_is_taken(url: str) -> None:
    assert load_settings({"base_url": url, "model": "m"}, environment={}).model.base_url == url


def test_a_password_in_a_base_url_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings({"base_url": "http://me:se/cret@host/v1", "model": "m"}, environment={})
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("database", "store"),
    [
        ("sqlite:///{folder}/shop.db", "sqlite:///{folder}/shop.db"),
        ("{folder}/shop.db", "sqlite:///{folder}/shop.db"),
        ("shop.db", "sqlite:///{folder}/shop.db"),
        ("sqlite:///shop.db", "sqlite:///./nothing/../shop.db"),
        ("sqlite:///{folder}/shop.db", "sqlite:///shop.db"),
        ("sqlite:///{folder}/shop.db", "sqlite:///link.db"),
        ("sqlite:///link.db", "sqlite:///shop.db"),
        ("sqlite:///shop.db", "sqlite:///hard.db"),
        ("sqlite:///shop.db", "sqlite:///folder/shop.db"),
        ("sqlite:///{folder}/shop.db", "sqlite:///~/shop.db"),
        ("duckdb:///flights.duckdb", "sqlite:///flights.duckdb"),
        ("sqlite:///new.db", "sqlite:///to-new.db"),
    ],
)
def test_one_file_under_two_names_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str, store: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "shop.db").write_text("data")
    (tmp_path / "link.db").symlink_to("shop.db")
    (tmp_path / "to-new.db").symlink_to(tmp_path / "new.db")
    (tmp_path / "folder").symlink_to(".")
    os.link(tmp_path / "shop.db", tmp_path / "hard.db")
    with pytest.raises(ConfigError, match="are the same file"):
        check_apart(database=database.format(folder=tmp_path), store=store.format(folder=tmp_path))


@pytest.mark.parametrize(
    ("database", "store"),
    [
        ("sqlite:///shop.db", "sqlite:///threads.db"),
        ("sqlite:///shop.db", "memory://"),
        ("sqlite:///shop.db", "sqlite:///folder/shop.db"),
        ("sqlite:///loop.db", "sqlite:///threads.db"),
        ("oracle://nothing/to/do/here", "sqlite:///threads.db"),
    ],
)
def test_two_files_are_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str, store: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.db").symlink_to("loop.db")
    check_apart(database=database, store=store)


def test_a_servers_environment_is_what_the_operator_sets() -> None:
    environment = {
        "LONGTABLE_PRIVATE": "yes",
        "LONGTABLE_APPROVE_SQL": "always",
        "LONGTABLE_MODEL_LIMIT": "8000",
        "LONGTABLE_PROJECT": "p",
    }
    assert server_settings(environment).context() == Context(
        privacy="types", approve_sql="always", model_limit=8_000, project="p"
    )
    for unset in ({}, dict.fromkeys(environment, ""), {"LONGTABLE_PRIVATE": "0"}):
        assert server_settings(unset).context().fields_set == frozenset()
    assert server_settings({"LONGTABLE_APPROVE_SQL": "never"}).context().fields_set == {
        "approve_sql"
    }
    for wanted, archived in (("", True), ("1", True), ("0", False)):
        archive = {"LONGTABLE_ARCHIVE": "/archive", "LONGTABLE_ARCHIVE_ON_COMPACT": wanted}
        assert server_settings(archive).store.archive_on_compact is archived


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("LONGTABLE_PRIVATE", "maybe", "LONGTABLE_PRIVATE must be 1 or 0, found 'maybe'"),
        ("LONGTABLE_APPROVE_SQL", "sometimes", "'never', 'costly' or 'always', found 'sometimes'"),
        ("LONGTABLE_MODEL_LIMIT", "128x", "LONGTABLE_MODEL_LIMIT must be a whole number of tokens"),
        ("LONGTABLE_MODEL_LIMIT", "0", "LONGTABLE_MODEL_LIMIT must be a whole number of tokens"),
        (
            "LONGTABLE_MODEL_LIMIT",
            "9" * 5_000,
            "LONGTABLE_MODEL_LIMIT must be a whole number of tokens",
        ),
        ("LONGTABLE_STORE", "sqlite:///threads.db", "LONGTABLE_STORE has no effect"),
        ("LONGTABLE_STORE_KEY", "phrase", "LONGTABLE_STORE_KEY encrypts only the archive"),
        ("LONGTABLE_ARCHIVE_ON_COMPACT", "1", "LONGTABLE_ARCHIVE_ON_COMPACT needs a folder"),
        ("LONGTABLE_BASE_URL", "127.0.0.1:8000", "must begin with http"),
        ("LONGTABLE_PROJECT", " ", "LONGTABLE_PROJECT must be 1 to 200 printable"),
        (
            "LONGTABLE_SUMMARIZER",
            "sam",
            (
                "must be one of same, code, or another model as provider:name, found 'sam'; did you"
                " mean same"
            ),
        ),
        (
            "LONGTABLE_COMPACTION",
            "rolling_cat",
            "must be one of 'analyst', .*, found 'rolling_cat'; did you mean rolling_chat",
        ),
        ("LONGTABLE_COMPACTION", "滚动", "must be one of 'analyst', .*, found '滚动'$"),
    ],
)
def test_what_a_server_cannot_honour_is_refused_before_it_starts(
    name: str, value: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        server_settings({name: value})


def test_a_preset_of_compaction_is_taken_by_its_name() -> None:
    def policy(name: str) -> CompactionPolicy | None:
        return load_settings({"compaction": name}, environment={}).compaction.policy()

    assert server_settings({}).compaction.policy() is None
    assert {name: policy(name) for name in PRESETS} == {name: PRESETS[name]() for name in PRESETS}
    assert policy("Rolling-Chat") == rolling_chat()
    assert all(
        name in get_type_hints(chat_options, include_extras=True)["compaction"].__metadata__[0].help
        for name in PRESETS
    )


def test_who_writes_summaries_is_a_word_a_provider_or_a_model_at_the_endpoint() -> None:
    at = {"base_url": "http://127.0.0.1:8000/v1", "model": "large"}
    assert open_summarizer("small", base_url=at["base_url"]).model_name == "small"  # type: ignore[union-attr]  # a model there
    assert "(summaries: small at 127.0.0.1)" in model_label(
        load_settings({**at, "summarizer": "small"}, environment={})
    )
    with pytest.raises(
        ConfigError,
        match=(
            "--summarizer must be one of same, code, or another model as provider:name, found"
            " 'small'"
        ),
    ):
        load_settings({"summarizer": "small"}, environment={})
    for name, base_url in (("openai:", None), ("openai:", at["base_url"])):
        with pytest.raises(ConfigError, match=r"--summarizer") as caught:
            open_summarizer(name, base_url=base_url)
        assert "--model" not in str(caught.value)


def test_a_servers_key_is_refused_where_results_would_be_kept_in_plain_text() -> None:
    environment = {"LONGTABLE_STORE_KEY": "phrase", "LONGTABLE_ARCHIVE": "/archive"}
    assert server_settings(environment).store.archive_on_compact
    with pytest.raises(ConfigError, match="neither threads nor results"):
        server_settings({**environment, "LONGTABLE_RESULTS": "/results"})


def test_the_example_names_every_variable_that_is_read_and_no_other() -> None:
    read: set[object] = {*VARIABLES}
    for path in (ROOT / "app").rglob("*.py"):
        tree = ast.parse(path.read_text())
        read |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and VARIABLE.fullmatch(str(node.value))
        }
    named = {
        line.lstrip("#").partition("=")[0]
        for line in (ROOT / ".env.example").read_text().splitlines()
        if "=" in line
    }
    assert named == read


def test_an_exported_variable_wins_over_the_file_that_make_reads(tmp_path: Path) -> None:
    program = tmp_path / ".venv" / "bin" / "longtable"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$LONGTABLE_MODEL $LONGTABLE_PROJECT"\n')
    program.chmod(0o755)
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / ".venv" / ".demo").touch()
    (tmp_path / ".env").write_text(
        "LONGTABLE_MODEL=openai:of-the-file\nLONGTABLE_PROJECT='north sales'\n"
    )
    environment = {"PATH": os.environ["PATH"], "LONGTABLE_MODEL": "openai:exported"}
    (program.parent / "python").symlink_to(sys.executable)
    run = subprocess.run(
        ["make", "chat"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert run.stdout == "openai:exported north sales\n"


@pytest.mark.parametrize(
    ("given", "installed"),
    [((), "demo,charts"), (("EXTRAS=postgres, excel",), "demo,charts,postgres,excel")],
)
def test_make_chat_installs_the_extras_that_are_asked_for_and_once(
    tmp_path: Path, given: tuple[str, ...], installed: str
) -> None:
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, script in {"python": 'echo "$@" >> installed', "longtable": "echo a chat"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    for _ in range(2):
        # `make test` around it would have this make name its folders.
        run = subprocess.run(
            ["make", "--no-print-directory", "chat", *given],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        assert run.stdout == "a chat\n"
    assert (
        tmp_path / "installed"
    ).read_text() == f"-m pip install --quiet --editable .[{installed}]\n"


@pytest.mark.parametrize("loaded", ["typer", "pydantic", "longtable.app.program"])
def test_ctrl_c_while_the_program_is_loading_shows_no_trace(tmp_path: Path, loaded: str) -> None:
    home = make_home(tmp_path)
    command = [sys.executable, "-X", "importtime", str(PROGRAM), "ask", "How many orders?"]
    with subprocess.Popen(
        command, env=home.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.rpartition("|")[2].strip() == loaded:
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
        assert process.wait(30) == 130
    assert "Traceback" not in rest


def test_the_command_to_go_on_with_can_be_typed_where_the_program_is_not_on_the_path(
    tmp_path: Path,
) -> None:
    home = make_home(tmp_path)
    (tmp_path / "my settings.toml").write_text("[policy]\napprove_sql = 'always'\n")
    options = ("--config", str(tmp_path / "my settings.toml"), "--database", home.shop)
    asked = home.run(
        "ask", "How many orders are there?", *options, "--thread", "t", PATH="/usr/bin"
    )
    [program, typed] = re.findall(r"Decide with: (.*) chat --thread t (.*) \(or", asked.stderr)[0]
    assert Path(shlex.split(program)[0]).absolute() == PROGRAM
    assert shlex.split(typed) == list(options)  # what the environment says need not be typed
