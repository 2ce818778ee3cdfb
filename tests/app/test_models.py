"""Which model a name opens, and what is said when it cannot be."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_openai import ChatOpenAI

from longtable.app.models import model_label, open_model
from longtable.app.session import graph_arguments
from longtable.app.settings.run_settings import load_settings
from longtable.base.errors import ConfigError
from tests.support.model_server import ModelServer, open_model_server, say

KEYS = ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "LONGTABLE_API_KEY", "OPENAI_BASE_URL")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


def test_no_name_is_the_built_in_analyst() -> None:
    model = pytest.importorskip("longtable.analyst.model").BuiltInAnalyst
    assert isinstance(open_model(None), model)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpt-4o", "must be provider:name"),
        ("openai:", "must be provider:name"),
        (":gpt-4o", "must be provider:name"),
        ("nobody:gpt", "no provider 'nobody'"),
        ("openai:gpt-4o-mini", "set the environment variable OPENAI_API_KEY"),
        ("mistralai:small", "pip install langchain-mistralai"),
        ("bedrock:x", "pip install langchain-aws"),
    ],
)
def test_a_name_that_cannot_be_opened_says_what_to_do(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_model(name)


def test_provider_and_name_with_a_key_open_the_providers_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    model = open_model("openai:gpt-4o-mini")
    assert isinstance(model, ChatOpenAI)
    assert model.model_name == "gpt-4o-mini"
    assert "sk-mine" not in repr(model)


def test_base_url_without_a_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="--model must name a model"):
        open_model(None, base_url="http://127.0.0.1:1/v1")


@pytest.mark.parametrize("name", ["qwen-plus", "openai:qwen-plus"])
@pytest.mark.parametrize(
    ("env", "sent"),
    [
        ({}, "no-key"),
        ({"OPENAI_API_KEY": "sk-a"}, "sk-a"),
        ({"LONGTABLE_API_KEY": "sk-b"}, "sk-b"),
        ({"LONGTABLE_API_KEY": "sk-b", "OPENAI_API_KEY": "sk-a"}, "sk-b"),
    ],
)
def test_endpoint_gets_name_and_key_and_streams_usage(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, name: str, env: dict[str, str], sent: str
) -> None:
    for variable, value in env.items():
        monkeypatch.setenv(variable, value)
    server.script(say("hello", input_tokens=7))
    chunks = list(open_model(name, base_url=server.base_url).stream("hi"))
    assert [chunk.usage_metadata["input_tokens"] for chunk in chunks if chunk.usage_metadata] == [7]
    assert server.requests[0].body["model"] == "qwen-plus"
    assert server.requests[0].headers["authorization"] == f"Bearer {sent}"


def test_label_names_no_password() -> None:
    given = {"model": "m", "base_url": "http://me:secret@localhost:1/v1", "summarizer": "small"}
    assert (
        model_label(load_settings(given, environment={}))
        == "m at localhost (summaries: small at localhost)"
    )
    assert model_label(load_settings(environment={})) == "built-in analyst"


NAMED = """
[model]
name = "near"
choices = ["far"]
[models.near]
model = "llama"
base_url = "{near}"
api_key_env = "NEAR_KEY"
[models.far]
base_url = "{far}"
api_key_env = "FAR_KEY"
[models.local]
base_url = "{near}"
[summarizer]
name = "local"
"""


def test_models_at_different_urls_stand_side_by_side_each_with_its_own_key(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEAR_KEY", "near-secret")
    monkeypatch.setenv("FAR_KEY", "far-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "of-another-server")
    with open_model_server() as other:
        file = tmp_path / "named.toml"
        file.write_text(NAMED.format(near=server.base_url, far=other.base_url))
        arguments = graph_arguments(load_settings({"config": str(file)}, environment={}))
        server.always(say("near"))
        other.always(say("far"))
        assert arguments["model"].invoke("hi").text == "near"
        assert arguments["models"]["far"].invoke("hi").text == "far"
        assert arguments["summarizer"].model.invoke("hi").text == "near"
        [near, local] = server.requests
        [far] = other.requests
    assert [each.body["model"] for each in (near, far, local)] == ["llama", "far", "local"]
    assert [each.headers["authorization"] for each in (near, far, local)] == [
        "Bearer near-secret",
        "Bearer far-secret",
        "Bearer no-key",
    ]
    chosen = load_settings({"config": str(file), "model": "far"}, environment={})
    assert graph_arguments(chosen)["model"].model_name == "far"
    monkeypatch.delenv("FAR_KEY")
    with pytest.raises(ConfigError, match=r"models\.far: set the environment variable FAR_KEY"):
        graph_arguments(chosen)


def test_a_table_of_a_model_holds_no_key_and_no_other_name(tmp_path: Path) -> None:
    file = tmp_path / "named.toml"
    for line, told in (
        ('api_key_env = "my secret"', "must be the name of a variable"),
        ('api_key_env = "sk-secret"', "has no place in a file"),
        ('api_key = "secret"', "has no place in a file"),
        ('basurl = "http://x/v1"', "did you mean base_url"),
    ):
        file.write_text(f"[models.near]\n{line}\n")
        with pytest.raises(ConfigError, match=told) as refused:
            load_settings({"config": str(file)}, environment={})
        assert "secret" not in str(refused.value)
