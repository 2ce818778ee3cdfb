"""Make long conversations with planted facts and rules, and imitate models that summarise them."""

# pyright: reportPossiblyUnboundVariable=false

import html
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Literal

Language = Literal["en", "zh"]
Character = Literal["honest", "lazy", "inventing"]
Kind = Literal["generated", "semantic", "rule", "revoked"]
Count = Callable[[str], int]

GENERATED = 20
SEMANTIC = 14
RULES = 15
REVOKED = 5
ROWS = 40
MADE_UP = 12
TURN_TOKENS = 1050
MOST_WORDS_A_ROW = 120


@dataclass(frozen=True)
class Turn:
    """Hold what was said in one turn."""

    user: str
    result: str
    answer: str


@dataclass(frozen=True)
class Item:
    """Hold one planted fact or rule and the ways to find it again."""

    kind: Kind
    needles: tuple[str, ...]
    source: str
    note: str
    ended_by: str = ""


@dataclass(frozen=True)
class Thread:
    """Hold the planted part of a conversation and what was planted in it."""

    language: Language
    planted: tuple[Turn, ...]
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Entry:
    """Hold a sentence of a pool, its restatement and its needles, split by bars."""

    text: str
    note: str
    needles: str
    ended_by: str = ""


@dataclass(frozen=True)
class Words:
    """Hold all that is said in one language."""

    glue: str
    rules: tuple[Entry, ...]
    revoked: tuple[Entry, ...]
    semantic: tuple[Entry, ...]
    persons: tuple[str, ...]
    metrics: tuple[str, ...]
    name_heads: tuple[str, ...]
    name_tails: tuple[str, ...]
    user_frames: tuple[str, ...]
    answer_frames: tuple[str, ...]
    note_frames: tuple[str, ...]
    openers: tuple[str, ...]
    acknowledgements: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]
    areas: tuple[str, ...]
    months: tuple[str, ...]
    things: tuple[str, ...]
    states: tuple[str, ...]
    clients: tuple[str, ...]
    columns: dict[str, str]
    remarks: tuple[str, ...]
    rule_headings: tuple[str, ...]
    quote_headings: tuple[str, ...]
    fact_headings: tuple[str, ...]
    end_headings: tuple[str, ...]
    end_frames: tuple[str, ...]
    end_alone: str
    openings: tuple[str, ...]
    lazy: tuple[str, ...]
    quotes: tuple[str, ...]


EN_RULES = (
    Entry(
        "All money in euros from here on, converted at the month-end rate.",
        "Money is shown in euros at the month-end rate",
        "euros|month-end rate",
    ),
    Entry(
        "Weights in kilograms please, never pounds.",
        "Weights: kilograms instead of pounds",
        "kilograms|pounds",
    ),
    Entry(
        "Don't count cancelled orders, ever.",
        "All counts leave cancelled orders aside",
        "cancelled orders",
    ),
    Entry(
        "Our own staff purchases should never show up in sales.",
        "Sales figures contain no staff purchases",
        "staff purchases",
    ),
    Entry(
        "I want dates written like 7 March 2024, not the American way.",
        "Dates look like 7 March 2024 and not American",
        "7 March 2024|American",
    ),
    Entry(
        "Round everything to whole units.",
        "Figures are rounded to whole units",
        "whole units",
    ),
    Entry(
        "No more than ten lines in a table unless I ask for the full list.",
        "Tables have at most ten lines, except where the full list is asked for",
        "ten lines|full list",
    ),
    Entry(
        "When I say active I mean bought something in the past ninety days.",
        "By active the user means a purchase within ninety days",
        "active|ninety days",
    ),
    Entry(
        "Start with the answer in one sentence, then the reasoning.",
        "Replies open with the answer in one sentence, reasoning follows",
        "one sentence|reasoning",
    ),
    Entry(
        "Please keep emojis out of your replies.",
        "Replies carry no emojis",
        "emojis",
    ),
    Entry(
        "Reply in British spelling, always.",
        "Write with British spelling",
        "British spelling",
    ),
    Entry(
        "The fiscal year begins on 1 October, use that whenever I talk about years.",
        "Years are fiscal and start on 1 October",
        "fiscal|1 October",
    ),
    Entry(
        "Leave the Antwerp test shop aside in whatever you compute.",
        "Nothing computed may contain the Antwerp test shop",
        "Antwerp test shop",
    ),
    Entry(
        "Percentages with two decimals, thanks.",
        "Shares in percent have two decimals",
        "two decimals",
    ),
    Entry(
        "Put the SQL under each answer so I can check it.",
        "The SQL belongs under each answer",
        "SQL|under each answer",
    ),
    Entry(
        "Call them members, not customers, in anything you write.",
        "The word is members, not customers",
        "members, not customers",
    ),
    Entry(
        "In this company gross margin means revenue less freight.",
        "Definition: gross margin is revenue less freight",
        "gross margin|less freight",
    ),
    Entry(
        "Sort by largest first unless I name another order.",
        "Sorting is largest first if nothing else is named",
        "largest first",
    ),
    Entry(
        "Skip warm-up phrases like Great question.",
        "No phrases such as Great question",
        "Great question",
    ),
    Entry(
        "In every breakdown retail must be kept apart from wholesale.",
        "Breakdowns show retail and wholesale kept apart",
        "retail|wholesale|kept apart",
    ),
    Entry(
        "If something is missing put n/a, not a nought.",
        "Missing values appear as n/a and not as a nought",
        "n/a|nought",
    ),
    Entry(
        "Returns go against the month of the original sale.",
        "A return is booked in the month of the original sale",
        "original sale",
    ),
    Entry(
        "Weeks run Sunday to Saturday with us.",
        "A week is Sunday to Saturday",
        "Sunday to Saturday",
    ),
    Entry(
        "I only care about shipments above fifty boxes; treat the rest as noise.",
        "Shipments matter above fifty boxes, smaller ones are noise",
        "fifty boxes|noise",
    ),
    Entry(
        "Tell me how many rows you looked at each time.",
        "State how many rows you looked at",
        "how many rows you looked at",
    ),
    Entry(
        "Ask me before you guess what a field stands for.",
        "Check with the user before you guess the sense of a field",
        "before you guess",
    ),
    Entry(
        "No charts, text and tables will do.",
        "Output is text and tables, without charts",
        "charts|text and tables",
    ),
    Entry(
        "People should be listed surname first.",
        "Names of people: surname first",
        "surname first",
    ),
    Entry(
        "Times are Lisbon time, whatever the database says.",
        "Every time of day is Lisbon time",
        "Lisbon time",
    ),
    Entry(
        "Big numbers get a thin space between the thousands.",
        "Thousands are parted by a thin space",
        "thin space",
    ),
    Entry(
        "Don't use the word churn, say leavers.",
        "Write leavers where others write churn",
        "churn|leavers",
    ),
    Entry(
        "Compare with the same month a year earlier whenever you show a trend.",
        "A trend is set beside the month a year earlier",
        "a year earlier|trend",
    ),
    Entry(
        "For us bonded stock doesn't belong in inventory.",
        "Inventory is without bonded stock",
        "bonded stock",
    ),
    Entry(
        "Finish each reply with a line on what could be wrong.",
        "The last line of a reply says what could be wrong",
        "what could be wrong",
    ),
)

EN_REVOKED = (
    Entry(
        "Leave Mexico out of every total.",
        "Totals are built with Mexico left out of every total",
        "Mexico|out of every total",
        "Put Mexico back in.",
    ),
    Entry(
        "Please show all prices before tax.",
        "The user sees prices before tax",
        "prices before tax",
        "On second thought, I want the tax included after all.",
    ),
    Entry(
        "Give me amounts in thousands from now on.",
        "Show amounts in thousands",
        "amounts in thousands",
        "Full figures again please, thousands are too coarse.",
    ),
    Entry(
        "Hide the supplier codes, I never need them.",
        "Hidden: supplier codes, which the user will never need",
        "supplier codes|never need",
        "I would like to see the supplier codes again.",
    ),
    Entry(
        "We look at the Rotterdam depot alone until I say so.",
        "Work covers the Rotterdam depot alone",
        "Rotterdam depot alone",
        "OK, open it up to all depots, not just Rotterdam.",
    ),
    Entry(
        "Answer in bullet points by default.",
        "Answers are bullet points by default",
        "bullet points|by default",
        "Forget the bullet points, plain paragraphs read better.",
    ),
    Entry(
        "Ignore orders placed at weekends.",
        "No orders placed at weekends",
        "placed at weekends",
        "Weekend orders count too, I was wrong about that.",
    ),
    Entry(
        "Use the 2022 price list for everything.",
        "Prices come from the 2022 price list",
        "2022 price list",
        "Scrap what I said about the old list, take the 2024 one instead.",
    ),
    Entry(
        "Group by quarter unless told otherwise.",
        "Grouping is by quarter",
        "by quarter",
        "Switch from quarters to months, quarters hide too much.",
    ),
    Entry(
        "Every answer under fifty words.",
        "Answers stay under fifty words",
        "under fifty words",
        "You can write longer answers again.",
    ),
    Entry(
        "Treat the Oslo and Bergen branches as one.",
        "The Oslo and Bergen branches form one unit",
        "Oslo and Bergen",
        "Split Oslo from Bergen again, they report separately now.",
    ),
    Entry(
        "Drop sample parcels from the volumes.",
        "Volumes contain no sample parcels",
        "sample parcels",
        "The samples may come back into the counts.",
    ),
)

EN_SEMANTIC = (
    Entry("{who} runs the customs desk.", "The customs desk is run by {who}", "{who}|customs desk"),
    Entry(
        "{who} looks after the big accounts in Scandinavia.",
        "Big accounts in Scandinavia: {who}",
        "{who}|Scandinavia",
    ),
    Entry(
        "{who} signs off every credit note.",
        "Signing of each credit note is up to {who}",
        "{who}|credit note",
    ),
    Entry("{who} owns the forecast file.", "The forecast belongs to {who}", "{who}|forecast"),
    Entry(
        "{who} is the person to ask about cold storage.",
        "Contact for cold storage: {who}",
        "{who}|cold storage",
    ),
    Entry(
        "{who} took over the night shift in spring.",
        "Since spring the night shift is with {who}",
        "{who}|night shift",
    ),
    Entry(
        "{who} negotiates with the hauliers.",
        "Talks with the hauliers are led by {who}",
        "{who}|hauliers",
    ),
    Entry(
        "{who} keeps the product master clean.",
        "Cleaning of the product master: {who}",
        "{who}|product master",
    ),
    Entry(
        "{who} leads the returns team now.", "Head of the returns team: {who}", "{who}|returns team"
    ),
    Entry(
        "The column ship_grp holds the carrier group, not the ship.",
        "ship_grp = carrier group",
        "ship_grp|carrier group",
    ),
    Entry(
        "In the stock table flg_b means blocked for sale.",
        "flg_b marks goods blocked for sale",
        "flg_b|blocked for sale",
    ),
    Entry(
        "The cust_tier value is set by hand once a year.",
        "cust_tier: set by hand, yearly",
        "cust_tier|by hand",
    ),
    Entry(
        "We use ord_src for the channel, W being the website.",
        "ord_src is the channel (W: website)",
        "ord_src|website",
    ),
    Entry("The figure in amt_x is before the rebate.", "amt_x excludes the rebate", "amt_x|rebate"),
    Entry(
        "A blank in rel_dt stands for goods still held by the port.",
        "Empty rel_dt: goods are held by the port",
        "rel_dt|held by the port",
    ),
    Entry(
        "The field qty_adj counts what was found broken on arrival.",
        "qty_adj is the number of broken pieces",
        "qty_adj|broken",
    ),
    Entry(
        "The zone_k field was made for the old lorries and nobody fills it now.",
        "zone_k served the old lorries and is unused",
        "zone_k|old lorries",
    ),
    Entry(
        "The dip in May came from the crane strike at Gdynia.",
        "Cause of the May dip: Gdynia crane strike",
        "crane strike|Gdynia",
    ),
    Entry(
        "April looks odd because two depots were merged by mistake.",
        "April is odd since two depots got merged",
        "two depots|merged",
    ),
    Entry(
        "Deliveries piled up when the bridge at Tornio was shut.",
        "A shut bridge in Tornio delayed deliveries",
        "bridge|Tornio",
    ),
    Entry(
        "The jump in giveaways was the trade fair in Lyon.",
        "Giveaways jumped owing to the Lyon trade fair",
        "trade fair|Lyon",
    ),
    Entry(
        "Spring refunds rose after a faulty batch of valves.",
        "Refunds in spring: valves from a faulty batch",
        "faulty batch|valves",
    ),
    Entry(
        "The hole in February is a server that stood still for nine days.",
        "February lacks data as a server was down nine days",
        "server|nine days",
    ),
    Entry(
        "We sit on so much varnish since the union contract was lost.",
        "Too much varnish because of a lost union contract",
        "varnish|union contract",
    ),
    Entry(
        "We agreed with the treasurer to book haulage at dispatch.",
        "Agreed with the treasurer: haulage is booked at dispatch",
        "treasurer|at dispatch",
    ),
    Entry(
        "It was settled that the pilot ends when the new scanner arrives.",
        "The pilot stops on arrival of the new scanner",
        "pilot|new scanner",
    ),
    Entry(
        "The lawyers and we decided to keep the old contracts readable.",
        "With the lawyers: old contracts stay readable",
        "lawyers|old contracts",
    ),
    Entry(
        "The trustees will get the report as a letter, that is settled.",
        "The report goes to the trustees as a letter",
        "trustees|as a letter",
    ),
    Entry(
        "The auditors accepted estimates for the two lost crates.",
        "Estimates for lost crates are fine with the auditors",
        "auditors|lost crates",
    ),
    Entry(
        "Buyers and planners will share one calendar, as agreed on the call.",
        "Agreed: one calendar for buyers and planners",
        "planners|one calendar",
    ),
    Entry(
        "We promised the drivers no Friday evening runs.",
        "Promise to the drivers: nothing on Friday evening",
        "drivers|Friday evening",
    ),
    Entry(
        "It is agreed that Hamburg moves last.",
        "Hamburg moves last, as agreed",
        "Hamburg|moves last",
    ),
)

ZH_RULES = (
    Entry("金额一律换算成欧元。", "金额都以欧元显示", "欧元"),
    Entry("重量用公斤，别用磅。", "重量单位为公斤，不用磅", "公斤|磅"),
    Entry("已作废的单子从不计入。", "统计不含已作废的单子", "已作废的单子"),
    Entry("员工内购始终不算销售。", "销售里没有员工内购", "员工内购"),
    Entry("日期写成三月七日这种样子。", "日期格式如三月七日", "三月七日"),
    Entry("件数四舍五入到整数。", "件数四舍五入取整", "四舍五入"),
    Entry(
        "表格最多给十行，除非我要完整清单。", "表格不超过十行，要完整清单时例外", "十行|完整清单"
    ),
    Entry("我说活跃，指的是九十天内下过单。", "活跃＝九十天内有订单", "活跃|九十天"),
    Entry("先用一句话给结论，再展开。", "开头一句话写结论，然后展开", "一句话|结论"),
    Entry("回复里别放表情符号。", "答复不带表情符号", "表情符号"),
    Entry("以后都用简体字回答我。", "答复用简体字", "简体字"),
    Entry("我们的财年从十月一日起算。", "财年起点是十月一日", "财年|十月一日"),
    Entry("测试用的青屿店不参与任何计算。", "计算时排除青屿店", "青屿店"),
    Entry("百分比保留两位小数。", "百分比写两位小数", "两位小数"),
    Entry("每次把查询语句附在后面，我要核对。", "答复之后附在末尾的是查询语句", "查询语句|附在"),
    Entry("行文里称会员，不称顾客。", "用词是会员而非顾客", "会员|顾客"),
    Entry("毛利在我们这里要扣掉运费。", "毛利按扣掉运费来算", "毛利|扣掉运费"),
    Entry("排序默认从大到小。", "没特别说明就从大到小排", "从大到小"),
    Entry("开头别寒暄，直接说事。", "答复不寒暄，直接说事", "寒暄|直接说事"),
    Entry("批发和零售任何时候都分开列。", "批发与零售分开列示", "批发|零售|分开列"),
    Entry("缺数据就写暂缺，不要写零。", "没有数据时写暂缺", "写暂缺"),
    Entry("退回的货记到原销售月份。", "退回的货归入原销售月份", "原销售月份"),
    Entry("一周按周日到周六算。", "周的范围：周日到周六", "周日到周六"),
    Entry("五十箱以下的发货我不关心，别列。", "发货少于五十箱的不列", "五十箱"),
    Entry("每次都告诉我看了多少行。", "每次说明一共看了多少行", "看了多少行"),
    Entry("字段含义拿不准先问我，别猜。", "字段拿不准时先问用户", "拿不准"),
    Entry("不要图表，文字就够了。", "只用文字，没有图表", "图表|文字"),
    Entry("人名按姓在前写。", "人名写法：姓在前", "姓在前"),
    Entry("时间都按里斯本时区。", "时间以里斯本时区为准", "里斯本"),
    Entry("大数字用万作单位。", "大数字显示时用万作单位", "用万作单位"),
    Entry("报告里不出现流失这个词，改说离开。", "不写流失，写离开", "流失|离开"),
    Entry("讲趋势时总要和去年同月比。", "趋势要对照去年同月", "趋势|去年同月"),
    Entry("保税货不算进库存。", "库存里没有保税货", "保税货"),
    Entry("结尾留一行写可能错在哪。", "末行说明可能错在哪", "可能错在哪"),
)

ZH_REVOKED = (
    Entry("所有合计都剔除墨西哥。", "合计剔除墨西哥", "剔除|墨西哥", "把墨西哥加回来吧。"),
    Entry("价格默认给不含税的。", "价格为不含税的", "不含税", "想了想，还是带上税吧。"),
    Entry("以后金额以千元显示。", "金额以千元显示", "千元", "千位太粗，恢复原数。"),
    Entry("供应商代码一直隐藏。", "隐藏供应商代码", "供应商代码|隐藏", "供应商代码还是要看到。"),
    Entry(
        "目前只看鹿特丹的仓库。", "范围：只看鹿特丹", "只看鹿特丹", "放开到全部仓库，不限鹿特丹了。"
    ),
    Entry("回答默认用条目。", "回答都用条目写", "用条目", "条目看着累，改回段落。"),
    Entry(
        "周末下的订单忽略。", "忽略周末下的订单", "周末下的订单", "周末的也算上，之前是我说错了。"
    ),
    Entry(
        "一律用旧版价目表。", "价格取自旧版价目表", "旧版价目表", "价目表换成新版的，旧的不用了。"
    ),
    Entry("除非另说，都按季度汇总。", "平时按季度汇总", "按季度汇总", "季度太粗，改按月。"),
    Entry("每个答复别超过五十字。", "答复不多于五十字", "五十字", "答复可以写长一点了。"),
    Entry(
        "奥斯陆和卑尔根当一家看。",
        "奥斯陆与卑尔根合成一家",
        "奥斯陆|卑尔根|一家",
        "奥斯陆跟卑尔根重新拆开。",
    ),
    Entry("样品包裹不进发货量。", "发货量里没有样品包裹", "样品包裹", "样品现在可以算进去。"),
)

ZH_SEMANTIC = (
    Entry("报关组由{who}负责。", "{who}负责报关组", "{who}|报关组"),
    Entry("{who}管北欧的大客户。", "北欧大客户归{who}", "{who}|北欧"),
    Entry("红字发票都由{who}签字。", "{who}签红字发票", "{who}|红字发票"),
    Entry("预测表归{who}维护。", "{who}维护预测表", "{who}|预测表"),
    Entry("冷库的事问{who}。", "冷库联系人：{who}", "{who}|冷库"),
    Entry("夜班从春天起换成{who}带。", "{who}自春天起带夜班", "{who}|夜班"),
    Entry("跟承运商谈价的是{who}。", "{who}与承运商谈价", "{who}|承运商"),
    Entry("商品主档由{who}清理。", "{who}清理商品主档", "{who}|商品主档"),
    Entry("退货组现在的组长是{who}。", "{who}任退货组组长", "{who}|退货组"),
    Entry("列ship_grp是运输分组，不是船。", "ship_grp＝运输分组", "ship_grp|运输分组"),
    Entry("库存表的flg_b表示禁止出售。", "flg_b＝禁止出售", "flg_b|禁止出售"),
    Entry("列cust_tier每年人工定一次。", "cust_tier为人工设定", "cust_tier|人工"),
    Entry("列ord_src写渠道，W代表网站。", "ord_src是渠道（W＝网站）", "ord_src|网站"),
    Entry("列amt_x是返利之前的数。", "amt_x未扣返利", "amt_x|返利"),
    Entry("列rel_dt空着说明货还扣着。", "rel_dt为空：货扣着", "rel_dt|扣着"),
    Entry("列qty_adj记的是到货时的破损。", "qty_adj＝破损数", "qty_adj|破损"),
    Entry("列zone_k是给老货车用的，没人填了。", "zone_k只为老货车，已弃用", "zone_k|老货车"),
    Entry("五月下滑是因为格丁尼亚的吊车罢工。", "五月下滑原因：格丁尼亚罢工", "格丁尼亚|罢工"),
    Entry("四月数字怪，是两个库并错了。", "四月异常源于两个库被并错", "两个库|并错"),
    Entry("托尔尼奥的大桥封了，货才堆起来。", "货堆积是托尔尼奥大桥封闭所致", "托尔尼奥|大桥"),
    Entry("赠品猛增是里昂的展会带来的。", "里昂展会使赠品增加", "里昂|展会"),
    Entry("春季退款多，是一批阀门有毛病。", "阀门毛病造成春季退款", "退款|阀门"),
    Entry("二月的缺口是服务器停了九天。", "二月缺数：服务器停九天", "服务器|九天"),
    Entry("清漆积压，因为工会的合同丢了。", "丢了工会合同，清漆积压", "清漆|工会"),
    Entry("和财务说好了，运杂费发出时入账。", "与财务约定发出时入账", "财务|发出时入账"),
    Entry("试点到新扫描枪到货为止，这点定了。", "新扫描枪一到试点结束", "试点|扫描枪"),
    Entry("法务同意旧合同继续可查。", "旧合同可查，法务已同意", "法务|旧合同"),
    Entry("董事会要的是信函形式的报告。", "给董事会的报告用信函", "董事会|信函"),
    Entry("审计认可那两箱丢货用估数。", "丢货用估数，审计认可", "审计|丢货"),
    Entry("销售和采购共用一份日历，会上谈妥了。", "采购与销售共用日历", "采购|日历"),
    Entry("答应过司机周五晚上不派车。", "对司机的承诺：周五晚上不派车", "司机|周五晚上"),
    Entry("汉堡最后搬，这是谈好的。", "约定汉堡最后搬", "汉堡|最后搬"),
)

EN = Words(
    glue=" ",
    rules=EN_RULES,
    revoked=EN_REVOKED,
    semantic=EN_SEMANTIC,
    persons=(
        "Ingrid Tveit",
        "Omar Haddou",
        "Petra Lindqvist",
        "Sunil Varghese",
        "Marta Okoye",
        "Tomasz Wilk",
        "Leila Benaissa",
        "Hugh Carrow",
        "Nadia Ferro",
        "Kofi Mensah",
        "Rosa Delmonte",
        "Yusuf Akay",
        "Greta Holm",
        "Dmitri Sokol",
        "Anouk Perrin",
        "Bram Dekker",
        "Chiara Lupo",
        "Eamon Duffy",
        "Zofia Banas",
        "Ravi Menon",
    ),
    metrics=(
        "yearly pallet target",
        "opening stock",
        "repair budget",
        "scanned bin count",
        "fuel allowance",
        "hall rent",
        "insured value",
        "order backlog",
        "energy use",
        "packing cost",
        "deposit held",
        "shelf capacity",
        "toll bill",
        "cleaning fee",
        "tonnage cap",
        "loading quota",
        "tyre spend",
        "spare part reserve",
        "fleet mileage",
        "lease balance",
        "bonus pot",
        "training fund",
        "security cost",
        "wood consumption",
        "film usage",
        "label count",
        "tray stock",
        "seal count",
        "dock revenue",
        "parking income",
        "scrap value",
        "claims reserve",
        "overtime bill",
        "water use",
        "stock write-off",
        "advance payment",
        "credit line",
        "purchase ceiling",
        "sales goal",
        "visitor count",
    ),
    name_heads=(
        "Bren",
        "Oster",
        "Kal",
        "Wex",
        "Tarn",
        "Hol",
        "Vest",
        "Mer",
        "Dun",
        "Ash",
        "Loch",
        "Grim",
    ),
    name_tails=("holt", "by", "worth", "ford", "stead", "wick", "dale", "mouth"),
    user_frames=(
        "For the record, the {metric} of {name} is {figure}.",
        "The {metric} at {name} was fixed at {figure} last week.",
        "{name} told me their {metric} is {figure}.",
        "I have the {metric} for {name} here: {figure}.",
        "You should know that {name} has {figure} as its {metric}.",
    ),
    answer_frames=(
        "The {metric} of {name} works out at {figure}.",
        "For {name} the {metric} comes out at {figure}.",
        "Taken together, the {metric} for {name} reaches {figure}.",
        "Set beside that, the {metric} at {name} is {figure}.",
        "A second query puts the {metric} of {name} at {figure}.",
    ),
    note_frames=(
        "{name}: {metric} {figure}",
        "{metric} for {name} = {figure}",
        "{name} reports {figure} as {metric}",
    ),
    openers=("One thing:", "Before I forget:", "Hi.", "By the way.", "", "", ""),
    acknowledgements=(
        "Understood.",
        "Noted, I will do that.",
        "All right.",
        "Thanks, got it.",
        "Will do.",
        "Clear, thank you.",
        "Good to know.",
        "Fine, I'll work that way.",
    ),
    questions=(
        "Which {thing} in the {area} area stood out in {month}?",
        "How did {thing} in the {area} area do in {month}?",
        "Can you list {thing} for {month}, {area} side?",
        "What moved most among the {area} {thing} in {month}?",
        "Show me the {area} {thing} of {month}.",
        "Where did {thing} get stuck in {month} on the {area} side?",
        "Who ordered {thing} from the {area} area in {month}?",
        "Did {thing} pick up in {month} in the {area} area?",
        "Pull {thing} handled in {month} for the {area} zone.",
        "Are there {thing} still waiting in the {area} zone from {month}?",
        "Which clients took {area} {thing} during {month}?",
        "What is left of the {thing} we booked in {month} for the {area} side?",
    ),
    answers=(
        "The {area} area leads with {n} {thing}, and {m} entries are waiting.",
        "In {month} the list holds 40 entries; the biggest shows {n}.",
        "Most {thing} went through; {m} of them need another look.",
        "The middle value is {n}, and {m} entries lie far above it.",
        "Two clients make up the bulk, with {n} {thing} between them.",
        "Nothing alarming: {m} late entries, the peak being {n}.",
        "Overall {month} was quiet, with {n} {thing} at the top.",
        "The {area} side is ahead by {m} entries; its top line shows {n}.",
    ),
    areas=("north", "south", "east", "west", "inner", "outer", "upper", "lower"),
    months=(
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ),
    things=("pallets", "bundles", "loads", "drums", "rolls", "cartons", "barrels", "panels"),
    states=("open", "done", "wait", "part"),
    clients=(
        "Alder Co",
        "Birch Ltd",
        "Cedar AG",
        "Elm Bros",
        "Fir SA",
        "Hazel BV",
        "Juniper",
        "Larch Oy",
        "Maple Inc",
        "Poplar",
        "Rowan KG",
        "Spruce",
    ),
    columns={
        "no": "no",
        "area": "area",
        "qty": "qty",
        "state": "state",
        "share": "share",
        "day": "day",
        "client": "client",
        "bin": "bin",
        "last": "remark",
    },
    remarks=(
        "late",
        "checked",
        "gate",
        "early",
        "split",
        "again",
        "light",
        "heavy",
        "left",
        "right",
        "dry",
        "wet",
        "moved",
        "counted",
        "sealed",
        "spare",
        "floor",
        "ramp",
        "shelf",
        "queue",
    ),
    rule_headings=("Constraints", "Preferences", "Ground rules", "How the user wants it"),
    quote_headings=("User quotes", "Pinned statements", "In the user's own words"),
    fact_headings=("Facts so far", "Key findings", "Context", "Known points", "Where we stand"),
    end_headings=("Changed since", "Withdrawn", "Not valid any longer"),
    end_frames=(
        "Taken back: {note}; later the user said {end}",
        "{note} - this no longer applies, the user's words: {end}",
        "Withdrawn by the user ({end}): {note}",
    ),
    end_alone="The user took something back: {end}",
    openings=(
        "The user analyses a goods database with the assistant.",
        "Summary of the conversation up to this point.",
        "So far the talk was about goods, clients and areas, month after month.",
        "This replaces the older messages.",
    ),
    lazy=(
        "The user asked several things about goods and areas, and the assistant answered them.",
        "Various lists were looked at and some wishes were voiced.",
        "The conversation went well and will go on.",
        "Several months were gone through; nothing special remains to be done.",
    ),
    quotes=('""', "“”", '""'),
)

ZH = Words(
    glue="",
    rules=ZH_RULES,
    revoked=ZH_REVOKED,
    semantic=ZH_SEMANTIC,
    persons=(
        "顾砚秋",
        "贺临川",
        "陆知夏",
        "沈若谷",
        "江望舒",
        "裴远山",
        "宁采薇",
        "段南星",
        "苏既白",
        "韩映雪",
        "秦牧野",
        "叶听澜",
        "邵云起",
        "卓文岚",
        "傅长宁",
        "温以安",
        "路遥平",
        "纪清和",
    ),
    metrics=(
        "年度托盘目标",
        "期初存量",
        "维修预算",
        "扫码箱数",
        "油料补贴",
        "库房租金",
        "投保价值",
        "待发数量",
        "用电量",
        "包装成本",
        "在押保证金",
        "货架容量",
        "过路费",
        "保洁费",
        "吨位上限",
        "装车配额",
        "轮胎开支",
        "备件储备",
        "车队里程",
        "租约余额",
        "奖金池",
        "培训经费",
        "安保费用",
        "木材耗量",
        "缠膜用量",
        "标签张数",
        "料盘存数",
        "封条个数",
        "月台收入",
        "停车收入",
        "废料价值",
        "理赔准备",
        "加班费",
        "用水量",
        "存货减值",
        "预付款",
        "授信额度",
        "购置上限",
        "营收目标",
        "访客人数",
    ),
    name_heads=(
        "云溪",
        "松陵",
        "鹤鸣",
        "梧岭",
        "沧浦",
        "青崖",
        "白荻",
        "石桁",
        "榆关",
        "望川",
        "兰汀",
        "枫桥",
        "雁塘",
        "柳堰",
    ),
    name_tails=("仓", "站", "厂", "坊", "港"),
    user_frames=(
        "记一下，{name}的{metric}是{figure}。",
        "{name}上周把{metric}定为{figure}。",
        "{name}告诉我{metric}为{figure}。",
        "我手上{name}的{metric}：{figure}。",
    ),
    answer_frames=(
        "{name}的{metric}算出来是{figure}。",
        "另查得{name}的{metric}为{figure}。",
        "合起来看，{name}的{metric}达{figure}。",
        "相比之下，{name}的{metric}是{figure}。",
    ),
    note_frames=(
        "{name}：{metric}{figure}",
        "{metric}（{name}）＝{figure}",
        "{name}{metric}为{figure}",
    ),
    openers=("说一下：", "先讲好，", "你好。", "对了，", "", "", ""),
    acknowledgements=(
        "明白。",
        "好的，照办。",
        "收到。",
        "了解了。",
        "行。",
        "知道了，谢谢。",
        "好。",
    ),
    questions=(
        "{month}{area}区的{thing}哪些突出？",
        "{month}{area}区{thing}情况如何？",
        "列一下{month}{area}区的{thing}。",
        "{month}{area}区{thing}变动最大的是哪些？",
        "看看{month}{area}片的{thing}。",
        "{month}{area}片的{thing}卡在哪里？",
        "{month}谁订了{area}区的{thing}？",
        "{month}{area}区{thing}有没有回升？",
        "{month}{area}区还有没处理的{thing}吗？",
        "{month}{area}片的{thing}还剩些什么？",
        "查{month}经手的{area}区{thing}。",
        "哪些客户{month}拿了{area}区{thing}？",
    ),
    answers=(
        "{area}区领先，最高{n}，另有{m}条等待。",
        "{month}共40条，最大一条是{n}。",
        "多数{thing}已办完，{m}条要再看。",
        "中间值{n}，有{m}条明显偏高。",
        "两家占了大头，合计{n}。",
        "没有大问题，迟到{m}条，峰值{n}。",
        "{month}总体平稳，最高{n}。",
        "{area}片多出{m}条，首位是{n}。",
    ),
    areas=("东", "西", "南", "北", "中"),
    months=(
        "1月",
        "2月",
        "3月",
        "4月",
        "5月",
        "6月",
        "7月",
        "8月",
        "9月",
        "10月",
        "11月",
        "12月",
    ),
    things=("托盘", "捆包", "整车", "桶装", "卷材", "纸箱", "板材", "散件"),
    states=("开", "毕", "候", "缺"),
    clients=("甲木", "乙竹", "丙石", "丁泉", "戊禾", "己山", "庚林", "辛田", "壬川", "癸园"),
    columns={
        "no": "号",
        "area": "区",
        "qty": "量",
        "state": "态",
        "share": "占比",
        "day": "日期",
        "client": "客户",
        "bin": "货位",
        "last": "注",
    },
    remarks=("急", "缓", "补", "轻", "重", "早", "晚", "干", "湿", "备", "左", "右", "满", "空"),
    rule_headings=("约束", "偏好", "工作要求", "用户希望的做法"),
    quote_headings=("用户原话", "置顶说明", "用户说过的话"),
    fact_headings=("已知事实", "要点", "背景", "目前情况", "主要发现"),
    end_headings=("已变更", "已收回", "不再有效"),
    end_frames=(
        "已收回：{note}；用户后来说{end}",
        "{note}（不再适用，用户说{end}）",
        "用户用{end}取消了这一条：{note}",
    ),
    end_alone="用户收回了先前的要求：{end}",
    openings=("用户在用助手分析货品数据。", "以下是到目前为止的摘要。", "之前逐月看了各区的货品。"),
    lazy=(
        "用户问了一些货品方面的问题，助手都回答了。",
        "看过若干清单，也提了些想法。",
        "对话进行顺利，后面继续。",
        "前面逐月看了各区，没有遗留。",
    ),
    quotes=("“”", "「」", '""'),
)

WORDS: dict[Language, Words] = {"en": EN, "zh": ZH}


@dataclass
class _Draft:
    """Hold a turn while it is being written."""

    question: str = ""
    table: bool = False
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    answer: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Shape:
    """Hold the drafts of a thread by their part in it."""

    early_alone: list[_Draft]
    early_mixed: list[_Draft]
    late_alone: list[_Draft]
    tables: list[_Draft]
    late_tables: list[_Draft]
    order: list[_Draft]


@dataclass(frozen=True)
class _Form:
    """Hold the look of a table."""

    columns: tuple[str, ...]
    tight: bool


@dataclass(frozen=True)
class _Invention:
    """Hold one made-up figure and the line that claims it."""

    figure: str
    line: str


def thread(seed: int, tokens: int, language: Language, count: Count) -> Thread:
    """Make a thread whose planted part has about the given number of tokens."""
    rng = Random(f"thread {seed} {tokens} {language}")
    words = WORDS[language]
    items = _items(rng, words)
    shape = _shape(rng, max(8, tokens // TURN_TOKENS), words)
    _place_rules(rng, shape, items)
    _place_ends(rng, shape, items)
    _place_facts(rng, shape, items)
    for draft in shape.order:
        _complete(rng, draft, words)
    turns = _turns(rng, shape.order, tokens, words, count)
    return Thread(language, turns, tuple(items))


def filler(seed: int, n: int, tokens: int, language: Language, count: Count) -> Turn:
    """Make turn n after the planted part, with a result and without any item."""
    rng = Random(f"filler {seed} {n} {language}")
    words = WORDS[language]
    topic = _topic(rng, words)
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
    rng = Random(f"summary {_mark(thread)} {character} {call}")
    words = WORDS[thread.language]
    if character == "lazy":
        lines = rng.sample(words.lazy, rng.choice((1, 2)))
        return _fit(lines, allowed, count)
    extra: list[str] = []
    if character == "inventing":
        for invention in _inventions(thread, call):
            extra.append(invention.line)
    lines = _summary_lines(rng, thread, prompt, call, extra)
    return _fit(lines, allowed, count)


def invented(thread: Thread, calls: Iterable[int]) -> set[str]:
    """Return the figures that the inventing summariser makes up in the given calls."""
    figures: set[str] = set()
    for call in calls:
        for invention in _inventions(thread, call):
            figures.add(invention.figure)
    return figures


def holds(item: Item, text: str) -> bool:
    """Tell whether all needles of an item stand in a text."""
    return all(needle in text for needle in item.needles)


def _items(rng: Random, words: Words) -> list[Item]:
    """Choose the items of a thread."""
    items = _generated(rng, words)
    persons = rng.sample(words.persons, len(words.persons))
    for entry in rng.sample(words.semantic, SEMANTIC):
        items.append(_item("semantic", entry, persons.pop()))
    for entry in rng.sample(words.rules, RULES):
        items.append(_item("rule", entry, ""))
    for entry in rng.sample(words.revoked, REVOKED):
        items.append(_item("revoked", entry, ""))
    return items


def _item(kind: Kind, entry: Entry, who: str) -> Item:
    """Make an item of an entry of a pool."""
    needles = entry.needles.replace("{who}", who).split("|")
    source = entry.text.replace("{who}", who)
    note = entry.note.replace("{who}", who)
    return Item(kind, tuple(needles), source, note, entry.ended_by)


def _generated(rng: Random, words: Words) -> list[Item]:
    """Make the generated facts, the first half for the user to state."""
    names = rng.sample(_names(words), GENERATED)
    metrics = rng.sample(words.metrics, GENERATED)
    taken: list[str] = []
    items: list[Item] = []
    for index in range(GENERATED):
        figure = _fresh_figure(rng, taken)
        taken.append(figure)
        frames = words.user_frames if index < GENERATED // 2 else words.answer_frames
        source = rng.choice(frames).format(name=names[index], metric=metrics[index], figure=figure)
        note = rng.choice(words.note_frames)
        note = note.format(name=names[index], metric=metrics[index], figure=figure)
        items.append(Item("generated", (names[index], figure), source, note))
    return items


def _names(words: Words) -> list[str]:
    """List all names of places that a fact may be about."""
    names: list[str] = []
    for head in words.name_heads:
        for tail in words.name_tails:
            names.append(head + tail)
    return names


def _figure(rng: Random) -> str:
    """Make a figure in a shape that no table and no filler uses."""
    shape = rng.randrange(4)
    if shape == 0:
        return f"{rng.randint(10_000, 99_999):,}"
    if shape == 1:
        return f"{rng.randint(100_000, 999_999):,}"
    if shape == 2:
        return f"{rng.randint(1_000_000, 9_999_999):,}"
    return f"{rng.randint(100, 999)}.{rng.randint(10, 99)}"


def _clashes(figure: str, taken: list[str]) -> bool:
    """Tell whether a figure contains a taken one or is contained in one."""
    return any(figure in other or other in figure for other in taken)


def _fresh_figure(rng: Random, taken: list[str]) -> str:
    """Make a figure that clashes with no taken one."""
    figure = _figure(rng)
    while _clashes(figure, taken):
        figure = _figure(rng)
    return figure


def _shape(rng: Random, tables: int, words: Words) -> _Shape:
    """Lay out the turns: in the early ones stand the rules."""
    early_tables = _drafts(max(2, tables // 4), True)
    early_small = _drafts(max(5, tables // 4), False)
    late_small = _drafts(max(2, tables // 10), False)
    late_tables = _drafts(tables - len(early_tables), True)
    lone = len(early_small) // 2
    early = early_small + early_tables[1:]
    rng.shuffle(early)
    early.append(early_tables[0])
    late = late_tables + late_small
    rng.shuffle(late)
    for draft in early_small[:lone] + late_small:
        opener = rng.choice(words.openers)
        if opener:
            draft.before.append(opener)
    return _Shape(
        early_alone=early_small[:lone],
        early_mixed=early_small[lone:] + early_tables,
        late_alone=late_small,
        tables=early_tables + late_tables,
        late_tables=late_tables,
        order=early + late,
    )


def _drafts(number: int, table: bool) -> list[_Draft]:
    """Make a number of empty drafts."""
    drafts: list[_Draft] = []
    for _ in range(number):
        drafts.append(_Draft(table=table))
    return drafts


def _say(rng: Random, draft: _Draft, sentence: str) -> None:
    """Let the user say a sentence before or after the question."""
    if rng.random() < 0.5:
        draft.before.append(sentence)
    else:
        draft.after.append(sentence)


def _place_rules(rng: Random, shape: _Shape, items: list[Item]) -> None:
    """Put the rules into the early messages, some alone, some together."""
    rules = [item for item in items if item.kind in ("rule", "revoked")]
    rng.shuffle(rules)
    for draft in shape.early_alone:
        draft.before.append(rules.pop().source)
    for index, item in enumerate(rules):
        draft = shape.early_mixed[index % len(shape.early_mixed)]
        _say(rng, draft, item.source)


def _place_ends(rng: Random, shape: _Shape, items: list[Item]) -> None:
    """Put the words that take rules back into late messages."""
    ended = [item for item in items if item.ended_by]
    rng.shuffle(ended)
    lone = shape.late_alone[:2]
    others = rng.sample(shape.late_tables, REVOKED - len(lone))
    for item, draft in zip(ended, lone + others, strict=True):
        if draft.table:
            _say(rng, draft, item.ended_by)
        else:
            draft.before.append(item.ended_by)


def _place_facts(rng: Random, shape: _Shape, items: list[Item]) -> None:
    """Put the facts into messages and answers."""
    hosts = shape.tables + shape.late_alone[2:]
    rng.shuffle(hosts)
    answers = rng.sample(shape.tables, len(shape.tables))
    facts = [item for item in items if item.kind in ("generated", "semantic")]
    asked = 0
    told = 0
    for index, item in enumerate(facts):
        if index < GENERATED // 2 or item.kind == "semantic":
            _say(rng, hosts[asked % len(hosts)], item.source)
            asked += 1
        else:
            answers[told % len(answers)].answer.append(item.source)
            told += 1


def _complete(rng: Random, draft: _Draft, words: Words) -> None:
    """Give a draft its question and its answer."""
    if not draft.table:
        draft.answer.append(rng.choice(words.acknowledgements))
        return
    topic = _topic(rng, words)
    draft.question = rng.choice(words.questions).format(**topic)
    draft.answer.insert(0, rng.choice(words.answers).format(**topic))


def _topic(rng: Random, words: Words) -> dict[str, str]:
    """Choose what a question and its answer are about."""
    return {
        "thing": rng.choice(words.things),
        "area": rng.choice(words.areas),
        "month": rng.choice(words.months),
        "n": str(rng.randint(310, 990)),
        "m": str(rng.randint(3, 19)),
    }


def _turns(
    rng: Random, drafts: list[_Draft], tokens: int, words: Words, count: Count
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


def _form(rng: Random, seed: int, room: int, words: Words, count: Count) -> _Form:
    """Choose the widest look of a table that fits."""
    wide = ("share", "day", "client", "bin")
    extra = rng.sample(wide, rng.choice((1, 2, 2)))
    forms = (
        _Form(("no", "area", "qty", "state", *extra), False),
        _Form(("no", "area", "qty", "state", extra[0]), False),
        _Form(("no", "area", "qty", "state"), False),
        _Form(("no", "area", "qty", "state"), True),
    )
    for form in forms:
        if count(_write_table(seed, form, ROWS, words)) <= room:
            return form
    return forms[-1]


def _write_table(seed: int, form: _Form, remarks: int, words: Words) -> str:
    """Write a table whose last column holds the given number of words in all."""
    rng = Random(seed)
    names = [words.columns[column] for column in form.columns]
    names.append(words.columns["last"])
    lines = [_row(names, form.tight)]
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
        lines.append(_row(cells, form.tight))
    return "\n".join(lines)


def _row(cells: list[str], tight: bool) -> str:
    """Write one line of a pipe table."""
    if tight:
        return "|" + "|".join(cells) + "|"
    return "| " + " | ".join(cells) + " |"


def _cell(rng: Random, column: str, number: int, words: Words) -> str:
    """Write one value of a table."""
    if column == "no":
        return str(number)
    if column == "area":
        return rng.choice(words.areas)
    if column == "qty":
        return str(rng.randint(10, 999))
    if column == "state":
        return rng.choice(words.states)
    if column == "share":
        return f"{rng.randint(0, 99)}.{rng.randint(0, 9)}"
    if column == "day":
        return f"{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    if column == "client":
        return rng.choice(words.clients)
    return f"{rng.choice('KLMNP')}{rng.randint(1, 9)}"


def _mark(thread: Thread) -> int:
    """Compute a number that tells threads apart."""
    notes = "\n".join(item.note for item in thread.items)
    return zlib.crc32(notes.encode())


def _fit(lines: list[str], allowed: int, count: Count) -> str:
    """Join lines and drop some from the end until they fit."""
    kept = list(lines)
    while kept and count("\n".join(kept)) > allowed:
        kept.pop()
    return "\n".join(kept)


def _known(item: Item, texts: tuple[str, ...]) -> bool:
    """Tell whether a summariser was shown an item."""
    return any(item.source in text or holds(item, text) for text in texts)


def _ended(item: Item, texts: tuple[str, ...]) -> bool:
    """Tell whether a summariser was shown that a rule was taken back."""
    return bool(item.ended_by) and any(item.ended_by in text for text in texts)


def _summary_lines(
    rng: Random, thread: Thread, prompt: str, call: int, extra: list[str]
) -> list[str]:
    """Write all lines of a summary before any is dropped."""
    words = WORDS[thread.language]
    texts = (prompt, html.unescape(prompt))
    facts: list[str] = []
    rules: list[str] = []
    ends: list[str] = []
    quoting = rng.random() < 0.5
    for item in thread.items:
        known = _known(item, texts)
        if _ended(item, texts):
            ends.append(_end_line(rng, item, known, words))
        elif known and item.kind in ("rule", "revoked"):
            rules.append(_rule_line(rng, item, quoting, words))
        elif known:
            facts.append(item.note)
    for line in extra:
        facts.insert(rng.randint(0, len(facts)), line)
    headings = words.quote_headings if quoting else words.rule_headings
    style = (_mark(thread) + call) % 4
    sections = [
        (rng.choice(headings), rules),
        (rng.choice(words.fact_headings), facts),
        (rng.choice(words.end_headings), ends),
    ]
    if rng.random() < 0.5:
        sections.insert(0, sections.pop(1))
    return _arranged(rng, sections, style, words)


def _arranged(
    rng: Random, sections: list[tuple[str, list[str]]], style: int, words: Words
) -> list[str]:
    """Put sections below an opening, with headings in one style and bullets of any."""
    lines = [rng.choice(words.openings)]
    number = 0
    for heading, body in sections:
        if not body:
            continue
        number += 1
        if style == 0:
            lines.append(f"**{heading}**")
        if style == 1:
            lines.append(f"## {heading}")
        if style == 2:
            lines.append(f"{number}. {heading}")
        bullet = rng.choice(("-", "*", "•", "1."))
        for index, line in enumerate(body):
            lead = f"{index + 1}." if bullet == "1." else bullet
            lines.append(f"{lead} {line}")
    return lines


def _quoted(rng: Random, text: str, words: Words) -> str:
    """Put a text in quotation marks."""
    marks = rng.choice(words.quotes)
    return marks[0] + text + marks[1]


def _rule_line(rng: Random, item: Item, quoting: bool, words: Words) -> str:
    """Restate a rule, in the user's words or in others."""
    if not quoting and rng.random() < 0.6:
        return item.note
    text = item.source
    if rng.random() < 0.3:
        text = text[0].swapcase() + text[1:]
    if rng.random() < 0.4:
        text = text.rstrip(".。")
    if quoting or rng.random() < 0.6:
        return _quoted(rng, text, words)
    return text


def _end_line(rng: Random, item: Item, known: bool, words: Words) -> str:
    """Write that a rule was taken back."""
    end = _quoted(rng, item.ended_by, words)
    if not known:
        return words.end_alone.format(end=end)
    return rng.choice(words.end_frames).format(note=item.note, end=end)


def _inventions(thread: Thread, call: int) -> list[_Invention]:
    """Make up the false figures of one call."""
    rng = Random(f"inventions {_mark(thread)} {call}")
    words = WORDS[thread.language]
    facts = [item for item in thread.items if item.kind == "generated"]
    taken = [item.needles[1] for item in facts]
    used = {item.needles[0] for item in facts}
    made: list[_Invention] = []
    for item in rng.sample(facts, MADE_UP // 2):
        true = item.needles[1]
        figure = _altered(rng, true, taken)
        taken.append(figure)
        made.append(_Invention(figure, item.note.replace(true, figure)))
    free = [name for name in _names(words) if name not in used]
    for name in rng.sample(free, MADE_UP - len(made)):
        figure = _fresh_figure(rng, taken)
        taken.append(figure)
        frame = rng.choice(words.note_frames)
        line = frame.format(name=name, metric=rng.choice(words.metrics), figure=figure)
        made.append(_Invention(figure, line))
    return made


def _altered(rng: Random, figure: str, taken: list[str]) -> str:
    """Change one digit of a figure, but not its first."""
    places = [place for place in range(1, len(figure)) if figure[place].isdigit()]
    while True:
        place = rng.choice(places)
        digit = rng.choice("0123456789")
        altered = figure[:place] + digit + figure[place + 1 :]
        if not _clashes(altered, taken):
            return altered


def _whole(turn: Turn) -> str:
    """Join all texts of a turn."""
    return "\n".join((turn.user, turn.result, turn.answer))


def _said_at(thread: Thread, words: str) -> list[int]:
    """List the turns in whose message or answer some words stand."""
    places: list[int] = []
    for index, turn in enumerate(thread.planted):
        if words in turn.user or words in turn.answer:
            places.append(index)
    return places


def _check_place(thread: Thread, item: Item, tokens: int, count: Count) -> list[str]:
    """Find what is wrong with the place of an item."""
    places = _said_at(thread, item.source)
    if len(places) != 1:
        return [f"source in {len(places)} turns: {item.source}"]
    faults: list[str] = []
    place = places[0]
    turn = thread.planted[place]
    before = sum(count(_whole(earlier)) for earlier in thread.planted[:place])
    lead = count(turn.user.partition(item.source)[0] + item.source)
    if item.kind in ("rule", "revoked"):
        if item.source not in turn.user:
            faults.append(f"rule not said by the user: {item.source}")
        if before + lead > tokens / 4:
            faults.append(f"rule too late, at {before + lead}: {item.source}")
    if item.kind == "revoked":
        ends = _said_at(thread, item.ended_by)
        if len(ends) != 1 or ends[0] <= place:
            faults.append(f"bad end: {item.ended_by}")
        if holds(item, item.ended_by):
            faults.append(f"the end holds the rule: {item.ended_by}")
    return faults


def _check_needles(item: Item, rest: str) -> list[str]:
    """Find needles that are missing in their item or stand elsewhere by accident."""
    faults: list[str] = []
    for text in (item.source, item.note):
        changed = text[0].swapcase() + text[1:]
        if not holds(item, text) or (item.kind in ("rule", "revoked") and not holds(item, changed)):
            faults.append(f"needle missing in: {text}")
    others = rest.replace(item.source, "")
    if item.ended_by:
        others = others.replace(item.ended_by, "")
    for needle in item.needles:
        if needle in others:
            faults.append(f"needle elsewhere: {needle}")
    return faults


def _check_thread(thread: Thread, seed: int, tokens: int, count: Count) -> list[str]:
    """Find all that is wrong with a thread."""
    faults: list[str] = []
    total = sum(count(_whole(turn)) for turn in thread.planted)
    if abs(total - tokens) > tokens / 10:
        faults.append(f"{total} tokens instead of {tokens}")
    texts = [_whole(turn) for turn in thread.planted]
    for n in range(20):
        turn = filler(seed, n, 800, thread.language, count)
        texts.append(_whole(turn))
        if turn.result.count("\n") != ROWS:
            faults.append("wrong number of rows")
        if abs(count(_whole(turn)) - 800) > 80:
            faults.append(f"filler of {count(_whole(turn))} tokens")
    rest = "\n".join(texts)
    for item in thread.items:
        faults += _check_place(thread, item, tokens, count)
        faults += _check_needles(item, rest)
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
            if (expected and _ended(item, (seen,))) != _ended(item, (summary,)):
                faults.append(f"{character}, call {call}: end of {item.needles}")
        made = invented(thread, (call,))
        found = sum(1 for figure in made if figure in summary)
        if found != (MADE_UP if character == "inventing" else 0):
            faults.append(f"{character}, call {call}: {found} made-up figures")
    return faults


def _count_en(text: str) -> int:
    """Estimate the tokens of an English text."""
    return len(text) // 4


def _count_zh(text: str) -> int:
    """Estimate the tokens of a Chinese text."""
    return len(text)


def _check(language: Language, tokens: int, count: Count, seeds: int) -> None:
    """Check threads of many seeds and print the faults and the statistics of the last."""
    faults: list[str] = []
    for seed in range(seeds):
        sample = thread(seed, tokens, language, count)
        faults += _check_thread(sample, seed, tokens, count)
        faults += _check_summaries(sample, "honest", count)
        faults += _check_summaries(sample, "lazy", count)
        faults += _check_summaries(sample, "inventing", count)
    total = sum(count(_whole(turn)) for turn in sample.planted)
    results = sum(1 for turn in sample.planted if turn.result)
    everything = "\n".join(_whole(turn) for turn in sample.planted)
    summary = summarise(sample, "honest", everything, 100_000, 0, count)
    print(
        f"{language} {tokens}: {total} tokens, {len(sample.planted)} turns, {results} results, "
        f"{len(sample.items)} items, full honest summary {count(summary)} tokens, "
        f"{len(faults)} faults in {seeds} seeds"
    )
    for fault in sorted(set(faults))[:20]:
        print("  ", fault)


def main() -> None:
    """Check both languages in both usual sizes."""
    for tokens in (8_000, 32_000):
        _check("en", tokens, _count_en, 40)
        _check("zh", tokens, _count_zh, 40)


if __name__ == "__main__":
    main()
