"""Write the panel as HTML by templates. Texts of the model, of pins and of data are escaped by
Jinja2; nothing here marks a text as safe.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment

from longtable.app.pages.context import gauge_bar, saw_tooth
from longtable.app.pages.context.next_call import sent_count
from longtable.app.pages.context.panel_data import OriginalMessage, PanelData
from longtable.app.pages.part_html import new_environment
from longtable.graph.compaction_preview import CompactionPreview


@cache
def panel_words() -> Mapping[str, Mapping[str, str]]:
    """Return the words of the panel, by key and language."""
    text = (Path(__file__).parent / "panel_words.toml").read_text(encoding="utf-8")
    words: Mapping[str, Mapping[str, str]] = tomllib.loads(text)["words"]
    return words


def panel_word(language: str, key: str, **values: object) -> str:
    """Return words of the panel in a language, English if it has none of the key. Whole numbers
    are written with commas. A `count` of exactly 1 takes the key `{key}_1` if there is one.
    """
    words = panel_words()
    if values.get("count") == 1 and f"{key}_1" in words:
        key = f"{key}_1"
    written = {
        name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()
    }
    return words[key].get(language, words[key]["en"]).format(**written)


@cache
def _templates() -> Environment:
    templates = new_environment()
    templates.filters["figures"] = "{:,}".format
    templates.filters["percent"] = "{:.0%}".format
    templates.globals["bar_units"] = gauge_bar.BAR_UNITS
    templates.globals["drawing"] = saw_tooth
    return templates


@dataclass(frozen=True)
class PanelPage:
    """Who reads the panel: the language of the words, and the thread."""

    language: str
    thread_id: str

    def panel(self, data: PanelData | None, *, note: str = "") -> str:
        """Return the whole panel. `note` says what a person's command did."""
        sent = sent_count(data.parts) if data else 0
        return self._written("context_panel.html", data=data, sent=sent, note=note)

    def next_call(self, data: PanelData | None) -> str:
        """Return the parts of the next call, each with its text."""
        return self._written("next_call.html", data=data)

    def memory(self, data: PanelData | None) -> str:
        """Return the memory line by line."""
        return self._written("memory.html", data=data)

    def originals(self, messages: Sequence[OriginalMessage], *, more: int) -> str:
        """Return messages word for word. `more`: how many of the range are not shown."""
        return self._written("originals.html", messages=messages, more=more)

    def preview(self, preview: CompactionPreview | None) -> str:
        """Return what a compaction would do and cost."""
        return self._written("preview.html", preview=preview)

    def problem(self, sentence: str) -> str:
        """Return a sentence about what went wrong."""
        return self._written("problem.html", problem=sentence)

    def _written(self, template: str, **values: Any) -> str:
        base = f"/threads/{quote(self.thread_id, safe='')}/panel"
        say = partial(panel_word, self.language)
        return _templates().get_template(f"context/{template}").render(say=say, base=base, **values)
