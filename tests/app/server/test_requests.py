"""The recipe of docs/servers.md under a real uvicorn: a client that goes away in mid-answer loses
nothing.
"""

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.tools.databases import make

PAGE = Path(__file__).parents[3] / "docs" / "servers.md"
SLOW = """
import time
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

class Slow(GenericFakeChatModel):
    profile: dict | None = {"max_input_tokens": 16_000}

    def bind_tools(self, tools, **_):
        return self  # an answer of a model without tools is held back until it is whole

    def _stream(self, *args, **kwargs):
        for chunk in super()._stream(*args, **kwargs):
            time.sleep(0.1)
            yield chunk

def BuiltInAnalyst():
    return Slow(messages=iter([AIMessage("one two three four five six seven eight")] * 2))
"""


FINISH = ', on_disconnect="finish"'
ANSWER = "one two three four five six seven eight"
SECONDS = 1.5
"""What the slow model takes for its fifteen chunks."""


@contextmanager
def serving(tmp_path: Path, *, finish: bool) -> Iterator[str]:
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    [recipe] = [
        block
        for block in re.findall(
            r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL
        )
        if "FastAPI" in block
    ]
    imported = "from longtable.analyst.model import BuiltInAnalyst\n"
    assert imported in recipe
    assert FINISH in recipe
    (tmp_path / "server.py").write_text(
        recipe.replace(imported, SLOW).replace(
            FINISH, FINISH if finish else FINISH.replace("finish", "cancel")
        )
    )
    make(tmp_path, "sqlite")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "server:app",
        "--port",
        str(port),
        "--log-level",
        "warning",
    ]
    with subprocess.Popen(command, cwd=tmp_path) as server:
        try:
            for _ in range(400):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/threads/t"
        finally:
            server.terminate()


@pytest.mark.parametrize("finish", [True, False])
def test_a_client_that_goes_away_in_mid_answer_finds_it_at_the_next_read_only_where_the_turn_is_to_finish(
    finish: bool, tmp_path: Path
) -> None:
    asked = {"question": "Count to eight.", "message_id": "a"}
    with (
        serving(tmp_path, finish=finish) as url,
        httpx.Client(trust_env=False, timeout=20) as client,
    ):
        with client.stream("POST", url, params=asked) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            token = next(line for line in answer.iter_lines() if '"token"' in line)
        assert "two" not in token  # the model is not done by now
        end = time.monotonic() + (20 if finish else 2 * SECONDS)
        while len(history := client.get(url).json()) < 2 and time.monotonic() < end:
            time.sleep(0.1)
        assert history == ["Count to eight.", ANSWER][: 2 if finish else 1]
        # The answer that it has; else its turn goes on.
        assert ANSWER in client.post(url, params=asked).text
        assert client.get(url).json() == ["Count to eight.", ANSWER]


def test_a_thread_that_is_not_there_is_a_404_of_ours(tmp_path: Path) -> None:
    with serving(tmp_path, finish=True) as url, httpx.Client(trust_env=False, timeout=20) as client:
        answer = client.get(url)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "thread_not_found")
