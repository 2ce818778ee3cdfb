"""Take out of a text what nobody may see who reads an error: keys, tokens, passwords, credentials in URLs."""

import re

HIDDEN = "[hidden]"
_SECRETS = (
    # scheme://user:password@host, and a password alone before the @; not those very words, by which a message shows the form
    (re.compile(r"(?<=://)(?!user:password@)[^\s/@'\"]*:[^\s@'\"]*@"), f"{HIDDEN}@"),
    # keys by the prefix their issuers give them: OpenAI and most, GitHub, Slack, AWS, Google, Hugging Face, JSON Web Tokens
    (re.compile(r"\b(?:sk|pk|rk)-[\w\-]{6,}|\b(?:gh[opsu]|hf|xox[abprs])[_-][\w\-]{8,}|\bAKIA[A-Z0-9]{12,}|\bAIza[\w\-]{20,}"), HIDDEN),
    (re.compile(r"\beyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*)?"), HIDDEN),
    (re.compile(r"\b(?:bearer|basic)\s+[\w\-.~+/=]{8,}", re.IGNORECASE), HIDDEN),
    # name=value, as in a connection string or a query, and "name": "value"
    (
        re.compile(
            r"\b(api[_-]?key|access[_-]?(?:key|token)|password|passwd|pwd|secret)(=|[\"']\s*:\s*[\"'])[^\s&;,\"']+",
            re.IGNORECASE,
        ),
        rf"\1\2{HIDDEN}",
    ),
)


def redacted(text: str) -> str:
    """Return a text without secrets that can be told by their form."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text
