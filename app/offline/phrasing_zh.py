"""Put phrases that Chinese questions use into the plain words that the translation reads."""

# ruff: noqa: E501 - a pattern reads best on one line

import re
from typing import Final

from longtable.app.offline.lexicon_zh import MEASURES

_M = f"(?:{'|'.join(MEASURES)})"
_N = r"[\d一两二三四五六七八九十]+"
_HAN = r"[\u3400-\u9fff]"
_DID = "(?:做|开|有|安排|进行|接受|办|参加|发生|提交|下|提|收到|买|购买|产生|记录|参与|使用|用|被|分配|得|获得|执行|完成|出现|登记|签|订|交|卖|写|出|拿)"

_RULES: Final = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (rf"[（(]\s*含\s*{_N}?\s*{_M}?\s*[)）]", ""),
        (r"(?<=\d)\s*分(?![钟数类之店校公])", " "),
        (r"^向|(?<=[，,])向|(?<=[A-Za-z\d])\s*向", "给向"),
        (r"[,，]?\s*各自的([^，,？?。]{1,12}?)(?:分别|各)?(?:是多少|是什么|为多少)", r"及其\1"),
        (r"(?<=[A-Za-z])\s*类(?![别型目组])", " "),
        (r"任何|任意一?[个种项]|随便", ""),
        (rf"一{_M}({_HAN}{{1,6}}?)(?:也|都)没有?(?:{_DID}过?)?", r"没有\1"),
        (rf"(?:从来|从|并|还|都|仍|至今)?(?:没有|没|未曾|未){_DID}过(?={_HAN})", "没有"),
        (rf"(?<=[A-Za-z\d\"”'’）)])\s*[这那]{_N}{_M}", ""),
        (rf"最近一{_M}(?=[^的]{{1,8}}?是)", "最近"),
        (r"(?:是)?在?(?:哪一天|哪天|哪一日|什么时候|何时|什么日期)", "什么时候"),
        (rf"最(近|早|晚|新)({_HAN}{{1,3}})的({_N}){_M}", r"最\1的\3个\2的"),
        (r"(?<=[中里])[,，]", "的"),
        (
            r"(金额|费用|花费|总价|价格|重量|面积|长度|时长|工时|数量|销量|收入|支出|成本|保费|保额|余额|运费|本金|预算|里程|产量|用量)(?:一共|总共|合计|总计|加起来)(?:是|有|为)?多少",
            r"\1总和是多少",
        ),
        (r"(?:合计|总计|总共|累计|加起来|一共)(?=超过|不到|不足|大于|高于|低于|少于|小于|至少|达到|多于|在)", "总和"),
        (r"^([^每]*每.*?)各自?(?=有?(?:多少|几))", r"\1"),
        (
            rf"([A-Za-z][\w \"“”]*(?:和|与|、)\s*[A-Za-z][\w \"“”]*?)\s*({_HAN}{{1,4}})的({_HAN}{{1,6}})各自?有(?:多少|几){_M}?(?!{_HAN})",
            r"每个\2 \1 有多少个\3",
        ),
        (rf"(?:^|(?<=[的 ，,)）]))((?:(?![按的每])[^，,？?。]){{1,12}}?)各自?有(?:多少|几){_M}?(?={_HAN})", r"每个\1有多少"),
        (r"多少种(?=\W*$)", "多少个"),
    )
)


def plainly_chinese(question: str) -> str:
    """Return a Chinese question with such phrases replaced."""
    for pattern, plain in _RULES:
        question = pattern.sub(plain, question)
    return question
