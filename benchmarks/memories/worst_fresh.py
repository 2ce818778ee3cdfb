"""Make fresh long conversations with planted facts and rules: what `worst` does, in other words.

Written blind on 2026-11-24. English is about hospitals, Chinese about a power grid. From `worst`
come the dataclasses and the placing; words, figures, tables and the summarisers' manners are new.
"""

import html
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from benchmarks.memories import worst
from benchmarks.memories.worst import (
    GENERATED,
    MADE_UP,
    MOST_WORDS_A_ROW,
    REVOKED,
    ROWS,
    RULES,
    SEMANTIC,
    TURN_TOKENS,
    Character,
    Count,
    Entry,
    Item,
    Language,
    Thread,
    Turn,
    Words,
)


@dataclass(frozen=True)
class Manners:
    """Hold how summarising models set out what they write in one language."""

    headings: tuple[str, ...]
    bullets: tuple[str, ...]
    rule_frames: tuple[str, ...]


@dataclass(frozen=True)
class Invention:
    """Hold one made-up figure and the line that claims it."""

    figure: str
    line: str


EN_RULES = (
    Entry(
        "Whenever beds come up, maternity cots don't belong in the number.",
        "Bed numbers are without maternity cots",
        "maternity cots",
    ),
    Entry(
        "Ages go in bands of five years; nobody needs single years.",
        "Show ages in bands of five years",
        "bands of five years",
    ),
    Entry(
        "Length of stay means midnights slept here and nothing else.",
        "Length of stay is the number of midnights slept in the house",
        "midnights slept",
    ),
    Entry(
        "Could you stick to medians throughout? The board gets misled otherwise.",
        "Middle values are to be medians so as not to mislead the board",
        "medians|board",
    ),
    Entry(
        "Where fewer than seven patients share a cell, print a dash so nobody can be recognised.",
        "A dash is printed in cells with fewer than seven patients",
        "dash|seven patients",
    ),
    Entry(
        "I'd rather see ward codes spelled out, Willow instead of W4.",
        "Ward codes are spelled out: Willow, not W4",
        "spelled out|Willow",
    ),
    Entry(
        "Moves between our own buildings are not admissions; treat them accordingly.",
        "Patients moved between our own buildings are not admissions",
        "between our own buildings|not admissions",
    ),
    Entry(
        "It'd help if every table closed with a line of totals.",
        "At the foot of a table stands a line of totals",
        "line of totals",
    ),
    Entry(
        "Quote waiting times in working days, and calendar days never.",
        "Waiting times come in working days",
        "working days",
    ),
    Entry(
        "We don't name consultants in print, initials only.",
        "Doctors appear by initials only, without a name",
        "initials only",
    ),
    Entry(
        "As of today, anything older than the merger of 2019 is off limits.",
        "Nothing from the time ahead of the merger of 2019 may be used",
        "merger of 2019",
    ),
    Entry(
        "Mind your wording: our lawyers insist on service user.",
        "Lawyers want people called service user",
        "service user",
    ),
    Entry(
        "Treat readmissions inside thirty days as one stay, would you.",
        "One stay includes readmissions inside thirty days",
        "readmissions|thirty days",
    ),
    Entry(
        "Keep day surgery and overnight surgery in two columns at all times.",
        "There are two columns, one for day surgery, one for overnight surgery",
        "day surgery|overnight surgery",
    ),
    Entry(
        "If a figure is provisional, star it.",
        "Each provisional figure: star it",
        "provisional|star it",
    ),
    Entry(
        "Visitors insured abroad run on a different budget, so they stay out unless I bring them up.",
        "People insured abroad stay out (different budget) till the user asks for them",
        "insured abroad|different budget",
    ),
    Entry(
        "Speak to me as to a nurse. No statisticians' jargon.",
        "Tone of replies: as to a nurse, no jargon",
        "as to a nurse|jargon",
    ),
    Entry(
        "Costs shall be stated per treated case.",
        "State costs per treated case",
        "per treated case",
    ),
    Entry(
        "A theatre session is four hours for us, whatever the printed plan claims.",
        "For the user a theatre session lasts four hours",
        "theatre session|four hours",
    ),
    Entry(
        "Whatever the simulation ward produces is training material and must not leak into results.",
        "Results hold nothing of the simulation ward",
        "simulation ward",
    ),
    Entry(
        "Number your findings so I can refer to them in the meeting.",
        "The findings carry numbers, the user will refer to them",
        "findings|refer to them",
    ),
    Entry(
        "The trust is spelled Saint Oda in full, don't shorten it.",
        "Write Saint Oda without shortening",
        "Saint Oda",
    ),
    Entry(
        "Public holidays count as Sundays, wherever they fall.",
        "A holiday will count as Sundays do",
        "count as Sundays",
    ),
    Entry(
        "Sites may be set side by side only once you have adjusted for case mix.",
        "First adjust for case mix, then compare sites",
        "case mix",
    ),
    Entry(
        "You needn't ever hand my question back to me.",
        "Do not hand the question back to the user",
        "question back to",
    ),
    Entry(
        "I need two versions of each headline number, with and without agency nurses.",
        "Headline numbers: with and without agency nurses",
        "with and without agency nurses",
    ),
    Entry(
        "Flag each ward that is over ninety per cent full.",
        "Wards over ninety per cent full get a flag",
        "ninety per cent full",
    ),
    Entry(
        "Temperatures, should they turn up, go in Celsius.",
        "Give temperatures in Celsius",
        "Celsius",
    ),
    Entry(
        "From this point I get the bad news ahead of the good.",
        "Order of a reply: the bad news ahead of anything pleasant",
        "bad news ahead",
    ),
)

EN_REVOKED = (
    Entry(
        "For the time being paediatrics stays out of all sums.",
        "Keep paediatrics out of all sums",
        "paediatrics|out of all sums",
        "Right, open paediatrics up again.",
    ),
    Entry(
        "List the wards alphabetically.",
        "Wards are ordered alphabetically",
        "alphabetically",
        "You can go back to having the busiest ward on top.",
    ),
    Entry(
        "Pretend that Hill House shut down in March and skip it from there.",
        "The user pretends that Hill House shut down in March",
        "Hill House|shut down in March",
        "Forget what I said about Hill House, it is still running.",
    ),
    Entry(
        "Nothing but weekdays interests me.",
        "The user cares for weekdays and no others",
        "weekdays",
        "Actually include Saturdays too, and the day after.",
    ),
    Entry(
        "Put cardiology and chest medicine under a common heading, heart and lung.",
        "One heading, heart and lung, for cardiology and chest medicine",
        "chest medicine|heart and lung",
        "Cardiology and chest medicine are to be split once more, they have two chiefs now.",
    ),
    Entry(
        "Waiting lists: oldest entry on top, please.",
        "In waiting lists the oldest entry leads",
        "oldest entry",
        "Reverse the waiting lists, the newest goes first.",
    ),
    Entry(
        "Add a short version in Welsh to everything.",
        "Everything has a short version in Welsh",
        "Welsh",
        "No need for the second language any more, English will do.",
    ),
    Entry(
        "Stick with the old triage scale when you compare.",
        "Comparisons use the old triage scale",
        "old triage scale",
        "The old scale has served its time: it is the five steps from here.",
    ),
    Entry(
        "Bundle the three outpatient clinics into a single line.",
        "A single line stands for the three outpatient clinics",
        "three outpatient clinics|single line",
        "I take the bundling back, give each clinic a row of its own.",
    ),
    Entry(
        "Not a word about overtime.",
        "Replies have nothing about overtime",
        "about overtime",
        "The ban on overtime figures is lifted.",
    ),
    Entry(
        "Let us assume eighty beds at Fernside until I tell you otherwise.",
        "An assumption: eighty beds at Fernside",
        "eighty beds|Fernside",
        "Fernside got its new wing, so what we assumed for it is void.",
    ),
    Entry(
        "Spare me the source table.",
        "The user is to be spared the source table",
        "source table",
        "Come to think of it, do say where a number is from.",
    ),
)

EN_SEMANTIC = (
    Entry("The rota is drawn up by {who}.", "{who} draws up the rota", "{who}|rota"),
    Entry(
        "If the lifts fail, {who} gets the call.",
        "{who}: called when the lifts fail",
        "{who}|lifts",
    ),
    Entry(
        "{who} has been acting matron on the burns floor.",
        "The acting matron for burns is {who}",
        "{who}|acting matron",
    ),
    Entry(
        "It is {who} who watches the blood stocks.",
        "Watch over blood stocks: {who}",
        "{who}|blood stocks",
    ),
    Entry(
        "I share an office with {who}, who codes the diagnoses.",
        "Coding of diagnoses lies with {who}",
        "{who}|diagnoses",
    ),
    Entry(
        "Angry letters from relatives end up with {who}.",
        "{who} gets the letters from relatives",
        "{who}|from relatives",
    ),
    Entry(
        "Our link to the ambulance service is {who}.",
        "{who} keeps the link to the ambulance service",
        "{who}|ambulance service",
    ),
    Entry(
        "{who} retired, so the pharmacy budget has no owner at present.",
        "No owner for the pharmacy budget since {who} left",
        "{who}|pharmacy budget",
    ),
    Entry(
        "Until Easter {who} stands in for the finance chief.",
        "Finance chief up to Easter: {who}",
        "{who}|Easter",
    ),
    Entry(
        "adm_rt tells how somebody came in, 1 being by car and 2 on foot.",
        "adm_rt: way of arrival (2 = on foot)",
        "adm_rt|on foot",
    ),
    Entry(
        "A disch_cd of 9 stands for people who left against advice.",
        "disch_cd 9 = left against advice",
        "disch_cd|against advice",
    ),
    Entry(
        "We have reused obs_fl for isolation rooms since the refit.",
        "obs_fl now marks isolation rooms",
        "obs_fl|isolation rooms",
    ),
    Entry("The unit of los_q is quarter days.", "los_q counts quarter days", "los_q|quarter days"),
    Entry(
        "The bed table is a snapshot, taken at dawn.",
        "Bed table: snapshot of each dawn",
        "snapshot|dawn",
    ),
    Entry(
        "Rows with spec 88 are nursing homes.", "spec 88 = nursing homes", "spec 88|nursing homes"
    ),
    Entry(
        "Autumn was thin because a burst pipe shut the emergency entrance.",
        "Thin autumn: burst pipe at the emergency entrance",
        "burst pipe|emergency entrance",
    ),
    Entry(
        "What made people slip so often was the new floor polish.",
        "More people slip since the floor polish was changed",
        "slip|floor polish",
    ),
    Entry(
        "The scanner stood idle twice as long after its cooling unit was stolen.",
        "Idle scanner explained: cooling unit stolen",
        "cooling unit|stolen",
    ),
    Entry(
        "There were fewer births as the midwives had walked out.",
        "Midwifery: fewer births while the midwives had walked out",
        "midwives|walked out",
    ),
    Entry(
        "We overspent on linen because the laundry at Caldbeck burned down.",
        "Too much spent on linen after the Caldbeck fire",
        "linen|Caldbeck",
    ),
    Entry(
        "A fortnight is gone where a technician wiped the wrong disk.",
        "Missing fortnight: technician wiped the wrong disk",
        "fortnight|wrong disk",
    ),
    Entry(
        "The governors voted to keep the riverside clinic until a buyer is found.",
        "Vote of the governors: riverside clinic stays until there is a buyer",
        "governors|buyer",
    ),
    Entry(
        "Blue wristbands for dementia it is, we settled that.",
        "dementia is marked by wristbands in blue",
        "wristbands|dementia",
    ),
    Entry(
        "The caterer gets no new contract, so they resolved on Tuesday.",
        "No contract for the caterer (resolved on Tuesday)",
        "caterer|on Tuesday",
    ),
    Entry(
        "Dialysis moves to the annex once the lease is through; all have signed.",
        "The move to the annex follows once the lease is through (dialysis)",
        "annex|lease is through",
    ),
    Entry(
        "Both unions put up with twelve-hour shifts on trial.",
        "On trial with both unions: twelve-hour shifts",
        "unions|twelve-hour",
    ),
    Entry(
        "I misspoke before: block Q7 is the eye clinic.",
        "Corrected: Q7 = eye clinic",
        "Q7|eye clinic",
    ),
    Entry(
        "My count of oxygen points was off, the fitter found 44.",
        "44 oxygen points according to the fitter",
        "oxygen points|fitter",
    ),
    Entry(
        "It was the insurer and not the ministry that wanted the audit.",
        "The audit goes back to the insurer, not to the ministry",
        "insurer|ministry",
    ),
    Entry(
        "Let me put this right, the helipad opened a year after what I told you.",
        "Put right: helipad opened a year after the date given",
        "helipad|a year after",
    ),
    Entry(
        "A bed day starts when the sheet is changed.",
        "Start of a bed day: changed sheet",
        "bed day|sheet",
    ),
    Entry(
        "By frail we mean more than five on the Rockwood ladder.",
        "frail = above five on the Rockwood ladder",
        "frail|Rockwood",
    ),
    Entry(
        "What we call a bounce is somebody at the door again within the week.",
        "bounce: at the door again in a week",
        "bounce|at the door again",
    ),
)

ZH_RULES = (
    Entry("停电时长只算超过三分钟的。", "超过三分钟才计停电时长", "超过三分钟"),
    Entry("电量单位固定成兆瓦时。", "电量都写成兆瓦时", "兆瓦时"),
    Entry("自备电厂的出力不要并进来。", "出力里没有自备电厂", "自备电厂"),
    Entry("凡是估抄的读数，打个星号。", "估抄读数标星号", "估抄|星号"),
    Entry("负荷请取十五分钟均值。", "负荷＝十五分钟均值", "十五分钟均值"),
    Entry("线损为负的台区我不看，直接跳过。", "跳过线损为负的台区", "跳过|线损为负"),
    Entry("汇报里的称呼是用电客户，别的叫法都不要。", "称呼固定为用电客户", "用电客户"),
    Entry("城网和农网要各算各的。", "各算各的：城网、农网", "城网|农网|各算各的"),
    Entry("哪天算假日，跟着国务院的通知走。", "假日依照国务院的通知", "国务院的通知"),
    Entry("我讲峰段，指早八点到十一点。", "峰段＝早八点到十一点", "峰段|早八点"),
    Entry("每张表底下注明取数时间。", "表底要有取数时间", "取数时间"),
    Entry("少于五户的院落合并展示，免得认出是谁。", "院落少于五户就合并展示", "少于五户|合并展示"),
    Entry("同比这一栏摆在环比前头。", "栏目次序：同比在环比前头", "同比|环比前头"),
    Entry("带电作业次数单独给，不和大修混着。", "单独给带电作业次数", "带电作业|单独给"),
    Entry("话说得口语些，让班组的人也看得懂。", "口语些，班组的人要看得懂", "口语些|班组"),
    Entry("牵涉保密单位时只写代号。", "保密单位只写代号", "保密单位|只写代号"),
    Entry("结论一多就编上序号，会上好讨论。", "结论编上序号", "编上序号"),
    Entry("讲费用，一直用到户口径。", "费用采用到户口径", "到户口径"),
    Entry("演练弄出来的跳闸不作数。", "演练引起的跳闸不作数", "演练|跳闸不作数"),
    Entry("能用中位数的地方就别用平均。", "优先用中位数", "中位数"),
    Entry("年份写满四位数字。", "年份要写满四位", "写满四位"),
    Entry("碰到改过名的变电站，以现名为准。", "变电站改过名的以现名为准", "改过名|现名为准"),
    Entry("光伏反送的电另起一行。", "另起一行列光伏反送", "光伏反送|另起一行"),
    Entry("收尾时不用问我还需要什么。", "收尾不问还需要什么", "还需要什么"),
    Entry("一家装了多块表的，当成一家。", "装了多块表仍当成一家", "多块表|当成一家"),
    Entry("谈增长之前，先把气温影响剔干净。", "增长要在气温影响剔干净之后谈", "气温影响|剔干净"),
    Entry("有疑点的数描红给我看。", "疑点数据描红", "描红"),
    Entry("坏消息放最上面说，好消息靠后。", "先说坏消息", "坏消息"),
)

ZH_REVOKED = (
    Entry("储能站先不进装机。", "装机不含储能站", "储能站|装机", "恢复储能站的统计吧。"),
    Entry("临江片区这阵子别碰。", "临江片区不要碰", "临江片区", "之前那条关于临江的，不用了。"),
    Entry("表头请给中英对照。", "表头为中英对照", "中英对照", "两种文字太占地方，只留中文。"),
    Entry("排名倒着来，末位在上。", "排名末位在上", "末位在上", "排名次序反过来，冠军写最上面。"),
    Entry(
        "东郊、西郊两站并作一行。",
        "并作一行的是东郊、西郊",
        "东郊|西郊|并作一行",
        "东郊和西郊还是拆成两行。",
    ),
    Entry(
        "电费只认财务口径。", "只认财务口径的电费", "只认财务口径", "营销那边的数也可以拿来用了。"
    ),
    Entry("工单里夜间的那批滤掉。", "夜间工单要滤掉", "夜间|滤掉", "夜里的工单照常放进来。"),
    Entry(
        "没有我点头，不许给预测。",
        "不许给预测，除非用户点头",
        "不许给预测",
        "预测可以做了，不必再等。",
    ),
    Entry("照老的五级电压来分档。", "分档照老的五级电压", "老的五级", "分档改回国标那一套。"),
    Entry("每段话两句以内。", "段落限两句以内", "两句以内", "想写几句写几句，刚才的限制取消。"),
    Entry(
        "数据截到去年年底，往后的先收着。", "数据截到去年年底", "截到去年", "今年的数也放开看吧。"
    ),
    Entry("汇总时略去趸售县。", "汇总略去趸售县", "趸售县", "那几个县重新加进汇总。"),
)

ZH_SEMANTIC = (
    Entry("调度台白班由{who}盯着。", "{who}盯调度台", "{who}|调度台"),
    Entry("变压器的备用清单在{who}手里。", "{who}持有备用清单", "{who}|备用清单"),
    Entry("要动抢修车，得找{who}批。", "抢修车由{who}批", "{who}|抢修车"),
    Entry("计量中心换了主任，如今是{who}。", "{who}任计量中心主任", "{who}|计量中心"),
    Entry("和气象台对接的老是{who}。", "{who}对接气象台", "{who}|气象台"),
    Entry("{who}退休以后，电缆沟没人管。", "电缆沟在{who}退休后无人管", "{who}|电缆沟"),
    Entry("投诉热线归{who}那一组接。", "{who}一组接投诉热线", "{who}|投诉热线"),
    Entry("安监这块暂时由{who}代着。", "{who}暂代安监", "{who}|安监"),
    Entry("字段fd_lvl里3是双回路。", "fd_lvl为3即双回路", "fd_lvl|双回路"),
    Entry("mtr_st等于7，表就已拆了。", "mtr_st＝7：已拆", "mtr_st|已拆"),
    Entry("pk_idx是拿月峰值算的，跟日没关系。", "pk_idx取自月峰值", "pk_idx|月峰值"),
    Entry("停电表里的rsn_x由现场手写，常有错字。", "rsn_x现场手写，有错字", "rsn_x|错字"),
    Entry("tr_cap记铭牌容量，实际要打折。", "tr_cap＝铭牌容量", "tr_cap|铭牌"),
    Entry("sub_nm末尾带撇的都是临时站。", "sub_nm带撇＝临时站", "sub_nm|临时站"),
    Entry("那个尖峰是铝厂复产闹出来的。", "铝厂复产造成尖峰", "尖峰|铝厂复产"),
    Entry("西线跳得勤，因为鸟窝没清。", "鸟窝没清，西线跳得勤", "鸟窝|西线跳得勤"),
    Entry("三号站缺五天，是通信模块烧了。", "三号站缺数：通信模块烧毁", "三号站|通信模块"),
    Entry("采集率往下掉，缘于换了运营商。", "换运营商使采集率下降", "采集率|运营商"),
    Entry("多收的那笔钱，出在抄错倍率。", "多收的钱源于倍率抄错", "多收的|倍率"),
    Entry("冬天卖得少，供热换成了地源泵。", "地源泵供热，冬天卖得少", "地源泵|冬天卖得少"),
    Entry("会上拍了板，北岭的线先不入地。", "北岭线路暂不入地（已拍板）", "北岭|入地"),
    Entry("跟街道谈妥，充电桩装进停车楼。", "充电桩放在停车楼，街道同意", "充电桩|停车楼"),
    Entry("老表分三年换完，已经定下。", "定下三年换完老表", "老表|三年换完"),
    Entry("违约金不再上浮，局里批过。", "局里批准违约金不再上浮", "违约金|上浮"),
    Entry("检修窗口挪到凌晨，各县没意见。", "凌晨为新的检修窗口", "检修窗口|凌晨"),
    Entry("更正一下，青峡水库不归我们调。", "青峡水库不归我方调（更正）", "青峡水库|不归我"),
    Entry("我上回讲错，环网柜其实六十台。", "环网柜应为六十台", "环网柜|六十台"),
    Entry("发函的不是发改委，是监管办。", "函由监管办所发，非发改委", "监管办|发改委"),
    Entry("重载，就是负载率过了八成。", "重载＝负载率过八成", "重载|八成"),
    Entry("所谓孤户，一条线只挂它一家。", "孤户：线上只挂它一家", "孤户|只挂它"),
    Entry("频停在我们这儿是两月内停三回。", "频停＝两月停三回", "频停|停三回"),
)

EN = Words(
    glue=" ",
    rules=EN_RULES,
    revoked=EN_REVOKED,
    semantic=EN_SEMANTIC,
    persons=(
        "Maeve Corrigan",
        "Tariq Bashir",
        "Solveig Dahl",
        "Ignacio Prado",
        "Wanda Krol",
        "Oluchi Nwosu",
        "Percy Hallam",
        "Yael Shapira",
        "Bento Faria",
        "Signe Ostergaard",
        "Lukas Brandl",
        "Farida Noori",
        "Clement Aubry",
        "Hana Vesely",
        "Rhys Pritchard",
        "Mirela Popa",
        "Anton Kessler",
        "Noor Rahimi",
        "Beatrix Vance",
        "Cormac Teague",
    ),
    metrics=(
        "yearly glove order",
        "catering grant",
        "donor total",
        "transport allowance",
        "heating bill",
        "chair inventory",
        "equipment loan",
        "volunteer pool",
        "steam output",
        "rent backlog",
        "research fund",
        "syringe reserve",
        "vaccine quota",
        "phone bill",
        "window surface",
        "garden upkeep",
        "legacy income",
        "recruiting spend",
        "generator runtime",
        "mask stockpile",
        "waste tonnage",
        "interpreter fee total",
        "uniform subsidy",
        "library collection",
        "solar yield",
        "parcel intake",
        "kiosk revenue",
        "roof repair estimate",
        "licence cost",
        "tissue bank size",
        "seminar attendance",
        "mileage refund",
        "dressing usage",
        "water intake",
        "bond issue",
        "mortgage remainder",
    ),
    name_heads=("Quill", "Thorn", "Ember", "Sable", "Pell", "Rook", "Fenn", "Marl", "Corv", "Tilb"),
    name_tails=("gate", "hurst", "combe", "moor", "ridge", "fold", "thwaite"),
    user_frames=(
        "By the books, {name} has a {metric} of {figure}.",
        "Somebody at {name} wrote that the {metric} stands at {figure} now.",
        "As for {name}, count on a {metric} of {figure}.",
        "{figure} is what {name} reported for its {metric}.",
        "Keep in mind the {metric} of {name}, namely {figure}.",
    ),
    answer_frames=(
        "As a side result, {name} shows a {metric} of {figure}.",
        "Looking at {name}, I find {figure} for the {metric}.",
        "Its {metric} puts {name} at {figure}.",
        "On top of that, {figure} is the {metric} recorded for {name}.",
        "Adding the parts up gives {name} a {metric} of {figure}.",
    ),
    note_frames=(
        "{metric} at {name}: {figure}",
        "{name} / {metric} / {figure}",
        "{figure} was given as the {metric} of {name}",
        "{name} ({metric}) -> {figure}",
    ),
    openers=("Morning!", "Right, so.", "Just so you know.", "Quick aside.", "", "", ""),
    acknowledgements=(
        "Sure thing.",
        "I have made a note of it.",
        "Certainly.",
        "That makes sense.",
        "OK, consider it done.",
        "So be it.",
        "Thank you for telling me.",
        "Very well.",
    ),
    questions=(
        "In {month}, what happened to {area} {thing}?",
        "Give me the {area} {thing} for {month} once more, would you?",
        "I'm curious about {thing} on the {area} corridor during {month}.",
        "Any {area} {thing} that got lost in {month}?",
        "{area} {thing}, {month}: how bad was it?",
        "Fetch whatever you have on {area} {thing} from {month}.",
        "What share of {thing} did the {area} corridor handle in {month}?",
        "Let's turn to {month}. Were {area} {thing} up or down?",
        "Which referrers sent {area} {thing} over in {month}?",
        "Walk me through {thing} in {month}, {area} corridor.",
    ),
    answers=(
        "I see 40 lines for {month}; {n} at the upper end and {m} below par.",
        "{month} brought {n} {thing} at most, which is unremarkable.",
        "On the {area} corridor {m} of the {thing} took too long.",
        "Leaving {m} oddities aside, {thing} behaved as usual.",
        "A peak of {n} catches the eye, the remainder is flat.",
        "Half of the {area} {thing} happened early in {month}, with {n} as the top value.",
        "There is a cluster of {m} late {thing}; otherwise all is calm.",
        "Compared with its neighbours the {area} corridor does well, {n} being its best line.",
    ),
    areas=("surgical", "acute", "rehab", "geriatric", "renal", "trauma", "neuro"),
    months=(
        "week 2",
        "week 5",
        "week 9",
        "week 13",
        "week 17",
        "week 21",
        "week 26",
        "week 30",
        "week 34",
        "week 39",
        "week 43",
        "week 48",
    ),
    things=("referrals", "scans", "discharges", "bookings", "infusions", "handovers", "consults"),
    states=("booked", "seen", "held", "void"),
    clients=("Dr Amory", "Dr Bligh", "Dr Cato", "Dr Dunne", "Dr Egan", "Dr Foss", "Dr Gale"),
    columns={
        "line": "line",
        "area": "corridor",
        "number": "cases",
        "state": "status",
        "clock": "arrived",
        "change": "vs plan",
        "client": "referrer",
        "code": "room",
        "last": "jotting",
    },
    remarks=(
        "stable",
        "fasting",
        "queried",
        "porter",
        "bleeped",
        "bay",
        "chart",
        "tired",
        "awake",
        "upright",
        "cannula",
        "gown",
        "kin",
        "walked",
        "swab",
        "plaster",
        "tea",
        "rested",
        "drip",
        "pillow",
    ),
    rule_headings=(
        "Standing instructions",
        "What to keep doing",
        "Requirements in force",
        "House style and scope",
        "User expectations",
    ),
    quote_headings=("Verbatim from the user", "Exact wording of requests", "Said by the user"),
    fact_headings=(
        "Established so far",
        "Data points",
        "Domain knowledge",
        "Notes for later",
        "What we learned",
    ),
    end_headings=("Superseded", "Dropped instructions", "No longer in force", "Reversals"),
    end_frames=(
        "{note} (superseded; the user: {end})",
        "{end} - so this one is over: {note}",
        "~~{note}~~ replaced after {end}",
        "Was: {note}. Ended with: {end}",
    ),
    end_alone="An instruction from further up was cancelled with {end}",
    openings=(
        "Handover note for whoever carries on.",
        "State of the session, condensed.",
        "The dialogue deals with hospital activity by corridor and week.",
        "Here is what matters from the exchange above:",
    ),
    lazy=(
        "A number of hospital topics came up and were dealt with.",
        "The user looked into several weeks and seemed content with what came back.",
        "Background was given, preferences were stated, tables were shown.",
        "There is nothing in particular to carry over.",
        "We talked about corridors and weeks, mostly routine matters.",
    ),
    quotes=("''", "‘’", "“”"),
)

ZH = Words(
    glue="",
    rules=ZH_RULES,
    revoked=ZH_REVOKED,
    semantic=ZH_SEMANTIC,
    persons=(
        "闻人朔",
        "祝晓棠",
        "栾承志",
        "杭思齐",
        "蔺若愚",
        "葛天佑",
        "屈明月",
        "戚长风",
        "鲍静姝",
        "翟问渠",
        "柯以柔",
        "项景行",
        "费思远",
        "滕云舒",
        "詹弘毅",
        "冉依依",
        "郗子昂",
        "雍和平",
    ),
    metrics=(
        "年用铜量",
        "绝缘子存数",
        "征地补偿",
        "植树面积",
        "食堂补贴",
        "塔基数目",
        "导线总长",
        "巡检里程",
        "无人机架次",
        "保险赔付",
        "碳排配额",
        "工器具净值",
        "采暖支出",
        "差旅额度",
        "招标总价",
        "保函余额",
        "废油回收",
        "培训人次",
        "宣传开销",
        "光缆纤芯",
        "蓄水上限",
        "煤炭储备",
        "风机转数",
        "贷款本金",
        "捐赠支出",
        "路灯盏数",
        "工会经费",
        "水泥消耗",
        "钢材采购",
        "专利估值",
        "地租总额",
        "机房面积",
        "排污费",
        "劳保预算",
    ),
    name_heads=(
        "龙湫",
        "雁荡",
        "麦积",
        "霞浦",
        "苍梧",
        "桃源",
        "玉屏",
        "清涧",
        "凤台",
        "罗源",
        "丹霞",
        "澄江",
    ),
    name_tails=("所", "局", "场", "营", "寨"),
    user_frames=(
        "据我了解，{name}{metric}有{figure}。",
        "{name}报上来的{metric}，数目{figure}。",
        "顺带提一句，{figure}就是{name}的{metric}。",
        "{metric}方面，{name}批了{figure}。",
    ),
    answer_frames=(
        "顺便查到，{name}{metric}为{figure}。",
        "至于{name}，其{metric}落在{figure}。",
        "把各项相加，{name}得出{metric}{figure}。",
        "{figure}这个数，对应{name}的{metric}。",
    ),
    note_frames=(
        "{metric}：{name}，{figure}",
        "{name}-{metric}-{figure}",
        "{figure}（{name}，{metric}）",
    ),
    openers=("早。", "插一句，", "辛苦了。", "补充个背景：", "", "", ""),
    acknowledgements=(
        "没问题。",
        "我照这样来。",
        "清楚了。",
        "好，已了解。",
        "可以。",
        "谢谢提醒。",
        "嗯，我会留意。",
    ),
    questions=(
        "{month}{area}片{thing}怎么样？",
        "帮我把{month}{area}片的{thing}翻出来。",
        "{area}片{thing}，{month}的，有没有不对劲？",
        "想看{month}的{thing}，{area}片就行。",
        "{month}那阵，{area}片{thing}多不多？",
        "{thing}在{area}片的情形，{month}讲讲。",
        "再查{month}{area}片{thing}。",
        "{month}{area}片谁报的{thing}？",
        "{area}片{month}{thing}是升是降？",
    ),
    answers=(
        "{month}有40行，上端{n}，低于常态的{m}行。",
        "{thing}最多到{n}，并不出奇。",
        "{area}片有{m}处拖得久。",
        "撇开{m}处异样，{thing}照旧。",
        "有个高点{n}，余下平平。",
        "{area}片还行，领头的那行{n}。",
        "前半段集中，顶到{n}，迟的{m}处。",
    ),
    areas=("甲", "乙", "丙", "丁", "戊"),
    months=(
        "第2周",
        "第6周",
        "第10周",
        "第15周",
        "第19周",
        "第23周",
        "第28周",
        "第32周",
        "第37周",
        "第41周",
        "第46周",
        "第50周",
    ),
    things=("报装", "巡线", "校验", "抢通", "换表", "测温", "复电"),
    states=("通", "断", "检", "备"),
    clients=("赵工", "钱工", "孙工", "李工", "周工", "吴工"),
    columns={
        "line": "序",
        "area": "片",
        "number": "次",
        "state": "况",
        "clock": "时刻",
        "change": "差额",
        "client": "经手",
        "code": "柜",
        "last": "摘",
    },
    remarks=("稳", "潮", "松", "紧", "热", "凉", "锈", "净", "斜", "直", "响", "静", "缺", "齐"),
    rule_headings=("长期指令", "须遵守的口径", "回答规范", "持续有效的要求"),
    quote_headings=("逐字记录", "用户说法（原样）", "需求原文"),
    fact_headings=("已确认信息", "业务知识", "数据备忘", "前情", "了解到的情况"),
    end_headings=("已作废", "后来改口的", "被替换的指令"),
    end_frames=(
        "{note}——已作废，用户讲{end}",
        "{end}（此前的“{note}”到此为止）",
        "原先：{note}；后来：{end}",
    ),
    end_alone="更早的一条指令被{end}撤掉了",
    openings=(
        "交接说明如下。",
        "会话状态（精简）：",
        "本次会话围绕各片电网工作，按周查看。",
        "上文要紧的内容有这些：",
    ),
    lazy=(
        "聊了若干电网话题，均已答复。",
        "用户按周看了几个片，没提出异议。",
        "交代过背景，也给出过表格。",
        "没有特别要交接的东西。",
    ),
    quotes=("‘’", "『』", "“”"),
)

WORDS: dict[Language, Words] = {"en": EN, "zh": ZH}

MANNERS: dict[Language, Manners] = {
    "en": Manners(
        headings=("### {heading}", "{heading}:", "**{heading}:**", ""),
        bullets=("-", "+", "–", "1)", ""),
        rule_frames=("The user asked: {text}", "Still valid - {text}", "{text}", "{text}"),
    ),
    "zh": Manners(
        headings=("### {heading}", "【{heading}】", "{heading}：", ""),
        bullets=("-", "·", "（1）", "1、", ""),
        rule_frames=("用户要求：{text}", "仍有效：{text}", "{text}", "{text}"),
    ),
}


def thread(seed: int, tokens: int, language: Language, count: Count) -> Thread:
    """Make a thread whose planted part has about the given number of tokens."""
    rng = Random(f"fresh thread {seed} {tokens} {language}")
    words = WORDS[language]
    items = _items(rng, words)
    shape = worst._shape(rng, max(8, tokens // TURN_TOKENS), words)
    worst._place_rules(rng, shape, items)
    worst._place_ends(rng, shape, items)
    worst._place_facts(rng, shape, items)
    for draft in shape.order:
        worst._complete(rng, draft, words)
    turns = _turns(rng, shape.order, tokens, words, count)
    return Thread(language, turns, tuple(items))


def filler(seed: int, n: int, tokens: int, language: Language, count: Count) -> Turn:
    """Make turn n after the planted part, with a result and without any item."""
    rng = Random(f"fresh filler {seed} {n} {language}")
    words = WORDS[language]
    topic = worst._topic(rng, words)
    user = rng.choice(words.questions).format(**topic)
    chosen = rng.sample(words.answers, 2)
    answer = words.glue.join(chosen).format(**topic)
    room = tokens - count(user) - count(answer)
    result = _table(rng, room, words, count)
    return Turn(user, result, answer)


def summarise(
    thread: Thread, character: Character, prompt: str, allowed: int, call: int, count: Count
) -> str:
    """Write the summary that a model of the given character would return."""
    rng = Random(f"fresh summary {worst._mark(thread)} {character} {call}")
    words = WORDS[thread.language]
    if character == "lazy":
        lines = rng.sample(words.lazy, rng.choice((1, 2, 3)))
        return worst._fit(lines, allowed, count)
    extra: list[str] = []
    if character == "inventing":
        for invention in _inventions(thread, call):
            extra.append(invention.line)
    lines = _summary_lines(rng, thread, prompt, extra)
    return worst._fit(lines, allowed, count)


def invented(thread: Thread, calls: Iterable[int]) -> set[str]:
    """Return the figures that the inventing summariser makes up in the given calls."""
    figures: set[str] = set()
    for call in calls:
        for invention in _inventions(thread, call):
            figures.add(invention.figure)
    return figures


def holds(item: Item, text: str) -> bool:
    """Tell whether all needles of an item stand in a text."""
    return worst.holds(item, text)


def _items(rng: Random, words: Words) -> list[Item]:
    """Choose the items of a thread."""
    items = _generated(rng, words)
    persons = rng.sample(words.persons, len(words.persons))
    for entry in rng.sample(words.semantic, SEMANTIC):
        items.append(worst._item("semantic", entry, persons.pop()))
    for entry in rng.sample(words.rules, RULES):
        items.append(worst._item("rule", entry, ""))
    for entry in rng.sample(words.revoked, REVOKED):
        items.append(worst._item("revoked", entry, ""))
    return items


def _generated(rng: Random, words: Words) -> list[Item]:
    """Make the generated facts, the first half for the user to state."""
    names = rng.sample(worst._names(words), GENERATED)
    metrics = rng.sample(words.metrics, GENERATED)
    taken: list[str] = []
    items: list[Item] = []
    for index in range(GENERATED):
        figure = _fresh_figure(rng, taken)
        taken.append(figure)
        frames = words.answer_frames
        if index < GENERATED // 2:
            frames = words.user_frames
        source = rng.choice(frames).format(name=names[index], metric=metrics[index], figure=figure)
        note = rng.choice(words.note_frames)
        note = note.format(name=names[index], metric=metrics[index], figure=figure)
        items.append(Item("generated", (names[index], figure), source, note))
    return items


def _figure(rng: Random) -> str:
    """Make a figure in a shape that no table and no filler uses."""
    shape = rng.randrange(4)
    if shape == 0:
        return str(rng.randint(10_000, 99_999))
    if shape == 1:
        return f"{rng.randint(100_000, 999_999):,}"
    if shape == 2:
        return f"{rng.randint(1_000, 9_999)}.{rng.randint(1, 9)}"
    return f"{rng.randint(2_000_000, 8_999_999):,}"


def _fresh_figure(rng: Random, taken: list[str]) -> str:
    """Make a figure that clashes with no taken one."""
    figure = _figure(rng)
    while worst._clashes(figure, taken):
        figure = _figure(rng)
    return figure


def _turns(
    rng: Random, drafts: list[worst._Draft], tokens: int, words: Words, count: Count
) -> tuple[Turn, ...]:
    """Turn drafts into turns whose results fill what is left of the tokens."""
    users: list[str] = []
    answers: list[str] = []
    for draft in drafts:
        parts = [*draft.before, draft.question, *draft.after]
        users.append(words.glue.join(part for part in parts if part))
        answers.append(words.glue.join(draft.answer))
    left = tokens - sum(count(text) for text in users + answers)
    tables = sum(1 for draft in drafts if draft.table)
    turns: list[Turn] = []
    for index, draft in enumerate(drafts):
        result = ""
        if draft.table:
            result = _table(rng, left // tables, words, count)
            left -= count(result)
            tables -= 1
        turns.append(Turn(users[index], result, answers[index]))
    return tuple(turns)


def _table(rng: Random, room: int, words: Words, count: Count) -> str:
    """Make a result of 40 rows that fills about the given number of tokens."""
    seed = rng.getrandbits(32)
    form = _form(rng, seed, room, words, count)
    low = ROWS
    high = ROWS * MOST_WORDS_A_ROW
    while low < high:
        middle = (low + high + 1) // 2
        if count(_write_table(seed, form, middle, words)) <= room:
            low = middle
        else:
            high = middle - 1
    return _write_table(seed, form, low, words)


def _form(rng: Random, seed: int, room: int, words: Words, count: Count) -> worst._Form:
    """Choose the widest look of a table that fits."""
    extra = rng.sample(("clock", "change", "client", "code"), 2)
    forms = (
        worst._Form(("line", extra[0], "area", "state", "number", extra[1]), False),
        worst._Form(("line", "area", "state", "number", extra[1]), False),
        worst._Form(("line", "area", "state", "number"), False),
        worst._Form(("line", "area", "state", "number"), True),
    )
    for form in forms:
        if count(_write_table(seed, form, ROWS, words)) <= room:
            return form
    return forms[-1]


def _write_table(seed: int, form: worst._Form, remarks: int, words: Words) -> str:
    """Write a table whose last column holds the given number of words in all."""
    rng = Random(seed)
    names: list[str] = []
    for column in form.columns:
        names.append(words.columns[column])
    names.append(words.columns["last"])
    lines = [worst._row(names, form.tight)]
    first = rng.randint(1, 50)
    for index in range(ROWS):
        cells: list[str] = []
        for column in form.columns:
            cells.append(_cell(rng, column, first + index, words))
        own = remarks // ROWS
        if index < remarks % ROWS:
            own += 1
        row_rng = Random(f"{seed} {index}")
        cells.append(words.glue.join(row_rng.choices(words.remarks, k=own)))
        lines.append(worst._row(cells, form.tight))
    return "\n".join(lines)


def _cell(rng: Random, column: str, number: int, words: Words) -> str:
    """Write one value of a table."""
    if column == "line":
        return str(number)
    if column == "area":
        return rng.choice(words.areas)
    if column == "number":
        return str(rng.randint(10, 999))
    if column == "state":
        return rng.choice(words.states)
    if column == "clock":
        return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    if column == "change":
        return f"{rng.choice('+-')}{rng.randint(1, 60)}%"
    if column == "client":
        return rng.choice(words.clients)
    return f"{rng.choice('BDEH')}-{rng.randint(10, 99)}"


def _summary_lines(rng: Random, thread: Thread, prompt: str, extra: list[str]) -> list[str]:
    """Write all lines of a summary before any is dropped."""
    words = WORDS[thread.language]
    manners = MANNERS[thread.language]
    texts = (prompt, html.unescape(prompt))
    facts: list[str] = []
    rules: list[str] = []
    ends: list[str] = []
    quoting = rng.random() < 0.5
    for item in thread.items:
        known = worst._known(item, texts)
        if worst._ended(item, texts):
            ends.append(worst._end_line(rng, item, known, words))
        elif known and item.kind in ("rule", "revoked"):
            rules.append(_rule_line(rng, item, quoting, words, manners))
        elif known:
            facts.append(item.note)
    for line in extra:
        facts.insert(rng.randint(0, len(facts)), line)
    headings = words.rule_headings
    if quoting:
        headings = words.quote_headings
    sections = [
        (rng.choice(headings), rules),
        (rng.choice(words.end_headings), ends),
        (rng.choice(words.fact_headings), facts),
    ]
    rng.shuffle(sections)
    return _arranged(rng, sections, words, manners)


def _arranged(
    rng: Random, sections: list[tuple[str, list[str]]], words: Words, manners: Manners
) -> list[str]:
    """Put sections below an opening, with headings in one style and bullets of any."""
    lines = [rng.choice(words.openings)]
    style = rng.choice(manners.headings)
    for heading, body in sections:
        if not body:
            continue
        if style:
            lines.append(style.format(heading=heading))
        bullet = rng.choice(manners.bullets)
        for index, line in enumerate(body):
            lead = bullet.replace("1", str(index + 1))
            lines.append(f"{lead} {line}".strip())
    return lines


def _rule_line(rng: Random, item: Item, quoting: bool, words: Words, manners: Manners) -> str:
    """Restate a rule, in the user's words or in others."""
    frame = rng.choice(manners.rule_frames)
    if not quoting and rng.random() < 0.6:
        return frame.format(text=item.note)
    text = item.source
    if rng.random() < 0.3:
        text = text[0].swapcase() + text[1:]
    if rng.random() < 0.4:
        text = text.rstrip(".。")
    if quoting or rng.random() < 0.6:
        text = worst._quoted(rng, text, words)
    return frame.format(text=text)


def _inventions(thread: Thread, call: int) -> list[Invention]:
    """Make up the false figures of one call."""
    rng = Random(f"fresh inventions {worst._mark(thread)} {call}")
    words = WORDS[thread.language]
    facts = [item for item in thread.items if item.kind == "generated"]
    taken = [item.needles[1] for item in facts]
    used = {item.needles[0] for item in facts}
    made: list[Invention] = []
    for item in rng.sample(facts, MADE_UP // 2):
        true = item.needles[1]
        figure = worst._altered(rng, true, taken)
        taken.append(figure)
        made.append(Invention(figure, item.note.replace(true, figure)))
    free = [name for name in worst._names(words) if name not in used]
    for name in rng.sample(free, MADE_UP - len(made)):
        figure = _fresh_figure(rng, taken)
        taken.append(figure)
        frame = rng.choice(words.note_frames)
        line = frame.format(name=name, metric=rng.choice(words.metrics), figure=figure)
        made.append(Invention(figure, line))
    return made


def _check_pools(words: Words) -> list[str]:
    """Find needles that stand in any other entry of the pools, and words that clash."""
    faults: list[str] = []
    entries = [*words.rules, *words.revoked, *words.semantic]
    for entry in entries:
        for needle in entry.needles.split("|"):
            if needle not in entry.text or needle not in entry.note:
                faults.append(f"needle {needle} missing in: {entry.text} {entry.note}")
            if needle == "{who}":
                continue
            for other in entries:
                if other is entry:
                    continue
                if needle in other.text or needle in other.ended_by:
                    faults.append(f"needle {needle} in: {other.text} {other.ended_by}")
            for name in (*words.metrics, *worst._names(words), *words.persons):
                if needle in name or name in entry.text or name in entry.ended_by:
                    faults.append(f"{name} clashes with: {entry.text}")
    names = worst._names(words)
    for name in names:
        for longer in names:
            if name != longer and name in longer:
                faults.append(f"{name} is part of {longer}")
    return faults


def _check_thread(thread: Thread, seed: int, tokens: int, count: Count) -> list[str]:
    """Find all that is wrong with a thread."""
    faults: list[str] = []
    total = sum(count(worst._whole(turn)) for turn in thread.planted)
    if abs(total - tokens) > tokens / 10:
        faults.append(f"{total} tokens instead of {tokens}")
    texts = [worst._whole(turn) for turn in thread.planted]
    for n in range(20):
        turn = filler(seed, n, 800, thread.language, count)
        texts.append(worst._whole(turn))
        if turn.result.count("\n") != ROWS:
            faults.append("wrong number of rows")
        if abs(count(worst._whole(turn)) - 800) > 80:
            faults.append(f"filler of {count(worst._whole(turn))} tokens")
    rest = "\n".join(texts)
    for item in thread.items:
        faults += worst._check_place(thread, item, tokens, count)
        faults += worst._check_needles(item, rest)
    for figure in invented(thread, range(10)):
        if figure in rest:
            faults.append(f"made-up figure is true: {figure}")
    return faults


def _check_summaries(thread: Thread, character: Character, count: Count) -> list[str]:
    """Find what five summaries in a row, each of a fifth of the thread, get wrong."""
    faults: list[str] = []
    summary = ""
    step = len(thread.planted) // 5 + 1
    seen = ""
    for call in range(5):
        part = thread.planted[call * step : (call + 1) * step]
        shown = "\n".join(f"{turn.user}\n{turn.answer}" for turn in part)
        seen = seen + "\n" + shown
        prompt = f"{summary}\n[m{call}] {html.escape(shown)}"
        summary = summarise(thread, character, prompt, 10_000, call, count)
        if "Pins" in summary:
            faults.append("a heading says Pins")
        for item in thread.items:
            expected = character != "lazy" and item.source in seen
            if holds(item, summary) != expected:
                faults.append(f"{character}, call {call}: {item.needles} held: {not expected}")
            ended = expected and worst._ended(item, (seen,))
            if ended != worst._ended(item, (summary,)):
                faults.append(f"{character}, call {call}: end of {item.needles}")
        made = invented(thread, (call,))
        found = sum(1 for figure in made if figure in summary)
        if found != (MADE_UP if character == "inventing" else 0):
            faults.append(f"{character}, call {call}: {found} made-up figures")
    return faults


def _check(language: Language, tokens: int, count: Count, seeds: Iterable[int]) -> int:
    """Check threads of some seeds, print the faults and the sizes, return the number of faults."""
    faults: list[str] = []
    sizes: list[int] = []
    for seed in seeds:
        sample = thread(seed, tokens, language, count)
        faults += _check_thread(sample, seed, tokens, count)
        faults += _check_summaries(sample, "honest", count)
        faults += _check_summaries(sample, "lazy", count)
        faults += _check_summaries(sample, "inventing", count)
        if sample != thread(seed, tokens, language, count):
            faults.append(f"seed {seed} gives two threads")
        sizes.append(sum(count(worst._whole(turn)) for turn in sample.planted))
    print(f"{language} {tokens}: threads of {sizes} tokens, {len(faults)} faults")
    for fault in sorted(set(faults))[:20]:
        print("  ", fault)
    return len(faults)


def main() -> int:
    """Check the pools, then threads of both languages in both usual sizes."""
    faults = 0
    for language, words in WORDS.items():
        wrong = _check_pools(words)
        faults += len(wrong)
        print(
            f"{language}: {len(words.rules)} rules, {len(words.revoked)} revoked, "
            f"{len(words.semantic)} semantic, {len(wrong)} faults in the pools"
        )
        for fault in wrong:
            print("  ", fault)
    for tokens in (8_000, 32_000):
        faults += _check("en", tokens, worst._count_en, range(1, 7))
        faults += _check("zh", tokens, worst._count_zh, range(1, 7))
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
