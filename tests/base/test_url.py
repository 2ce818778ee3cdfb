"""A database URL names an engine and a place, or says which forms there are; passwords are never
repeated.
"""

from pathlib import Path

import pytest

from longtable.base.errors import ConfigError
from longtable.base.url import parse_url, without_password


@pytest.mark.parametrize(
    ("url", "dialect", "path"),
    [
        ("sqlite:///shop.db", "sqlite", "shop.db"),
        ("sqlite:////srv/shop.db", "sqlite", "/srv/shop.db"),
        ("duckdb:///shop.duckdb", "duckdb", "shop.duckdb"),
        ("shop.sqlite", "sqlite", "shop.sqlite"),
        (" sqlite:///名单.db ", "sqlite", "名单.db"),
    ],
)
def test_a_file_is_named_by_url_or_path(url: str, dialect: str, path: str) -> None:
    location = parse_url(url)
    assert (location.dialect, location.path) == (dialect, Path(path))


def test_a_file_of_data_is_loaded_and_its_name_has_no_ending(tmp_path: Path) -> None:
    location = parse_url(str(tmp_path / "sales.csv.gz"))
    assert (location.dialect, location.name, location.load) == ("duckdb", "sales", True)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://ana:secret@db.example.org:5432/shop", "shop"),
        ("postgres://ana@db/", "ana"),
        ("postgresql+psycopg://db/shop?sslmode=require", "shop"),
    ],
)
def test_a_server_is_named_by_its_database(url: str, name: str) -> None:
    location = parse_url(url)
    assert (location.dialect, location.name) == ("postgres", name)
    assert "secret" not in without_password(url, location)


@pytest.mark.parametrize(
    "url", ["", "  ", "shop", "mssql://u:secret@h/d", "sqlite://shop.db", "sqlite:///:memory:"]
)
def test_another_form_is_refused_with_those_there_are(url: str) -> None:
    with pytest.raises(ConfigError, match="use ") as refused:
        parse_url(url)
    assert "secret" not in str(refused.value)


def test_a_password_with_a_second_at_sign_is_not_taken_for_a_host() -> None:
    with pytest.raises(ConfigError, match="percent-encoded") as refused:
        parse_url("postgresql://ana:p@ss@db/shop")
    assert "p@ss" not in str(refused.value)
