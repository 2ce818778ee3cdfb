"""The built-in analyst as another member of a team: as a checker that runs a colleague's query
again, or as a reviewer that judges by this check.
"""

import json
import re
from collections.abc import Sequence, Set

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.analyst.account import unanswered_by
from longtable.analyst.dialog import Call, Decision
from longtable.analyst.lexicon import Token, is_chinese, tokenize
from longtable.memory.compaction.ledger import figures_of
from longtable.memory.messages.marks import COLLEAGUE, kind_of

CHECK = "check_sql"
RUN = "run_sql"
SEND_BACK = "send_back"
_RAN = re.compile(
    r"\[[^\[\]\n]{1,60} ran (?:.*; )?(r\d+|a query)(?: in (\w+))?: (.+) -> [\d,]+ rows \((.*)\)\]\Z",
    re.DOTALL,
)
"""Matches the line about a query in a colleague's message, as the view of a team's member shows it.
The newest query is checked.
"""
FLAG = {"en": "Look at this:", "zh": "请核对："}
"""How the report of a check begins if something was found."""
SAID = {
    "no_query": {"en": "There is no query to check.", "zh": "没有可以核对的查询。"},
    "same": {
        "en": "I checked {handle} again and found nothing wrong{figures}.",
        "zh": "已重新核对 {handle}，没有发现问题{figures}。",
    },
    "different": {
        "en": "run again, {handle} gives {new}, not {old}",
        "zh": "重新执行 {handle} 得到 {new}，而不是 {old}",
    },
    "not_checked": {"en": " Not checked: {what}.", "zh": "未能核对：{what}。"},
    "failed": {"en": "the check of {handle} failed", "zh": "{handle} 的核对失败"},
    "left_over": {
        "en": "no part of the query answers for “{words}”",
        "zh": "查询中没有任何部分对应“{words}”",
    },
    "not_answered": {
        "en": "The question is not answered: no query ran.",
        "zh": "问题没有得到回答：没有执行查询。",
    },
    "right": {
        "en": "The question is answered, and the check found nothing wrong.",
        "zh": "问题已经回答，核对没有发现问题。",
    },
    "still": {"en": "The answer stands with this doubt: {doubt}", "zh": "答案仍有疑点：{doubt}"},
}

FOUND_ZH = {
    "same_rows": "重新执行得到的行不同",
    "fan_out": "连接使行重复",
    "counted_rows": "计数的对象在多行中重复出现",
    "nulls_dropped": "条件丢掉了没有值的行",
    "rows_lost": "连接丢掉了行",
    "date_bounds": "日期范围的末端漏掉了当天",
    "unit": "比例的单位用错",
    "measure": "求和漏掉了一个因子",
    "other_route": "合计与各明细之和不一致",
}
"""The findings of check_sql in Chinese, by code."""


def as_colleague(messages: Sequence[BaseMessage], tools: Set[str]) -> Decision | None:
    """Return the next step of a checker or a reviewer. Which of them it is can be seen by the
    persona's tools. Return None for a persona that answers the question itself.
    """
    if "list_tables" in tools or not tools & {CHECK, RUN, SEND_BACK}:
        return None
    asked = max(
        (
            i
            for i, message in enumerate(messages)
            if message.type == "human" and kind_of(message) != COLLEAGUE
        ),
        default=0,
    )
    language = "zh" if is_chinese(str(messages[asked].text)) else "en"
    words = [str(message.text) for message in messages[asked:] if kind_of(message) == COLLEAGUE]
    if not tools & {CHECK, RUN}:
        return _review(messages[asked:], words, language)
    ran = next((found for text in reversed(words) if (found := _RAN.search(text))), None)
    if ran is None:
        return SAID["no_query"][language]
    if not isinstance(messages[-1], ToolMessage):
        where = {"database": ran[2]} if ran[2] else {}
        query = {"result": ran[1]} if ran[1].startswith("r") else {"sql": ran[3], **where}
        return (
            (
                Call(CHECK, {**query, "question": str(messages[asked].text)})
                if CHECK in tools
                else Call(RUN, {"sql": ran[3], **where})
            ),
        )
    left_over = unanswered_by(_tokens(str(messages[asked].text), language), ran[3])
    said = [SAID["left_over"][language].format(words=left_over)] if left_over else []
    return _checked(messages[-1], ran, language, said)


def _tokens(question: str, language: str) -> list[Token]:
    if language == "en":
        return tokenize(question)
    # The Chinese lists are read for Chinese questions only.
    from longtable.analyst.zh import translate

    return translate(question, None)


def _checked(
    result: ToolMessage, ran: re.Match[str], language: str, left_over: Sequence[str]
) -> str:
    try:
        data = json.loads(str(result.text))
    except ValueError:
        data = {}
    handle = ran[1]
    figures = ""
    if result.status == "error" or not isinstance(data, dict) or not data:
        return f"{FLAG[language]} {SAID['failed'][language].format(handle=handle)}"
    doubts = [
        (FOUND_ZH if language == "zh" else {}).get(each["code"], each["text"])
        for each in data.get("look_at", ())
    ]
    if "rows" in data:
        new = figures_of(data.get("columns", ()), data["rows"])
        figures = f": {new}"
        doubts = (
            []
            if new == ran[4]
            else [SAID["different"][language].format(handle=handle, new=new, old=ran[4])]
        )
    doubts = [*left_over, *doubts]
    report = (
        f"{FLAG[language]} {'; '.join(doubts)}"
        if doubts
        else SAID["same"][language].format(handle=handle, figures=figures)
    )
    left = "; ".join(data.get("not_checked", ()))
    return report + (SAID["not_checked"][language].format(what=left) if left else "")


def _review(messages: Sequence[BaseMessage], heard: Sequence[str], language: str) -> Decision:
    if any(SAID["no_query"][language] in line for line in heard[-1:]):
        return SAID["not_answered"][language]
    doubt = "".join(heard[-1:]).partition(FLAG[language])[2].partition("\n[")[0].strip()
    if not doubt:
        return SAID["right"][language]
    if any(isinstance(message, AIMessage) for message in messages):  # it sent the work back already
        return SAID["still"][language].format(doubt=doubt)
    return (Call(SEND_BACK, {"reason": doubt}),)


def without_colleagues(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages for a persona that answers the question. The messages of colleagues are
    left out, as is an own answer that was sent back.
    """
    own = [message for message in messages if kind_of(message) != COLLEAGUE]
    if len(own) == len(messages) or own[-1].type != "ai":
        return own
    asked = max(
        (i for i, message in enumerate(own) if message.type == "human"), default=len(own) - 1
    )
    return own[: asked + 1]
