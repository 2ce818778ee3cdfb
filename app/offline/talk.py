"""Word what needs no query: greetings, help, the tables there are, declines, what was said before."""

import re
from collections.abc import Sequence

from longtable.app.offline.catalog import Catalog, Table
from longtable.app.offline.columns import CannotRead
from longtable.app.offline.lexicon import FILLERS, PREPOSITIONS
from longtable.app.offline.text import is_chinese, lemma, likeness, stem, tokenize
from longtable.app.offline.view import View

NAME = "built-in analyst"
_INTRO = {
    "en": "(I am the built-in analyst: rules, no language model. For a real model start with `--model provider:name` or set LONGTABLE_MODEL.)",
    "zh": "（我是内置分析器：只用规则，没有语言模型。要使用真正的模型，请加 `--model provider:name` 启动，或设置 LONGTABLE_MODEL。）",
}
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
    r"^\W*(please |can you |could you |would you |i want to |i'd like to |now )*(delete|drop|insert|update|remove|truncate|alter|create|add|change|modify|erase|replace|rename|set)\b(?!.{0,12}\b(filter|sort|order|limit|list|that|it)\b)"
    r"|^\W*(请|帮我|把)*.{0,8}(删除|删掉|插入|更新|修改|清空|新增|添加).*", re.IGNORECASE)  # fmt: skip
_SQL = re.compile(
    r"^\W*(show|give|what('s| is| was)?|tell)( me)? (the |your |that )?(sql|query)( you (used|ran))?( for (that|this|it))?\W*$|^\W*(显示|看看|给我)?(刚才的|你的)?\s*(sql|查询语句)(是什么)?\W*$",
    re.IGNORECASE,
)
_RECALL = re.compile(
    r"\b(when|what|where) (i|we) (asked|said|talked)|\b(did you|have you|had you) (say|tell|find|answer|give|report|said|told|found|answered|given|reported)\b|\byou('ve| have|'d)? (said|told|found|answered|gave|given|reported)\b|\bremind me\b|\bi asked (you )?(about|earlier|before)|\bearlier (answer|question|result|you|i)|\b(asked|said|answered|told me|mentioned|talked about) (earlier|before|previously)"
    r"|\bwhat was (the|your) (answer|result|number|finding)|\b(previous|earlier) (answer|result|question|finding)s?\b|\bdo you remember\b|\brecall\b|\bfirst question\b"
    r"|之前|刚才问|问过|你(刚才|之前)?说|还记得|记得|提醒我|先前|早先|前面问", re.IGNORECASE)  # fmt: skip


def language_of(text: str) -> str:
    """Return "zh" when the text holds Chinese, else "en"."""
    return "zh" if is_chinese(text) else "en"


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


def with_intro(text: str, view: View, language: str) -> str:
    """Add, in the first answer of a conversation only, what this model is and how to set a real one."""
    said = view.folded or bool(view.findings) or any(turn.answer for turn in view.turns[:-1])
    return text if said else f"{text}\n\n{_INTRO[language]}"


def greeting(language: str) -> str:
    """Answer a greeting."""
    return "你好！请问关于这个数据库的问题。" if language == "zh" else "Hello! Ask me about the data in this database."


def thanks(language: str) -> str:
    """Answer thanks."""
    return "不客气。" if language == "zh" else "You are welcome."


def read_only(language: str) -> str:
    """Decline to change data."""
    return (
        "我只能读取数据，不能修改数据库。可以让我统计、筛选或列出数据。"
        if language == "zh"
        else "I can only read: nothing in the database can be changed from here. I can count, filter, compare or list the data instead."
    )


def help_text(catalog: Catalog, language: str) -> str:
    """Say what can be asked, with examples of this schema."""
    if language == "zh":
        return "我可以计数、求和、求平均、找最大最小、筛选、分组、排序，也可以接着上一个问题继续问。例如：\n" + _bullets(
            examples(catalog, language)
        )
    return (
        "I count, sum, average, find the largest and smallest, filter, group, sort and join, and follow up on the last question. For example:\n"
        + _bullets(examples(catalog, language))
    )


def tables_text(catalog: Catalog, language: str) -> str:
    """List the tables."""
    named = sorted(catalog.tables.values(), key=lambda table: table.name.lower())[:60]
    lines = [
        f"- {table.name}"
        + (f" ({table.rows:,} {'行' if language == 'zh' else 'rows'})" if table.rows is not None else "")
        + f": {', '.join(c.name for c in table.columns[:12])}{' …' if len(table.columns) > 12 else ''}"
        for table in named
    ]
    total = max(catalog.total, len(named))
    head = f"数据库中有 {total} 个表：" if language == "zh" else f"There are {total} tables:" if total != 1 else "There is 1 table:"
    return head + "\n" + "\n".join(lines)


def describe_text(table: Table, language: str) -> str:
    """Describe one table."""
    rows = f" ({table.rows:,} {'行' if language == 'zh' else 'rows'})" if table.rows is not None else ""
    lines = [
        f"- {c.name} {c.type}{' (primary key)' if c.primary else ''}{f' -> {c.references}' if c.references else ''}{f': {c.comment}' if c.comment else ''}"
        for c in table.columns
    ]
    return f"{table.name}{rows}{'：' if language == 'zh' else ':'}\n" + "\n".join(lines)


def sql_text(sql: str, language: str) -> str:
    """Show the last SQL."""
    if not sql:
        return "还没有运行过查询。" if language == "zh" else "No query has run yet."
    return ("上一条查询是：" if language == "zh" else "The last query was:") + f"\n\n```sql\n{sql}\n```"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


# -- declines ---------------------------------------------------------------------------------------------------------

_REASONS = {
    "words": ("I could not make use of {words}", "我不理解：{words}"),
    "nothing": ("I could not tell which table or column this is about", "我没看出这个问题涉及哪个表或哪一列"),
    "column": ("I found no fitting column for {words}", "没有找到与{words}对应的列"),
    "measure": ("I found no single numeric column for {words}", "没有找到与{words}对应的唯一数值列"),
    "dimension": ("I found no column that measures {words}", "没有找到可以衡量{words}的列"),
    "number": ("I could not tell which column the number belongs to: {words}", "不知道这个数字属于哪一列：{words}"),
    "value": ("I found no such value in the data: {words}", "数据中没有找到这个值：{words}"),
    "time": ("I found no date column for {words}", "没有找到{words}对应的日期列"),
    "join": ("I see no way to connect these tables: {words}", "看不出这些表如何关联：{words}"),
    "group": ("I could not tell what to group by {words}", "不知道按什么分组 {words}"),
    "count": ("I could not count {words}", "无法统计{words}"),
    "sum": ("I could not tell what to add up for {words}", "不知道对{words}的什么求和"),
    "popular": ("I could not tell what makes {words} popular or frequent", "不知道按什么衡量{words}"),
    "order": ("I could not tell what to sort by", "不知道按什么排序"),
    "or": ("I cannot join these conditions by “or”", "我无法用“或”连接这些条件"),
    "negation": ("I could not read what is denied", "没看懂否定的内容"),
    "percent": ("I could not tell the percentage of what is asked", "不知道要计算什么的百分比"),
    "others": ("I do not know what the others are", "不知道“其他”指什么"),
    "rows": ("I cannot take single rows out of the last result", "无法从上一个结果中取出单独的行"),
    "failed": ("The database refused the query I wrote: {words}", "数据库拒绝了我写的查询：{words}"),
    "lost": (
        "I could not read the database's answer: it is too large for the conversation's limit",
        "数据库的回答超出了会话的上限，无法读取",
    ),
    "recall": ("I find nothing about this in the conversation so far", "在目前的会话中没有找到相关内容"),
    "unknown_table": ("There is no table {words}", "没有这个表：{words}"),
}


def decline(error: CannotRead, catalog: Catalog | None, language: str, understood: str = "") -> str:
    """Say what could not be used, what was understood, and three questions that can be answered here."""
    words = ("、" if language == "zh" else ", ").join(f"“{word}”" for word in error.words if word)
    reason = _REASONS.get(error.reason, _REASONS["nothing"])[language == "zh"].format(words=words).strip()
    parts = [f"{reason}，所以我没有回答，以免答错。" if language == "zh" else f"{reason}, so I give no answer rather than a wrong one."]
    if understood:
        parts.append(f"我理解到的部分：{understood}。" if language == "zh" else f"What I understood: {understood}.")
    if catalog is not None and catalog.tables:
        parts.append(
            ("我可以回答的问题例如：\n" if language == "zh" else "Questions I can answer here, for example:\n")
            + _bullets(examples(catalog, language))
        )
    return "\n".join(parts)


def examples(catalog: Catalog, language: str) -> list[str]:
    """Make three questions that this schema can answer, from its largest described tables."""
    tables = sorted(
        (table for table in catalog.tables.values() if table.kind == "table"), key=lambda table: (not table.described, -(table.rows or 0))
    )
    found: list[str] = []
    for table in tables:
        name = " ".join(table.words)
        measures = [
            c for c in table.columns if c.is_number and not c.is_id and not {"year", "month", "day", "hour", "minute"} & set(c.words)
        ]
        keys = [c for c in table.columns if not c.is_number and not c.is_date and not c.primary and not c.is_binary and table.described]
        if not found:
            found.append(f"有多少 {name}？" if language == "zh" else f"How many {name} are there?")
        if measures and len(found) < 3 and (table.rows or 0) > 1:
            measure = " ".join(measures[0].words)
            found.append(f"{name} 的平均 {measure} 是多少？" if language == "zh" else f"What is the average {measure} of the {name}?")
        if keys and len(found) < 3 and (table.rows or 0) > 1:
            key = " ".join(keys[0].words)
            found.append(f"每个 {key} 有多少 {name}？" if language == "zh" else f"How many {name} are there per {key}?")
        if len(found) >= 3:
            break
    for table in tables[1:]:
        if len(found) >= 3:
            break
        name = " ".join(table.words)
        found.append(f"列出 {name}" if language == "zh" else f"How many {name} are there?")
    return found[:3]


# -- what was said before ---------------------------------------------------------------------------------------------

_EMPTY_WORDS = frozenset(
    """answer answered ask asked asking question earlier before previously previous said say tell told remind remember recall what was when did you i about me the result number
 again again exactly find found finding give gave report reported mention mentioned talked first last time ago conversation there were many much how""".split()
)


def recall(question: str, view: View, language: str) -> str | None:
    """Return what was answered to the earlier question most like what `question` speaks of, None when nothing is like it."""
    pairs = [(finding.question, finding.answer) for finding in view.findings] + [
        (turn.question, turn.answer) for turn in view.turns[:-1] if turn.answer
    ]
    pairs = [(asked, answer) for asked, answer in pairs if kind_of(asked) in ("", "recall") and answer]
    best = best_match(question, [asked for asked, _ in pairs])
    if best is None:
        return None
    asked, answer = pairs[best]
    plain = _without_intro(answer)
    if language == "zh":
        return f"之前问到“{asked}”时，回答是：{plain}"
    return f"When you asked “{asked}”, the answer was: {plain}"


def _without_intro(answer: str) -> str:
    for intro in _INTRO.values():
        answer = answer.replace(intro, "")
    return answer.strip()


def best_match(question: str, asked: Sequence[str]) -> int | None:
    """Return the place of the question most like `question` by its words of weight; the later one of equals."""
    wanted = content_words(question)
    if not wanted:
        return None
    best: tuple[float, int] | None = None
    for place, text in enumerate(asked):
        have = content_words(text)
        if not have:
            continue
        hit = sum(
            max((likeness(word, other) if word.isascii() else float(word == other) for other in have), default=0.0) for word in wanted
        )
        extra = sum(
            1 for other in have if all((likeness(word, other) if word.isascii() else float(word == other)) < 0.75 for word in wanted)
        )
        score = hit / len(wanted) - 0.04 * extra
        if hit / len(wanted) >= 0.55 and (best is None or score >= best[0] - 1e-9):
            best = (score, place)
    return best[1] if best else None


def content_words(text: str) -> list[str]:
    """Return the words of weight: no fillers, no words about asking; Chinese as pairs of characters."""
    words = [token.word for token in tokenize(text) if token.kind in ("word", "quoted", "number", "code", "date")]
    ascii_words = [
        word
        for word in words
        if word.isascii()
        and word not in FILLERS
        and word not in PREPOSITIONS
        and lemma(word) not in _EMPTY_WORDS
        and stem(word) not in _EMPTY_WORDS
    ]
    asking = re.sub(
        r"之前|刚才|问过|的时候|我问|你说|还记得|记得|提醒我|答案|回答|结果|多少|是|的|了|吗|呢|我|你|问|有|那个|什么|一下", " ", text
    )
    pairs = [run[i : i + 2] for run in re.findall(r"[\u3400-\u9fff]+", asking) for i in range(max(1, len(run) - 1))]
    return list(dict.fromkeys([*ascii_words, *pairs]))
