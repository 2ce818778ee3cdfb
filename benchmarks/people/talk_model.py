"""The model that people talk to: a server on loopback, in a process of its own.

`python -m benchmarks.people.talk_model 1.0` prints its address and serves until it is ended. The
number stretches its times. What it answers follows from the question alone, so that whoever asks
knows each answer word for word.
"""

import json
import random
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tests.support.model_server import ChatRequest, Reply, call, open_model_server, parts_of

Kind = Literal["talk", "query", "costly"]
FIRST_S = 0.5
"""From a call to its first piece."""
PACE_S = 0.02
"""From a piece to the next: fifty pieces a second. The piece before the first has no text."""
ANSWER_PIECES = 100
CALL_PIECES = 20
WORDS = """
about across after average before between city customer day each early every few from growth half
higher however later least less low mean month more most much of often one only order other over
part price quarter rather region same share since smaller some still sum than that the these total
two under value week where while with year
"""
QUESTIONS: dict[Kind, str] = {
    "talk": "Request {key}: what should I look at first?",
    "query": "Request {key}: how many orders does region 3 have?",
    "costly": "Request {key}: is any customer like another in all orders?",
}
QUERIES = {
    "region 3": "SELECT COUNT(*) AS orders FROM orders WHERE region = 'region 3'",
    "any customer": "SELECT COUNT(*) AS pairs FROM (SELECT 1 FROM orders a, orders b LIMIT 1000)",
}
"""SQL by words of the question. The second is costly by its plan, and quick."""
_KEY = re.compile(r"Request ([a-z-]+):")


def question_of(key: str, kind: Kind) -> str:
    """Return the question of this kind that nobody else asks."""
    return QUESTIONS[kind].format(key=key)


def answer_to(key: str) -> str:
    """Return the answer to the question with this key: two paragraphs of a hundred words."""
    words = random.Random(key).choices(WORDS.split(), k=84)
    first = " ".join(words[:50])
    second = " ".join(words[50:])
    return f"This is for {key}: {first}.\n\nAnd then {second}. That was all for {key}."


def model_seconds(key: str, kind: Kind, stretch: float) -> tuple[float, float]:
    """Return the seconds that the model takes for a turn: to the first words of the answer, and to
    its end.
    """
    sql = sql_for(question_of(key, kind))
    called = call("run_sql", sql=sql).tool_calls[0].arguments
    before = FIRST_S + PACE_S * len(parts_of(called, CALL_PIECES)) + PACE_S if sql else 0.0
    first = before + FIRST_S + PACE_S
    end = before + FIRST_S + PACE_S * len(parts_of(answer_to(key), ANSWER_PIECES))
    return stretch * first, stretch * end


def sql_for(question: str) -> str:
    """Return the query that a question needs, "" if it needs none."""
    return next((sql for words, sql in QUERIES.items() if words in question), "")


def reply_to(messages: Sequence[dict[str, object]], stretch: float) -> Reply:
    """Return the model's next message: a query if the question needs one, else the answer."""
    asked = next(str(each["content"]) for each in reversed(messages) if each["role"] == "user")
    found = _KEY.findall(asked)
    key = found[-1] if found else "nobody"
    sql = sql_for(asked)
    reply = Reply(
        first_after=FIRST_S * stretch,
        pace=PACE_S * stretch,
        input_tokens=len(json.dumps(messages)) // 4,
    )
    if sql and messages[-1]["role"] != "tool":
        calls = call("run_sql", sql=sql).tool_calls
        return replace(reply, tool_calls=calls, pieces=CALL_PIECES)
    text = answer_to(key)
    return replace(reply, text=text, pieces=ANSWER_PIECES, output_tokens=len(text) // 4)


def main() -> None:
    """Serve until the process is ended."""
    stretch = float(sys.argv[1])
    with open_model_server() as server:

        def step(request: ChatRequest) -> Reply:
            server.requests.clear()  # of a thousand conversations
            return reply_to(request.messages, stretch)

        server.always(step)
        print(server.base_url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
