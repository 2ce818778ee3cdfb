"""Say which values of the data a word may have meant, where a question is declined for it: a slip, another number or case."""

from longtable.app.offline.columns import CannotRead
from longtable.app.offline.view import View

MOST = 3
_ASK = {"en": "Did you mean {values}?", "zh": "您是指{values}吗？"}


def did_you_mean(view: View, error: CannotRead, language: str) -> str:
    """Return a question back, "" where nothing near was found. Never an answer: what is near may still be something else."""
    asked = {word.lower() for word in error.words if word}
    found: list[str] = []
    for result in view.now.of("find_values"):
        if str(result.args.get("text", "")).lower() in asked and result.data:
            found += [
                f"“{match['value']}” ({match['table']}.{match['column']})"
                for match in result.data.get("matches", ())
                if match.get("match") in ("plural", "typo") and "value" in match
            ]
    values = list(dict.fromkeys(found))[:MOST]
    return _ASK[language].format(values=("、" if language == "zh" else ", ").join(values)) if values else ""
