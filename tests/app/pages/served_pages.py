"""The web chat as a person starts it: `longtable web` in a process of its own, and a browser that
speaks plain HTTP.
"""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser

import httpx

from tests.app.runner import PROGRAM, Home

SECONDS = 30.0
READY = re.compile(r"http://[\w.\[\]:]+/")
PARTIAL = re.compile(
    r'<hx-partial hx-target="#([^"]*)" hx-swap="(\w+)">(.*?)</hx-partial>', re.DOTALL
)


@dataclass
class Server:
    """A server of pages in a process of its own."""

    address: str
    process: "subprocess.Popen[str]"
    clients: list[httpx.Client] = field(default_factory=list)

    def browser(self, **headers: str) -> "Browser":
        client = httpx.Client(base_url=self.address, headers=headers, timeout=SECONDS)
        self.clients.append(client)
        return Browser(client)


@dataclass
class Browser:
    """A person's browser, without its pictures and scripts."""

    http: httpx.Client
    token: str = ""
    messages: list[str] = field(default_factory=list)

    def open(self, path: str = "/") -> httpx.Response:
        answer = self.http.get(path, follow_redirects=True)
        found = re.search(r'"X-Longtable-Token": "([^"]+)"', unescape(answer.text))
        self.token = found[1] if found else self.token
        return answer

    def new_thread(self) -> str:
        return str(self.open().url.path)

    def post(self, path: str, **fields: str) -> httpx.Response:
        headers = {"X-Longtable-Token": self.token, "HX-Request": "true"}
        return self.http.post(path, data=fields, headers=headers)

    def ask(self, thread: str, question: str) -> str:
        """Ask, follow the turn to its end, and return the page as it is then."""
        answer = self.post(f"{thread}/ask", question=question)
        assert answer.status_code == 200, answer.text
        self.follow(thread)
        return self.open(thread).text

    def follow(
        self, thread: str, *, until: str = "event: done", after: str = "", **headers: str
    ) -> str:
        """Return what the stream of the thread's turn sends, up to the message with `until`."""
        self.messages = []
        address = f"{thread}/events{f'?after={after}' if after else ''}"
        with self.http.stream("GET", address, headers=headers) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            whole = ""
            for text in stream.iter_text():
                whole += text
                if until in whole and whole.endswith("\n\n"):
                    break
        self.messages = whole.split("\n\n")
        return whole


class _Elements(HTMLParser):
    """Counts how deep each place of a text is in elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.depth = 0
        self.starts: list[tuple[int, str]] = []
        self.lines = [0]
        for line in html.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.depth == 0:
            line, column = self.getpos()
            place = self.lines[line - 1] + column
            self.starts.append((place, dict(attrs).get("id") or f"#{place}"))
        self.depth += tag not in ("br", "hr", "img", "input", "wbr")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        self.depth -= 1


def top_elements(html: str) -> dict[str, str]:
    """Return the elements of a body one by one, each with the text up to the next, by id."""
    starts = _Elements(html).starts
    ends = [place for place, _ in starts[1:]] + [len(html)]
    return {name: html[start:end] for (start, name), end in zip(starts, ends, strict=True)}


def shown_body(stream: str) -> str:
    """Return the body that a page shows after these messages, its changes made as htmx makes
    them.
    """
    parts: dict[str, str] = {}
    for message in stream.split("\n\n"):
        data = "\n".join(re.findall(r"^data: ?(.*)$", message, re.MULTILINE))
        parts = _changed(parts, PARTIAL.findall(data))
    return "".join(parts.values())


def _changed(parts: dict[str, str], changes: list[tuple[str, str, str]]) -> dict[str, str]:
    """Return a body after the changes of one message. htmx finds their places before it makes the
    first, so none may be in a part that another one adds.
    """
    for target, swap, html in changes:
        others = "".join(other for _, _, other in changes if other != html)
        assert f'id="{target}"' not in others, target
        if target.startswith("body-") and swap == "beforeend":
            name = re.search(r' id="([^"]+)"', html)
            parts[name[1] if name else f"#{len(parts)}"] = html
        elif target.startswith("body-"):
            parts = top_elements(html)
        elif swap == "beforeend":
            parts[target] = parts[target].removesuffix("</div>") + html + "</div>"
        elif target in parts:
            parts[target] = html
    return parts


@contextmanager
def serving(home: Home, *options: str, stops: str = "terminate", **env: str) -> Iterator[Server]:
    """Run `longtable web` until the block ends."""
    environment = home.environment(**env, PYTHONUNBUFFERED="1")
    process = subprocess.Popen(
        [str(PROGRAM), "web", "--port", "0", *options],
        env=environment,
        cwd=home.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    clients: list[httpx.Client] = []
    try:
        yield Server(_address(process), process, clients)
    finally:
        for client in clients:
            client.close()
        if process.poll() is None:
            getattr(process, stops)()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


def _address(process: "subprocess.Popen[str]") -> str:
    lines: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        found = READY.search(line)
        if found:
            return found.group().rstrip("/")
    raise AssertionError("".join(lines))


HOSTILE = "<img src=x onerror=alert(1)>"
