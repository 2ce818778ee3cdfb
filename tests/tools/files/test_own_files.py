"""What people's own files hold besides a plain table: each loads right, or a note says what does
not.
"""

import gzip
import json
import random
from datetime import date, datetime
from pathlib import Path

import openpyxl
import pytest

from longtable.base.errors import DatabaseUnavailableError
from longtable.tools.database import Database, FileLimits
from longtable.tools.files import text_tables
from longtable.tools.files.text_encodings import encoding_of

Rows = list[tuple[object, ...]]
Notes = dict[str, str]


def load(path: Path, sql: str) -> tuple[Rows, Notes]:
    """Return the rows of a query, and the notes by their codes."""
    with Database.open(str(path), isolation="none") as database:
        return database.run(sql).rows, {note.code: note.value for note in database.notes}


def test_folders_of_years_with_a_column_more_are_one_table(tmp_path: Path) -> None:
    home = tmp_path / "sales"
    for year, text in ((2022, "id,amount\n1,10\n"), (2023, "id,amount,region\n2,20.5,N\n")):
        folder = home / f"year={year}"
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text(text)
    rows, notes = load(
        home, "SELECT year, sum(amount), max(region) FROM sales GROUP BY 1 ORDER BY 1"
    )
    assert rows == [(2022, 10.0, None), (2023, 20.5, "N")]
    assert list(notes) == ["files_joined_by_name", "not_in_all", "from_file_name"]


def test_a_column_of_several_types_in_such_folders_is_text_and_said(tmp_path: Path) -> None:
    home = tmp_path / "sales"
    for year, text in ((2022, "id,code\n1,10\n"), (2023, "id,code\n2,A7\n")):
        folder = home / f"year={year}"
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text(text)
    rows, notes = load(home, "SELECT year, code FROM sales ORDER BY 1")
    assert rows == [(2022, "10"), (2023, "A7")]
    assert "types_differ" in notes


def test_other_tables_in_such_folders_keep_the_year(tmp_path: Path) -> None:
    home = tmp_path / "shop"
    for year in (2022, 2023):
        folder = home / f"year={year}"
        folder.mkdir(parents=True)
        (folder / "orders.csv").write_text("order,day,amount\n1,2022-01-01,10\n")
        (folder / "people.csv").write_text("name,city\nAnn,Rome\n")
    with Database.open(str(home), isolation="none") as database:
        tables = {
            tuple(column.name for column in table.columns) for table in database.catalog().tables
        }
    assert tables == {("order", "day", "amount", "year"), ("name", "city", "year")}


def test_files_of_years_with_other_columns_are_said_not_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "sales_2022.csv").write_text("id,amount\n1,10\n")
    (tmp_path / "sales_2023.csv").write_text("id,amount,region\n2,20,N\n")
    _, notes = load(tmp_path, "SELECT 1")
    assert notes == {"not_joined": "sales_2022.csv, sales_2023.csv"}


def test_a_packed_file_is_loaded_alone_and_beside_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"k,v\n1,2\n"))
    (tmp_path / "c.JSON.GZ").write_bytes(gzip.compress(b'[{"n": 3}]'))
    assert load(tmp_path, "SELECT v, n FROM b, c")[0] == [(2, 3)]
    with Database.open(str(tmp_path / "b.csv.gz"), isolation="none") as database:
        assert (database.name, database.catalog().tables[0].name) == ("b", "b")
        assert database.catalog().tables[0].comment == "from b.csv.gz"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(b"k,v\n1,2\n" * 9, mtime=0)[:-9], "cannot be unpacked"),
        (b"k,v\n1,2\n", "cannot be unpacked"),
        (gzip.compress(b"k\n" * 9_000_000, mtime=0), "FileLimits.memory_bytes allows"),
    ],
    ids=["cut off", "not packed", "too large"],
)
def test_a_packed_file_that_is_damaged_or_too_large_is_refused(
    data: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / "b.csv.gz").write_bytes(data)
    with pytest.raises(DatabaseUnavailableError, match=message):
        Database.open(
            str(tmp_path / "b.csv.gz"), files=FileLimits(memory_bytes=16_000_000), isolation="none"
        )


def test_one_word_in_a_long_column_of_numbers_is_empty_and_named(tmp_path: Path) -> None:
    lines = "".join(f"{number},{number}.5,open\n" for number in range(20_000))
    (tmp_path / "t.csv").write_text(f"id,amount,state\n{lines}20000,unknown,unknown\n")
    rows, notes = load(tmp_path / "t.csv", "SELECT count(*), count(amount), sum(amount) FROM t")
    assert rows == [(20_001, 20_000, sum(range(20_000)) + 10_000.0)]
    assert notes == {"stray_words": "unknown (1)"}
    # A word is no value of this column alone.
    assert load(tmp_path / "t.csv", "SELECT max(state) FROM t")[0] == [("unknown",)]


def test_words_that_are_more_than_a_few_leave_text_with_a_note(tmp_path: Path) -> None:
    lines = "".join(f"{number}\n" for number in range(100))
    (tmp_path / "t.csv").write_text(f"amount\n{lines}on request\n")
    rows, notes = load(tmp_path / "t.csv", "SELECT max(amount) FROM t")
    assert (rows, notes) == ([("on request",)], {"words_among": "on request"})


@pytest.mark.parametrize(
    ("document", "rows", "codes"),
    [
        ({"data": [{"a": 1}, {"a": 2}]}, [(1,), (2,)], ["unwrapped"]),
        (
            {"count": 2, "data": [{"a": 1}, {"a": 2}]},
            [(1,), (2,)],
            ["wrapper_left_out", "unwrapped"],
        ),
        ({"result": {"records": [{"a": 1}, {"a": 2}]}}, [(1,), (2,)], ["unwrapped"]),
        ([{"data": [{"a": 1}]}], [([{"a": 1}],)], []),
        ({"a": 1, "b": 2}, [(1, 2)], []),
    ],
)
def test_the_records_of_a_document_of_one_object_are_its_rows(
    document: object, rows: Rows, codes: list[str], tmp_path: Path
) -> None:
    (tmp_path / "t.json").write_text(json.dumps(document))
    found, notes = load(tmp_path / "t.json", "SELECT * FROM t")
    assert found == rows
    assert list(notes) == codes


@pytest.mark.parametrize(
    ("values", "first", "codes"),
    [
        (["5 Jan 2024", "12 June 2024", "1 Sept. 2024"], date(2024, 1, 5), []),
        (["JUNE 5, 2024", "May 6, 2024"], date(2024, 6, 5), []),
        (["5 Jan 2024", "2024-01-06"], date(2024, 1, 5), ["mixed_dates"]),
        (["12,34,567.50", "500.00"], 1234567.5, []),
        (["₹12,34,567", "₹1,00,000"], 1234567.0, ["currency"]),
        (
            ["2024-01-01T00:00+01:00", "2024-07-01T00:00+02:00"],
            datetime(2024, 1, 1),
            ["local_times"],
        ),
    ],
)
def test_dates_and_numbers_are_read_as_they_are_written(
    values: list[str], first: object, codes: list[str], tmp_path: Path
) -> None:
    lines = "".join(f'a,"{value}"\n' for value in values)
    (tmp_path / "t.csv").write_text(f"name,v\n{lines}", encoding="utf-8")
    rows, notes = load(tmp_path / "t.csv", "SELECT v FROM t")
    assert rows[0] == (first,)
    assert list(notes) == codes


def test_times_of_json_with_an_offset_are_said_to_be_in_utc(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('[{"t": "2024-01-01T00:00:00+01:00"}]')
    assert list(load(tmp_path / "t.json", "SELECT * FROM t")[1]) == ["utc_times"]


SUBTOTALS = "N,a,1\nN,b,2\nSubtotal,,3\nS,c,5\nS,d,6\nSubtotal,,11\nTotal,,14\n"


@pytest.mark.parametrize(
    ("lines", "total", "codes"),
    [
        (SUBTOTALS, 14, ["subtotals_left_out", "total_left_out"]),
        (
            SUBTOTALS.replace("Subtotal,,3", "N Total,,3"),
            14,
            ["subtotals_left_out", "total_left_out"],
        ),
        ("N,a,1\nSubtotal,,9\nS,c,5\n", 15, ["subtotal_rows"]),
        ("N,a,1\nTotal SE,,1\nS,c,5\n", 7, []),
    ],
)
def test_rows_of_subtotals_are_not_added_up(
    lines: str, total: int, codes: list[str], tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(f"region,shop,amount\n{lines}")
    rows, notes = load(tmp_path / "t.csv", "SELECT sum(amount) FROM t")
    assert rows == [(total,)]
    assert list(notes) == codes


def workbook(path: Path, rows: list[list[object]]) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in rows:
        sheet.append(row)
    book.save(path)


def test_two_tables_below_each_other_on_a_sheet_are_two(tmp_path: Path) -> None:
    first: list[list[object]] = [["Region", "Sales"], ["N", 1], ["S", 2], []]
    second: list[list[object]] = [["People"], ["Employee", "Age"], ["Ann", 33], ["Bob", 44]]
    workbook(tmp_path / "t.xlsx", first + second)
    rows, notes = load(tmp_path / "t.xlsx", 'SELECT sum("Sales") FROM t')
    assert rows == [(3,)]
    assert set(notes) == {"lines_left_out", "table_on_sheet"}
    assert load(tmp_path / "t.xlsx", 'SELECT sum("Age") FROM t_2')[0] == [(77,)]


def test_a_blank_row_within_a_table_begins_no_other(tmp_path: Path) -> None:
    rows: list[list[object]] = [["Name", "City", "n"], ["Ann", "Rome", 1], [], ["Bob", "Oslo", 2]]
    workbook(tmp_path / "t.xlsx", rows)
    assert load(tmp_path / "t.xlsx", "SELECT count(*), sum(n) FROM t")[0] == [(2, 3)]


def test_two_tables_side_by_side_have_a_note(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        ["Region", "Sales", None, "Employee", "Age"],
        ["N", 1, None, "A", 3],
    ]
    workbook(tmp_path / "t.xlsx", rows)
    assert load(tmp_path / "t.xlsx", "SELECT 1")[1] == {"gap_in_sheet": "Sales / Employee"}


@pytest.mark.parametrize(
    ("columns", "broken", "rows", "place"),
    [(5, 9, 100, 100), (2, 4, 100, 51), (2, 4, 1_000, 501), (3, 6, 4, 2), (5, 9, 10, 10)],
)
def test_a_line_with_more_fields_than_all_others_is_not_where_the_table_begins(
    columns: int, broken: int, rows: int, place: int, tmp_path: Path
) -> None:
    lines = [",".join(f"name {number}" for number in range(columns))]
    for row in range(1, rows + 1):
        width = broken if row == place else columns
        lines.append(",".join(str(7 * row + number) for number in range(width)))
    (tmp_path / "t.csv").write_text("\n".join(lines))
    counted, notes = load(tmp_path / "t.csv", 'SELECT count("name 1") FROM t')
    assert counted == [(rows,)]
    assert "lines_left_out" not in notes
    assert "uneven_lines" in notes


def test_a_table_of_one_row_below_its_description_is_found(tmp_path: Path) -> None:
    text = "Report\nStation,5\n\nday,north,south,east,west\n2026-01-01,1,2,3,4\n"
    (tmp_path / "t.csv").write_text(text)
    rows, notes = load(tmp_path / "t.csv", "SELECT west FROM t")
    assert rows == [(4,)]
    assert notes["lines_left_out"] == "Report / Station, 5"


def test_bytes_that_look_like_utf_16_are_refused_if_they_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\x00\x01\x02\xff\xfe\x00")
    with pytest.raises(DatabaseUnavailableError, match="it is no text"):
        Database.open(str(tmp_path / "t.csv"), isolation="none")
    (tmp_path / "t.csv").write_bytes("a,b\n1,客户\n".encode("utf-16"))
    assert load(tmp_path / "t.csv", "SELECT b FROM t")[0] == [("客户",)]


def test_a_file_that_may_not_be_read_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> str:
        raise PermissionError(13, "Permission denied")  # root may read all

    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    monkeypatch.setattr(text_tables, "encoding_of", refuse)
    with pytest.raises(DatabaseUnavailableError, match=r"'t\.csv' cannot be loaded: Permission"):
        Database.open(str(tmp_path / "t.csv"), isolation="none")


@pytest.mark.parametrize("size", [300, 5_000])
def test_bytes_that_are_no_text_are_refused(size: int, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(random.Random(1).randbytes(size))
    with pytest.raises(DatabaseUnavailableError, match=r"'t\.csv' cannot be loaded: it is no text"):
        Database.open(str(tmp_path / "t.csv"), isolation="none")


ENCODED = [
    ("Shift-JIS", "cp932", "商品,数量\nりんご,3\nみかん,5\n"),
    ("Shift-JIS", "cp932", "顧客,住所\n田中商店,東京都\n"),
    ("GB18030", "gb18030", "客户,城市\n张三,上海\n"),
    ("Big5", "big5", "客戶,城市\n張三,臺北\n李四,高雄\n"),
    ("EUC-KR", "cp949", "이름,도시\n김철수,서울\n이영희,부산\n"),
    ("Windows-1250", "cp1250", "Imię,Miasto\nŁukasz,Łódź\nGrażyna,Gdańsk\n"),
    ("Windows-1250", "cp1250", "Jméno,Město\nJiří,Plzeň\nŽofie,Třebíč\n"),
    ("Windows-1250", "cp1250", "Név,Város\nFűzfa,Győr\n"),
    ("Windows-1252", "cp1252", "Name,Ort\nMüller,Köln\n"),
    ("Windows-1252", "cp1252", "Nom,Ville\nÉlodie,Besançon\nHélène,Nîmes\n"),
    ("Windows-1252", "cp1252", "size,price\n5 m³,3 €\n"),
    ("Windows-1252", "cp1252", "a,b\nMüller,Café\nÑandú,Åre\n"),
    ("Windows-1251", "cp1251", "Имя,Город\nИван,Москва\nОльга,Казань\n"),
]


@pytest.mark.parametrize(("encoding", "codec", "text"), ENCODED)
def test_the_encoding_of_a_text_file_is_recognised_and_said(
    encoding: str, codec: str, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(codec))
    assert encoding_of(path) == encoding
    header, *lines = text.splitlines()
    with Database.open(str(path), isolation="none") as database:
        [table] = database.catalog().tables
        assert [column.name for column in table.columns] == header.split(",")
        assert database.run("SELECT count(*) FROM t").rows == [(len(lines),)]
        assert database.notes[0].code == "encoding"
        assert database.notes[0].value == encoding
