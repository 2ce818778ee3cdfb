"""Remove secrets from a text that is shown in an error: keys, tokens, passwords, credentials in
URLs.
"""

import re

HIDDEN = "[hidden]"

_NAMES = (
    r"(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|store[_-]?key|private[_-]?key|secret|password|passwd|passphrase|pwd"
    r"|(?:access|refresh|auth|bearer|session|security|id)[_-]?token)"
)
"""Names of secrets. Other text may stand before them, as in `OPENAI_API_KEY` or `PGPASSWORD`. The
word `token` alone is not a name of a secret, because it may be a column or a count.
"""

# All lengths are bounded: a hostile text is read in linear time.
_SECRETS = (
    (
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----END)[\s\S]){0,10000}(?:-----END"
            r" [A-Z ]{0,40}-----)?"
        ),
        HIDDEN,
    ),
    # scheme://user:password@host, and a password alone before the @; not those very words, by which
    # a message shows the form. To the last @: one within a password is the commonest slip, and
    # libpq takes what follows it for the host.
    (re.compile(r"(?<=://)(?!user:password@)[^\s/@'\":]{0,200}:[^\s'\"]{0,300}@"), f"{HIDDEN}@"),
    # With blanks.
    (
        re.compile(
            r"(?<=sql://|res://|dis://|odb://)(?!user:password@)[^\s/@'\":]{0,200}:[^/'\"\n]{0,300}@"
        ),
        f"{HIDDEN}@",
    ),
    # A token in place of a user.
    (re.compile(r"(?<=ttps://|http://)[^\s/@'\":]{1,200}@"), f"{HIDDEN}@"),
    # keys by the prefix their issuers give them: OpenAI and most, Stripe, GitHub, GitLab, Slack,
    # AWS, Google, Hugging Face, Groq, NVIDIA
    (
        re.compile(
            r"\b(?:sk|pk|rk)-[\w\-]{6,}|\b(?:sk|pk|rk)_(?:live|test)_\w{6,}|\bgithub_pat_\w{8,}|\bglpat-[\w\-]{8,}"
        ),
        HIDDEN,
    ),
    (
        re.compile(
            r"\b(?:gh[opsu]|hf|gsk|xox[abprs]|xapp|nvapi)[_-][\w\-]{8,}|\bA[KS]IA[A-Z0-9]{12,}|\bAIza[\w\-]{20,}"
        ),
        HIDDEN,
    ),
    # JSON Web Tokens, Zhipu
    (re.compile(r"\beyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*)?|\b[0-9a-f]{32}\.\w{16}\b"), HIDDEN),
    (
        re.compile(
            r"\b(?:bearer|basic)\s{1,4}[\w\-.~+/=]{8,}|(?<=\bkey provided: )\S{1,200}",
            re.IGNORECASE,
        ),
        HIDDEN,
    ),
    # name=value, as in a connection string, a query or an environment; "name": "value"; name:
    # value, where a digit tells it from a word
    (
        re.compile(rf"({_NAMES})(\s{{0,3}}=\s{{0,3}}['\"])[^'\"]{{1,300}}", re.IGNORECASE),
        rf"\1\2{HIDDEN}",
    ),
    (
        re.compile(
            rf"({_NAMES})(\s{{0,3}}=\s{{0,3}}|[\"']\s{{0,3}}:\s{{0,3}}[\"'])[^\s&;,\"']+",
            re.IGNORECASE,
        ),
        rf"\1\2{HIDDEN}",
    ),
    (
        re.compile(rf"({_NAMES})(:\s{{0,3}})(?=[^\s\d]{{0,60}}\d)[^\s&;,\"']{{6,}}", re.IGNORECASE),
        rf"\1\2{HIDDEN}",
    ),
    (
        re.compile(r"([?&](?:token|key|sig|signature|auth)=)[^\s&;,\"']+", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),
)


def redacted(text: str) -> str:
    """Return a text in which secrets that can be recognised by their form are replaced by
    `HIDDEN`.
    """
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text
