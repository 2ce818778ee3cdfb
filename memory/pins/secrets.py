"""Find passwords and keys in the user's words, because words with secrets are never pinned."""

import re

from longtable.base.redaction import redacted

# What a secret is called. After a sure name any word may be one; after another a word with a digit.
_SURE = (
    "pass ?(?:word|wd|code|phrase)|pwd|credentials?|secret|token|密码|口令|密钥|令牌|私钥|授权码|激活码|"
    "(?:api|access|private|secret|encryption|signing) ?(?:key|code|token)"
)


_PERHAPS = (
    "pin|wi-?fi|login|log ?in|user ?name|licen[cs]e|otp|验证码|门禁码?|账号|帐号|用户名|"
    "(?:licen[cs]e|activation|recovery|backup|master) ?(?:key|code)|product key|"
    "(?:door|gate|entry|alarm|security|safe|lock|unlock|verification|confirmation|auth\\w*) ?code|"
    "(?:my|our|the|use) (?:key|code)"
)


_ACCOUNT = r"\b(?:login|log ?in|user(?: ?name)?|account)\b|账号|帐号|用户名"


_LINK = r"(?:\s+(?:for|of|to) [\w ]{1,30}?)?\s*(?:\b(?:is|are|was)\b|都?用|[=:：为是])[\s:：=]*"


_NO_VALUE = r"(?!(?:an?|the|not|to|in|never|secret|stored|kept|hidden|columns?|fields?|and|or)\b)"


_VALUE = r"[\w'\"“`]"


_WITH_DIGIT = r"(?=[^\s,，。;；]*\d)[\w'\"“`#!$@-]{3,}"


_MIXED = r"(?=\S*\d)(?=\S*[a-z])\w{5,}"


_SECRETS = (
    rf"(?:{_SURE}){_LINK}{_NO_VALUE}{_VALUE}",
    rf"(?<![a-z])(?:{_PERHAPS}){_LINK}{_NO_VALUE}{_WITH_DIGIT}",
    # "passcode 4711", "use key ABCD-1234", 门禁密码4711
    rf"(?<![a-z])(?:{_SURE}|{_PERHAPS})(?:\W{{1,4}}|(?<=[码令钥牌])){_WITH_DIGIT}",
    # "hunter2 as the password", "4711 is our door code", 用 abc123 作为密码
    rf"\b\S*\d\S* (?:as|is) (?:the|my|our|your|a) (?:{_SURE}|{_PERHAPS})",
    rf"\w*\d\w*\s*[作当做](?:为|成)?(?:{_SURE})",
    # "login: anna / sonne123", "log in with anna and sonne123", "username anna, password sonne"
    rf"(?:{_ACCOUNT})[^.。]{{0,30}}?\s(?:/|and|with|as)\s+{_MIXED}",
    rf"(?:{_ACCOUNT})[:：\s是为]*\S+?\s*/\s*{_MIXED}",
    rf"(?:{_ACCOUNT})[:：\s是为]+[^\s,，、/]+[,，、/\s]+(?:{_SURE})[:：\s是为]+{_NO_VALUE}\w{{3,}}",
)


_SECRET = re.compile("|".join(_SECRETS), re.IGNORECASE)


def holds_secret(text: str) -> bool:
    """Return whether a text holds an actual password or key. False for a mere rule about passwords,
    such as "never show the password".
    """
    return redacted(text) != text or bool(_SECRET.search(text))
