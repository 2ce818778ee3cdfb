"""Read numbers that are written as words: "three hundred and twenty", 三百二十, 两万."""

import re

_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
SMALL = {word: number for number, word in enumerate(_UNITS)} | {word: 10 * number for number, word in enumerate(_TENS, start=2)}
LARGE = {"hundred": 100, "dozen": 12, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "trillion": 1_000_000_000_000}

_SMALL = "|".join(sorted(SMALL, key=len, reverse=True))
_LARGE = "|".join(LARGE)
ENGLISH = re.compile(
    rf"(?<![\w-])(?:(?:{_SMALL})|an?(?=\s(?:{_LARGE})\b))"
    rf"(?:(?:[\s-]|(?<=hundred)\sand\s|(?<=thousand)\sand\s)(?:{_SMALL}|{_LARGE})\b)*(?:\sand\sa\shalf)?(?![\w-])",
    re.IGNORECASE,
)
"""A number in English words; hyphens and "and" inside."""

CHINESE_DIGITS = {digit: number for number, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
CHINESE_UNITS = {"十": 10, "百": 100, "千": 1_000}
CHINESE_LARGE = {"万": 10_000, "亿": 100_000_000}
NUMERAL = "零〇一二两三四五六七八九十百千万亿"


def english_value(words: str) -> float | None:
    """Return what English number words come to, None when they are no number ("one two")."""
    plain = words.lower().removesuffix(" and a half")
    total, group = 0, 0
    for word in re.split(r"[\s-]+", plain.strip()):
        if word in SMALL:
            number = SMALL[word]
            fits = group % 100 == 0 or (group % 10 == 0 and group % 100 >= 20 and 0 < number < 10)
            if not fits:
                return None
            group += number
        elif word in ("hundred", "dozen"):
            group = (group or 1) * LARGE[word]
        elif word in LARGE:
            total, group = total + (group or 1) * LARGE[word], 0
    return total + group + (0.5 if len(plain) < len(words) else 0.0)


def chinese_value(numerals: str) -> float | None:
    """Return what Chinese numerals come to, None when they are none; digits alone are read by place (二〇一三)."""
    whole, _, tail = numerals.partition("点")
    fraction = "".join(str(CHINESE_DIGITS[digit]) for digit in tail if digit in CHINESE_DIGITS)
    value = _chinese_whole(whole)
    if value is None:
        return None
    return value + float(f"0.{fraction}") if fraction else value


def _chinese_whole(text: str) -> float | None:
    if not text or any(char not in NUMERAL for char in text):
        return None
    if len(text) > 1 and all(char in CHINESE_DIGITS for char in text):
        return float("".join(str(CHINESE_DIGITS[char]) for char in text))
    total, group, digit = 0, 0, 0
    for char in text:
        if char in CHINESE_DIGITS:
            digit = CHINESE_DIGITS[char]
        elif char in CHINESE_UNITS:
            group += (digit or 1) * CHINESE_UNITS[char]
            digit = 0
        else:
            total = (
                (total + group + digit or 1) * CHINESE_LARGE[char] if char == "亿" else total + (group + digit or 1) * CHINESE_LARGE[char]
            )
            group = digit = 0
    return float(total + group + digit)
