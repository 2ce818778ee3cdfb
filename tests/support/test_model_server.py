"""The scripted model server, through langchain-openai as a program uses it."""

import json
from collections.abc import Iterator

import openai
import pytest
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from tests.support.model_server import (
    Fault,
    ModelServer,
    OverflowShape,
    Reply,
    ToolCall,
    call,
    calls,
    context_overflow,
    empty,
    open_model_server,
    rate_limited,
    say,
    server_error,
    unauthorized,
)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


@tool
def run_sql(sql: str) -> str:
    """Run a query."""
    return sql


def streamed(server: ModelServer, text: str = "hi") -> AIMessageChunk:
    whole: AIMessageChunk | None = None
    for chunk in server.chat_model().bind_tools([run_sql]).stream(text):
        assert isinstance(chunk, AIMessageChunk)
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    return whole


@pytest.mark.parametrize("text", ["Plain words.", "有三趟航班。"])
def test_plain_answer_has_text_and_usage(server: ModelServer, text: str) -> None:
    server.script(say(text, input_tokens=42, output_tokens=5))
    answer = server.chat_model().invoke("hi")
    assert answer.text == text
    assert answer.usage_metadata is not None
    assert (answer.usage_metadata["input_tokens"], answer.usage_metadata["output_tokens"]) == (
        42,
        5,
    )


def test_streamed_answer_comes_in_pieces_with_usage_at_the_end(server: ModelServer) -> None:
    server.script(say("one two three", pieces=3, input_tokens=42))
    parts = [chunk.text for chunk in server.chat_model().stream("hi") if chunk.text]
    assert len(parts) == 3
    assert "".join(parts) == "one two three"
    server.script(say("again", input_tokens=42))
    usage = streamed(server).usage_metadata
    assert usage is not None
    assert usage["input_tokens"] == 42


def test_a_stream_without_the_option_sends_no_usage(server: ModelServer) -> None:
    server.script(say("words"))
    chunks = list(server.chat_model(stream_usage=False).stream("hi"))
    assert all(chunk.usage_metadata is None for chunk in chunks)


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_tool_call_split_over_chunks_arrives_whole(server: ModelServer, pieces: int) -> None:
    reply = calls(
        ToolCall(name="run_sql", arguments='{"sql": "SELECT 1"}'),
        ToolCall(name="run_sql", arguments='{"sql": "SELECT 2"}'),
        pieces=pieces,
    )
    server.script(reply)
    assert [made["args"]["sql"] for made in streamed(server).tool_calls] == ["SELECT 1", "SELECT 2"]


def test_tool_loop_records_what_the_client_sent(server: ModelServer) -> None:
    server.script(call("run_sql", sql="SELECT 1"), say("One."))
    model = server.chat_model().bind_tools([run_sql])
    talk: list[BaseMessage] = [HumanMessage("how many?")]
    asked = model.invoke(talk)
    answer = model.invoke([*talk, asked, ToolMessage("1", tool_call_id=asked.tool_calls[0]["id"])])
    assert answer.text == "One."
    assert [request.roles for request in server.requests] == [
        ["user"],
        ["user", "assistant", "tool"],
    ]
    assert server.requests[0].tool_names == ["run_sql"]
    assert server.requests[0].headers["authorization"] == "Bearer sk-test"
    assert (
        server.requests[1].messages[1]["tool_calls"][0]["id"]
        == server.requests[1].messages[2]["tool_call_id"]
    )
    assert server.unexpected == []


def test_malformed_arguments_become_an_invalid_tool_call(server: ModelServer) -> None:
    server.script(*[calls(ToolCall(name="run_sql", arguments='{"sql": oops}'))] * 2)
    assert [made["args"] for made in streamed(server).invalid_tool_calls] == ['{"sql": oops}']
    answer = server.chat_model().bind_tools([run_sql]).invoke("hi")
    assert [made["args"] for made in answer.invalid_tool_calls] == ['{"sql": oops}']


def test_arguments_cut_short_in_a_stream_are_repaired_by_the_client(server: ModelServer) -> None:
    """Hold langchain to what it does: a program that runs `tool_calls` of a broken stream runs half
    a statement.
    """
    server.script(
        calls(
            ToolCall(name="run_sql", arguments='{"sql": "DELETE FROM t WHERE'),
            breaks="truncate",
            pieces=1,
        )
    )
    whole = streamed(server)
    assert whole.invalid_tool_calls == []
    assert "finish_reason" not in whole.response_metadata


def test_empty_answer_is_empty(server: ModelServer) -> None:
    server.script(empty(), empty())
    assert streamed(server).text == ""
    assert server.chat_model().invoke("hi").text == ""


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (unauthorized(), openai.AuthenticationError),
        (rate_limited(7), openai.RateLimitError),
        (rate_limited(None), openai.RateLimitError),
        (server_error(), openai.InternalServerError),
        (server_error(503), openai.InternalServerError),
        (context_overflow(), openai.BadRequestError),
    ],
)
def test_fault_reaches_the_client_as_its_error(
    server: ModelServer, fault: Fault, raised: type[openai.APIStatusError]
) -> None:
    server.script(fault)
    with pytest.raises(raised) as caught:
        server.chat_model().invoke("hi")
    assert caught.value.response.headers.get("retry-after") == fault.headers.get("retry-after")


@pytest.mark.parametrize(
    ("shape", "code", "kind"),
    [
        ("openai", "context_length_exceeded", "invalid_request_error"),
        ("llama_cpp", 400, "exceed_context_size_error"),
        ("vllm", 400, "BadRequestError"),
        ("vllm_flat", 400, "BadRequestError"),
    ],
)
def test_overflow_has_the_shape_of_its_server(
    server: ModelServer, shape: OverflowShape, code: object, kind: str
) -> None:
    server.script(context_overflow(shape))
    with pytest.raises(openai.BadRequestError) as caught:
        server.chat_model().invoke("hi")
    body = json.loads(caught.value.response.text)
    detail = body.get("error", body)
    assert (detail["code"], detail["type"]) == (code, kind)
    assert "context" in detail["message"]


def test_dropped_stream_raises_after_some_text(server: ModelServer) -> None:
    server.script(Reply(text="one two three four", pieces=4, breaks="drop"))
    parts: list[str] = []
    with pytest.raises(Exception, match=r"peer closed|Connection|incomplete"):
        parts.extend(chunk.text for chunk in server.chat_model().stream("hi"))


def test_error_event_in_a_stream_raises(server: ModelServer) -> None:
    server.script(Reply(text="one two three four", pieces=4, breaks="error"))
    with pytest.raises(openai.APIError, match="engine died"):
        list(server.chat_model().stream("hi"))


def test_truncated_stream_ends_without_a_finish_reason(server: ModelServer) -> None:
    server.script(Reply(text="one two three four", pieces=4, breaks="truncate"))
    whole = streamed(server)
    assert whole.text
    assert "one two three four".startswith(whole.text)
    assert len(whole.text) < len("one two three four")
    assert "finish_reason" not in whole.response_metadata


def test_request_beyond_the_script_is_an_error_and_is_kept(server: ModelServer) -> None:
    with pytest.raises(openai.InternalServerError, match="beyond the script"):
        server.chat_model().invoke("hi")
    assert len(server.unexpected) == 1


def test_step_may_look_at_the_request(server: ModelServer) -> None:
    server.always(lambda request: say(f"{len(request.messages)} message, stream {request.streams}"))
    assert server.chat_model().invoke("hi").text == "1 message, stream False"
    assert streamed(server).text == "1 message, stream True"
