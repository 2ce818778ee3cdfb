"""The panel's HTML: no text becomes a tag, all words are there in both languages."""

import re
from html.parser import HTMLParser
from string import Formatter

import pytest

from longtable.app.pages.context.panel_data import PanelData, originals
from longtable.app.pages.context.panel_html import PanelPage, panel_word, panel_words
from longtable.app.pages.part_html import TEMPLATES
from longtable.graph import Conversation
from longtable.graph.compaction_preview import CompactionPreview
from tests.app.pages.context.panel_talk import HOSTILE, data_of, long_talk, short_talk

EN = PanelPage("en", "t")
VOID = {"input", "br", "meta"}


class Tags(HTMLParser):
    """Reads HTML, and fails if tags do not close in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def written(data: PanelData, conversation: Conversation, page: PanelPage = EN) -> list[Tags]:
    shown = originals(conversation.history(), 1)
    texts = (page.panel(data), page.next_call(data), page.originals(shown, more=0))
    return [Tags(text) for text in texts]


@pytest.fixture(scope="module")
def talked() -> Conversation:
    return long_talk(20)


def test_hostile_words_stay_words() -> None:
    conversation = short_talk()
    conversation.pin(HOSTILE)
    data = data_of(conversation)
    panel, parts, messages = written(data, conversation)
    assert HOSTILE in panel.text
    assert parts.text.count(HOSTILE) >= 2
    assert messages.text.count(HOSTILE) == 2
    for each in (panel, parts, messages):
        assert not {"script", "img", "style"} & {tag for tag, _ in each.tags}
        attributes = [name for _, attrs in each.tags for name in attrs]
        assert not [name for name in attributes if name == "style" or name.startswith("on")]


def test_a_hostile_thread_id_stays_in_its_address() -> None:
    html = PanelPage("en", 'a"/../b?<x>').panel(None)
    assert "<x>" not in html
    data = data_of(short_talk())
    found = PanelPage("en", 'a"/../b').panel(data)
    assert 'hx-post="/threads/a%22%2F..%2Fb/panel/compact"' in found


def test_the_panel_has_all_parts(talked: Conversation) -> None:
    data = data_of(talked)
    panel = written(data, talked)[0]
    forms = [attrs for tag, attrs in panel.tags if tag == "form"]
    assert all((attrs["hx-post"] or "").startswith("/threads/t/panel/") for attrs in forms)
    assert len(forms) >= 2
    assert f"{data.gauge.total:,}" in panel.text
    bars = [attrs for tag, attrs in panel.tags if "fill" in (attrs.get("class") or "").split()]
    assert [float(attrs["width"] or 0) for attrs in bars] == [p.width for p in data.gauge.parts]
    falls = [attrs for tag, attrs in panel.tags if tag == "g"]
    assert len(falls) == len(data.curve.falls) > 0
    for fall in data.curve.falls:
        assert f"{fall.before:,}" in panel.text
        assert f"{fall.after:,}" in panel.text
    cited = {attrs.get("hx-get") for tag, attrs in panel.tags if tag == "a"}
    assert "/threads/t/panel/originals/1-2" in cited
    assert sum("originals" in (attrs.get("class") or "") for _, attrs in panel.tags) >= len(cited)


def test_drawings_have_a_title_a_description_and_ids_that_stand_once(talked: Conversation) -> None:
    panel = written(data_of(talked), talked)[0]
    ids = [attrs["id"] for _, attrs in panel.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    drawings = [attrs for tag, attrs in panel.tags if tag == "svg"]
    assert len(drawings) == 2
    for drawing in drawings:
        assert drawing["role"] == "img"
        assert set((drawing["aria-labelledby"] or "").split()) <= set(ids)


def test_the_panel_speaks_chinese(talked: Conversation) -> None:
    data = data_of(talked)
    panel = written(data, talked, PanelPage("zh", "t"))[0]
    assert "模型看到的内容" in panel.text
    assert "What the model sees" not in panel.text


def test_a_new_thread_and_an_empty_range_say_so() -> None:
    assert panel_word("en", "empty") in EN.panel(None)
    assert panel_word("en", "no_memory") in EN.memory(None)
    assert EN.next_call(None).strip() == ""
    assert panel_word("en", "no_originals") in EN.originals([], more=0)
    assert "3 more messages" in EN.originals([], more=3)


def test_a_preview_says_what_it_covers_and_costs() -> None:
    preview = CompactionPreview(12, 3, 14, 4_000, 1_500, 1, 2_345, True)
    text = Tags(EN.preview(preview)).text
    for words in ("3 to 14", "4,000", "1,500", "2,345 tokens in 1 call.", "anew"):
        assert words in text
    assert panel_word("en", "preview_free") in EN.preview(
        CompactionPreview(12, 3, 14, 4_000, 1_500, 0, 0, False)
    )
    assert "nothing to compact" in EN.preview(None)


@pytest.mark.parametrize("key", panel_words())
def test_words_are_there_in_both_languages_with_the_same_values(key: str) -> None:
    words = panel_words()[key]
    fields = [
        {name for _, name, _, _ in Formatter().parse(text) if name} for text in words.values()
    ]
    assert list(words) == ["en", "zh"]
    assert fields[0] == fields[1]


def test_every_word_that_a_template_says_is_there() -> None:
    texts = [path.read_text("utf-8") for path in (TEMPLATES / "context").glob("*.html")]
    said = set(re.findall(r'say\("(\w+?)"[,)]', "".join(texts)))
    assert len(said) > 40
    assert said <= set(panel_words())


def test_the_colours_of_the_panel_are_variables_in_both_themes() -> None:
    text = (TEMPLATES.parent / "static" / "style.css").read_text("utf-8")
    assert text.count("--part-memory: #") == 2
    rules = text.partition("/* Right */")[2].partition("/* A page")[0]
    assert rules.count("var(--") > 50
    assert not re.findall(r"#[0-9a-f]{3,6};", rules)
