"""The words by which a user's standing rules are told from questions, English and Chinese: data, no logic."""

UNITS: dict[str, str] = {
    "length": r"kilomet(?:er|re)s?|kms?|miles?|nautical miles?|met(?:er|re)s?|feet|foot|inch(?:es)?|yards?|centimet(?:er|re)s?|cm"
    r"|公里|千米|英里|海里|英尺|厘米|米",
    "system": r"metric(?: units?| system)?|imperial(?: units?| system)?|si units?|公制|英制",
    "weight": r"kilograms?|kilos?|kgs?|pounds?|lbs?|grams?|tons?|tonnes?|ounces?|公斤|千克|磅|吨|斤",
    "temperature": r"celsius|fahrenheit|kelvin|centigrade|摄氏度?|华氏度?",
    "time": r"hours?|minutes?|seconds?|milliseconds?|小时|分钟|秒",
    "currency": r"(?:us |u\.s\. |canadian |australian )?dollars?|euros?|usd|eur|gbp|cny|rmb|jpy|chf|yuan|yen|pounds sterling"
    r"|sterling|francs?|rupees?"
    r"|人民币|美元|欧元|英镑|日元|港币|港元",
    "share": r"percent(?:age)?s?|per cent|fractions?|百分比|百分数|百分点",
    "scale": r"thousands?|millions?|billions?|千元|万元|百万|亿元|万|亿",
    "speed": r"km/h|kmh|mph|knots|节",
    "volume": r"lit(?:er|re)s?|gallons?|升|加仑",
}
"""Unit words by what they measure; each key is one matter."""

LANGUAGES = (
    r"english|german|french|spanish|italian|chinese|mandarin|japanese|korean|russian|portuguese|dutch|polish|arabic"
    r"|turkish|deutsch|français"
    r"|中文|英文|英语|汉语|普通话|德语|德文|法语|法文|日语|日文|韩语|韩文|俄语|西班牙语|粤语"
)

GENERIC: dict[str, str] = {
    "length": "distance distances length lengths 距离 长度 里程",
    "system": "",
    "weight": "weight weights mass 重量",
    "temperature": "temperature temperatures temps 温度 气温",
    "time": "duration durations times time 时长 时间 耗时",
    "currency": "amount amounts price prices money currency monetary 金额 价格 货币 钱",
    "share": "share shares rate rates ratio ratios percentage 比例 占比 比率",
    "scale": "amount amounts number numbers 金额 数字",
    "speed": "speed speeds 速度",
    "volume": "volume volumes 体积",
}
"""What a unit is of anyway: naming it narrows nothing."""

NOISE = frozenset(
    """
    a an the all any every each everything anything always never from now here point onwards on forward going moving
    future in to into of as at by for with and or but so then not no instead rather than again please thanks thank you
    ok okay also just only actually well hi hello kindly sorry i me my we us our your it its they them this that these
    those i'd i'm we'll let's lets let would like want need prefer wish could can will shall should must may might be is
    are was were been do does did don't use using used show shown display report give given state express expressed
    quote convert print write return present output put make keep answer answers answered reply replies respond response
    responses result results value values figure figures number numbers column columns field fields table tables quer
    query queries switch change changed back go mind stick stay rest conversation session chat unless otherwise told say
    said ask asked until further notice default whenever time times round rounded rounding truncate decimal decimals
    place places digit digits significant whole integer integers nearest fully up down plain simple language languages
    unit units speak talk explain write continue have has had really still them there where when henceforth exclude
    excluded ignore omit skip disregard leave out drop discard filter hide mask include included remove reveal contain
    appear consider count limit restrict focus look take rows row data records forget rule rules restriction instruction
    longer anymore about excluding using showing rounding answering counting including hiding ignoring skipping replying
    reporting more stop allowed off limits avoid touch
    """.split()  # noqa: SIM905 - a list of this many words reads better as text
)
"""English words that do not tell what a rule is about."""

NUMBERS = frozenset(
    """
    zero one two three four five six seven eight nine ten twenty fifty hundred more than under over most least
    """.split()  # noqa: SIM905 - a list of this many words reads better as text
)
"""Words of amount: they say how much a rule allows, not what it is about."""

NOISE_ZH = (
    r"以后|今后|往后|从现在(?:起|开始)|从今(?:以后|往后)|接下来|后面|后续|每次|所有|全部|任何|一律|统一|默认|总是|始终"
    r"|都|请|麻烦|帮我|给我|我们?|你"
    r"|不用再|不必再|无需再|不需要再|不要再|不再|不要|不能|不得|不许|不可以|禁止|请勿|切勿|别|必须|务必|应该|需要"
    r"|一定要|只|仅|就|再|也|还是|而不是|不用"
    r"|用|以|按照?|换算成|换成|转换成|改用|改成|改为|使用|采用|表示|显示|展示|输出|给出|列出|回答|回复|作答|说明?|讲"
    r"|写|单位|结果|答案|数字|数值|数据"
    r"|保留|取整|四舍五入|精确|小数点?后?|位数?|小数|整数|有效数字|到|排除|剔除|忽略|去掉|除去|过滤掉?|包括|包含|统计"
    r"|计算|分析|查询|看|算|考虑|出现"
    r"|取消|恢复|可以|重新|规则|限制|要求|这?一?列|字段|表|这张|的|了|吧|把|在|里|中|是|为|成|时|和|与|并|且|请?注意"
    r"|记住|好吗|尽量|一?点儿?|说?话|超过|控制|以内"
)

QUESTION_EN = (
    r"(?:how|which|what|what's|who|whose|whom|when(?! (?:i|we|you|giving|showing|reporting)\b)|where|why|is|are|was"
    r"|were|do(?! (?:not|all|every|any)\b)|does|did|has|have|had"
    r"|am|can i|may i|what's|whats|isn't|aren't|doesn't|didn't|should|shall|may|might|must)\b"
)
QUESTION_ZH = r"多少|哪|几[个家位条架次种天年月张]|什么|谁|吗[？?。]?$|呢[？?。]?$|是否|有没有|为什么|为何|怎么|如何"

DATA_EN = (
    r"(?:list|show|give|find|count|display|tell|return|compute|calculate|get|fetch|print|compare|plot|draw|select|sum"
    r"|rank|search|look up|name"
    r"|provide|retrieve|extract|summari[sz]e|group|sort|order|report|see|i (?:want|need|wish|would like|'d like)"
    r"|i'd like|make (?:a|me|the) (?:list|table|chart|plot)|(?:update|filter|extend|change) (?:this|that|the"
    r"|your) (?:list|table|result)|let me (?:see|know)|what about|how about)\b"
)
DATA_ZH = (
    r"(?:列出|列举|显示|查询|查找|查一?下|找|统计|计算|给我|给出|帮我|看看|求|告诉|对比|比较|返回|展示|输出"
    r"|我想(?:知道|看|了解)|我要看|看一下|算一下|分析一下|按)"
)

FILLERS = (
    r"(?:(?:ok(?:ay)?|thanks?(?: you)?|hi|hello|hey|well|so|also|and|but|please|then|actually|great|right|good"
    r"|by the way|btw|one more thing"
    r"|first(?: of all)?|sorry|kindly|hmm+|yes|oh|finally|again|because|since|just|now|i think|hint|reminder"
    r"|another thing|important(?:ly)?)\b"
    r"|好的|好(?=[，,。])|嗯|另外|还有|此外|对了|那么|请(?!勿)|麻烦你?|顺便说一下|首先|其次|谢谢|而且|同时|最后|但是?"
    r"|不过|然后|现在)[\s,，:：!！、-]*"
)
