"""What the command line was given is checked before anything is opened."""

import os
from pathlib import Path

import pytest

from longtable.app.models import open_model
from longtable.app.settings import Settings, check_apart
from longtable.graph.errors import ConfigError


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
        Settings(base_url=url, model="m")
    assert str(caught.value).isprintable()
    if url:
        with pytest.raises(ConfigError, match="--base-url"):  # LangGraph Studio opens a model without a `Settings`
            open_model("m", base_url=url)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8000/v1", "https://host/v1", "http://[::1]:8000/v1", "http://me:pass@host:65535/v1", "http://bücher.example/v1"],
)
def test_a_base_url_that_can_be_is_taken(url: str) -> None:
    assert Settings(base_url=url, model="m").base_url == url


def test_a_password_in_a_base_url_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(base_url="http://me:se/cret@host/v1", model="m")
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
def test_one_file_under_two_names_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str, store: str) -> None:
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
def test_two_files_are_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str, store: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.db").symlink_to("loop.db")
    check_apart(database=database, store=store)
