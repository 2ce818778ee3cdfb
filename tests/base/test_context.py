"""The settings of a run are checked when built, and stay within the operator's."""

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import pydantic
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.analyst.model import BuiltInAnalyst
from longtable.base.errors import ConfigError, MessageTooLongError
from longtable.graph import Context, build_graph
from tests.support.models import script

BOUNDS = {
    "model_limit": (1, 100_000_000),
    "max_model_calls": (1, 1_000),
    "max_message_chars": (1, 100_000_000),
    "max_retries": (0, 20),
    "max_repairs": (0, 1_000),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_whole_number_is_taken_up_to_its_bounds_and_refused_beyond(name: str) -> None:
    least, most = BOUNDS[name]
    for value in (least, most):
        assert getattr(Context().replace(**{name: value}), name) == value
    for wrong in (
        least - 1,
        most + 1,
        99_999_999_999_999_999_999,
        10**9_000,
        -(10**9_000),
        1.5,
        "7",
        True,
    ):
        with pytest.raises(
            ConfigError,
            match=(
                f"Context.{name} must be a whole number from {least:,} to {most:,}( or None)?,"
                " found"
            ),
        ) as caught:
            Context().replace(**{name: wrong})
        assert len(str(caught.value)) < 300


def test_the_largest_numbers_of_all_can_be_run_with() -> None:
    graph = build_graph(model=BuiltInAnalyst()).compile(checkpointer=InMemorySaver())
    context = Context().replace(**{name: most for name, (_, most) in BOUNDS.items()})
    assert (
        graph.invoke(
            {"messages": [HumanMessage("hello")]},
            {"configurable": {"thread_id": "t"}},
            context=context,
        )["turn"]["status"]
        == "answered"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("language", "fr"), ("system_prompt", "  "), ("project", " a"), ("temperature", 3)],
)
def test_another_setting_that_cannot_be_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"Context.{name} must be"):
        Context().replace(**{name: value})


@pytest.mark.parametrize(
    ("name", "near"), [("privcy", "privacy"), ("aprove_sql", "approve_sql"), ("x" * 70, "")]
)
def test_a_field_that_is_unknown_is_refused_with_the_nearest_name(name: str, near: str) -> None:
    client: Any = {name: "always"}
    graph = build_graph(model=script("fine")).compile()
    for make in (
        lambda: Context(**client),
        lambda: pydantic.TypeAdapter(Context).validate_python(client),
        lambda: graph.invoke({"messages": [HumanMessage("hello")]}, context=client),
    ):
        with pytest.raises(ConfigError) as caught:
            make()
        assert (f"did you mean {near}?" in str(caught.value)) == bool(near)
        assert near in caught.value.user_text("zh")


@pytest.mark.parametrize("name", Context.REPLACED)
def test_a_field_of_an_earlier_version_is_refused_with_its_new_place(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Context(**{name: 1})  # type: ignore[arg-type]  # wrong on purpose
    assert str(caught.value) == f"Context has no field {name!r} any more: {Context.REPLACED[name]}"
    graph = build_graph(model=script("fine")).compile()
    client: Any = {name: 1}
    with pytest.raises(ConfigError, match=name):
        graph.invoke({"messages": [HumanMessage("hello")]}, context=client)


@pytest.mark.parametrize("name", Context.REPLACED)
def test_saved_settings_may_hold_a_field_of_an_earlier_version_that_changed_nothing(
    name: str,
) -> None:
    graph = build_graph(model=script("fine")).compile()
    for unset in (None, "", Context.OLD_DEFAULTS.get(name)):
        client: Any = {"model_limit": 16_000, name: unset}
        assert (
            Context(**client)
            == pydantic.TypeAdapter(Context).validate_python(client)
            == Context(model_limit=16_000)
        )
        assert Context(**client).fields_set == {"model_limit"}
        assert (
            graph.invoke({"messages": [HumanMessage("hello")]}, context=client)["turn"]["status"]
            == "answered"
        )
    with pytest.raises(ConfigError, match=f"no field '{name}' any more"):
        pydantic.TypeAdapter(Context).validate_python({name: 1})


def test_a_choice_of_an_earlier_version_is_refused_with_what_to_do() -> None:
    client: Any = {"check_numbers": "mend"}
    with pytest.raises(ConfigError, match="mend is gone: use 'flag'"):
        Context(**client)
    with pytest.raises(ConfigError, match="mend is gone: use 'flag'"):
        pydantic.TypeAdapter(Context).validate_python(client)


def test_a_context_stays_small() -> None:
    assert len(dataclasses.fields(Context)) <= 20


def test_the_form_of_studio_holds_descriptions_and_bounds() -> None:
    form = build_graph(model=script("fine")).compile().get_context_jsonschema()
    assert form is not None
    for each in dataclasses.fields(Context):
        assert form["properties"][each.name]["description"] == each.metadata["description"]
    assert form["properties"]["max_model_calls"]["maximum"] == 1_000
    assert form["properties"]["system_prompt"]["langgraph_type"] == "prompt"


def test_an_empty_text_stands_for_a_field_that_was_not_given() -> None:
    names = [field.name for field in dataclasses.fields(Context)]
    context = Context(**dict.fromkeys(names, ""))  # type: ignore[arg-type]  # as a form sends it
    assert context == Context()
    assert context.fields_set == frozenset()
    assert Context().replace(**dict.fromkeys(names, "")) == Context()


def test_a_context_knows_which_fields_were_given_also_as_a_copy() -> None:
    context = Context(approve_sql="costly", model_limit=None).replace(owner="ann")
    assert context == Context(owner="ann")
    for each in (
        context,
        copy.copy(context),
        copy.deepcopy(context),
        pickle.loads(pickle.dumps(context)),
    ):
        assert each.fields_set == {"approve_sql", "owner"}


def test_a_context_that_pydantic_built_stays_within_the_operators() -> None:
    built = pydantic.TypeAdapter(Context).validate_python({"approve_sql": "always", "owner": "ann"})
    assert built == Context(approve_sql="always", owner="ann")
    assert built.fields_set == {"approve_sql", "owner"}
    assert built.within(OPERATOR) == Context(approve_sql="always", owner="ann").within(OPERATOR)


def test_the_signature_names_every_field() -> None:
    assert list(inspect.signature(Context).parameters) == [
        each.name for each in dataclasses.fields(Context)
    ]


OPERATOR = Context(
    privacy="types",
    approve_sql="costly",
    check_numbers="off",
    model_limit=8_000,
    max_model_calls=20,
    thinking=5_000,
    owner="acme",
)
HOLDS = [
    (
        {},
        {
            "privacy": "types",
            "approve_sql": "costly",
            "check_numbers": "off",
            "model_limit": 8_000,
            "max_model_calls": 20,
        },
    ),
    (
        {"privacy": "off", "approve_sql": "never", "owner": "bob"},
        {"privacy": "types", "approve_sql": "costly", "owner": "acme"},
    ),
    (
        {"approve_sql": "always", "check_numbers": "flag"},
        {"approve_sql": "always", "check_numbers": "flag"},
    ),
    (
        {"model_limit": 9_000, "max_model_calls": 21, "thinking": True},
        {"model_limit": 8_000, "max_model_calls": 20, "thinking": 5_000},
    ),
    (
        {"model_limit": 7_000, "max_model_calls": 12, "thinking": False},
        {"model_limit": 7_000, "max_model_calls": 12, "thinking": False},
    ),
    ({"language": "zh", "max_repairs": 1_000}, {"language": "zh", "max_repairs": 1_000}),
]


@pytest.mark.parametrize(("client", "holds"), HOLDS)
def test_a_clients_context_tightens_what_the_operator_set_and_never_loosens_it(
    client: dict[str, Any], holds: dict[str, Any]
) -> None:
    context = Context(**client).within(OPERATOR)
    assert {name: getattr(context, name) for name in holds} == holds
    assert context.within(OPERATOR) == context


@pytest.mark.parametrize(
    "client",
    [None, Context(model_limit=50_000, max_message_chars=50_000), {"max_message_chars": 50_000}],
)
def test_a_graph_runs_within_its_operators_settings(client: Any) -> None:
    graph = build_graph(
        model=script("fine"), operator=Context(model_limit=9_000, max_message_chars=10)
    ).compile()
    assert (
        graph.invoke({"messages": [HumanMessage("short")]}, context=client)["brief"]["limit"]
        == 9_000
    )
    with pytest.raises(MessageTooLongError):
        graph.invoke({"messages": [HumanMessage("not so short")]}, context=client)
