"""Find the user's sentences that lay down a lasting rule or take one back, by their shape, in
English and Chinese.

For models that call no tools and for summaries that code writes. A hit is only "said in passing":
it stands below what a model was told to keep, and goes first. A question or a request of the moment
is no rule.
"""

import re
from collections.abc import Iterator, Sequence

from longtable.memory.search import tokens_of

LONG = 300
"""Characters past which a sentence is pasted material, no rule of a person."""
MOST_FOUND = 8
"""Finds in one message; one with more changes of earlier rules is a document, and changes none."""
MOST_COMPARED = 64
"""Newest pins that a sentence may change: a long thread costs no more."""

_END = re.compile(
    r"[。！？；]+[”’」』\"')）]*|(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?;]+[\"'”’)\]]*(?=\s|$)|\n+(?!\s*[a-z])"
)
_FENCE = re.compile(r"```.*?(?:```|\Z)|^>.*$", re.DOTALL | re.MULTILINE)
_LEAD = re.compile(r"\s*(?:[-*•·]+\s+|\(?\d{1,2}[.)、]\s*|#+\s+)?\s*")
_CLAUSE = re.compile(r"[,;:，；：—–]+|\s-\s|\b(?:and|but|so|then)\b")
_FILLER = re.compile(
    r"(?:(?:ok(?:ay)?|well|so|also|and|but|hi|hello|hey|thanks?(?:"
    r" you)?|please|actually|no(?=[,.!])|yes|great|good|sorry|now|"
    r"one (?:more |last )?thing|by the way|just so you know|for the record|quick"
    r" note|reminder|important|let's|(?:i|"
    r"we) (?:want|need) you to|"
    r"before (?:we|i|you) (?:start|begin|go on)|(?:i|we)(?:'d| would) like you to|you"
    r" (?:should|must|need to|"
    r"have to)(?! not| never| always)|"
    r"(?:can|could|would|will)"
    r" (?:you|we))\b[\s,:!.…-]*|(?:请|麻烦|好[的吧]?|嗯|另外|还有|对了|顺便(?:说一下)?|那么?|不过|但是?|其实|"
    r"首先|最后|您|你们?|帮我|注意|能不能|能否|可不可以|可否|可以|能)[\s,，:：、。！]*)+"
)
_ASKS = re.compile(
    r"[?？][\"'”’)]*$|^(?:what|which|who(?:se|m)?|where|why|how|is|are|was|were|do(?!n't|"
    r" not)|does|did|has|have|had|am|may i|should i|"
    r"when (?!i |we |you"
    r" ))\b|什么|哪[些个里种年月家]|多少|几[个位家种次条天年月]|谁|怎[么样]|如何|是否|有没有|是不是|[吗呢][。"
    r"！\s]*$"
)
_POLITE = re.compile(
    r"(?:^|[,，:：]\s*)(?:can|could|would|will)"
    r" (?:you|we)\b|能不能|能否|可不可以|可否|(?:好吗|好不好|可以吗|行吗|行不行)[?？]?$"
)
_REQUEST = re.compile(
    r"^(?:show|list|give|get|count|find|compare|plot|draw|chart|graph|break|calculate|compute|sum|rank|tell|run|repeat|look|"
    r"sort|group|order|"
    r"print|report|add|write|make|create|check|describe|explain|summari[sz]e|export|try|go|let"
    r" me|(?:i want|i need|"
    r"i'd like)(?: to| the| a)?|"
    r"put|split|join|continue|see|analy[sz]e|open|help)\b|^(?:再|先|就|然后|接着|继续|也|又|给我|我想|我要|想)*"
    r"(?:看|查|列|统计|显示|展示|画|比较|对比|计?算|按|给|求|找|汇总|排|输出|分析|说说|介绍|告诉|来|导出|做|生成|检查|解释|换个|把.{1,12}[画列排做导查])"
)
_PARTICULAR = re.compile(
    r"\d|[第前][一二三四五六七八九十]|\b(?:top|first|last|next|previous)\b|刚才|上[一面]|下一"
)
_ONCE = re.compile(  # of the moment, or of the past
    r"\b(?:this time|(?:just|only) (?:this )?once|for th(?:is|at)"
    r" \w+|was|were|had|did|didn't|yesterday|last (?:week|month|"
    r"year|time)|ago|came|looked)\b|"
    r"^(?:\w+ ){1,2}(?:that|this|it|those|these|them|the same)\b(?! (?:always|every|from now))|"
    r"这一?次|这[张道]|这个(?:问题|图|表)|暂时|[第前][一二三四五六七八九十\d]|刚[才刚]|上[一周月次]|昨天|去年|已经|曾|^(?!.*[不别勿]).*了[。"
    r"！\s]*$"
)
_LASTS = re.compile(
    r"\bfrom (?:now|here|today|this point)\b|\b(?:going forward|henceforth|whenever|by default|at"
    r" all times|"
    r"under no circumstances?|no matter (?:what|which|how))\b|"
    r"\bin (?:the )?future(?=[,.!]|$)|\bfor the (?:rest|remainder) of\b|\b(?:until|unless)"
    r" (?:i|we|told|asked|stated|"
    r"otherwise)\b|\b(?:every|each|any) ?time\b|"
    r"\b(?:in|for|with|throughout) (?:all|every|any|each|this|the whole|the entire)(?: \w+){0,3}"
    r" (?:answer|repl|result|quer|"
    r"question|table|report|figure|"
    r"number|chart|output|total|project|conversation|session|chat|analysis)|^(?:remember|keep in"
    r" mind|bear in mind|"
    r"note(?= that|[:,]))\b(?! (?:when|how|what|why))|"
    r"\b(?:make|be) sure\b|(?:^|\b(?:you|please|must|should|and|but|to|,) )(?:always|never)\b(?!"
    r" (?:mind|been|seen|had|knew|thought))|"
    r"(?<![年月日号天周点期])以后|[今往]后|从(?:现在|今)|(?:接下来|之后|后面|后续)(?:都|一律|所有|请|我|不|只)|一律|始终|永远|每次|每当|凡|总是|务必|切记|"
    r"^(?:请)?记(?:住|得|好|一下)|默认|统一|任何(?:情况|时候)|无论|不管|全程|(?:整个|本次?)(?:会话|对话|项目|分析)|除非|直到我|"
    r"所有的?(?:回答|答案|结果|金额|数[字值]|表|日期|时间|距离|价格|图|输出|查询|统计|百分比|单位)"
)
_UNIT = (
    r"(?:km|kilomet\w+|miles?|met(?:re|er)s?|feet|celsius|fahrenheit|usd|eur|gbp|cny|euros?|dollars?|pounds?|yen|francs?|yuan|rmb|"
    r"cents?|thousands?|millions?|"
    r"percent\w*|hours?|minutes?|seconds?|kg|kilos?|grams?|tons?|tonnes|iso|utc|english|german|french|spanish|chinese|"
    r"decimals?|digits?|whole \w+|"
    r"bold|markdown|tables?|bullets?|bullet"
    r" points?|prose|yyyy\S*|(?:de|a)scending|words|sentences?|lines|plain \w+|local \w+|metric)"
)
_UNIT_ZH = (
    r"(?:公里|千米|米|英里|美元|人民币|欧元|元|万|亿|百分[比数]|小时|分钟|秒|天|摄氏|公斤|千克|吨|"
    r"[中英]文|[英法德日汉]语|表格|列表|小数|整数|位|年月日|时区|千分位|格式|单位)"
)
_LOOKS = re.compile(  # how all data is to look; alone also where the verb is one of a request
    r"^(?:count|look at|look|report) only\b|^.{3,60}\bonly(?:,?"
    r" please)?[.!]*$|\b(?:highest|largest|newest|latest|oldest|"
    r"smallest|lowest) first\b|\brather than\b|"
    r"^(?!(?:it|there|that|the (?:chart|table|list))\b).{0,70}\b(?:in|as|to|with|using|at"
    rf" most|into) (?:\S+ ){{0,3}}{_UNIT}\b|"
    rf"^.{{0,30}}\b{_UNIT}(?: only|,? please|,? not\b)|\b(?:two|three|one|no|zero|\d)"
    r" decimals?\b|\b(?:short|brief|"
    rf"long) (?:answer|repl|explanation|sentence)|"
    r"^(?!it|that|this|i |he |she |they ).{2,60}(?:,| and) not (?:(?:by|in|as|the|to)"
    r" )?[\w\"'-]+(?: [\w-]+)?[.!]*$|"
    r"(?:用|以|按|换|写|记成|说|加|精确到|保留|显示为|格式)[^，,。"
    rf"]{{0,8}}{_UNIT_ZH}|四舍五入|取整|为单位|{_UNIT_ZH}(?:表示|计价|作答|回答)|"
    r"(?:回答|答案|解释|说明|结论)(?:要|得|请|尽量|简|用|时|里|中|不|先|控制)|简[短洁]|而不是|，"
    r"不(?:用|要|是).{1,8}$|不超过|最多"
)
_LAYS_DOWN = re.compile(  # forbids, sets, defines, prefers
    r"^(?:don'?t|do not|avoid|stop|no longer)\b(?!"
    r" (?:worry|know|think|understand|get|see|bother|mind|care|have))|"
    r"^you (?:must|should) (?:not|never|always)\b|"
    r"^no (?!idea|problem|worr|thank|need|one|way|matter|doubt|rush|it|that|the|not|result|data|rows?\b|change|error)[a-z-]+|"
    r"^(?:only(?!"
    r" \d)|exclude|ignore|leave|omit|restrict|limit|stick|stay|consider|treat|assume|use|round|express|quote|"
    r"format|convert|measure|answer|reply|"
    r"speak|call|keep|refer|abbreviate|spell|cite|state|prefer|hide|mask|drop|say|cut|start|begin|end|work"
    r" (?:in|with)|"
    r"focus|skip|agree|define|"
    r"be (?!sure)\w+)\b|^(?:count|take|read|understand) .{1,50}? (?:as|once|twice|only)\b|\bonly"
    r" (?:count|look at|consider|"
    r"use)\b|\boff[- ]limits\b|\b(?:to|for) us\b|"
    r"\b(?:i|we)(?:'ve|'d|'m|'re| have| would| am| are)? (?:only |always |usually |generally |never"
    r" |don't |do not |"
    r"won't )*(?:use|mean|want|need|like|count|care|interested|"
    r"consider|report|treat|define|call|say|write|work|look|measure|exclude|read|agreed?|decided|settled|rather|prefer|"
    r"hates?|expect|speak|colou?r|can't)\b|"
    r"\b(?:our|my)"
    r" .{1,40}?\b(?:is|are|starts?|begins?|runs?|ends?|wants?|uses?|prefers?|hates?|needs?|means|reads|has"
    r" to|closes?)\b|"
    r"^(?:every|each|any\w*|nobody|no one|nothing|everything|whoever|whatever|if|when(?:ever)?"
    r" (?:i|we|you))\b|"
    r"\b(?:means|stands? for|refers? to|counts? as|(?:is|are)"
    r" (?:defined|counted|treated|regarded|considered|measured|"
    r"stored|given) (?:as|in|by|from))\b|"
    r"^(?!(?:it|that|this|there|i|he|she|they|what|you)\b)[\w\"' -]{2,60}?"
    r" (?:starts?|begins?|ends?|runs?|includes?|"
    r"excludes?|must|shall|should|needs? to|ha(?:s|ve) to|"
    r"(?:is|are) (?:to (?:be|stay)|any\w*|when|where|those|between|short for|\w+ to \w+))\b|"
    r"(?:^|[我你请都也，"
    r"])(?:不[要许得准能]|别|禁止|严禁|切?勿|避免|千万别|绝不)(?!担心|客气|急|着急|谢|介意|是)|不(?:要|许|得|准|能|应)(?:出现|显示|包[含括]|使用|泄露|透露)|"
    r"指(?!标|出|数|导|定|着|望|南)|(?:算作?|叫做?|称为|当作|当成|[视看]作|视为|归[为入]|计[入为]|记[为作])|意思是|定义|所谓|就是(?!说|这|那|了)|按.{1,8}(?:处理|计?算)|约定|说好|"
    r"(?:如果|遇到|若是?|碰到|一旦).{1,30}(?:就|则|请|都|显示|写|按|算)|[一-龥]只(?:允许|准|能|许)|每个.{1,8}都|我们?(?:说|讲|提)(?:的|到|起)|必须|应当|应该(?!是|有|没)|一定要|规定|"
    r"(?:都|得|要|须)(?:要|得|用|按|以|写|带|加|保留|标|注明|换算)|(?:^|[，"
    r",]|我们?)(?:先|就|都)?[只仅光](?:看|算|统计|考虑|要|分析|用|关[注心]|保留|计|查|显示|列|包[括含]|给|需要|取|限|在)|"
    r"排除|剔除|不[算计含看]|不包[括含]|忽略|过滤掉|[除扣]去|去掉|不考虑|我们?(?:更|比较|都)?(?:喜欢|偏好|习惯|倾向)|我们(?:公司|这[边里]|部门|团队|老板|的)?.{0,12}[是用从按算以叫]"
)
_ENDS = re.compile(
    r"\b(?:again|back to|go back|remove|restore|reset|(?<!in )(?<!of )(?<!since )may(?= [a-z])|you"
    r" can|"
    r"free to|(?:is|are|it's) (?:ok|okay|fine|allowed)|not needed|no need|needn't|(?:don't|doesn't)"
    r" (?:have|need) to|"
    r"never ?mind|drop|stop|change[ds]?|as before|as usual|after all|take (?:that|it) back|doesn't"
    r" matter|no more|off|"
    r"lifted|correction|i meant|enough|obsolete)\b|"
    r"不用|不必|不需要|无需|忘[掉了]|别再|算了|不限|放开|解除|重新|还是|照[旧常]|原来|收回|现在(?:可以|起)|可以.{0,16}了|不算数|停止|更正|说错|之[前后]|前面"
)
_REVOKES = re.compile(
    r"\b(?:instead|no longer|any ?more|back to|go"
    r" back|forget|scrap|cancel|switch|revert|undo|lift|withdraw|void)\b|不再|不用|"
    r"取消|恢复|改[回成为用看]|换[回成为]|回到|作废|撤[销回]"
)
_SCOPE = re.compile(
    r"\b(?:all|every\w*|both|any|too|as"
    r" well|also|whole|entire|now|can|fine|include|bring|add|count|matter|either)\b|全部|所有|"
    r"[都也又]|任何|一[起切]|包[括含]|现在|可以|[加算]上|没关系|正常"
)
_THIS_ONE = re.compile(
    r"\b(?:of|for|by|from|per|me|who|which|that|whose|where|with|the|this|it)\b|[各每这那]"
)
_COMMON = re.compile(
    r"[的了吧呢吗请都也再就还是有和与在我你他们这那个一不只看按用以后统计显示数据所全部可现给每次要把]|^(?:the|and|for|are|was|you|not|all|but|can|any|now|from|"
    r"with|this|that|these|have|has|had|our|your|use|only|out|please|show|list|give|get|tell|count|number|look|report|data|"
    r"always|never|again|should|must|what|when|how|"
    r"many|much|over|into|than|then|them|they|will|just|also|each|every|make|back|more|most|answer|forget|pin|rule)$"
)
_MATTERS = (
    re.compile(r"\b(?:19|20)\d\d\b|\byears?\b|年"),
    re.compile(
        r"\b(?:usd|eur|gbp|dollars?|euros?|cents?|pounds?|yen|yuan|rmb|currenc\w+)\b|[美欧日]?元|人民币|英镑|货币"
    ),
    re.compile(r"\b(?:km|kilomet\w+|miles?|met(?:re|er)s?|feet)\b|公里|英里|千米"),
    re.compile(
        r"\b(?:english|german|french|spanish|chinese|japanese|italian|language)\b|[中英]文|[英法德日汉]语"
    ),
    re.compile(r"\b(?:round\w*|decimals?|digits?|exact|whole)\b|小数|取整|四舍五入|整数|精确"),
    re.compile(
        r"\b(?:short\w*|brief\w*|detail\w*|concise|long\w*|words|sentences?|tables?|bullets?|prose)\b|简[短洁]|详细|[字句]|表格|列表"
    ),
)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text as they stand in it, without code blocks, quoted lines, bullets
    and outer blanks.
    """
    for part in _FENCE.split(text):
        start = 0
        for end in [*(stop.end() for stop in _END.finditer(part)), len(part)]:
            if sentence := _LEAD.sub("", part[start:end], count=1).strip():
                yield sentence
            start = end


def rules_in(text: str, pinned: Sequence[str] = ()) -> list[str]:
    """Return the sentences of a message that lay down a rule, or change one of `pinned`; at most
    `MOST_FOUND`.
    """
    rules, changes = list[str](), list[str]()
    for sentence in sentences(text):
        body, asks = _read(sentence)
        if len(body) > 3 and len(sentence) <= LONG and max(len(rules), len(changes)) <= MOST_FOUND:
            if _is_rule(body, asks):
                rules.append(sentence)
            elif _is_change(body, asks, [*pinned[-MOST_COMPARED:], *rules]):
                changes.append(sentence)
    return [
        each
        for each in sentences(text)
        if each in rules or (each in changes and len(changes) <= MOST_FOUND)
    ][:MOST_FOUND]


def _is_rule(body: str, asks: bool) -> bool:
    """Return whether a sentence, or a clause of it that asks for nothing, lays down what is to hold
    for later answers.
    """
    clauses = [_FILLER.sub("", clause.strip(), count=1) for clause in _CLAUSE.split(body)]
    if asks:
        return any(
            _sets(each)
            for each in clauses
            if len(each) > 3 and not _ASKS.search(each) and not each.endswith(("的话", "时"))
        )
    return bool(_LASTS.search(body)) or any(
        map(_sets, [body, *clauses[: 1 if _REQUEST.search(body) else None]])
    )


def _sets(clause: str) -> bool:
    """Return whether a clause sets something; a request for data sets only how all data looks."""
    if _LASTS.search(clause) or _ONCE.search(clause):
        return bool(_LASTS.search(clause))
    if _REQUEST.search(clause):
        return (
            bool(_LOOKS.search(clause))
            and not _PARTICULAR.search(clause)
            and not _THIS_ONE.search(clause)
        )
    return bool(_LAYS_DOWN.search(clause) or _LOOKS.search(clause))


def _is_change(body: str, asks: bool, pinned: Sequence[str]) -> bool:
    """Return whether a sentence takes something back, or says that what a pinned sentence is about
    ends or widens.
    """
    ends, widens, revokes = (bool(pattern.search(body)) for pattern in (_ENDS, _SCOPE, _REVOKES))
    if not pinned or not (ends or widens or revokes):
        return False
    words = about(body)
    shared = any(words & about(each) for each in pinned)
    if asks or (_REQUEST.search(body) and _PARTICULAR.search(body)):
        return shared and (revokes or (asks and ends))
    return shared or takes_back(body)


def _read(sentence: str) -> tuple[str, bool]:
    """Return a sentence folded, without what leads into it, and whether it is a question."""
    folded = " ".join(sentence.replace("’", "'").split()).casefold()
    body = _FILLER.sub("", folded, count=1) if _FILLER.match(folded) else folded
    return body.strip(), bool(_ASKS.search(folded) or _ASKS.search(body)) and not _POLITE.search(
        folded
    )


def about(text: str) -> frozenset[str]:
    """Return the words and the matters that a text is about; Chinese as pairs of characters."""
    words = (word for word in tokens_of(text) if len(word) > 1 and not _COMMON.search(word))
    return frozenset(
        [*words, *(pattern.pattern for pattern in _MATTERS if pattern.search(text.casefold()))]
    )


def takes_back(text: str, *, alone: bool = False) -> bool:
    """Return whether a text takes something back; a question never does, a request for data only
    where it widens, too.

    `alone`: there is one pin, so that a rule which widens must mean that one ("Use all the data.").
    """
    body, asks = _read(text)
    return not asks and bool(
        _REVOKES.search(body)
        or (_ENDS.search(body) and (_SCOPE.search(body) or not _REQUEST.search(body)))
        or (alone and not _REQUEST.search(body) and _SCOPE.search(body) and _is_rule(body, asks))
    )


def only_asks(text: str) -> bool:
    """Return whether a text asks a question or for data, and neither widens what holds, nor lays a
    rule down, nor ends one.
    """
    body, asks = _read(text)
    says_more = any(pattern.search(body) for pattern in (_SCOPE, _ENDS, _REVOKES)) or _is_rule(
        body, asks
    )
    return asks or bool(_REQUEST.search(body) and not says_more)
