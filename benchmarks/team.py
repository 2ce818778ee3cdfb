"""A round of free chat beside its slowest voice, over a real model server on loopback.
`python -m benchmarks.team`.
"""

import time
from functools import partial

from langgraph.checkpoint.memory import InMemorySaver

from longtable.graph import Context, Conversation, FreeChat, Persona, Team, build_graph
from tests.support.model_server import ChatRequest, Reply, call, open_model_server, say

SECONDS = {"Ada": 1.0, "Ben": 1.0, "Cleo": 0.5}
"""How long the server takes for each answer of a voice."""


def answered(request: ChatRequest, *, tools: bool) -> Reply:
    """Answer after the voice's time; with `tools`, a call first."""
    name = str(request.messages[0]["content"]).partition("You are ")[2].partition(".")[0]
    time.sleep(SECONDS[name])
    if tools and request.messages[-1]["role"] != "tool":
        return call("recall_history", query="orders")
    return say(f"{name} speaks")


def seconds(*names: str, tools: bool, together: bool = True) -> float:
    """Return how long a round of these voices takes."""
    with open_model_server() as server:
        server.always(partial(answered, tools=tools))
        team = Team(*(Persona(name.lower()) for name in names), mode=FreeChat(together=together))
        graph = build_graph(model=server.chat_model(), team=team, summarizer=False).compile(
            InMemorySaver()
        )
        conversation = Conversation(graph, "t", context=Context(model_limit=32_000))
        begun = time.perf_counter()
        answer = conversation.ask("Hello")
        assert [each["text"] for each in answer.voices] == [f"{name} speaks" for name in names]
        return time.perf_counter() - begun


def main() -> None:
    """Measure, print."""
    print(
        "| answers after 1, 1 and 0.5 s | slowest voice alone | at once | | one after the other |"
    )
    print("|---|---:|---:|---:|---:|")
    seconds("Ada", tools=False)  # what is imported at first use
    for name, tools in (("one call each", False), ("a tool call each", True)):
        alone = max(seconds(each, tools=tools) for each in SECONDS)
        once = seconds(*SECONDS, tools=tools)
        after = seconds(*SECONDS, tools=tools, together=False)
        print(
            f"| {name} | {alone:.2f} s | {once:.2f} s | {once / alone:.2f} times | {after:.2f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
