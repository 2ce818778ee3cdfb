"""Turn a simple Chinese question into English tokens in an order the parser reads; schema names and values stay as they are."""

# ruff: noqa: E501, SIM905 - word lists read best as long lines of plain words

import re
from collections.abc import Iterable

from longtable.app.offline.text import Token, tokenize

# Longest match wins. An empty translation drops the word.
_WORDS = """
多少=how many|几=how many|有多少=how many|多少个=how many|多少条=how many|多少名=how many|多少位=how many|多少家=how many|多少首=how many|多少张=how many|多少架=how many|多少次=how many
几个=how many|几次=how many|几种=how many distinct|几位=how many|几名=how many|多少种=how many distinct|多少不同的=how many distinct|数量=number of ~|个数=number of ~|总数=number of ~|人数=number of person ~|次数=number of ~|数目=number of ~|总共=|一共=|共有=|共=
平均=average|平均值=average ~|均值=average ~|平均数=average ~|总和=sum ~|总计=sum|合计=sum|总额=total ~|总量=total ~|总=total|最大值=maximum ~|最小值=minimum ~|最大=highest|最小=lowest|最高=highest|最低=lowest|最多=most ~|最少=fewest ~
最长=longest|最短=shortest|最贵=most expensive|最便宜=cheapest|最老=oldest|最年轻=youngest|最年长=oldest|最新=newest|最近=most recent|最早=earliest|最晚=latest|最快=fastest|最慢=slowest|最重=heaviest|最轻=lightest|最远=farthest|最近的距离=shortest distance|最热门=most popular|最受欢迎=most popular|最常见=most common|最好=best|最差=worst|最大的=largest|最小的=smallest
最高的=highest|最低的=lowest|年龄最大=oldest|年龄最小=youngest|价格最高=most expensive|价格最低=cheapest
每个=each|每=each|各=each|每一个=each|各个=each|每位=each|每名=each|每家=each|每种=each|每类=each|每张=each|每首=each|每架=each|每天=each day|每年=each year|每月=each month|每个月=each month|每一年=each year|每季度=each quarter|每小时=each hour|按月=by month|按年=by year|按天=by day|按日=by day|按季度=by quarter|按小时=by hour|按=by|按照=by|根据=by|分组=|统计=|分别=|分布=|分类=
大于=more than|多于=more than|超过=more than|高于=more than|大于等于=at least|不少于=at least|至少=at least|不低于=at least|小于=less than|少于=less than|低于=less than|不到=less than|小于等于=at most|不超过=at most|至多=at most|最多不超过=at most|不高于=at most|等于=equal to|不等于=not equal to|晚于=after|早于=before|之后=after ~|以后=after ~|之前=before ~|以前=before ~|以来=since ~|介于=between|之间=|长于=longer than|短于=shorter than|贵于=more expensive than
以上=or more|以下=or less|及以上=or more|或以上=or more|及以下=or less|或更多=or more|或更少=or less
没有=without|无=without|没=not|不是=not|不在=not|非=not|未=not|不含=not|从未=never|从来没有=never|缺少=without|为空=is null|是空=is null|缺失=is null|不为空=is not null|除了=except|除=except|以外=|之外=
不同=distinct|不同的=distinct|不重复=distinct|去重=distinct|唯一=distinct|种类=distinct
包含=containing|含有=containing|包括=containing|以开头=starting with|开头=starting with ~|开始=start|结尾=ending with ~|以结尾=ending with
排序=order|升序=ascending|降序=descending|从高到低=descending|从低到高=ascending|从大到小=descending|从小到大=ascending|倒序=descending|正序=ascending|从多到少=descending|从少到多=ascending|由高到低=descending|由低到高=ascending|排列=order|按升序=ascending|按降序=descending
前=top|前面=top|后=last|最后=last|第一=first|首先=first|头=top|倒数=bottom
列出=list|显示=show|给出=show|查询=show|查找=find|找出=find|看看=show|告诉=tell|请=|请问=|我=|想=|知道=|帮=|我想知道=|帮我=|一下=|所有=all|全部=all|全体=all|名单=list
哪个=which|哪些=which|哪位=which|哪家=which|哪一个=which|哪种=which|哪首=which|哪张=which|哪=which|谁=who|什么=what|是什么=what|什么时候=when|何时=when|哪里=where|哪儿=where|是=is|是多少=what is|为=is|有=have|有哪些=which|在=in|从=from|到=to|至=to|由=by|的=of|了=|吗=|呢=|啊=|吧=|和=and|与=and|及=and|以及=and|或=or|或者=or|还是=or|并且=and|且=and|而=and|就=|都=|也=also|还=also|又=also|只=only|仅=only|只看=only|只要=only|只有=only|仅看=only|那么=|那=|那些=those|这些=those|他们=they|它们=they|她们=they|它=it|他=he|她=she|其=their|其中=of those|这=this|该=this|上述=those|以上这些=those|其他=the others|其余=the rest|其它=the others|剩下=the rest|同样=same|一样=same|相同=same|再=|换成=what about|改成=what about|改为=what about|怎么样=|如何=|情况=|结果=|数据=data|记录=records|信息=information
个=|条=|名=|位=|家=|首=|张=|架=|次=|件=|部=|只股=|本=|辆=|台=|份=|所=|种=|里=in|中=in|上=in|内=in|下=|当中=in|里面=in|时=|时候=|期间=in|之中=in|比=than|占比=percentage of|百分比=percentage of|比例=percentage of|占=|百分之几=percentage of|多大=how old|多长=how long|多重=how heavy|多高=how tall|多久=how long|属于=|来自=from|位于=in|住在=in|飞往=to|飞到=to|飞=fly|出发=depart|起飞=depart|出发时间=departure time|起飞时间=departure time|到达时间=arrival time|抵达时间=arrival time|离开=left|到达=arrive|抵达=arrive|前往=to|去=to|发往=to|拥有=have|购买=buy|买=buy|卖=sell|售出=sell|花费=spent|花=spent|写=write|出生=born|雇佣=hire|入职=hire|上映=release|发行=release|制造=made|生产=made|成立=founded|开业=open
航班=flight|航空公司=airline|承运人=carrier|飞机=plane|机场=airport|天气=weather|机型=model|型号=model|制造商=manufacturer|厂商=manufacturer|延误=delay|晚点=delay|出发延误=departure delay|起飞延误=departure delay|到达延误=arrival delay|抵达延误=arrival delay|目的地=destination|始发地=origin|出发地=origin|出发机场=origin|起飞机场=origin|到达机场=destination|距离=distance|飞行距离=distance|飞行时间=air time|空中时间=air time|机尾号=tail number|尾号=tail number|座位=seat|座位数=seat|座=seat|发动机=engine|引擎=engine|速度=speed|温度=temperature|气温=temperature|湿度=humidity|风速=wind speed|降水=precipitation|能见度=visibility|气压=pressure|航班号=flight number|取消=cancelled
客户=customer|顾客=customer|用户=user|员工=employee|雇员=employee|职员=employee|经理=manager|部门=department|供应商=supplier|产品=product|商品=product|订单=order|订单数=number of order|发票=invoice|类别=category|分类目录=category|运货商=shipper|运输公司=shipper|运费=freight|库存=stock|单价=unit price|价格=price|售价=price|成本=cost|费用=cost|金额=amount|销售额=sales|销量=sales|收入=revenue|折扣=discount|数额=amount|总价=total
歌手=artist|艺术家=artist|艺人=artist|专辑=album|歌曲=track|曲目=track|歌=track|音轨=track|流派=genre|风格=genre|播放列表=playlist|歌单=playlist|媒体类型=media type|作曲家=composer|作曲=composer|时长=length|长度=length|大小=size|标题=title|名称=name|名字=name|姓名=name|姓=last name|电影=movie|演员=actor|导演=director|语言=language|音乐会=concert|演唱会=concert|体育场=stadium|容量=capacity|博物馆=museum|游客=visitor|门票=ticket
学生=student|老师=teacher|教师=teacher|教授=professor|课程=course|班级=class|成绩=grade|分数=score|年级=grade|学校=school|大学=university|专业=major|学分=credit|学期=semester|系=department|医院=hospital|医生=doctor|护士=nurse|病人=patient|患者=patient|病房=ward|预约=appointment|就诊=visit|诊断=diagnosis|药品=medicine|药物=medication|处方=prescription|科室=department|手术=surgery|住院=admission|疾病=disease
图书=book|书=book|书籍=book|图书馆=library|作者=author|作家=author|出版社=publisher|读者=member|会员=member|借阅=loan|借书=loan|罚款=fine|分馆=branch|出版=publish|页数=page|页=page
车辆=vehicle|汽车=car|卡车=truck|司机=driver|驾驶员=driver|仓库=warehouse|货物=shipment|运单=shipment|包裹=parcel|路线=route|线路=route|货运=shipment|快递=shipment|重量=weight|体积=volume|商店=shop|店铺=shop|门店=store|宠物=pet|狗=dog|猫=cat|国家=country|城市=city|省=province|州=state|地区=region|地址=address|电话=phone|邮箱=email|电子邮件=email|邮编=postal code|年龄=age|性别=sex|男=male|女=female|男性=male|女性=female|男生=male|女生=female|生日=birth date|出生日期=birth date|工资=salary|薪水=salary|薪资=salary|奖金=bonus|职位=title|职称=title|公司=company|日期=date|时间=time|年份=year|月份=month|星期=weekday|季度=quarter|小时=hour|分钟=minutes|秒=seconds|天=day|年=year|月=month|日=day|公里=km|英里=miles|公斤=kg|元=dollars|美元=dollars|岁=years|人=person|人口=population|面积=area|评分=rating|等级=level|级别=level|类型=type|状态=status|描述=description|数=number of ~|编号=id|号码=number|代码=code
品牌=brand|客人=guest|顾问=consultant|月薪=salary|年薪=salary|薪=salary|预订=booking|订房=booking|入住=check in|评价=review|星级=star|晚=night|票价=fare|座席=seat|租赁=rental|租借=rental|出租=rental|自行车=bike|票=ticket|航线=route|酒店=hotel|房间=room|餐厅=restaurant|菜=dish|比赛=match|球队=team|球员=player|银行=bank|账户=account|交易=transaction|贷款=loan|文章=article|评论=comment|项目=project|任务=task|合同=contract|设备=device|传感器=sensor|船=ship|港口=port|岛=island|河流=river|山=mountain|公园=park|动物=animal|植物=plant|种子=seed|工厂=factory|机器=machine|零件=part|材料=material|颜色=color|尺寸=size|高度=height|宽度=width|深度=depth|出生年份=birth year|余额=balance|利率=interest rate|排名=rank
巴西=Brazil|加拿大=Canada|美国=USA|法国=France|德国=Germany|英国=UK|中国=China|日本=Japan|印度=India|意大利=Italy|西班牙=Spain|墨西哥=Mexico|葡萄牙=Portugal|荷兰=Netherlands|澳大利亚=Australia|阿根廷=Argentina|瑞典=Sweden|挪威=Norway|丹麦=Denmark|芬兰=Finland|波兰=Poland|比利时=Belgium|奥地利=Austria|瑞士=Switzerland|爱尔兰=Ireland|俄罗斯=Russia|韩国=Korea|伦敦=London|巴黎=Paris|柏林=Berlin|北京=Beijing|上海=Shanghai|东京=Tokyo|纽约=New York|摇滚=Rock|爵士=Jazz|拉丁=Latin|金属=Metal|古典=Classical|蓝调=Blues|流行=Pop|饮料=Beverages|海鲜=Seafood|肉类=Meat
一月=January|二月=February|三月=March|四月=April|五月=May|六月=June|七月=July|八月=August|九月=September|十月=October|十一月=November|十二月=December|一月份=January|二月份=February|三月份=March|四月份=April|五月份=May|六月份=June|七月份=July|八月份=August|九月份=September|十月份=October|十一月份=November|十二月份=December|周一=Monday|周二=Tuesday|周三=Wednesday|周四=Thursday|周五=Friday|周六=Saturday|周日=Sunday
一=1|二=2|两=2|三=3|四=4|五=5|六=6|七=7|八=8|九=9|十=10|一百=100|一千=1000|一万=10000|十个=10|五个=5|三个=3|两个=2
"""
LEXICON: dict[str, str] = {pair.split("=")[0]: pair.split("=")[1] for line in _WORDS.strip().splitlines() for pair in line.split("|")}
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
_CJK_RUN = re.compile(r"[\u3400-\u9fff]+")
_QUOTED = re.compile(r"""["“「《'‘]([^"”」》'’]+)["”」》'’]""")


def translate(question: str, names: Iterable[str]) -> list[Token]:
    """Return English tokens for a Chinese question; `names` are schema names and values in Chinese, kept whole."""
    lexicon = {**LEXICON, **{name: f"\0{name}" for name in names if _CJK_RUN.search(name)}}
    text = _dates(question)
    pieces: list[str] = []
    place = 0
    for match in re.finditer(r"""["“「《‘][^"”」》’]+["”」》’]|[\u3400-\u9fff]+""", text):
        pieces.append(text[place : match.start()])
        run = match.group(0)
        pieces += [f' "{run[1:-1]}" '] if _QUOTED.fullmatch(run) else [f" {word} " for word in segment(run, lexicon)]
        place = match.end()
    pieces.append(text[place:])
    return _tokens(_reorder([piece.strip() for piece in pieces if piece.strip()]))


def segment(run: str, lexicon: dict[str, str]) -> list[str]:
    """Split a run of Chinese by longest match; what is not in the lexicon stays as one unknown word."""
    words: list[str] = []
    unknown = ""
    place = 0
    longest = max(map(len, lexicon))
    while place < len(run):
        size = next((size for size in range(min(longest, len(run) - place), 0, -1) if run[place : place + size] in lexicon), 0)
        if not size:
            unknown += run[place]
            place += 1
            continue
        if unknown:
            words.append(f"\0{unknown}")
            unknown = ""
        if translated := lexicon[run[place : place + size]]:
            words.append(translated)
        place += size
    return [*words, f"\0{unknown}"] if unknown else words


def _dates(text: str) -> str:
    text = re.sub(r"(\d{4})\s*年\s*(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]", lambda m: f" {m[1]}-{int(m[2]):02d}-{int(m[3]):02d} ", text)
    text = re.sub(
        r"(\d{4})\s*年\s*(\d{1,2})\s*月份?", lambda m: f" {_MONTHS[int(m[2]) - 1] if 1 <= int(m[2]) <= 12 else m[2]} {m[1]} ", text
    )
    text = re.sub(
        r"(?<!\d)(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]",
        lambda m: f" {_MONTHS[int(m[1]) - 1] if 1 <= int(m[1]) <= 12 else m[1]} {m[2]} ",
        text,
    )
    text = re.sub(r"(?<!\d)(\d{1,2})\s*月份?", lambda m: f" {_MONTHS[int(m[1]) - 1] if 1 <= int(m[1]) <= 12 else m[1]} ", text)
    return re.sub(r"(\d{4})\s*年", r" \1 ", text)


def _reorder(words: list[str]) -> list[str]:
    """Move postfix words (marked ~) before the noun phrase they close: 航班 最多 -> most flights, 航班 数量 -> number of flights."""
    out: list[str] = []
    for word in words:
        if not word.endswith("~"):
            out.append(word)
            continue
        plain = word[:-1].strip()
        place = len(out)
        while place and out[place - 1] in ("of", "in", "have", "is"):
            place -= 1
        if place:
            place -= 1
            while place and _joins_noun(out, place):
                place -= 1
        if plain.startswith("number of") and place and out[place - 1] in ("most", "fewest"):
            place -= 1
        out.insert(place, plain)
    return _split_order(_before_than(out))


_STOPS = frozenset(
    "of is in have from to and or by each which what who how many how many distinct average most fewest highest lowest top last list show find only those between than "
    "more than less than at least at most same all not without".split()
) | {"how many", "more than", "less than", "at least", "at most", "number of", "how many distinct"}


def _joins_noun(out: list[str], place: int) -> bool:
    """Say whether the word before `place` belongs to the same noun: 'departure' before 'delay'."""
    before = out[place - 1]
    return before not in _STOPS and before.isascii() and before.islower() and before + " " + out[place] in _COMPOUNDS


_COMPOUNDS = {
    "departure delay",
    "arrival delay",
    "unit price",
    "air time",
    "tail number",
    "wind speed",
    "media type",
    "birth date",
    "postal code",
    "number of order",
}


def _before_than(out: list[str]) -> list[str]:
    """Undo 比 X 更: comparisons with words after are read as they stand."""
    return [word for word in out if word != "than"]


def _split_order(out: list[str]) -> list[str]:
    """Turn 'by X order' into 'order by X', and 'top X' without a number as it stands."""
    if "order" in out and "by" in out and out.index("by") < out.index("order"):
        place = out.index("by")
        rest = [word for index, word in enumerate(out) if index != out.index("order")]
        rest[place] = "sort by"
        return rest
    if "by" in out and any(word in ("descending", "ascending") for word in out[out.index("by") :]):
        out[out.index("by")] = "sort by"
    return out


def _tokens(words: list[str]) -> list[Token]:
    tokens: list[Token] = []
    for word in words:
        if word == "of":
            tokens.append(Token("的", "of", "word", len(tokens)))
        elif word.startswith("\0"):
            tokens.append(Token(word[1:], word[1:].lower(), "word", len(tokens)))
        else:
            tokens += [Token(token.text, token.word, token.kind, len(tokens) + place) for place, token in enumerate(tokenize(word))]
    return tokens
