"""Reasoning that a server leaves within the answer's text, `<think>…</think>` before it: told apart, also piece by piece.

vLLM and SGLang without a reasoning parser, Ollama and others pass it on like this for DeepSeek's and Qwen's models. Where the
model's chat template has opened the tag itself, only its end is in the text: that is known when the whole of it is there.
"""

import re

from langchain_core.messages import AIMessage, BaseMessage

from longtable.memory.reasoning import REASONING, told_reasoning

BEGIN, END = "<think>", "</think>"
_THINKERS = re.compile(r"deepseek|qwen|qwq|think|\br1\b|glm|kimi|minimax|nemotron|magistral", re.IGNORECASE)
"""Models of which an end without a beginning is taken for one; of another one it is what the answer says."""


class ThinkSieve:
    """Parts a stream, however its pieces are cut: only a tag that the text begins with opens reasoning."""

    def __init__(self) -> None:
        self._held = ""
        self._state = "begin"

    def feed(self, piece: str) -> tuple[str, str]:
        """Take a piece and return what is known of it: reasoning, and answer."""
        self._held += piece
        thought = ""
        if self._state == "begin":
            begun = self._held.lstrip()
            if begun.startswith(BEGIN):
                self._state, self._held = "within", begun.removeprefix(BEGIN).lstrip("\n")
            elif not BEGIN.startswith(begun):
                self._state = "beyond"
        if self._state == "within":
            thought, ended, rest = self._held.partition(END)
            if ended:
                thought, self._state, self._held = thought.rstrip("\n"), "after", rest
            else:
                waits = next((n for n in range(min(len(END), len(thought)), 0, -1) if END.startswith(thought[-n:])), 0)
                thought, self._held = thought[: len(thought) - waits], thought[len(thought) - waits :]
        if self._state == "after":
            self._held = self._held.lstrip()
            self._state = "beyond" if self._held else "after"
        if self._state != "beyond":
            return thought, ""
        text, self._held = self._held, ""
        return thought, text

    def close(self) -> tuple[str, str]:
        """Return what was held back; no piece may be fed after."""
        held, self._held = self._held, ""
        return (held, "") if self._state == "within" else ("", held if self._state != "after" else "")


def parted(answer: BaseMessage, model: str) -> BaseMessage:
    """Return a whole answer with such reasoning beside its content, where `told_reasoning` finds it."""
    if not isinstance(answer, AIMessage) or not isinstance(answer.content, str) or END not in answer.content:
        return answer
    before, _, after = answer.content.partition(END)
    begun = before.lstrip().startswith(BEGIN)
    if not begun and (BEGIN in before or not _THINKERS.search(model)):
        return answer
    thought = "\n\n".join(filter(None, [told_reasoning(answer), before.strip().removeprefix(BEGIN).strip()]))
    changes = {"content": after.lstrip(), "additional_kwargs": {**answer.additional_kwargs, REASONING: thought}}
    return answer.model_copy(update=changes)
