"""Find the user's sentences that lay down a lasting rule or take one back, by pattern, in English and Chinese.

For models that call no tools and for summaries that code writes. A hit is only "said in passing": it stands below what
a model was told to keep, and goes first. So a rule is looked for in how people lay one down (it lasts, it forbids, it
defines, it sets a unit, a filter, a style), and a question or a request of the moment is none.
"""

import re
from collections.abc import Iterator, Sequence

LONG = 300
"""Characters past which a sentence is pasted material, no rule of a person."""
MOST_FOUND = 8
"""Finds in one message; one with more changes of earlier rules is a document, and changes none."""
MOST_COMPARED = 64
"""Newest pins that a sentence may change: a long thread costs no more."""


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_END = re.compile(r"[。！？；]+[”’」』\"')）]*|(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?;]+[\"'”’)\]]*(?=\s|$)|\n+(?!\s*[a-z])")
_FENCE = re.compile(r"```.*?(?:```|\Z)|^>.*$", re.DOTALL | re.MULTILINE)
_LEAD = re.compile(r"\s*(?:[-*•·]+\s+|\(?\d{1,2}[.)、]\s*|#+\s+)?\s*")
_CLAUSE = re.compile(r"[,;:，；：—–]+|\s-\s|\b(?:and|but|so|then)\b")
_FILLER = re.compile(
    r"(?:(?:ok(?:ay)?|well|so|also|and|but|oh|hi|hello|hey|thanks?(?: you| a lot)?|please|"
    r"kindly|actually|no(?=[,.!])|yes|right|great|good|sure|"
    r"hmm|wait|sorry|now|first|one (?:more |last )?thing(?: to remember)?|by the way|btw|fyi|"
    r"just so you know|for the record|quick note|reminder|important|"
    r"before (?:we|i|you) (?:start|begin|go on)|let's|let us|(?:i|we)(?:'d|"
    r" would) like you to|(?:i|we) (?:want|need|ask) you to|"
    r"you (?:should|must|need to|have to|are to)(?! not| never| always)|we should(?! not|"
    r" never| always)|(?:can|could|would|will) (?:you|we))\b[\s,:!.…-]*|"
    r"(?:请|麻烦|劳驾|好的|好吧|好|嗯|哦|另外|还有|对了|顺便(?:说一下)?|那么?|不过|但是?|其实|"
    r"首先|最后|您|你们?|帮我|谢谢|注意|"
    r"能不能|能否|可不可以|可否|可以|能)[\s,，:：、。！]*)+"
)
_POLITE = re.compile(
    r"(?:^|[,，:：]\s*)(?:can|could|would|will) (?:you|we)\b|能不能|能否|可不可以|可否|"
    r"(?:好吗|好不好|可以吗|行吗|行不行)[?？]?$"
)
_QUESTION = _any(
    r"[?？][\"'”’)]*$",
    r"^(?:what|which|who|whom|whose|where|why|how|is|are|was|were|do(?!n't| not)|does|did|has|"
    r"have|had|am|may i|shall|should i)\b",
    r"^when (?!i |we |you )",
    r"什么|哪[些个里位种年月家]|多少|几[个位家种次条天年月]|谁|怎么|怎样|如何|为何|是否|"
    r"有没有|是不是|[吗呢][。！\s]*$",
)
_REQUEST = _any(
    r"^(?:show|list|give|get|count|find|compare|plot|draw|chart|graph|break|calculate|compute|"
    r"sum|rank|tell|fetch|pull|run|repeat|query|"
    r"look|display|return|select|sort|group|order|print|report|add|write|make|create|build|"
    r"check|describe|explain|summari[sz]e|export|"
    r"try|go|let me|(?:i want|i need|i'd like)(?: to| the| a)?|name|put|split|join|continue|"
    r"see|analy[sz]e|search|open|help)\b",
    r"^(?:再|先|就|然后|接着|继续|也|又|给我|我想|我要|想)*(?:看|查|列|统计|显示|展示|画|比较|"
    r"对比|算|计算|按|给|求|找|汇总|排|输出|分析|说说|介绍|"
    r"告诉|来|跑|导出|做|生成|检查|解释|换个|把.{1,12}(?:画|列|排|做|导|查))",
)
_PARTICULAR = re.compile(
    r"\d|第[一二三四五六七八九十\d]|前[一二三四五六七八九十\d]|\b(?:top|first|last|next|"
    r"previous)\b|刚才|上一|上面|下一"
)
_MOMENT = _any(
    r"\b(?:this time|(?:just|only) (?:this )?once|for (?:this|that) (?:one|question|chart|"
    r"query|answer|table|list|plot|time))\b",
    r"^(?:\w+ ){1,2}(?:that|this|it|those|these|them|the same)\b(?! (?:always|every|from now))",
    r"这次|这一次|这张|这个(?:问题|图|表)|这道|暂时|第[一二三四五六七八九十\d]|"
    r"前[一二三四五六七八九十\d]|刚才|上一",
)
_PAST = _any(
    r"\b(?:was|were|had|did|didn't|yesterday|last (?:week|month|year|time)|ago|earlier today|"
    r"came|looked|seemed)\b",
    r"昨天|前天|去年|上[周月次]|刚刚|已经|曾|^(?!.*[不别勿]).*了[。！\s]*$",
)
_STANDING = _any(
    r"\bfrom (?:now|here|today|this point|then)(?: on(?:wards?)?)?\b|\bgoing forward\b|"
    r"\bhenceforth\b|\bin (?:the )?future(?=[,.!]|$)",
    r"\bfor the (?:rest|remainder) of\b|\b(?:until|unless) (?:i|we|told|asked|stated|"
    r"otherwise|further|you are)\b|\bwhenever\b",
    r"\b(?:every|each|any) ?time\b|\bby default\b|\bas a (?:general )?rule\b|"
    r"\bunder no circumstances?\b|\bat all times\b|\bno matter (?:what|which|how)\b",
    r"\b(?:in|for|with) (?:all|every|any|each)(?: of)?(?: your| my| the| our| future| later|"
    r" other)* "
    r"(?:answer|repl|result|quer|question|table|report|figure|number|chart|output|list|count|"
    r"total|calculation|response|analys)",
    r"\b(?:for|in|throughout) (?:this|the whole|the entire) (?:project|conversation|session|"
    r"chat|analysis|thread|report)\b",
    r"^(?:remember|keep in mind|bear in mind|note(?= that|[:,]))\b(?! (?:when|how|what|why|the (?:chart|"
    r"table|question)))|\b(?:make|be) sure\b|\bdon't (?:ever|forget)\b",
    r"(?:^|\b(?:you|please|must|should|and|but|to|,) )(?:always|never)\b(?! (?:mind|been|seen|"
    r"had|did|was|were|knew|thought|heard|liked|expected))",
    r"(?<![年月日号天周点期])以后|今后|往后|从现在|从今|从此|(?:接下来|之后|后面|后续)(?:都|"
    r"一律|所有|请|我|不|只|的?[^，,。]{1,6}(?:都|一律))|一律|始终|永远|每次|每当|凡是?|总是|"
    r"务必|切记",
    r"^(?:请)?记(?:住|得|好|一下)|默认|统一|任何(?:情况|时候|场合)|无论|不管|全程|整个(?:会话|"
    r"对话|项目|分析)|本(?:次)?(?:会话|对话|项目)|除非|直到我",
    r"所有的?(?:回答|答案|结果|金额|数字|数值|表格?|日期|时间|距离|价格|图表?|输出|报表|查询|"
    r"统计|平均|百分比|比例|单位)",
)
_FORBIDS = _any(
    r"^(?:do not|don't|dont|never|avoid|refrain from|stop|no longer)\b(?! (?:worry|know|think|"
    r"understand|get|see|bother|mind|care|have|be sorry))",
    r"^no (?!idea|problem|worr|thank|need|one|way|matter|doubt|rush|hurry|wait|it|that|the|"
    r"they|this|not|sorry|result|data|rows?\b|luck|change|error)[a-z-]+",
    r"\b(?:i|we) (?:don't|do not|never|won't) (?:want|need|like|use|count|care|consider|"
    r"report)\b",
    r"(?:^|[我你请都也，])(?:不要|别|不许|不得|不准|禁止|严禁|切勿|勿|避免|不能|不可以?|"
    r"千万别|绝不|绝对不)(?!担心|客气|急|着急|谢|介意|是|说了)",
    r"不(?:要|许|得|准|能|应)(?:出现|显示|包含|包括|使用|泄露|透露|超过|修改|写)",
)
_DEFINES = _any(
    r"\bby .{1,60}?,? (?:i|we) (?:always |only )?mean\b|^when(?:ever)? (?:i|we|you) \w+",
    r"\b(?:means|stands? for|refers? to|(?:is|are) (?:defined|counted|treated|regarded|"
    r"considered|understood|measured) (?:as|in|by|from)|counts? as)\b",
    r"^(?:every|each|any|anyone|anybody|anything|nobody|no one|nothing|everything|someone who|"
    r"whoever|whatever)\b|\b(?:nobody|no one) (?:may|must|should)\b",
    r"^if\b.{1,80},\s*(?:then )?(?:please )?(?:show|use|write|leave|count|treat|say|put|ask|"
    r"stop|tell|skip|ignore|round|don't|do not|never|mark|give|take)\b",
    r"\b(?:i|we)(?:'ve| have)? (?:agreed?|decided|settled)\b|^(?:agree (?:that|on)|define)\b|"
    r"\boff[- ]limits\b|\b(?:to|for) us\b|\bfor our purposes\b|\bunreliable\b",
    r"^(?!it|that|this|there|i |he |she |they )[\w\"' -]{2,40}? (?:starts?|begins?|ends?|"
    r"runs?|includes?|excludes?|(?:is|are) (?:stored|kept|recorded|given|measured)) ",
    r"^(?!it|that|this|there|i |he |she |they )[\w\"' -]{2,40}? (?:is|are) (?:any|anyone|"
    r"someone|when|where|those|everything|between|short for|\w+ to \w+)\b",
    r"^(?!(?:i|it|that|there|you) must(?! not| never| always))(?!.*must have been).*\bmust\b|"
    r"^(?!it|that|this|there|i|they)\w.{1,60}? (?:are|is) to (?:be|stay)\b",
    r"^(?!it |that |this |there |i |they |what )\w.{1,60}? (?:should|shall|needs? to|ha(?:s|"
    r"ve) to|ought to)(?: not| never| always| only)? "
    r"(?:be|use|stay|include|exclude|contain|come|go|count|read|show|appear|start|end|follow|"
    r"refer|have)\b",
    r"是指|指的是|(?:就|都|均|才)?(?:算作?|叫做?|称为|当作|当成|视为|视作|看作|看成|归为|归入|"
    r"计入|计为|记为|记作)|意思是|定义(?:为|是|成)|所谓",
    r"指(?!标|出|数|导|定|着|望|责|令|向|南)|就是(?!说|这|那|了)|(?:按|当作?|显示为?|记为?|"
    r"标为?).{1,8}(?:处理|计算?|算)|约定|说好|商定",
    r"(?:如果|遇到|若是?|碰到|一旦|凡).{1,30}(?:就|则|请|都|显示|写|按|算)|[^，,。]请(?!问|帮|"
    r"看|列|告诉|查|给)|[一-龥]只(?:允许|准|能|许)|^只(?:允许|准|能|许)|也要|每个.{1,8}都|先给",
    r"我们?(?:说|讲|问|提)(?:的|到|起)|必须|应当|应该(?!是|有|没)|(?:都|得|要|须)(?:要|得|用|"
    r"按|以|写|带|加|保留|标|注明|换算|四舍五入)|一定要|规定",
)
_UNIT_WORDS = (
    r"(?:km|kilomet\w+|miles?|met(?:re|er)s?|feet|inch\w*|celsius|fahrenheit|usd|eur|gbp|cny|"
    r"euros?|dollars?|pounds?|yen|francs?|yuan|rmb|"
    r"cents?|thousands?|millions?|billions?|percent\w*|hours?|minutes?|seconds?|days|weeks|"
    r"months|kg|kilos?|kilograms?|grams?|tons?|tonnes|iso|utc|"
    r"gmt|24-hour|local time|english|german|french|spanish|chinese|japanese|italian|decimals?|"
    r"decimal places?|digits?|whole \w+|bold|markdown|"
    r"tables?|bullets?|bullet points?|prose|json|csv|yyyy\S*|dd\S*|alphabetical\w*|descending|"
    r"ascending|words|sentences?|lines|paragraphs?|"
    r"plain \w+|local currency|si units|metric|upper ?case|lower ?case)"
)
_UNITS_ZH = (
    r"(?:公里|千米|米|英里|海里|英尺|美元|人民币|欧元|英镑|日元|元|万|亿|百分比|百分数|小时|"
    r"分钟|秒|天|摄氏|华氏|公斤|千克|克|吨|中文|英文|汉语|"
    r"英语|法语|德语|日语|简体|繁体|表格|列表|小数|整数|位|年月日|时间|时区|千分位|货币|大写|"
    r"小写|格式|单位)"
)
_LOOKS = _any(
    r"^(?:count|look at|look|report) only\b|^.{3,60}\bonly(?:,? please| for now)?[.!]*$|"
    r"\b(?:highest|largest|newest|latest|oldest|smallest|lowest) first\b",
    r"\b(?:a|de)scending\b",
    rf"^(?!(?:it|there|that|the (?:chart|table|list))\b).{{0,70}}\b(?:in|as|to|with|using|"
    rf"under|at most|into) (?:\S+ ){{0,3}}{_UNIT_WORDS}\b",
    rf"^.{{0,30}}\b{_UNIT_WORDS}(?: only|,? please|,? not\b)",
    r"^(?!it|that|this|i |he |she |they ).{2,60}(?:,| and) not (?:(?:by|in|as|the|"
    r"to) )?[\w\"'-]+(?: [\w-]+)?[.!]*$|\brather than\b|而不是|，不(?:用|要|是).{1,8}$",
    r"\b(?:answers?|repl(?:y|ies)|explanations?) only\b|\b(?:short|brief|long) (?:answers?|"
    r"repl|explanation|sentence)|\b(?:two|three|one|four|no|zero|all|\d) decimals?\b|"
    r"\bdigits? after\b",
    r"(?:用|以|按|换算|换成|转成|写成?|记成|讲|说|加|精确到|保留|显示为|格式为?|"
    rf"单位)[^，,。]{{0,8}}{_UNITS_ZH}|四舍五入|取整|为单位|(?:日期|时间|金额|数字|"
    rf"名称).{0, 3}(?:写成|显示成|用|按)|{_UNITS_ZH}(?:表示|计价|作答|回答)",
    r"(?:回答|答案|解释|说明|结论)(?:要|得|请|尽量|简|用|时|里|中|不|先|控制)|简短|简洁|精简|"
    r"言简意赅|字以内|句话以内|不超过|最多",
)
_SETS = _any(
    r"^(?:only(?! \d)|exclude|ignore|leave out|omit|disregard|restrict|limit|stick to|"
    r"stick with|stay (?:in|with)|consider|treat|assume|use|round|express|"
    r"quote|format|convert|measure|answer|reply|respond|speak|call|keep|refer|abbreviate|"
    r"spell|cite|state|prefer|hide|mask|drop|leave|say|cut|close|end|start|begin|stay away|"
    r"forget about|work (?:in|with)|do (?:all|every)|focus on|"
    r"concentrate on|skip|think in|be (?:brief|concise|short|precise|formal|polite|careful|"
    r"exact|terse|detailed))\b",
    r"^(?:count|take|read|understand) .{1,50}? (?:as|once|twice|only)\b|^(?:count|look|report|"
    r"show|list) only\b|^look only at\b|\bonly (?:count|look at|consider|use)\b",
    r"\b(?:i|we) (?:(?:only|always|usually|generally|never) (?:use|want|count|treat|report|"
    r"round|look|work|mean|compare|need|exclude|read|show)|would rather|rather|prefer|(?:want|"
    r"need|expect) (?:all|every|only|no|short|brief|your|answers|numbers))\b",
    r"\bi'd (?:rather|prefer)\b|\b(?:i|we)(?: only|'re only|'m only| am only|"
    r" are only) (?:care|interested|look|want|need)\w*",
    r"\b(?:our|my) .{1,40}?\b(?:is|are|starts?|begins?|runs?|ends?|wants?|uses?|prefers?|"
    r"needs?|means|reads|has to|closes?)\b",
    r"^(?:we|i) (?:use|count|call|treat|define|work|measure|exclude|regard|report|say|write)\b",
    r"\b(?:i|we|boss|team|manager|client|customer) (?:hates?|dislikes?|can't (?:stand|read)|"
    r"love|read|speak)\b|\bi'm (?:colou?r|not (?:a|good)|new)",
    r"(?:^|[，,]|我们?)(?:先|就|都)?(?:只|仅|光)(?:看|算|统计|考虑|要|分析|用|关注|保留|计|查|"
    r"显示|列|关心|"
    r"包括|包含|给|需要|讨论|针对|取|限|在)",
    r"排除|剔除|不算|不计|不含|不包括|不包含|忽略|过滤掉|除去|扣除|去掉|不考虑|不看",
    r"我们?(?:更|比较|都)?(?:喜欢|偏好|习惯|倾向)|我(?:只|不)(?:想|要|需要|关心|看)|"
    r"我们(?:公司|这边|这里|部门|团队|内部|老板|的)?.{0,12}(?:是|用|从|按|算|以|叫)",
)
_ENDS = _any(
    r"\b(?:again|instead|no longer|any ?more|forget|scrap|cancel|revert|undo|lift|remove|"
    r"restore|reset|withdraw|never ?mind|change[ds]?|switch|"
    r"drop|stop|back to|go back|not needed|no need|needn't|don't (?:have|need) to|"
    r"doesn't matter|take (?:that|it) back|as before|as usual|after all|"
    r"may|you can|free to|(?:is|are|it's) (?:ok|okay|fine|allowed)|no more|off|lifted|"
    r"correction|i meant|enough|void|obsolete|no limit)\b",
    r"不用|不必|不需要|无需|不再|取消|恢复|改[回成为用看]|换[回成为]|回到|作废|撤[销回]|"
    r"忘[掉了]|别再|算了|不限|放开|解除|重新|还是|照旧|照常|"
    r"原来|收回|现在可以|现在起|可以.{0,16}了|不算数|停止|更正|说错|之前|前面",
)
_REPLACES = re.compile(
    r"\b(?:instead|no longer|any ?more|back to|go back|forget|switch|cancel)\b|不再|不用|取消|"
    r"恢复|改[回成为用看]|换[回成为]|回到"
)
_SCOPE = re.compile(r"\b(?:all|every\w*|both|any|too|as well|also|whole|entire|now)\b|全部|所有|都|也|又|任何|一起|包括|现在")
_FILTERS = re.compile(r"\b(?:only|exclude|ignore|without|leave out|restrict|limit)\b|[只仅光]|排除|剔除|不[算计含看]|忽略")
_REPLY = re.compile(
    r"^(?:thanks?|thank you|great|good|ok(?:ay)?|perfect|nice|cool|fine|yes|no|sure|got it|"
    r"谢谢|好的?|嗯|明白|知道了|不错|行)[\s,.!，。！]*$"
)
_LATIN, _HAN = re.compile(r"[a-z][a-z'-]{2,}|\d{2,}"), re.compile("[\u3400-\u9fff]{2,}")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "the and for are was you not all but can any now from with that this have has had its our out use "
        "only please show list give count look report always never again should must what when how many "
        "much over into than then them they will would could just also each every rule make back more most",
    )
)
_COMMON_ZH = re.compile(r"[的了吧呢吗请都也再就还是有和与在我你他们这那个一不只看按用以后统计显示数据所全部可现给每次要把]")
_MATTERS = {
    "year": re.compile(r"\b(?:19|20)\d\d\b|\byears?\b|年"),
    "currency": re.compile(
        r"\b(?:usd|eur|gbp|dollars?|euros?|cents?|pounds?|yen|francs?|yuan|rmb|currenc\w+)\b|"
        r"[美欧日]?元|人民币|英镑|货币|币种"
    ),
    "length": re.compile(r"\b(?:km|kilomet\w+|miles?|met(?:re|er)s?|feet)\b|公里|英里|千米"),
    "language": re.compile(r"\b(?:english|german|french|spanish|chinese|japanese|italian|language)\b|中文|英文|[英法德日汉]语"),
    "rounding": re.compile(r"\b(?:round\w*|decimals?|digits?|exact|whole)\b|小数|取整|四舍五入|整数|精确"),
    "size": re.compile(r"\b(?:short\w*|brief\w*|detail\w*|concise|long\w*|words|sentences?|lines)\b|简[短洁]|详细|字|句"),
    "form": re.compile(r"\b(?:tables?|bullets?|prose|markdown|chart)\b|表格|列表|图"),
    "time": re.compile(r"\b(?:hours?|minutes?|seconds?|utc|time ?zone)\b|小时|分钟|时区"),
}


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text as they stand in it, without code blocks, quoted lines, bullets and outer blanks."""
    for part in _FENCE.split(text):
        start = 0
        for end in [*(stop.end() for stop in _END.finditer(part)), len(part)]:
            if sentence := _LEAD.sub("", part[start:end], count=1).strip():
                yield sentence
            start = end


def rules_in(text: str, pinned: Sequence[str] = ()) -> list[str]:
    """Return the sentences of a message that lay down a rule, or change one of `pinned`; at most `MOST_FOUND`."""
    found: dict[str, bool] = {}
    """Each sentence, with whether it lays down a rule by itself."""
    for sentence in sentences(text):
        body, asks = _read(sentence)
        if len(sentence) > LONG or len(body) <= 3 or _REPLY.match(body):
            continue
        changes = sum(not rule for rule in found.values())
        if len(found) - changes < MOST_FOUND and _is_rule(body, asks):
            found[sentence] = True
        elif changes <= MOST_FOUND and _is_change(body, asks, [*pinned[-MOST_COMPARED:], *found]):
            found.setdefault(sentence, False)
    pasted = sum(not rule for rule in found.values()) > MOST_FOUND
    return [sentence for sentence, rule in found.items() if rule or not pasted][:MOST_FOUND]


def _is_rule(body: str, asks: bool) -> bool:
    """Return whether a sentence lays down what is to hold for later answers."""
    clauses = [_FILLER.sub("", clause.strip(), count=1) for clause in _CLAUSE.split(body)]
    if asks:  # "use km, how far is it?": what stands before the question may be a rule of its own
        return any(not _QUESTION.search(each) and _is_set(each) for each in clauses if len(each) > 3 and not each.endswith(("的话", "时")))
    return bool(_STANDING.search(body)) or any(map(_is_set, [body, *clauses[: 1 if _REQUEST.search(body) else None]]))


def _is_set(clause: str) -> bool:
    """Return whether a clause that is no question sets something; a request for data sets only how all data looks."""
    if _STANDING.search(clause):
        return True
    if _MOMENT.search(clause) or _PAST.search(clause):
        return False
    if _REQUEST.search(clause):
        return (
            bool(_LOOKS.search(clause))
            and not _PARTICULAR.search(clause)
            and not re.search(r"\b(?:of|for|by|from|per|me|who|which|that|whose|where|with|the|this|it)\b|[各每这那]", clause)
        )
    return bool(_FORBIDS.search(clause) or _DEFINES.search(clause) or _LOOKS.search(clause) or _SETS.search(clause))


def _is_change(body: str, asks: bool, pinned: Sequence[str]) -> bool:
    """Return whether a sentence seems to change or take back one of the sentences that are pinned."""
    about, ends, scope = _about(body), bool(_ENDS.search(body)), bool(_SCOPE.search(body))
    shared, replaces = any(about & _about(_read(each)[0]) for each in pinned), bool(_REPLACES.search(body))
    if not pinned or asks or (_REQUEST.search(body) and _PARTICULAR.search(body)):
        return shared and (replaces or (asks and ends))
    if _REQUEST.search(body):
        return (shared and (ends or scope)) or replaces or (ends and scope) or "everything" in body
    return ends or shared or (scope and any(_FILTERS.search(each.casefold()) for each in pinned))


def _read(sentence: str) -> tuple[str, bool]:
    """Return a sentence folded, without what leads into it, and whether it is a question."""
    folded = " ".join(sentence.replace("’", "'").split()).casefold()
    body = _FILLER.sub("", folded, count=1) if _FILLER.match(folded) else folded
    return body.strip(), bool(_QUESTION.search(folded) or _QUESTION.search(body)) and not _POLITE.search(folded)


def _about(body: str) -> frozenset[str]:
    """Return the words and the matters that a sentence is about; Chinese as pairs of characters."""
    latin = {word.rstrip("s") for word in _LATIN.findall(body) if word not in _COMMON}
    runs = [run for word in _HAN.findall(body) for run in _COMMON_ZH.split(word)]
    pairs = {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
    return frozenset(latin | pairs | {name for name, pattern in _MATTERS.items() if pattern.search(body)})
