"""The chat model's side: tool calls, streaming, usage, purity, results that came cut or failed."""

import asyncio
from functools import reduce

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from longtable.app.offline.model import BuiltInAnalyst
from longtable.memory.tokens import counter
from longtable.tools.toolset import database_tools
from tests.offline.conftest import Chat

ASK = [SystemMessage("You answer questions."), HumanMessage("How many bikes are there?")]


def test_the_first_call_looks_at_the_tables() -> None:
    answer = BuiltInAnalyst().invoke(ASK)
    assert [(call["name"], call["args"]) for call in answer.tool_calls] == [("list_tables", {})]
    assert answer.content == ""


def test_it_says_its_limit_and_name() -> None:
    model = BuiltInAnalyst()
    assert model.profile is not None
    assert model.profile.get("max_input_tokens") == 32_000
    assert model.model_name == "built-in-analyst"


def test_the_same_messages_get_the_same_answer(shop: Chat) -> None:
    shop.ask("Average price per brand")
    for end in range(2, len(shop.messages)):
        if isinstance(shop.messages[end], AIMessage):
            again, first = BuiltInAnalyst().invoke(shop.messages[:end]), shop.messages[end]
            assert isinstance(first, AIMessage)
            assert (again.content, again.tool_calls) == (first.content, first.tool_calls)


@pytest.mark.parametrize("question", ["How many bikes are there?", "thanks", "List all bikes"])
def test_streaming_equals_invoke(shop: Chat, question: str) -> None:
    shop.ask(question)
    for end in range(2, len(shop.messages)):
        if not isinstance(shop.messages[end], AIMessage):
            continue
        whole = shop.model.invoke(shop.messages[:end])
        chunks = list(shop.model.stream(shop.messages[:end]))
        merged = reduce(lambda left, right: left + right, chunks)
        assert isinstance(merged, AIMessageChunk)
        assert (merged.content, merged.tool_calls, merged.usage_metadata) == (whole.content, whole.tool_calls, whole.usage_metadata)
        assert [chunk.usage_metadata for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
        assert not whole.content or len(chunks) > 2


def test_async_equals_sync(shop: Chat) -> None:
    shop.ask("How many bikes are there?")

    async def both() -> tuple[AIMessage, list[AIMessageChunk]]:
        streamed = [chunk async for chunk in shop.model.astream(shop.messages[:-1])]
        return await shop.model.ainvoke(shop.messages[:-1]), streamed

    whole, chunks = asyncio.run(both())
    assert whole.content == shop.messages[-1].content == "".join(str(chunk.content) for chunk in chunks)


def test_usage_is_what_the_graph_counts(shop: Chat) -> None:
    asked, tools = [HumanMessage("thanks")], list(shop.tools.values())
    answer = shop.model.bind_tools(tools).invoke(asked)
    ours = counter("o200k_base")
    sent, spent = ours.messages(asked) + ours.tools([convert_to_openai_tool(tool) for tool in tools]), ours.text(str(answer.content))
    assert answer.usage_metadata == {"input_tokens": sent, "output_tokens": spent, "total_tokens": sent + spent}


def test_bound_tools_count_as_input(shop: Chat) -> None:
    plain, bound = shop.model.invoke(ASK), shop.model.bind_tools(list(shop.tools.values())).invoke(ASK)
    assert plain.usage_metadata is not None
    assert bound.usage_metadata is not None
    assert bound.usage_metadata["input_tokens"] > plain.usage_metadata["input_tokens"]
    assert bound.tool_calls == plain.tool_calls
    assert database_tools.__name__ == "database_tools"


def test_it_says_once_what_it_is(shop: Chat) -> None:
    assert "LONGTABLE_MODEL" in shop.ask("How many bikes are there?")
    assert "LONGTABLE_MODEL" not in shop.ask("How many members are there?")


def test_it_does_not_say_again_what_it_is_after_a_fold(shop: Chat) -> None:
    shop.messages[0] = SystemMessage("<memory>\n## Facts and findings\n- Asked: x | Answered: y\n</memory>")
    assert "LONGTABLE_MODEL" not in shop.ask("How many bikes are there?")


def test_numbers_have_separators_and_filters_are_told(shop: Chat) -> None:
    answer = shop.ask("What is the average price of Cube bikes?")
    assert "3,100" in answer
    assert "brand is Cube" in answer


def test_many_rows_come_as_a_table_with_the_count(shop: Chat) -> None:
    answer = shop.ask("List all rentals")
    assert "| rental_id |" in answer
    assert "6 rows in all" in answer


def test_chinese_is_answered_in_chinese(shop: Chat) -> None:
    assert "共有 4" in shop.ask("有多少bike?")


def shrunk(name: str, times: int) -> object:
    left = [times]

    def spoil(message: ToolMessage) -> ToolMessage:
        if message.name == name and left[0]:
            left[0] -= 1
            return message.model_copy(update={"content": str(message.content)[:60] + " … [shortened]", "artifact": None})
        return message

    return spoil


@pytest.mark.parametrize("name", ["list_tables", "describe_tables", "find_values", "run_sql"])
def test_a_shrunk_result_is_asked_for_again(shop: Chat, name: str) -> None:
    shop.spoil = shrunk(name, 1)  # type: ignore[assignment]  # a plain function of one message
    answer = shop.ask("How many members live in Porto?")
    assert shop.rows == [(2,)], answer
    assert "2 members" in answer


@pytest.mark.parametrize("name", ["list_tables", "describe_tables", "run_sql"])
def test_results_that_always_come_shrunk_end_in_a_decline(shop: Chat, name: str) -> None:
    shop.spoil = shrunk(name, 99)  # type: ignore[assignment]  # a plain function of one message
    assert "no answer" in shop.ask("How many members live in Porto?")


def test_a_failing_query_is_declined_with_its_reason(shop: Chat) -> None:
    def spoil(message: ToolMessage) -> ToolMessage:
        if message.name != "run_sql":
            return message
        return message.model_copy(
            update={"content": '{"error":{"class":"query_timeout","message":"stopped after 30 s"}}', "status": "error"}
        )

    shop.spoil = spoil
    assert "stopped after 30 s" in shop.ask("How many bikes are there?")


def test_an_interrupted_call_does_not_crash(shop: Chat) -> None:
    shop.ask("How many bikes are there?")
    cut = [
        ToolMessage("This call was interrupted, no result.", tool_call_id=m.tool_call_id, status="error")
        if isinstance(m, ToolMessage)
        else m
        for m in shop.messages
    ]
    shop.messages[:] = cut
    assert "4 members" in shop.ask("How many members are there?")
