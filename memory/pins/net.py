"""Find the user's sentences that look like lasting rules, because they hold a lasting word such as
"always", "by default" or 以后.

The lasting words are listed here. A sentence that is found is only a pin "said in passing": it is
shown below the pins that a model made, and is dropped before them. Rules without a lasting word are
left to the models.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

LONG = 300
"""Most characters of a rule. A longer sentence is pasted material."""
MOST_FOUND = 8
"""Most sentences that are found in one message."""
MOST_COMPARED = 64
"""A sentence is compared only with this many of the newest rules, so that the cost does not grow
with the thread.
"""
MOST_CHANGE = 80
"""Most characters of a sentence that counts as a change of an earlier rule only because the two
share a word. A longer sentence more likely tells something new.
"""

# -- the words, as they stand in a regular expression ----------------------------------------------

LASTING = (
    "from now(?: on(?:ward)?s?)?",
    "from (?:here|today|this point|this moment|then) on(?:ward)?s?",
    "(?:as of|starting) (?:now|today)",
    "going forward",
    "henceforth",
    "in (?:the )?future(?=[,.!:;]|$)",
    "by default",
    "as a (?:general )?rule",
    "at all times",
    "in (?:all|any|every) cases?",
    "under no circumstances?",
    "no matter (?:what|which|how|who|where)",
    "for the (?:rest|remainder) of",
    "for the whole (?:conversation|session|chat|project|analysis)",
    "(?:until|unless) (?:i|we|told|asked|stated|instructed|said|otherwise|further notice)",
    "(?:whenever|if ever|(?:every|each|any) ?time) (?:you|i|we)",
    "(?:throughout|(?:every|each) time)(?=[.,!?]|$)",
    "(?:under|below|beside|after|at the (?:end|top) of) (?:each|every) (?:answer|reply|table|chart|query)",
    "when (?:you|i|we) (?:say|ask|mention|talk|speak|refer|write|report|show|list|give|quote|use)",
    "(?:keep|bear) in mind(?! (?:when|how|what|why))",
    "remember (?:that|to|this)",
    "(?:don'?t|do not|never) ever",
    r"by (?:\S+ ){1,4}(?:i|we) mean",
)
"""Lasting words. They make a rule of any sentence that is not a question."""
LASTING_CHINESE = (
    "(?<![年月日号天周点期])以后",
    "[今往]后",
    "从(?:现在|今天?|此)",
    "(?:接下来|之后|后面|后续)(?:都|一律|所有|请|不|只|全部)",
    "一律",
    "始终(?:要|用|以|按|保持|显示|保留|不)",
    "永远(?:不|别|用|要|以|按)",
    "总是(?:用|以|按|要|先|把|保留|显示)",
    "每次.{0,12}(?:都|要|请|先|须)",
    "每当.{1,20}(?:都|要|请|就|须)",
    "凡是?.{1,20}(?:都|一律|不|要|须|按|用|以)",
    "默认(?!的?(?:列|字段|值|设置|视图|数据库))",
    "统一(?:用|按|以|成|为|写|保留|换算|使用|采用)",
    "务必|切记|千万别|再也不|除非|直到我",
    "(?:^|[，,请])记(?:住|得)",
    "任何(?:情况|时候)",
    "(?:无论|不管|不论).{1,20}都",
    "(?:整个|本次)(?:会话|对话|项目|分析)",
    "[绝永]不|千万不",
    "我们?说的.{1,15}指",
)
ALL_ANSWERS = (
    r"(?<!\bit )(?<!\bhas )(?<!\bhave )(?<!\bhad )(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )"
    r"(?<!\bthat )(?<!\bwho )(?<!\bwhich )(?<!\bthey )(?<!\bhe )(?<!\bshe )\b(?:always|never)"
    r"(?! (?:mind|been|seen|said|saw|heard|had|knew|thought|again|did|was|were)\b| \w+ed\b)",
    "(?:is|are) (?:always|never) (?:to|in|by|as|with|per|given|shown|counted|rounded|reported|"
    "excluded|included|measured|written|stored)",
    "(?<!it )(?<!that )(?<!this )(?<!there )(?:must|should|shall) (?:be|not|only)",
    "(?:in|for|with|throughout|across|to|of) (?:all|every|any|each|the whole) (?:[a-z]+ ){0,2}"
    "(?:answer|repl|result|quer|table|report|figure|number|chart|output|total|count|average|"
    r"amount|list|calculation|analys|summar|price|date|question|conversation|session)\w*",
    "(?:all|every|any) (?:of )?(?:the |your |my |our )?(?:[a-z]+ )?(?:answer|result|amount|figure|"
    "date|price|distance|number|average|total|percentage|time|report|chart|list)s? "
    "(?:are|is|in|should|must|has|have|need|go)",
    "every (?:answer|reply|table|chart|report|list|figure|amount|query)",
)
"""Words about all future answers. They make a rule of a sentence only if it does not request data:
"List all the amounts in euros" is only a request of the moment.
"""
ALL_ANSWERS_CHINESE = (
    "所有的?(?:回答|答案|结果|金额|数[字值]|表格?|日期|时间|距离|价格|图表?|输出|查询|统计|百分比|平均值|单位|报[告表])"
    ".{0,8}(?:都|要|用|按|以|须|保留|写|统一)",
    "都(?:要|得|须|应)(?!多少|什么)",
    "必须|不[得许准](?!不)|严禁|禁止",
)
TAKES_BACK = (
    "no longer",
    "any ?more",
    "(?:go|switch|change) back to",
    "back (?:in|to (?:normal|all|the usual))",
    r"(?:all|every\w*|both|them|too) (?:\S+ ){0,5}again",
    r"in \w+ again",
    r"you (?:can|may) (?:\S+ ){1,6}again",
    "forget (?:that|the|about|what|all|my)",
    "take (?:that|it) back",
    "never mind the",
    "as before",
    "(?:is|are) (?:lifted|withdrawn|cancelled|off the table)",
    "the other way (?:a)?round",
)
"""Words that may end or widen an earlier rule. They count only if there is an earlier rule. The
view then shows both sentences, one below the other.
"""
TAKES_BACK_CHINESE = (
    "不再|恢复|取消|作废|收回|不必再|[改换]回",
    "不用(?:再|了|管)",
    "可以.{0,12}了",
    "反过来|颠倒过来|重新[加算纳列放]|还是(?:要|用|按|拆|分|合|写|算|给)",
)

CHANGES = (
    "open|split|separate|join|merge|add|put|include|bring|let|switch",
    "again|back|all|every\\w*|both|too|as well|together|apart|separately|everyone",
)
"""Words of a sentence that changes an earlier rule although it begins like a request, such as "Open
it up to all depots" or "Split Oslo from Bergen again".

The sentence begins with a word of the first group ("open"); a word of the second group ("all")
comes anywhere after it.
"""
CHANGES_CHINESE = (
    "加上|加回|算上|放开|分开|拆开|合并|纳入|包括|换回",
    "又|重新|全部|所有|也|都|吧|了",
)

REQUESTS = (
    "show|list|give|get|count|find|compare|plot|draw|chart|graph|break|calculate|compute|sum|rank|"
    "tell|run|rerun|repeat|look (?:up|for)|sort|group|order|print|make|create|check|describe|"
    "explain|summari[sz]e|export|try|go(?! back)|let me (?:see|know|have|look)|add|put(?! .{1,40} back)|split|join|"
    "continue|open|fetch|pull|do(?! not)"
)
"""First words of a request for data."""
REQUESTS_CHINESE = (
    "看|查|列(?![a-z]*_)|统计(?!.{0,6}都)|显示|展示|画|比较|对比|计?算|给|求|找|汇总(?!时)|排(?!名)|输出|分析|说说|介绍|告诉|来|导出|做|生成|"
    "检查|解释|换个"
)
OF_THE_MOMENT = (
    "this time|(?:just|only) (?:this )?once|for now|for this (?:one|query|chart|table|question)|"
    "这一?[次张]|暂时|这个(?:问题|图|表)"
)

# -- the reading -----------------------------------------------------------------------------------


_COMMON = re.compile(
    "always|never|from|please|only|show|report|data|answer|every|each|these|those|this|that|with|"
    "when|then|them|they|have|unless|otherwise|default|there|their|here|what|which|would|should|"
    "could|must|again|more|most|into|than|also|just|time|number|thank|note|noted|figure|table|"
    "result|value|look|need|want|make"
)
"""Common words. A rule and a sentence may share them without being about the same thing."""
_LONG_WORD = re.compile(r"[a-z][a-z_]{3,}|(?:19|20)\d\d")
_RUN = re.compile(r"[\u3400-\u9fff]{2,}")
_PARTICLE = re.compile(
    "[的了吧呢吗请都也再就还是有和与在我你他们这那个一不只看按用以后从起所要得须把每次数据]"
)


def _table(english: Sequence[str], chinese: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(english)})(?!\w)|{'|'.join(chinese)}")


_LASTING = _table(LASTING, LASTING_CHINESE)
_ALL_ANSWERS = _table(ALL_ANSWERS, ALL_ANSWERS_CHINESE)
_TAKES_BACK = _table(TAKES_BACK, TAKES_BACK_CHINESE)
_MOMENT = re.compile(OF_THE_MOMENT)
_LEAD_IN = re.compile(
    r"(?:(?:please|now|then|ok(?:ay)?|and|also|but|so|well|thanks?(?: you)?|great|good|no|yes|hi|"
    r"hello|(?:can|could|would|will) (?:you|we)|(?:i|we)(?:'d| would) like(?: you)?(?: to)?|"
    r"(?:i|we) (?:want|need)(?: you)? to)\b[\s,:!.]*"
    r"|(?:请|麻烦|帮我|再|先|就|然后|接着|继续|也|又|好的?|那(?![几些个条种批])么?|我想|我要|想|您|你|能不能|可以)[，,]?)+"
)
_REQUEST = re.compile(rf"(?:{REQUESTS})\b|{REQUESTS_CHINESE}")
_CHANGE = re.compile(
    rf"(?:{CHANGES[0]})\b.*\b(?:{CHANGES[1]})\b|(?:把.{{1,12}})?(?:{CHANGES_CHINESE[0]}).*(?:{CHANGES_CHINESE[1]})"
)
_QUESTION = re.compile(
    r"[?？][\"'”’)]*$|^(?:what|which|who(?:se|m)?|where|why|how|is|are|was|were|do(?!n't| not)|does|"
    r"did|has|have|had|am|may i|should i)\b|什么|哪[些个里种年月家]|多少|(?<![那这前后好])几[个位家种次条天年月]|谁|怎[么样]|如何|"
    r"是否|有没有|是不是|[吗呢][。！\s]*$"
)
_ASKS_LAST = re.compile(r"(?:[?？吗呢谁]|什么|多少|哪[些个里儿]|怎么样?|如何)[。.]?$")
_POLITE = re.compile(
    r"(?:^|[,:] )(?:please,? )?(?:can|could|would|will) (?:you|we)\b|能不能|能否|可不可以|(?:好吗|可以吗|行吗)[?？]?$"
)
_WHATEVER = re.compile("(?:无论|不管|不论)[^，,。]*")
_QUOTED = re.compile(r"[\"“][^\"”]*[\"”]|[「『][^」』]*[」』]|(?<!\w)'[^']*'(?!\w)")
_CLAUSE = re.compile(r"[,;，；]")
_END = re.compile(
    r"[。！？；]+[”’」』\"')）]*|(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?;…]+[\"'”’)\]]*(?=\s|$)|\n+(?!\s*[a-z])"
)
_FENCE = re.compile(r"```.*?(?:```|\Z)|^>.*$", re.DOTALL | re.MULTILINE)
_LEAD = re.compile(r"\s*(?:[-*•·]+\s+|\(?\d{1,2}[.)、]\s*|#+\s+)?\s*")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text as written, without code blocks, quoted lines, bullets and
    outer blanks.
    """
    for part in _FENCE.split(text):
        start = 0
        for end in [*(stop.end() for stop in _END.finditer(part)), len(part)]:
            if sentence := _LEAD.sub("", part[start:end], count=1).strip():
                yield sentence
            start = end


def rules_in(text: str, earlier: Sequence[str] = ()) -> list[str]:
    """Return the sentences of a message that look like lasting rules, at most `MOST_FOUND`.

    `earlier`: rules that the user laid down before. Sentences that may change an earlier rule are
    returned too: sentences that take something back, and short statements that share a word with
    the rule.
    """
    found: list[str] = []
    rules = list(earlier[-MOST_COMPARED:])
    for sentence in sentences(text):
        if len(found) == MOST_FOUND:
            break
        if is_rule(sentence) or _may_change(sentence, rules):
            found.append(sentence)
            rules.append(sentence)
    return found


@lru_cache(maxsize=4_096)
def is_rule(sentence: str) -> bool:
    """Return whether a sentence is an instruction that is meant to last. False for questions and
    for requests of the moment; words in quotation marks are ignored.
    """
    if not 3 < len(sentence) <= LONG:
        return False
    body = _unquoted(sentence)
    if _MOMENT.search(body):
        return False
    if asks(sentence) and not _POLITE.search(body) and not _is_told(body):
        return any(_instructs(clause) for clause in _CLAUSE.split(body) if not asks(clause))
    if _LASTING.search(body):
        return True
    parts = _CLAUSE.split(body) if is_request(sentence) else [body]
    return any(_ALL_ANSWERS.search(part) and not is_request(part) for part in parts)


def _is_told(body: str) -> bool:
    """Return whether a sentence that holds a question word is still an instruction, such as "From
    now on tell me how many there are". It must begin with a lasting word and not end as a question.
    """
    return bool(_LASTING.match(body)) and not _ASKS_LAST.search(body)


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question."""
    return bool(_QUESTION.search(_WHATEVER.sub("", _without_lead(sentence))))


def is_request(sentence: str) -> bool:
    """Return whether a sentence begins like a request for data, as in "Show me" or "List"."""
    return bool(_REQUEST.match(_without_lead(sentence)))


def takes_back(sentence: str) -> bool:
    """Return whether a sentence may take back an earlier rule, as in "no longer", "open it up to
    all" or 恢复.
    """
    if not 3 < len(sentence) <= LONG or asks(sentence):
        return False
    if _CHANGE.match(_without_lead(sentence)):
        return True
    return not is_request(sentence) and bool(_TAKES_BACK.search(_unquoted(sentence)))


def _instructs(clause: str) -> bool:
    """Return whether a clause has a lasting word and other words besides."""
    lasting = _LASTING.search(clause)
    return bool(lasting) and len(clause.replace(lasting[0] if lasting else "", "").strip()) > 3


def _may_change(sentence: str, rules: Sequence[str]) -> bool:
    if not rules or not 3 < len(sentence) <= LONG or asks(sentence):
        return False
    if takes_back(sentence):
        return True
    if is_request(sentence):
        return False
    words = words_about(sentence) if len(sentence) <= MOST_CHANGE else frozenset()
    return any(words & words_about(rule) for rule in rules)


@lru_cache(maxsize=1_024)
def words_about(sentence: str) -> frozenset[str]:
    """Return the words that a sentence is about: the longer English words, years, and each pair of
    neighbouring Chinese characters. Common words are left out.
    """
    folded = _folded(sentence)
    words = {word.rstrip("s") for word in _LONG_WORD.findall(folded) if not _is_common(word)}
    for run in _RUN.findall(folded):
        pairs = (first + second for first, second in pairwise(run))
        words.update(pair for pair in pairs if not _PARTICLE.search(pair))
    return frozenset(words)


def _is_common(word: str) -> bool:
    return bool(_COMMON.fullmatch(word) or _COMMON.fullmatch(word.rstrip("s")))


def _unquoted(sentence: str) -> str:
    """Return a sentence case-folded, with its quotations emptied."""
    return _QUOTED.sub('""', _folded(sentence))


def _without_lead(sentence: str) -> str:
    folded = _folded(sentence)
    lead = _LEAD_IN.match(folded)
    return folded[lead.end() :] if lead else folded


def _folded(text: str) -> str:
    return " ".join(text.replace("’", "'").split()).casefold()
