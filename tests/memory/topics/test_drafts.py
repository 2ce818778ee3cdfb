"""How well code alone groups a wandering talk: two talks the numbers were tuned on, two held out;
the floors are what was measured.
"""

import random
from itertools import combinations

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from longtable.memory.counting.tokenizers import estimate
from longtable.memory.topics.strategy import Filed, Filer, Filing
from longtable.memory.topics.topics import Topic, current

Talk = dict[str, list[tuple[str, str]]]
"""For each subject its questions in order, each with the tables its SQL reads."""

FLIGHTS: Talk = {
    "delay": [
        ("What is the mean departure delay by carrier?", "flights airlines"),
        ("Which carrier has the worst delays?", "flights"),
        ("Show the median arrival delay per airline", "flights airlines"),
        ("How many flights were delayed more than an hour?", "flights"),
        ("Is the delay worse in the evening?", "flights"),
        ("Only for JFK please", "flights"),
    ],
    "weather": [
        ("How low was the visibility in January?", "weather"),
        ("Which hour had the strongest wind?", "weather"),
        ("Average temperature at JFK by month", "weather"),
        ("On how many days did it rain at LaGuardia?", "weather"),
        ("What was the humidity on the rainiest day?", "weather"),
    ],
    "planes": [
        ("How old is the fleet?", "planes"),
        ("Which manufacturer built most planes?", "planes"),
        ("How many seats does a Boeing 737 have?", "planes"),
        ("List the oldest planes still flying", "planes flights"),
        ("Average number of engines by manufacturer", "planes"),
    ],
    "dest": [
        ("Which destinations are most popular?", "flights airports"),
        ("How far is Los Angeles from Newark?", "flights"),
        ("Top ten destination airports by flights", "flights airports"),
        ("Which airports lie above 5000 feet?", "airports"),
        ("And the longest route?", "flights"),
    ],
}
FLIGHTS_ZH: Talk = {
    "delay": [
        ("每个航空公司的平均出发延误是多少？", "flights airlines"),
        ("哪个航空公司延误最严重？", "flights"),
        ("延误超过一小时的航班有多少？", "flights"),
        ("晚上的延误是不是更严重？", "flights"),
        ("只看JFK呢？", "flights"),
    ],
    "weather": [
        ("一月份能见度最低是多少？", "weather"),
        ("哪天风速最大？", "weather"),
        ("各月平均气温是多少？", "weather"),
        ("下雨的天数有几天？", "weather"),
        ("能见度低于一英里的有几天？", "weather"),
    ],
    "planes": [
        ("机队里最老的飞机是哪年制造的？", "planes"),
        ("哪家制造商的飞机最多？", "planes"),
        ("波音737有多少座位？", "planes"),
        ("各制造商飞机的平均座位数", "planes"),
        ("发动机超过两台的飞机有哪些？", "planes"),
    ],
}
SHOP: Talk = {
    "revenue": [
        ("What was total revenue in 2023?", "orders order_items"),
        ("Revenue by month, please", "orders order_items"),
        ("Which month had the highest revenue growth?", "orders order_items"),
        ("And without refunded orders?", "orders"),
        ("Compare revenue with last year", "orders order_items"),
    ],
    "customers": [
        ("How many customers signed up in March?", "customers"),
        ("List customers who never ordered", "customers orders"),
        ("Which city has most customers?", "customers"),
        ("Average age of our customers", "customers"),
        ("Who are the ten best customers?", "customers orders"),
    ],
    "stock": [
        ("Which products are out of stock?", "products stock"),
        ("Stock value by warehouse", "stock products"),
        ("How many units of product 17 are in the Leeds warehouse?", "stock"),
        ("Products that need reordering", "products stock"),
        ("Which warehouse is fullest?", "stock"),
    ],
    "staff": [
        ("How many employees work in support?", "employees departments"),
        ("Mean salary by department", "employees departments"),
        ("Who joined the company last year?", "employees"),
        ("Which department has the highest turnover of employees?", "employees departments"),
    ],
}
HOSPITAL_ZH: Talk = {
    "patients": [
        ("去年住院病人有多少？", "patients admissions"),
        ("病人的平均年龄是多少？", "patients"),
        ("住院时间最长的病人是谁？", "patients admissions"),
        ("各科室的住院病人数", "admissions"),
        ("六十岁以上的病人占多少？", "patients"),
    ],
    "drugs": [
        ("哪些药品库存不足？", "drugs"),
        ("药品采购金额按月统计", "drugs purchases"),
        ("最贵的药品是什么？", "drugs"),
        ("今年药品采购总金额是多少？", "purchases"),
        ("过期的药品有哪些？", "drugs"),
    ],
    "doctors": [
        ("各科室有多少医生？", "doctors"),
        ("医生的平均工龄", "doctors"),
        ("哪位医生的手术最多？", "doctors surgeries"),
        ("本月手术一共几台？", "surgeries"),
        ("主任医生有哪些？", "doctors"),
    ],
}


def wander(talk: Talk, seed: int) -> list[tuple[str, str, str]]:
    """Return (subject, question, tables), one to three questions of a subject before the talk moves
    on.
    """
    draw = random.Random(seed)
    left = {subject: list(questions) for subject, questions in talk.items()}
    asked: list[tuple[str, str, str]] = []
    while any(left.values()):
        subject = draw.choice([name for name, questions in left.items() if questions])
        for _ in range(draw.choice([1, 2, 3])):
            if left[subject]:
                asked.append((subject, *left[subject].pop(0)))
    return asked


def messages_of(asked: list[tuple[str, str, str]], *, sql: bool) -> list[BaseMessage]:
    messages: list[BaseMessage] = []
    for n, (_, question, tables) in enumerate(asked):
        query = f"SELECT 1 FROM {' JOIN '.join(tables.split())}"
        call = ToolCall(name="run_sql", args={"sql": query}, id=f"c{n}", type="tool_call")
        ran = (
            [
                AIMessage("", tool_calls=[call], id=f"c{n}"),
                ToolMessage("{}", tool_call_id=f"c{n}", id=f"t{n}"),
            ]
            if sql
            else []
        )
        messages += [HumanMessage(question, id=f"h{n}"), *ran, AIMessage("ok", id=f"a{n}")]
    return messages


def filed_by_code(messages: list[BaseMessage], *, at_once: int) -> dict[str, str]:
    """Return the topic that each message id ends in, filed some messages at a time."""
    topics: list[Topic] = []
    numbered = list(enumerate(messages, start=1))
    for start in range(0, len(numbered), at_once):
        filing = Filing(
            messages=numbered[start : start + at_once],
            topics=topics,
            language="en",
            window=None,
            count=estimate,
            budget=5_000,
            turn=1,
            time="",
        )
        with pytest.raises(StopIteration) as end:
            next(Filer(filing).file())
        filed: Filed = end.value.value
        topics += filed.topics
    return {id: topic.id for topic in current(topics) for id in topic.message_ids}


@pytest.mark.parametrize(
    ("talks", "sql", "at_once", "precision", "recall"),
    [
        ([FLIGHTS, FLIGHTS_ZH], True, 1_000, 0.81, 0.92),
        ([FLIGHTS, FLIGHTS_ZH], True, 20, 0.82, 0.79),
        ([SHOP, HOSPITAL_ZH], True, 1_000, 0.81, 0.93),
        ([SHOP, HOSPITAL_ZH], True, 20, 0.86, 0.89),
        ([SHOP, HOSPITAL_ZH], False, 1_000, 0.71, 0.71),
        ([SHOP, HOSPITAL_ZH], False, 20, 0.85, 0.68),
    ],
    ids=[
        "tuned",
        "tuned, 20 at a time",
        "held out",
        "held out, 20 at a time",
        "held out, no SQL",
        "held out, no SQL, 20 at a time",
    ],
)
def test_questions_of_one_subject_are_filed_together(
    talks: list[Talk], sql: bool, at_once: int, precision: float, recall: float
) -> None:
    together = belonging = right = 0
    for talk in talks:
        for seed in range(12):
            asked = wander(talk, seed)
            topic_of = filed_by_code(messages_of(asked, sql=sql), at_once=at_once)
            for one, other in combinations(range(len(asked)), 2):
                filed, belong = (
                    topic_of[f"h{one}"] == topic_of[f"h{other}"],
                    asked[one][0] == asked[other][0],
                )
                together, belonging, right = (
                    together + filed,
                    belonging + belong,
                    right + (filed and belong),
                )
    assert right / together >= precision
    assert right / belonging >= recall
