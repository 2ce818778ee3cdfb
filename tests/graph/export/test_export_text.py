"""A transcript for people: tables drawn, SQL fenced, and nothing anybody said becomes markup,
script or structure.
"""

import html
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from markdown_it import MarkdownIt

from longtable.graph.export.export_text import escaped, fenced, plain, to_html, to_markdown
from longtable.memory.messages.marks import EXCLUDED, marked

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
EVIL = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![tracker](http://evil.example/x.png)",
    "[User]: http://evil.example\n\n[User]",
    "<!-- never closed",
    "```\n## Turn 9\n",
    "> quote\n## Turn 9",
    "| a | b |\n|---|---|\n| <b>x</b> | y |",
    "\x1b[2J\u202eevil\x00",
    "# Turn 9\n\nSetext\n===",
    "</div></body><script>1</script>",
    '" onmouseover="alert(1)',
    "[x](javascript:alert(1)) <javascript:alert(1)>",
]


class Page(HTMLParser):
    """Collects the tags of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def rows_of(count: int, *rows: list[object]) -> ToolMessage:
    content = {
        "row_count": count,
        "columns": ["name", "n"],
        "types": ["TEXT", "INT"],
        "shown": len(rows),
        "rows": rows,
        "sql": "SELECT 1",
        "ms": 1,
    }
    return ToolMessage(json.dumps(content), tool_call_id="c1", name="run_sql")


def talk(text: str = "fine") -> list[BaseMessage]:
    call = {"name": "run_sql", "args": {"sql": "SELECT name, n\nFROM t -- ```"}, "id": "c1"}
    messages = [
        HumanMessage(text),
        AIMessage("", tool_calls=[call]),
        rows_of(300, ["a|b\n<i>", 7], [None, 1.5]),
        AIMessage(f"**Done**: {text}"),
    ]
    return [marked(message, turn=1, time="2026-01-01T10:00:00+00:00") for message in messages]


def test_markdown_has_turns_roles_fenced_sql_and_a_table() -> None:
    text = to_markdown(talk(), title="March & May")
    assert text.startswith("# March \\& May\n\n## Turn 1 · 2026-01-01T10")
    assert "````sql\nSELECT name, n\nFROM t -- ```\n````" in text
    assert "| name | n |\n| --- | --- |\n| a\\|b \\<i\\> | 7 |\n| NULL | 1.5 |" in text
    assert "2 of 300 rows" in text
    assert "> **Done**: fine" in text
    page = Page(MARKDOWN.render(text))
    assert [tag for tag, _ in page.tags].count("td") == 4


def test_html_has_turns_roles_sql_and_a_table_and_loads_nothing() -> None:
    text = to_html(talk(), title="March & May")
    page = Page(text)
    assert "<title>March &amp; May</title>" in text
    assert "<strong>Done</strong>" in text
    assert "<td>a|b &lt;i&gt;</td><td>7</td>" in text
    assert "SELECT name, n\nFROM t -- ```" in page.text
    assert "default-src 'none'" in text
    assert not {tag for tag, _ in page.tags} & {"script", "img", "link", "iframe", "object", "form"}


def test_labels_are_in_the_language_asked_for() -> None:
    failed = ToolMessage(
        '{"error":{"class":"x","message":"no such table"}}', tool_call_id="c", status="error"
    )
    for write in (to_markdown, to_html):
        text = write(
            [*talk(), failed, marked(HumanMessage("secret"), kind=EXCLUDED)], language="zh"
        )
        for label in (
            "第 1 轮",
            "用户",
            "助手",
            "共 300 行，显示 2 行",
            "失败",
            "no such table",
            "已从记忆中排除",
        ):
            assert label in text


def test_the_names_of_speakers_stand_beside_their_roles() -> None:
    said: list[BaseMessage] = [
        HumanMessage("How many?", name="Ana <b>Lima</b>"),
        AIMessage("Seven.", name="checker"),
        AIMessage("Yes."),
    ]
    page = Page(to_html(said, language="en", title="t"))
    assert "User (Ana <b>Lima</b>)" in page.text
    assert "Assistant (checker)" in page.text
    text = to_markdown(said, language="en", title="t")
    assert f"**User ({escaped('Ana <b>Lima</b>')})**" in text
    assert "**Assistant (checker)**" in text
    assert "**Assistant**" in text


@pytest.mark.parametrize("evil", EVIL)
def test_html_shows_what_is_evil_and_does_not_do_it(evil: str) -> None:
    messages = [
        *talk(evil),
        ToolMessage(evil, tool_call_id="c", name="x"),
        SystemMessage(evil),
        ToolMessage(evil, tool_call_id="c", status="error"),
    ]
    messages.append(AIMessage("", tool_calls=[{"name": evil, "args": {evil: evil}, "id": "x"}]))
    messages.append(rows_of(1, [evil, evil]))
    page = Page(to_html(messages, title=evil))
    clean = Page(to_html([*talk()], title="x"))
    assert not {tag for tag, _ in page.tags} & {
        "script",
        "img",
        "link",
        "iframe",
        "object",
        "form",
        "b",
        "i",
    }
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert not str(attributes.get("href", "")).lower().startswith("javascript")
    assert (
        sum(tag == "body" for tag, _ in page.tags)
        == sum(tag == "body" for tag, _ in clean.tags)
        == 1
    )
    assert not re.search("[\x00\x1b\u202e]", to_html(messages, title=evil))


@pytest.mark.parametrize("evil", EVIL)
def test_markdown_shows_what_is_evil_and_does_not_do_it(evil: str) -> None:
    messages = [
        *talk(evil),
        ToolMessage(evil, tool_call_id="c", name="x"),
        rows_of(1, [evil, evil]),
    ]
    text = to_markdown(messages, title=evil)
    env: dict[str, object] = {}
    tokens = MARKDOWN.parse(text, env)
    assert not env.get("references")
    every = [*tokens, *(child for token in tokens for child in token.children or [])]
    assert not [token for token in every if token.type in {"html_block", "html_inline", "image"}]
    # The document's own headings are the title and the one turn: what else looks like one is inside
    # a quote.
    assert [token.tag for token in tokens if token.type == "heading_open" and token.level == 0] == [
        "h1",
        "h2",
    ]
    assert not re.search("[\x00\x1b\u202e]", text)


TEXTS = st.text(
    st.sampled_from("ab 1.)-+=*_#>|`~[]()!<&;:\\\n\t$^") | st.characters(exclude_categories=["Cs"]),
    max_size=40,
)


@given(TEXTS)
def test_escaped_text_is_read_back_as_it_was(text: str) -> None:
    rendered = MARKDOWN.render(escaped(plain(text)))
    page = Page(rendered)
    assert {tag for tag, _ in page.tags} <= {"p", "br"}
    assert " ".join(page.text.split()) == " ".join(plain(text).split())


@given(TEXTS)
def test_a_fence_holds_whatever_it_is_given(text: str) -> None:
    code = plain(text)
    tokens = MARKDOWN.parse(fenced(code, "sql"))
    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content.rstrip("\n") == code.rstrip("\n")


@given(TEXTS, TEXTS)
def test_html_tells_everything_that_was_said(asked: str, told: str) -> None:
    text = to_html([marked(HumanMessage(asked), turn=1), ToolMessage(told, tool_call_id="c")])
    assert html.escape(plain(asked).strip(), quote=True) in text
    Page(text)
