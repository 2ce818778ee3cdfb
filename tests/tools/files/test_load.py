"""Files of data as a database: loaded first, walled in after."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import duckdb
import openpyxl
import pytest

from longtable.base.errors import (
    ConfigError,
    DatabaseError,
    DatabaseUnavailableError,
    QueryRefusedError,
)
from longtable.tools.database import Database, FileLimits, QueryLimits, TablePolicy
from longtable.tools.workers.runner import Stop
from tests.tools.databases import engine_of
from tests.tools.test_catalog import call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "my data"
    home.mkdir()
    (home / "sales 2024.csv").write_text(
        'id,day,amount,note\n1,2024-01-05,9.5,"a, b"\n2,2024-02-06,10,\n', encoding="utf-8"
    )
    (home / "Sales-2024.tsv").write_text("id\tname\n1\tZoë\n", encoding="utf-8")
    (home / "客户.csv").write_text("编号,城市\n1,上海\n", encoding="utf-8")
    (home / "2023 list.json").write_text(
        json.dumps([{"a": 1, "b": {"c": [1, 2]}}, {"a": 2, "b": None}]), encoding="utf-8"
    )
    (home / "log.jsonl").write_text(
        '{"at": "2024-01-01T10:00:00", "ok": true}\n{"at": "2024-01-02T10:00:00", "ok": false}\n',
        encoding="utf-8",
    )
    duckdb.connect().execute(
        "COPY (SELECT range AS n, 'x' || range AS s FROM range(1000)) TO '"
        + str(home / "numbers.parquet")
        + "'"
    )
    book = openpyxl.Workbook()
    first = book.active
    assert first is not None
    first.title = "Order Lines"
    for row in (
        ["id", "when", "price", "price", None],
        [1, datetime(2024, 1, 5, 10), 2.5, 3, None],
        [2, datetime(2024, 1, 6), None, 4, "x"],
    ):
        first.append(row)
    second = book.create_sheet("Second!")
    second.append([])
    second.append(["code", "day"])
    second.append(["a", date(2024, 1, 1)])
    second.append([7, None])
    book.create_sheet("empty")
    book.save(home / "book.xlsx")
    (home / "notes.txt").write_text("not data", encoding="utf-8")
    (home / ".hidden.csv").write_text("a\n1\n", encoding="utf-8")
    (home / "~$book.xlsx").write_text("a lock file", encoding="utf-8")
    return home


def test_a_folder_is_a_database(folder: Path) -> None:
    with Database.open(str(folder)) as database:
        assert (database.dialect, database.name) == ("duckdb", "my data")
        tables = {
            table.name: [f"{column.name} {column.type}" for column in table.columns]
            for table in database.catalog().tables
        }
        assert tables == {
            "t_2023_list": ["a BIGINT", "b STRUCT(c BIGINT[])"],
            "Sales_2024": ["id BIGINT", "name VARCHAR"],
            "book_Order_Lines": [
                "id BIGINT",
                "when TIMESTAMP",
                "price DOUBLE",
                "price_1 BIGINT",
                "column4 VARCHAR",
            ],
            "book_Second": ["code VARCHAR", "day DATE"],
            "log": ["at TIMESTAMP", "ok BOOLEAN"],
            "numbers": ["n BIGINT", "s VARCHAR"],
            "sales_2024_2": ["id BIGINT", "day DATE", "amount DOUBLE", "note VARCHAR"],
            "客户": ["编号 BIGINT", "城市 VARCHAR"],
        }
        assert database.run("SELECT sum(amount), max(day) FROM sales_2024_2").rows == [
            (19.5, date(2024, 2, 6))
        ]
        assert database.run(
            "SELECT s.name, c.城市 FROM Sales_2024 s JOIN 客户 c ON c.编号 = s.id"
        ).rows == [("Zoë", "上海")]
        assert call(database, "find_values", text="上海")["matches"][0]["table"] == "客户"
        described = call(database, "describe_tables", names=["book_Second", "sales_2024_2"])[
            "tables"
        ]
        assert described[0]["comment"] == "from book.xlsx, sheet Second!"
        assert described[0]["sample_rows"] == [["a", "2024-01-01"], ["7", None]]
        assert described[1]["comment"] == "from sales 2024.csv"


@pytest.mark.parametrize(
    "name",
    [
        "sales 2024.csv",
        "Sales-2024.tsv",
        "2023 list.json",
        "log.jsonl",
        "numbers.parquet",
        "book.xlsx",
    ],
)
def test_one_file_is_a_database(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for given in (
        str(folder / name),
        name,
        f"files:///{name}",
        f"files:///{folder / name}",
        f"files://{folder / name}",
    ):
        with Database.open(given) as database:
            assert database.name == Path(name).stem
            table = database.catalog().tables[0]
            assert database.run(f"SELECT * FROM {table.sql_name}").row_count > 0


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO numbers VALUES (1, 'x')",
        "CREATE TABLE t AS SELECT 1",
        "DROP TABLE numbers",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM 'numbers.parquet'",
        "COPY numbers TO 'out.csv'",
        "SET memory_limit = '100GB'",
        "ATTACH 'x.duckdb'",
        "SELECT * FROM read_blob('/etc/passwd')",
    ],
)
def test_the_wall_stands_once_the_files_are_loaded(sql: str, folder: Path) -> None:
    with Database.open(str(folder)) as database:
        with pytest.raises(QueryRefusedError):
            database.run(sql)
        stop = Stop(seconds=5)
        with (
            pytest.raises(DatabaseError),
            engine_of(database).session(stop, walled=True) as session,
        ):
            session.fetch(sql, limits=database.limits, stop=stop)
        with (
            pytest.raises(DatabaseError),
            engine_of(database).session(stop, walled=False) as session,
        ):
            session.fetch("DELETE FROM numbers", limits=database.limits, stop=stop)
        assert database.run("SELECT count(*) FROM numbers").rows == [(1_000,)]


def test_a_policy_holds_for_files_too(folder: Path) -> None:
    with (
        Database.open(str(folder), policy=TablePolicy(denied=frozenset({"numbers"}))) as database,
        pytest.raises(QueryRefusedError),
    ):
        database.run("SELECT * FROM numbers")


def test_the_files_stay_as_they_are(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with Database.open(str(folder)) as database:
        database.run("SELECT * FROM numbers")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def _empty(folder: Path) -> str:
    (folder / "notes.txt").write_text("x", encoding="utf-8")
    return "holds no data file"


def _torn_parquet(folder: Path) -> str:
    (folder / "torn.parquet").write_bytes(b"PAR1 and then nothing that is one")
    return "torn.parquet"


def _torn_json(folder: Path) -> str:
    (folder / "good.csv").write_text("a\n1\n", encoding="utf-8")
    (folder / "torn.json").write_text('[{"a": 1}, {"a": ', encoding="utf-8")
    return "torn.json"


def _torn_excel(folder: Path) -> str:
    (folder / "torn.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    return "torn.xlsx"


@pytest.mark.parametrize("prepare", [_empty, _torn_parquet, _torn_json, _torn_excel])
def test_a_file_that_cannot_be_loaded_is_named(
    prepare: Callable[[Path], str], tmp_path: Path
) -> None:
    said = prepare(tmp_path)
    with pytest.raises(DatabaseUnavailableError, match=said) as caught:
        Database.open(str(tmp_path))
    assert str(tmp_path) not in caught.value.user_text()


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("empty.csv", b"", "it is empty"),
        ("blank.csv", b"\n\n", "it is empty"),
        ("empty.json", b"", "it is empty"),
        ("line.csv", b"a,b\n1," + b"x" * 2_500_000, "field larger than field limit"),
        (
            "old.xlsx",
            b"\xd0\xcf\x11\xe0" + bytes(600),
            "it is no .xlsx workbook, or has a password",
        ),
        ("zip.xlsx", b"PK\x05\x06" + bytes(18), "it is no .xlsx workbook"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(
    name: str, data: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DatabaseUnavailableError, match=said):
        Database.open(str(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "data"),
    [("b.csv", b""), ("b_2.csv", b" \n\n"), ("b.json", b""), ("b.parquet", b""), ("b.xlsx", b"")],
)
def test_an_empty_file_in_a_folder_is_noted_and_the_others_load(
    name: str, data: bytes, tmp_path: Path
) -> None:
    (tmp_path / "b_1.csv").write_text("customer,amount\nAnna,1\nBob,2\n")
    (tmp_path / name).write_bytes(data)
    with Database.open(str(tmp_path)) as database:
        [table] = database.catalog().tables
        assert (table.name, [column.name for column in table.columns]) == (
            "b_1",
            ["customer", "amount"],
        )
        assert [(note.code, note.file) for note in database.notes] == [("empty_file", name)]
        assert (
            table.comment == f"from b_1.csv; {name}: the file is empty, so there is no table of it"
        )


@pytest.mark.parametrize(
    ("stems", "text", "added"),
    [
        (("sales_2023", "sales_2024"), "name,amount\nA,1\n", {"file": "VARCHAR", "year": "BIGINT"}),
        (
            ("sales_2023", "sales_2024"),
            "year,amount\n1,1\n",
            {"file": "VARCHAR", "year_1": "BIGINT"},
        ),
        (("sales_2023", "sales_2024"), "day,amount\n2023-01-05,1\n", {"file": "VARCHAR"}),
        (("sales_2024_01", "sales_2024_02"), "name,amount\nA,1\n", {"file": "VARCHAR"}),
        (("north2023_1", "north2024_2"), "name,amount\nA,1\n", {"file": "VARCHAR"}),
    ],
)
def test_files_of_years_say_the_year_where_their_rows_have_no_date(
    stems: tuple[str, str], text: str, added: dict[str, str], tmp_path: Path
) -> None:
    for stem in stems:
        (tmp_path / f"{stem}.csv").write_text(text)
    with Database.open(str(tmp_path)) as database:
        [table] = database.catalog().tables
        assert {column.name: column.type for column in table.columns[2:]} == added
        [joined, *columns] = database.notes
        assert (joined.code, joined.value) == (
            "files_joined",
            ", ".join(f"{stem}.csv" for stem in stems),
        )
        assert [(note.code, note.column) for note in columns] == [
            ("from_file_name", column) for column in added
        ]


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    for given in (str(tmp_path / "no.csv"), f"files:///{tmp_path / 'nowhere'}"):
        with pytest.raises(DatabaseUnavailableError, match="there is no file or folder"):
            Database.open(given)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (FileLimits(files=2), r"FileLimits\.files allows 2"),
        (FileLimits(bytes=100), r"FileLimits\.bytes allows 100"),
        (FileLimits(sheet_rows=1), r"FileLimits\.sheet_rows allows"),
    ],
)
def test_what_is_too_much_is_told_with_the_limit(
    limits: FileLimits, said: str, folder: Path
) -> None:
    with pytest.raises(DatabaseUnavailableError, match=said):
        Database.open(str(folder), files=limits)


def test_what_does_not_fit_into_memory_is_told(tmp_path: Path) -> None:
    target = tmp_path / "large.parquet"
    duckdb.connect().execute(
        "COPY (SELECT hash(range) AS h, md5(range::VARCHAR) AS m FROM range(1500000)) TO"
        f" '{target}'"
    )
    with pytest.raises(DatabaseUnavailableError, match=r"'large\.parquet' does not fit"):
        Database.open(str(target), files=FileLimits(memory_bytes=16_000_000))
    with Database.open(str(target), limits=QueryLimits(memory_bytes=64_000_000)) as database:
        # What is loaded is not the query's.
        assert database.run("SELECT count(*) FROM large").rows == [(1_500_000,)]


@pytest.mark.parametrize(
    "wrong", [{"files": 0}, {"bytes": -1}, {"memory_bytes": 1}, {"sheet_rows": True}]
)
def test_file_limits_out_of_range_are_config_errors(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        FileLimits(**wrong)


def test_a_name_with_the_marks_of_a_pattern_is_a_name(tmp_path: Path) -> None:
    for name in ("a*b", "[x]", "what?", "it's"):
        (tmp_path / f"{name}.csv").write_text(f"name\n{name}\n", encoding="utf-8")
        with Database.open(str(tmp_path / f"{name}.csv")) as database:
            assert database.run(
                f"SELECT name FROM {database.catalog().tables[0].sql_name}"
            ).rows == [(name,)]


def test_without_openpyxl_the_error_names_the_extra(folder: Path) -> None:
    code = (
        "import sys; sys.modules['openpyxl'] = None\n"
        "from longtable.base.errors import ConfigError\n"
        "from longtable.tools.database import Database\n"
        "try: Database.open(sys.argv[1], isolation='none')\n"
        "except ConfigError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(folder / "book.xlsx")]
    assert (
        "pip install -e '.[excel]'"
        in subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    )


NAMES = ["id", "name", "price"]


@pytest.mark.parametrize(
    ("text", "guesses", "columns"),
    [
        ("id,name,price\n1,a,2\n2,b\n3,c,4\n", [("uneven_lines", 1)], NAMES),
        (
            "id,name,price\n1,a,2\n2,b,3,9\n3,c,4\n",
            [("uneven_lines", 1), ("unnamed", 0)],
            [*NAMES, "column3"],
        ),
        (
            "Report of sales\nmade in 2024\n\nid,name,price\n1,a,2\n2,b,3\n",
            [("lines_left_out", 2)],
            NAMES,
        ),
        (
            "id,name\n1,a,2\n1,b,3\n",
            [("uneven_lines", 2), ("unnamed", 0)],
            ["id", "name", "column2"],
        ),
        ("1,a,2\n2,b,3\n", [("no_names", 1)], ["column0", "column1", "column2"]),
        ("id,name,price\n1,a,2\n", [], NAMES),
        ("id;name\n1;a,b\n", [], ["id", "name"]),
        ("only\n1\n2\n", [], ["only"]),
    ],
)
def test_what_was_guessed_of_a_csv_file_is_told(
    text: str, guesses: list[tuple[str, int]], columns: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "it's [a].csv"
    path.write_text(text)
    with Database.open(str(path)) as database:
        [table] = database.catalog().tables
        assert [column.name for column in table.columns] == columns
        assert [(note.code, note.count) for note in database.notes] == guesses
        assert {note.file for note in database.notes} <= {path.name}
        assert str(table.comment).count("; ") == sum(not note.column for note in database.notes)
        assert all(
            any(column.comment for column in table.columns if column.name == note.column)
            for note in database.notes
            if note.column
        )


@pytest.mark.parametrize(
    ("values", "type_", "first", "codes"),
    [
        (["1.100,50", "0,50"], "DOUBLE", 1100.5, []),
        (["1,100.50", "0.50"], "DOUBLE", 1100.5, []),
        (["1 100,50", "2,00-"], "DOUBLE", 1100.5, []),
        (["1'100.50", "-2"], "DOUBLE", 1100.5, []),
        (["(1,100.50)", "-2"], "DOUBLE", -1100.5, []),
        (["1,100", "2,200"], "VARCHAR", "1,100", ["ambiguous_number"]),
        (["1.100", "2.200"], "DOUBLE", 1.1, ["read_decimals"]),
        (["1,5", "2.5"], "VARCHAR", "1,5", []),
        (["1.5", "x"], "VARCHAR", "1.5", []),
        (["1.5", "N/A"], "DOUBLE", 1.5, ["missing"]),
        (["12.50%", "3%"], "DOUBLE", 12.5, ["percent"]),
        (["$1,100.50", "$-"], "DOUBLE", 1100.5, ["currency", "dash_is_zero"]),
        (["$1", "€2"], "VARCHAR", "$1", ["mixed_units"]),
        (["4.01235E+12", "4.01236E+12"], "DOUBLE", 4.01235e12, ["rounded"]),
        (["00471", "12"], "VARCHAR", "00471", []),
        (["+49 170 1234567", "0170 123"], "VARCHAR", "+49 170 1234567", []),
        (["1.10", "1.9"], "VARCHAR", "1.10", ["uneven_decimals"]),
        (["1.2.3", "1.2"], "VARCHAR", "1.2.3", []),
        (["12345678901234567890", "1"], "VARCHAR", "12345678901234567890", ["long_numbers"]),
        (["03/04/2024", "05/06/2024"], "DATE", date(2024, 3, 4), ["month_first"]),
        (["03/04/2024", "13/06/2024"], "DATE", date(2024, 4, 3), []),
        (["03.04.24", "05.06.24"], "DATE", date(2024, 4, 3), ["short_years"]),
        (["31/02/2024", "01/01/2024"], "VARCHAR", "31/02/2024", []),
        (["2024年1月5日", "2024年11月15日"], "DATE", date(2024, 1, 5), []),
        (
            ["2024-01-05T10:00:00", "2024-01-05T11:30:00.5"],
            "TIMESTAMP",
            datetime(2024, 1, 5, 10),
            [],
        ),
        (["true", "FALSE"], "BOOLEAN", True, []),
        (['"=""007"""', "12"], "VARCHAR", "007", []),
    ],
)
def test_a_column_is_converted_only_if_every_value_has_the_form(
    values: list[str], type_: str, first: object, codes: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("name\tx\n" + "".join(f"n\t{value}\n" for value in values), encoding="utf-8")
    with Database.open(str(path), isolation="none") as database:
        [table] = database.catalog().tables
        assert table.columns[1].type == type_
        assert database.run("SELECT x FROM t").rows[0] == (first,)
        assert [note.code for note in database.notes] == codes


def test_one_value_far_down_decides_for_the_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "a;b;c;d\n" + "1,100;03/04/2024;1;1.5\n" * 30_000 + "0,50;13/04/2024;x7;1.10\n",
        encoding="utf-8",
    )
    with Database.open(str(path), isolation="none") as database:
        assert [column.type for column in database.catalog().tables[0].columns] == [
            "DOUBLE",
            "DATE",
            "VARCHAR",
            "VARCHAR",
        ]
        assert database.run("SELECT count(*), min(a), max(a), min(b) FROM t").rows == [
            (30_001, 0.5, 1.1, date(2024, 4, 3))
        ]


def test_another_column_decides_what_the_sign_means(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "stock;price;day\n1.100;2,50;03/04/2024\n2.200;3,00;05/06/2024\n", encoding="utf-8"
    )
    with Database.open(str(tmp_path / "t.csv"), isolation="none") as database:
        assert database.run("SELECT stock, day FROM t").rows[0] == (1100.0, date(2024, 4, 3))
        assert [(note.code, note.column) for note in database.notes] == [
            ("read_thousands", "stock"),
            ("day_first", "day"),
        ]


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("cp1252", "Windows-1252"),
        ("utf-16", "UTF-16"),
        ("gb18030", "GB18030"),
        ("utf-8-sig", ""),
        ("utf-8", ""),
    ],
)
def test_an_encoding_is_found_and_said(encoding: str, name: str, tmp_path: Path) -> None:
    text = "客户,城市\n李雷,北京\n" if encoding == "gb18030" else "Größe,Straße\nÄrger,Müller\n"
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    with Database.open(str(tmp_path / "t.csv"), isolation="none") as database:
        assert (
            ",".join(column.name for column in database.catalog().tables[0].columns)
            == text.splitlines()[0]
        )
        assert [(note.code, note.value) for note in database.notes] == (
            [("encoding", name)] if name else []
        )


def test_one_wrong_byte_does_not_change_the_rest(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b\nMüller,Größe\n".encode() + b"x,\xfc\n")
    with Database.open(str(tmp_path / "t.csv"), isolation="none") as database:
        assert database.run("SELECT * FROM t").rows == [("Müller", "Größe"), ("x", "\ufffd")]
        assert [note.value for note in database.notes] == ["UTF-8 with wrong bytes"]


def test_a_row_of_totals_is_left_out_only_where_it_adds_up(tmp_path: Path) -> None:
    (tmp_path / "adds.csv").write_text("shop,n\na,1\nb,2\nTotal,3\n", encoding="utf-8")
    (tmp_path / "not.csv").write_text("shop,n\na,1\nb,2\nTotal,9\n", encoding="utf-8")
    with Database.open(str(tmp_path), isolation="none") as database:
        assert database.run(
            'SELECT (SELECT sum(n) FROM adds), (SELECT sum(n) FROM "not")'
        ).rows == [(3, 12)]
        assert [(note.file, note.code) for note in database.notes] == [
            ("adds.csv", "total_left_out"),
            ("not.csv", "total_rows"),
        ]


def load(
    path: Path, text: str | bytes
) -> tuple[list[tuple[object, ...]], list[tuple[str, int, str]]]:
    """Return the rows of a file with this text, and the notes on it."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with Database.open(str(path), isolation="none") as database:
        [table] = database.catalog().tables
        return database.run(f"SELECT * FROM {table.sql_name}").rows, [
            (note.code, note.count, note.value) for note in database.notes
        ]


@pytest.mark.parametrize(
    ("below", "rows", "note"),
    [
        ("d,,\n", 4, None),
        ("d,,\ne,,\nf,,\ng,,\n", 7, None),
        ("Source: our shop,,\n", 4, None),
        ("\nSource: our shop\nas of May\n", 3, (2, "Source: our shop / as of May")),
        ("\nno. 1\nno. 2\nno. 3\nno. 4\n", 7, None),
        (",,\nSource: our shop,,\n", 3, (1, "Source: our shop")),
        ("----------\nSource: our shop,,\n", 3, (1, "Source: our shop")),
    ],
)
def test_a_line_below_a_table_is_a_row_unless_something_sets_it_apart(
    below: str, rows: int, note: tuple[int, str] | None, tmp_path: Path
) -> None:
    loaded, notes = load(tmp_path / "t.csv", f"shop,city,n\na,x,1\nb,y,2\nc,z,4\n{below}")
    assert len(loaded) == rows
    assert [(count, value) for code, count, value in notes if code == "rows_left_out"] == (
        [note] if note else []
    )


def test_a_line_below_a_table_is_left_out_where_it_does_not_fit_the_first_column(
    tmp_path: Path,
) -> None:
    body = "id,city,n\n1,x,1\n2,y,2\n3,,\n"
    assert len(load(tmp_path / "a.csv", f"{body}4,,\n")[0]) == 4
    assert len(load(tmp_path / "b.csv", f"{body}n/a,,\n")[0]) == 4
    rows, notes = load(tmp_path / "c.csv", f"{body}Source: our shop,,\n")
    assert (rows[-1], notes) == ((3, None, None), [("rows_left_out", 1, "Source: our shop")])


@pytest.mark.parametrize(
    ("text", "rows", "notes"),
    [
        (
            "a,b,c\n1,2,3\n-,-,-\n4,5,6\n",
            [(1, 2, 3), (None, None, None), (4, 5, 6)],
            [("missing", 1, "-")],
        ),
        ("a,b,c\n1,x,3\n,,\n4,y,6\n", [(1, "x", 3), (4, "y", 6)], [("empty_rows", 1, "")]),
        ("name\nAnna\n\nBob\n", [("Anna",), (None,), ("Bob",)], []),
        ("name\n\nAnna\n\n\nBob\n\n", [(None,), ("Anna",), (None,), (None,), ("Bob",)], []),
        ('name\nAnna\n""\n', [("Anna",), (None,)], []),
        ("a|b\n---|---\nx|1\ny|2\n", [("x", 1), ("y", 2)], [("rulers", 1, "---, ---")]),
        (
            "Sales of May\nby shop\na,b\nx,1\ny,2\n",
            [("x", 1), ("y", 2)],
            [("lines_left_out", 2, "Sales of May / by shop")],
        ),
        ("1,2,3\n", [(1, 2, 3)], [("no_names", 1, "")]),
        (
            "a,1\nb,n/a\nc,2\n",
            [("a", 1), ("b", None), ("c", 2)],
            [("no_names", 1, ""), ("missing", 1, "n/a")],
        ),
    ],
)
def test_nothing_of_a_file_is_left_out_without_a_note(
    text: str, rows: list[tuple[object, ...]], notes: list[tuple[str, int, str]], tmp_path: Path
) -> None:
    assert load(tmp_path / "t.csv", text) == (rows, notes)


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ("Total,3,30", "total_left_out"),
        ("GRAND TOTAL:,3,30", "total_left_out"),
        ("合计,3,30", "total_left_out"),
        ("总计：,3,30", "total_left_out"),
        ("Total,3,15", "total_rows"),
        ("Total SE,3,30", "total_rows"),
        ("Total SE,3,15", None),
        ("Total,,", "total_rows"),
        ("Totalis,3,30", None),
    ],
)
def test_a_row_is_a_total_only_by_its_whole_first_cell_and_all_of_its_figures(
    last: str, code: str | None, tmp_path: Path
) -> None:
    rows, notes = load(tmp_path / "t.csv", f"shop,n,amount\na,1,10\nb,2,20\n{last}\n")
    assert len(rows) == (2 if code == "total_left_out" else 3)
    assert notes == ([(code, 1, ", ".join(filter(None, last.split(","))))] if code else [])


@pytest.mark.parametrize("more", ["1", "2.5", "1e5"])
def test_a_number_of_many_digits_keeps_them_however_far_down_it_is(
    more: str, tmp_path: Path
) -> None:
    rows, notes = load(
        tmp_path / "t.csv", "name,id\n" + f"n,{more}\n" * 9_000 + "n,12345678901234567890\n"
    )
    assert (rows[0][1], rows[-1][1]) == (more, "12345678901234567890")
    assert notes == [("long_numbers", 0, "12345678901234567890")]


def test_a_joined_table_says_which_file_each_row_and_each_note_is_from(tmp_path: Path) -> None:
    for year, title in ((2023, "Sales of our shop\n"), (2024, "")):
        (tmp_path / f"sales_{year}.csv").write_text(f"{title}name,amount\nA,1\n")
    for part in (0, 1):
        folder = tmp_path / "parts" / "land=de"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"part-{part}.csv").write_text("x,y\n1,2\n")
    for year in (2023, 2024):
        book = openpyxl.Workbook()
        for title in ("May", "June"):
            sheet = book.create_sheet(title)
            sheet.append(["n", "m"])
            sheet.append([1, 2])
        del book["Sheet"]
        book.save(tmp_path / f"book {year}.xlsx")
    with Database.open(str(tmp_path), isolation="none") as database:
        sales = next(table for table in database.catalog().tables if table.name == "sales")
        assert "one table of 2 files with the same columns: sales_2023.csv, sales_2024.csv" in str(
            sales.comment
        )
        assert "sales_2023.csv: lines above the table were left out: 1 (Sales of our shop)" in str(
            sales.comment
        )
        assert database.run("SELECT file, year FROM sales ORDER BY 1").rows == [
            ("sales_2023.csv", 2023),
            ("sales_2024.csv", 2024),
        ]
        assert database.run("SELECT land, file FROM parts ORDER BY 2").rows == [
            ("de", "part-0.csv"),
            ("de", "part-1.csv"),
        ]
        files = [
            f"book {year}.xlsx, sheet {title}" for year in (2023, 2024) for title in ("June", "May")
        ]
        assert [row[0] for row in database.run("SELECT file FROM book ORDER BY 1").rows] == files
        assert {column.comment for column in sales.columns[2:]} == {
            "taken from the name of the file or folder that the row is from"
        }


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("id,name\n1,Zoë\n".encode("utf-16-le"), [(1, "Zoë")]),
        ("id,name\n1,Zoë\n".encode("utf-16-be"), [(1, "Zoë")]),
        ('id,path\n1,"C:\\temp\\"\n2,"D:\\new\\x"\n', [(1, "C:\\temp\\"), (2, "D:\\new\\x")]),
        (
            "Name,,City\nAnna,Berlin,Berlin\nBob,Rome,Paris\n",
            [("Anna", "Berlin", "Berlin"), ("Bob", "Rome", "Paris")],
        ),
        ("Region,2023,\n,Plan,Ist\nN,1,2\nS,3,4\n", [("N", 1, 2), ("S", 3, 4)]),
        ("a\n1e400\n5\n", [("1e400",), ("5",)]),
        (
            "t\n2024-01-05 10:00:00\n2024-01-06 10:00:00\n",
            [(datetime(2024, 1, 5, 10),), (datetime(2024, 1, 6, 10),)],
        ),
    ],
)
def test_no_value_of_an_odd_text_file_is_changed(
    text: str | bytes, rows: list[tuple[object, ...]], tmp_path: Path
) -> None:
    assert load(tmp_path / "t.csv", text)[0] == rows


def test_a_quote_without_an_end_is_an_error_that_quotes_its_words(tmp_path: Path) -> None:
    with pytest.raises(
        DatabaseUnavailableError,
        match=r"the quote before 'open' is never closed, .* close it, or write it twice",
    ):
        load(tmp_path / "t.csv", 'id,text\n1,x\n2,"open\n3,y\n4,z\n')


def test_a_workbook_says_what_its_sheets_hide(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.create_sheet("Prices").append(["secret"])
    book["Prices"].sheet_state = "hidden"
    sheet = book["Sheet"]
    for row in (
        ["region", "n", "double"],
        ["North", 1, "=B2*2"],
        [None, 2, "=B3*2"],
        [],
        ["South", 3, 6],
    ):
        sheet.append(row)
    sheet.merge_cells("A2:A3")
    book.save(tmp_path / "whole.xlsx")
    # A wrong size, as some programs write it, hid all rows below it.
    with ZipFile(tmp_path / "whole.xlsx") as whole, ZipFile(tmp_path / "t.xlsx", "w") as part:
        for name in whole.namelist():
            part.writestr(
                name, whole.read(name).replace(b'<dimension ref="A1:C5"', b'<dimension ref="A1:C2"')
            )
    with Database.open(str(tmp_path / "t.xlsx"), isolation="none") as database:
        rows = [("North", 1, None), (None, 2, None), ("South", 3, 6)]
        assert database.run("SELECT * FROM t").rows == rows
        notes = [
            ("hidden_sheet", "Prices"),
            ("unsaved_formulas", "C2, C3"),
            ("merged_cells", "A2:A3"),
        ]
        assert [(note.code, note.value) for note in database.notes] == notes


def test_a_workbook_that_unpacks_to_more_than_the_memory_is_refused(tmp_path: Path) -> None:
    openpyxl.Workbook().save(tmp_path / "t.xlsx")
    with ZipFile(tmp_path / "t.xlsx", "a", ZIP_DEFLATED) as bomb:
        bomb.writestr("xl/more.xml", bytes(20_000_000))
    with pytest.raises(
        DatabaseUnavailableError,
        match=r"bytes when unpacked, FileLimits\.memory_bytes allows 16,000,000",
    ):
        Database.open(
            str(tmp_path / "t.xlsx"), files=FileLimits(memory_bytes=16_000_000), isolation="none"
        )


def test_a_sheet_loses_no_column_to_what_stands_around_its_table(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (
        ["Sales 2024"],
        [],
        ["Region", 2023, None, "Day", "Code"],
        ["North", 1.125, "k", datetime(2024, 1, 2), "001"],
        ["South", 2.5, "m", datetime(2024, 1, 3), "002"],
        ["Total", 3.625],
        [],
        ["Source: our shop"],
    ):
        sheet.append(row)
    book.create_sheet("Note").append(["Do not change"])
    book.save(tmp_path / "t.xlsx")
    with Database.open(str(tmp_path / "t.xlsx"), isolation="none") as database:
        [table] = database.catalog().tables
        assert [column.name for column in table.columns] == [
            "Region",
            "2023",
            "column2",
            "Day",
            "Code",
        ]
        rows = database.run(f"SELECT * FROM {table.sql_name}").rows
        assert rows == [
            ("North", 1.125, "k", date(2024, 1, 2), "001"),
            ("South", 2.5, "m", date(2024, 1, 3), "002"),
        ]
        codes = ["lines_left_out", "rows_left_out", "total_left_out", "unnamed", "sheet_left_out"]
        assert [note.code for note in database.notes] == codes


def test_files_of_years_are_one_table_and_others_are_not(tmp_path: Path) -> None:
    for year, header in ((2023, "a,b"), (2024, "a,b"), (2025, "a,c")):
        folder = tmp_path / "sub" / f"year={year}" if year < 2025 else tmp_path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part.csv").write_text(f"{header}\n1,2\n", encoding="utf-8")
        (tmp_path / f"sales_{year}.csv").write_text(f"{header}\n1,{year}.5\n", encoding="utf-8")
    (tmp_path / "q_1.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    (tmp_path / "q_2.csv").write_text("x,y\n1,2.5\n", encoding="utf-8")
    with Database.open(str(tmp_path), isolation="none") as database:
        tables = {
            table.name: [column.name for column in table.columns]
            for table in database.catalog().tables
        }
        years = {
            f"sales_{year}": ["a", "c" if year == 2025 else "b"] for year in (2023, 2024, 2025)
        }
        assert tables == {
            "q": ["x", "y", "file"],
            "part": ["a", "c"],
            "sub": ["a", "b", "year"],
            **years,
        }
        assert database.run("SELECT year, sum(b) FROM sub GROUP BY 1 ORDER BY 1").rows == [
            (2023, 2),
            (2024, 2),
        ]
        assert database.run("SELECT file, y FROM q ORDER BY 1").rows == [
            ("q_1.csv", 2.0),
            ("q_2.csv", 2.5),
        ]


def test_three_hundred_columns_and_names_twice_lose_nothing(tmp_path: Path) -> None:
    names = ",".join(["n"] * 300)
    (tmp_path / "t.csv").write_text(f"{names}\n" + ",".join(["7"] * 300) + "\n", encoding="utf-8")
    with Database.open(str(tmp_path / "t.csv"), isolation="none") as database:
        assert len({column.name for column in database.catalog().tables[0].columns}) == 300


SHEET = "xl/worksheets/sheet1.xml"


def sheet_of(path: Path, rows: str) -> None:
    """Write a workbook whose one sheet holds these rows as XML."""
    whole = path.with_suffix(".whole")
    openpyxl.Workbook().save(whole)
    with ZipFile(whole) as source, ZipFile(path, "w", ZIP_DEFLATED) as target:
        for part in source.namelist():
            text = source.read(part)
            if part == SHEET:
                data = f"<sheetData>{rows}</sheetData>".encode()
                text = re.sub(rb"<sheetData ?/>|<sheetData></sheetData>", data, text)
            target.writestr(part, text)
    whole.unlink()


def cells_at(column: str, rows: int) -> str:
    return "".join(
        f'<row r="{row}"><c r="{column}{row}"><v>{row}</v></c></row>' for row in range(1, rows + 1)
    )


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (cells_at("ZZZ", 2), r"more than the 2,000 columns that FileLimits\.columns allows"),
        (cells_at("ABC", 200), r"more than the 50,000 cells that FileLimits\.sheet_cells allows"),
        (cells_at("ZZZZ", 2), "no .xlsx workbook"),
    ],
    ids=["wide", "many cells", "no column"],
)
def test_a_small_workbook_that_is_large_when_read_is_refused_at_once(
    tmp_path: Path, rows: str, says: str
) -> None:
    sheet_of(tmp_path / "t.xlsx", rows)
    with pytest.raises(DatabaseUnavailableError, match=says):
        Database.open(str(tmp_path / "t.xlsx"), files=FileLimits(sheet_cells=50_000))


def test_a_text_file_of_too_many_columns_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b" + "," * 100_000 + "\n" + "1,2" + "," * 100_000 + "\n")
    with pytest.raises(DatabaseUnavailableError, match="2,000 columns"):
        Database.open(str(tmp_path / "t.csv"))


def test_empty_cells_behind_a_sheet_s_last_are_no_columns(tmp_path: Path) -> None:
    empty = '<c r="XFD1" s="0"/>'
    rows = (
        f'<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" t="str"><v>b</v></c>{empty}</row>'
        '<row r="2"><c r="A2"><v>1</v></c><c r="B2"><v>2</v></c></row>'
    )
    sheet_of(tmp_path / "t.xlsx", rows)
    with Database.open(str(tmp_path / "t.xlsx")) as database:
        assert database.run("SELECT a, b FROM t").rows == [(1, 2)]


def test_files_are_read_in_another_process_that_does_not_outgrow_its_limit(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    code = (
        "import sys\n"
        "from longtable.tools.database import Database\n"
        "with Database.open(sys.argv[1]) as database:\n"
        "    assert database.run('SELECT * FROM t').rows == [(1, 2)]\n"
        "print([name for name in ('duckdb', 'openpyxl', 'sqlglot') if name in sys.modules])\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "t.csv")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[]\n", done.stderr
