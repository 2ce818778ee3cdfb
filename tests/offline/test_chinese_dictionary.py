"""Ask the built-in analyst in Chinese in words that its own lists lack, and in the forms of sentences that office workers use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longtable.app.offline import cedict
from longtable.app.offline.chinese_unexplained import linked
from tests.offline.conftest import Chat, sqlite_chat

STUDIO = """
CREATE TABLE studio (studio_id INTEGER PRIMARY KEY, studio_name TEXT, side TEXT, floor_area REAL);
CREATE TABLE tutor (tutor_id INTEGER PRIMARY KEY, full_name TEXT, studio_id INTEGER REFERENCES studio(studio_id), profession TEXT,
  hired_on DATE, email TEXT, pay_per_hour REAL);
CREATE TABLE tool (tool_id INTEGER PRIMARY KEY, tool_name TEXT, tool_status TEXT, stock_qty INTEGER, daily_price REAL);
CREATE TABLE hire (hire_no INTEGER PRIMARY KEY, tool_id INTEGER REFERENCES tool(tool_id), tutor_id INTEGER REFERENCES tutor(tutor_id),
  ordered_on DATE, returned_on DATE, days INTEGER, term_days INTEGER, source TEXT, amount REAL);
INSERT INTO studio VALUES (1,'Attic','North',40),(2,'Cellar','North',75),(3,'Barn','South',120);
INSERT INTO tutor VALUES (1,'Ada Brandt',1,'Surgeon','2014-03-01','ada@x',30),(2,'Per Holm',2,'Painter','2019-05-01',NULL,24),
  (3,'Noor Vos',2,'Painter','2021-01-15','noor@x',28);
INSERT INTO tool VALUES (1,'Drill','retired',4,9),(2,'Saw','active',11,12),(3,'Sander','active',7,7);
INSERT INTO hire VALUES (1,1,1,'2024-01-04','2025-01-09',5,30,'website',45),(2,2,1,'2024-02-01','2024-02-03',2,60,'fair',24),
  (3,2,2,'2025-03-01','2025-03-13',12,60,'website',144);
"""


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, STUDIO) as chat:
        yield chat


def _values(chat: Chat) -> set[object]:
    return {value for row in chat.rows or [] for value in row}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("一共有几位老师？", {3}),  # teacher; 导师 is one, too, and a tutor
        ("每种工具的库存数量是多少？", {"Drill", 4, "Saw", 11, "Sander", 7}),
        ("每位老师有多少次租赁？", {"Ada Brandt", 2, "Per Holm", 1}),  # rent, lease, hire
        ("外科医生（Surgeon）有几位？", {1}),  # what the brackets explain is no word more
    ],
)
def test_a_dictionary_explains_what_the_lists_lack(studio: Chat, question: str, expected: set[object]) -> None:
    answer = studio.ask(question)
    assert expected <= _values(studio), answer


ORCHARD = """
CREATE TABLE grwr (grwr_id INTEGER PRIMARY KEY, grwr_nm TEXT, vlg TEXT, wkly_pay REAL);
CREATE TABLE pckr (pckr_id INTEGER PRIMARY KEY, pckr_nm TEXT, home_ctry TEXT, prch_amt REAL, invrtr_brnd TEXT);
CREATE TABLE rntl (rntl_id INTEGER PRIMARY KEY, pckr_id INTEGER REFERENCES pckr(pckr_id), tot_amt REAL);
INSERT INTO grwr VALUES (1,'Ada','Elm',300),(2,'Per','Elm',250),(3,'Noor','Oak',400);
INSERT INTO pckr VALUES (1,'Ion','Romania',60,'Vox'),(2,'Eva','Poland',20,'Vox'),(3,'Kim','Poland',90,'Zed');
INSERT INTO rntl VALUES (1,1,40),(2,1,70);
"""


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("每个村有多少名种植户？", {"Elm", 2, "Oak", 1}),  # whoever grows
        ("来自 Romania 的采摘工有哪些？", {"Ion"}),  # whoever picks
        ("周薪最低的种植户是谁？", {"Per", 250}),  # the pay of a week
        ("按逆变器品牌统计采摘工数量", {"Vox", 2, "Zed", 1}),  # the only brand, whatever comes before
        ("购置价高于 50 的采摘工有哪些？", {"Ion", "Kim"}),  # purchase price, amount more than
        ("没有租过东西的采摘工有几名？", {2}),  # without a rental
    ],
)
def test_compounds_and_deeds_are_read_by_their_parts(tmp_path: Path, question: str, expected: set[object]) -> None:
    with sqlite_chat(tmp_path, ORCHARD) as chat:
        answer = chat.ask(question)
        assert expected <= _values(chat), answer


def test_an_amount_more_than_a_number_is_no_abbreviation(tmp_path: Path) -> None:
    with sqlite_chat(tmp_path, ORCHARD) as chat:
        chat.ask("rentals with total amount more than 40")
        assert 70 in _values(chat)
        assert 40 not in _values(chat)


def test_what_the_schema_has_no_name_for_stays_unknown(studio: Chat) -> None:
    assert "火车站" in studio.ask("每个火车站有多少位老师？")
    assert studio.rows is None


def test_without_the_dictionary_its_words_are_declined_and_others_read(studio: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(_: str) -> None:
        raise ModuleNotFoundError

    caches = (cedict.entries, cedict.meanings, cedict.kindred, linked)
    monkeypatch.setattr(cedict, "files", nowhere)
    for cache in caches:
        cache.cache_clear()
    try:
        assert "我不理解" in studio.ask("每种工具的库存数量是多少？")
        assert studio.rows is None
        studio.ask("有哪些邮箱？")
        assert "ada@x" in _values(studio)
    finally:
        for cache in caches:
            cache.cache_clear()


def test_an_english_question_reads_no_dictionary(studio: Chat) -> None:
    cedict.entries.cache_clear()
    studio.ask("How many tutors are there?")
    assert (_values(studio), cedict.entries.cache_info().currsize) == ({3}, 0)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("处于 active 状态的工具有几个？", {2}),
        ("列出状态为 retired 的工具的名称和日价格", {"Drill", 9.0}),
        ("2024年有多少笔租赁？（按归还日期）", {1}),
        ("哪些老师没有留邮箱？", {"Per Holm"}),
        ("没有参加任何租赁的老师是谁？", {"Noor Vos"}),
        ("2018年以后来的老师有几位？", {2}),
        ("通过 website 来的租赁有多少笔？", {2}),
        ("期限为60天的租赁有哪些？", {2, 3}),
        ("面积最大的两个工作室是哪些？", {"Barn", "Cellar"}),
        ("老师的平均时薪是多少？", {82 / 3}),
        ("库存数量最多的工具是哪一种？", {"Saw"}),
        ("平均每次租赁金额多少？", {71.0}),
        ("天数最多的一次租赁是几天？", {12}),
    ],
)
def test_forms_of_chinese_sentences(studio: Chat, question: str, expected: set[object]) -> None:
    answer = studio.ask(question)
    assert expected <= _values(studio), answer
