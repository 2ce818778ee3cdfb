"""Tell small talk, questions about the conversation and wishes to write from questions about the data."""

# ruff: noqa: E501 - a pattern reads best on one line

import re

_GREETING = re.compile(r"^\W*(hello|hi|hey|good (morning|afternoon|evening)|howdy|你好|您好|嗨|早上好|晚上好)( there)?\W*$", re.IGNORECASE)
_HOW_ARE_YOU = re.compile(r"^\W*(hello|hi|hey)?\W*(how are you|how do you do|你好吗)( (doing|today))*\W*$", re.IGNORECASE)
_THANKS = re.compile(
    r"^\W*((ok|okay|great|perfect|nice|good|cool|awesome)\W+)?(thanks?( you)?( (so|very) much| a lot)?|thx|cheers|谢谢(你|您)?|多谢|好的|bye|goodbye|再见|great|perfect|ok|okay|nice|cool)\W*$",
    re.IGNORECASE,
)
_HELP = re.compile(
    r"^\W*(help( me)?|what can (you|i) (do|ask)( here| for me)?|who are you|what are you|how (do|does) (you|this|it) work|what (questions )?can i ask( you)?|帮助|你能做什么|你会什么|你是谁|怎么用|能问什么|可以问什么)\W*$",
    re.IGNORECASE,
)
_TABLES = re.compile(
    r"^\W*((what|which) (tables?|data|information|datasets?) (are|is|do|does|have|can|you|there|available|in|we|this|the|database|got|exist|\s)+"
    r"|(list|show|give|display)( me)?( all)?( of)?( the)? (available )?tables?( (in|of) (the|this) (database|db))?|describe the (database|schema)|show (me )?the schema|what('s| is) in (this|the) (database|data)|what data is (there|available)"
    r"|(有|数据库(里|中)?有|这里有)?(哪些|什么)(表|数据表|数据)|(列出|显示)(所有)?(的)?表)\W*$", re.IGNORECASE)  # fmt: skip
_DESCRIBE = re.compile(
    r"^\W*(?:(?:please )?describe(?: the)?(?: table)? (?P<a>[\w ]+?)(?: table)?|(?:what|which) columns (?:does|do|are|are there|has) (?:the )?(?:in )?(?:the )?(?:table )?(?P<b>[\w ]+?)(?: table)?(?: have| has)?"
    r"|(?:show|list)(?: me)?(?: all)?(?: the)? columns (?:of|in|from) (?:the )?(?:table )?(?P<c>[\w ]+?)(?: table)?|(?:描述|介绍)(?:一下)?(?:表)?\s*(?P<d>[\w\u3400-\u9fff]+?)(?:表)?|(?P<e>[\w\u3400-\u9fff]+?)\s*表?有哪些(?:列|字段))\W*$", re.IGNORECASE)  # fmt: skip
_WRITES = re.compile(
    r"^\W*(please |can you |could you |would you |i want to |i'd like to |now )*(delete|drop|insert|update|remove|truncate|alter|create|add(?! (?:up|together)\b)|change|modify|erase|replace|rename|set)\b(?!.{0,12}\b(filter|sort|order|limit|list|that|it)\b)"
    r"|^\W*(请|帮我|把.{1,12}?)*(删除|删掉|插入|更新|修改|清空|新增|添加)", re.IGNORECASE)  # fmt: skip
_SQL = re.compile(
    r"^\W*(show|give|what('s| is| was)?|tell)( me)? (the |your |that )?(sql|query)( you (used|ran))?( for (that|this|it))?\W*$|^\W*(显示|看看|给我)?(刚才的|你的)?\s*(sql|查询语句)(是什么)?\W*$",
    re.IGNORECASE,
)
_RECALL = re.compile(
    r"\b(when|what|where) (i|we) (asked|said|talked)|\b(did you|have you|had you) (say|tell|find|answer|give|report|said|told|found|answered|given|reported)\b|\byou('ve| have|'d)? (said|told|found|answered|gave|given|reported)\b|\bremind me\b|\bi asked (you )?(about|earlier|before)|\bearlier (answer|question|result|you|i)|\b(asked|said|answered|told me|mentioned|talked about) (earlier|before|previously)"
    r"|\bwhat was (the|your) (answer|result|number|finding)|\b(previous|earlier) (answer|result|question|finding)s?\b|\bdo you remember\b|\brecall\b|\bfirst question\b"
    r"|(?<![年月日号\d])之前|刚才问|问过|你(刚才|之前)?说|还记得|记得|提醒我|先前|早先|前面问", re.IGNORECASE)  # fmt: skip


_ASKED = re.compile(
    r"^\W*(what|which( question)?) (did|have|had) (i|we) (just )?(ask|asked)( you)?( about)?( (?P<a>first|last|before|previously|earlier|just now|at the (start|beginning)))?\W*$"
    r"|^\W*what (was|is|were) (my|our|the) (very )?(?P<b>first|last|previous|earlier) (question|thing (i|we) asked)( (i|we) asked)?( you)?\W*$"
    r"|^\W*我(?P<c>最先|最早|第一次|首先|一开始|刚才|上一个|之前)?(的问题|问)(了|过)?(你)?(的)?(是)?(什么|哪些|啥)\W*$"
    r"|^\W*我的?(?P<d>第一个|上一个|前一个)问题是什么\W*$", re.IGNORECASE)  # fmt: skip


def asked_place(question: str) -> str:
    """Return which of the user's own questions is asked for: first or last, "" for none."""
    match = _ASKED.match(question)
    if match is None:
        return ""
    said = next((group.lower() for name in "abcd" if (group := match.group(name))), "")
    return "first" if said in ("first", "最先", "最早", "第一次", "首先", "一开始", "第一个") or said.startswith("at the") else "last"


_RULE = re.compile(
    r"\b(from now on|from here on|henceforth|going forward|for the rest of (this|the|our) (conversation|chat|talk)|in all (further|later|future) (answers|questions))\b|从现在(起|开始)|今后|以后都",
    re.IGNORECASE,
)


def is_rule(question: str) -> bool:
    """Say whether the user lays down a rule for the questions to come."""
    return bool(_RULE.search(question))


def kind_of(question: str) -> str:
    """Return what sort of talk a question is: greeting, thanks, help, tables, describe, write, sql, recall, or "" for a question of the data."""
    for name, pattern in (
        ("greeting", _GREETING),
        ("greeting", _HOW_ARE_YOU),
        ("thanks", _THANKS),
        ("help", _HELP),
        ("tables", _TABLES),
        ("sql", _SQL),
        ("describe", _DESCRIBE),
        ("write", _WRITES),
    ):
        if pattern.match(question):
            return name
    return "recall" if _RECALL.search(question) else ""


def described_name(question: str) -> str:
    """Return the table that a question wants described."""
    match = _DESCRIBE.match(question)
    return next((group for group in match.groups() if group), "").strip() if match else ""
