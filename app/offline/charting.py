"""Charts on request: take "plot ..." off a question, answer what is left, and draw the result by its handle."""

# ruff: noqa: E501 - a pattern reads best on one line

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from longtable.app.offline.view import ToolResult, Turn, View

_KINDS = r"bar|column|line|pie|donut|area|scatter|histogram|trend"
_CHART = rf"(?:an? |the |some )?(?:nice |simple |little )?(?:(?:{_KINDS})[- ]?)?(?:charts?|graphs?|plots?|diagrams?|histograms?)"
_PLEASE = r"^\W*(?:please |now |and |then |can you |could you |would you |i want (?:to )?|i'd like (?:to )?|let's |also )*"
_BEFORE = re.compile(
    rf"{_PLEASE}(?:(?:plot|chart|graph|visuali[sz]e|sketch)(?: me)?(?: {_CHART} (?:of|for|with|showing))?|(?:draw|make|show|give|create|produce|render)(?: me)?(?: us)? {_CHART}(?: of| for| with| showing|(?=\W*$))|{_CHART} (?:of|for|with|showing))\b[\s:,]*",
    re.IGNORECASE,
)
_AFTER = re.compile(
    rf"[\s,]*\b(?:and (?:plot|draw|chart|graph|visuali[sz]e) (?:it|them|that|this|the result)|(?:as|in|on|by|with|using) {_CHART})\W*$",
    re.IGNORECASE,
)
_DRAW_IT = re.compile(
    rf"{_PLEASE}(?:plot|draw|chart|graph|show|visuali[sz]e|make|turn|render)(?: me)? (?:it|that|this|them|those|the (?:last )?result)\b(?:(?: into| as)? {_CHART}\W*$)?",
    re.IGNORECASE,
)
_PICTURE = "折线图|柱状图|柱形图|条形图|饼图|散点图|直方图|面积图|趋势图|曲线图|图表|图"
_ZH_BEFORE = re.compile(
    rf"^\W*(?:请|帮我|再|给我)*(?:(?:用|以)(?:{_PICTURE})(?:来)?(?:显示|表示|展示|画出|画|呈现)(?:一下)?|(?:画|绘制|作|做|生成)(?:出|一下|一个|一张|个|张)*(?:关于)?)[，,：:\s]*"
)
_ZH_AFTER = re.compile(
    rf"(?:的)?[，,\s]*(?:并|然后)?(?:(?:画成|做成|绘制成|画|用)(?:一个|一张|个|张)?(?:{_PICTURE})|(?:{_PICTURE[:-2]}))(?:显示|表示|展示|画出来|呈现|来看)?[。！!\s]*$"
)
_ZH_IT = re.compile(
    rf"^\W*(?:请|帮我|再)*(?:把)?(?:它|这个|结果|上面的?结果|刚才的?结果)?(?:画|绘制|做|换|改)(?:成|出来|为|一下)?(?:一个|一张|个|张)?(?:{_PICTURE})?[。！!\s]*$"
)
_NOTHING = re.compile(r"\W*(?:it|that|this|them|those|the (?:last )?result|them all|结果|它|这个)?\W*", re.IGNORECASE)

_SAID = {"en": "The chart of {handle} is drawn for you.", "zh": "已为您画出 {handle} 的图。"}
_NOT_KEPT = {"en": "There is no chart: results are not kept in this run.", "zh": "无法画图：本次运行不保存结果。"}
_NO_DATABASE = {"en": "No database is connected here, so I can look nothing up.", "zh": "这里没有连接数据库，我无法查询。"}
_FAILED = {"en": "There is no chart: {reason}", "zh": "无法画图：{reason}"}
_NOTHING_YET = {
    "en": "There is no result to draw yet: ask a question about the data first.",
    "zh": "还没有可以画的结果：请先提一个关于数据的问题。",
}
MOST_WISH = 200


@dataclass(frozen=True)
class Wish:
    """A chart that was asked for. `question`: what is left to find out first, "" to draw the newest result."""

    text: str
    question: str


def wish_of(question: str) -> Wish | None:
    """Return the chart that a question asks for, None where it asks for none."""
    text = " ".join(question.split())[:MOST_WISH]
    if _DRAW_IT.match(question) and (_AFTER.search(question) or _NOTHING.fullmatch(_DRAW_IT.sub("", question))) and _is_drawing(question):
        return Wish(text, "")
    if _ZH_IT.match(question) and re.search(_PICTURE, question):
        return Wish(text, "")
    for pattern, lead in ((_BEFORE, "Show "), (_ZH_BEFORE, "")):
        if (match := pattern.match(question)) is not None and match.end() > 0:
            rest = _ZH_AFTER.sub("", _AFTER.sub("", question[match.end() :])).strip()
            if pattern is _ZH_BEFORE and not re.search(_PICTURE, question):
                continue
            return Wish(text, "" if _NOTHING.fullmatch(rest) else f"{lead}{rest}")
    for pattern in (_AFTER, _ZH_AFTER):
        if (match := pattern.search(question)) is not None and match.start() > 0:
            rest = question[: match.start()].strip()
            return Wish(text, "" if _NOTHING.fullmatch(rest) else rest)
    return None


def without_wish(view: View, wish: Wish) -> View:
    """Return the view with the question that is left in place of the one that was asked."""
    return replace(view, turns=(*view.turns[:-1], replace(view.now, question=wish.question)))


def newest_handle(view: View) -> str:
    """Return the handle of the newest result that is kept, "" where there is none."""
    for turn in reversed(view.turns):
        if handle := handle_in(turn):
            return handle
    return next((line.handle for line in reversed(view.queries) if line.handle), "")


def handle_in(turn: Turn) -> str:
    """Return the handle of the turn's newest result that has rows."""
    for result in reversed(turn.of("run_sql")):
        if result.data and result.data.get("row_count"):
            return str(result.data.get("handle") or "")
    return ""


def drawn(view: View) -> ToolResult | None:
    """Return what came of drawing in this turn, None where nothing was drawn yet."""
    return next(reversed(view.now.of("show_chart")), None)


def said(result: ToolResult | None, language: str) -> str:
    """Say what became of the chart."""
    if result is None:
        return _NOT_KEPT[language]
    if result.data is not None:
        return _SAID[language].format(handle=result.data.get("handle", result.args.get("handle", "")))
    return _FAILED[language].format(reason=(result.error or "?").splitlines()[0][:200])


def cannot_call(missing: Collection[str], language: str) -> str:
    """Say why the tools of a step are not there: no results are kept, or there is no database."""
    return (_NOT_KEPT if "show_chart" in missing else _NO_DATABASE)[language]


def nothing_yet(language: str) -> str:
    """Say that there is no result to draw."""
    return _NOTHING_YET[language]


def _is_drawing(question: str) -> bool:
    return bool(re.search(rf"\b(?:plot|draw|chart|graph|visuali[sz]e)|{_CHART}", question, re.IGNORECASE))
