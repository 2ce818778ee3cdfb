"""The messages of the next call, as a notebook shows them."""

from langchain_core.messages import BaseMessage

from longtable.memory.call_config import CallConfig
from longtable.memory.view import View
from longtable.tools.cells import html_table

COLOURS = {
    "system": "#c9d8ee",
    "tools": "#d9d9d9",
    "memory": "#f7e3a1",
    "human": "#bfe3c8",
    "ai": "#e4d3f0",
    "tool": "#f3cfc6",
}
"""The colours of the parts of a call. Each is shown as a narrow bar, on both light and dark
pages.
"""


MOST_CHARS = 240
"""The number of characters of a message that are shown."""


_MEMORY = "<memory>"


class ViewMessages(list[BaseMessage]):
    """The messages of a model call. A notebook shows them as a table of coloured parts with their
    tokens.
    """

    def __init__(self, view: View | None = None, call_config: CallConfig | None = None) -> None:
        super().__init__(view.messages if view else ())
        self._view = view
        self._call_config = call_config

    def __repr__(self) -> str:
        if self._view is None or self._call_config is None:
            return "<View: no call yet>"
        parts = self._view.parts
        return (
            f"<View of {len(self):,} messages, {parts.total:,} of {self._call_config.limit:,}"
            f" tokens: system {parts.system:,}, tools {parts.tools:,}, memory {parts.memory:,},"
            f" messages {parts.messages:,}>"
        )

    def parts(self) -> list[tuple[str, int, str]]:
        """Return kind, tokens and text of each part, in the order of the call. The part of the tool
        definitions has no text.
        """
        if self._view is None or self._call_config is None:
            return []
        count = self._call_config.counter
        parts = self._view.parts
        blocks = [
            ("system", parts.system, self[0].text.partition(_MEMORY)[0]),
            ("tools", parts.tools, ""),
        ]
        for message in self:
            before, mark, memory = message.text.partition(_MEMORY)
            if mark and (message.type == "system" or not before.strip()):
                blocks.append(("memory", parts.memory, mark + memory))
            elif message.type != "system":
                text = message.text or ", ".join(
                    f"{call['name']} {call['args']}" for call in getattr(message, "tool_calls", ())
                )
                blocks.append((message.type, count.message(message), text))
        return blocks

    def _repr_html_(self) -> str:
        parts = self.parts()
        if not parts or self._view is None or self._call_config is None:
            return "<p>no call yet</p>"
        total = self._view.parts.total
        limit = self._call_config.limit
        bar = "".join(
            "<span"
            f' style="display:inline-block;height:14px;width:{100 * tokens / limit:.2f}%;background:{COLOURS[kind]}"></span>'
            for kind, tokens, _ in parts
        )
        rows = ((kind, f"{tokens:,}", _clipped(text)) for kind, tokens, text in parts)
        return (
            f"<p>{total:,} of {limit:,} tokens ({total / limit:.0%})</p>"
            '<div style="width:100%;border:1px solid'
            f' #888;line-height:0;white-space:nowrap;overflow:hidden">{bar}</div>'
            + html_table(
                ("part", "tokens", "text"), rows, colours=[COLOURS[kind] for kind, _, _ in parts]
            )
        )


def _clipped(text: str) -> str:
    text = text.strip()
    return text if len(text) <= MOST_CHARS else text[: MOST_CHARS - 1] + "…"
