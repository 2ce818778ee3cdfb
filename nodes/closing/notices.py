"""The texts that a person reads if there is no answer."""

NOTICES: dict[str, dict[str, str]] = {
    "call_budget": {
        "en": (
            "I stopped after {calls} model calls without reaching an answer. You can ask me to go"
            " on, or ask in smaller steps."
        ),
        "zh": "我在 {calls} 次模型调用后仍未得出答案，已停止。您可以让我继续，或把问题拆小。",
    },
    "empty_answer": {
        "en": (
            "The model returned an empty answer twice. Please ask again or put the question"
            " differently."
        ),
        "zh": "模型两次返回了空答案。请重试，或换一种问法。",
    },
    "recall_exhausted": {
        "en": (
            "The model searched the earlier conversation for {searched} and found no answer. Please"
            " say it again, or ask otherwise."
        ),
        "zh": "模型在之前的会话中查找了{searched}，仍未得出答案。请重新说明，或换一种问法。",
    },
    "content_filter": {
        "en": (
            "The model's provider withheld the answer (content filter). Please put the question"
            " differently."
        ),
        "zh": "模型服务的内容过滤器拦截了答案。请换一种问法。",
    },
    "voice_failed": {"en": "{name} could not answer: {reason}", "zh": "{name} 未能回答：{reason}"},
    "voice_gone": {
        "en": "{name} has left the team and did not answer.",
        "zh": "{name} 已不在团队中，没有回答。",
    },
    "nobody": {
        "en": "Nobody in the team was to answer this message.",
        "zh": "团队中没有人需要回答这条消息。",
    },
}
"""The text that a person reads in place of an answer, by the status of the turn and by language."""


CUT_SHORT = {
    "en": (
        "The team has made its {calls} model calls of this turn, and {name} was not asked any more."
        " You can ask the team to go on."
    ),
    "zh": "团队本轮的 {calls} 次模型调用已用完，没有再询问 {name}。您可以让团队继续。",
}
"""The text that a person reads if a team has no model call left for the next voice."""
