"""The settings that apply to a run are made once, and are those of this run and this operator."""

from longtable.base.context import Context
from longtable.graph.wiring.step import _limited


def test_settings_are_limited_once_and_never_by_another_operator() -> None:
    mine = Context(max_model_calls=9, language="zh")
    for operator in (Context(), Context(max_model_calls=3), Context(language="en", owner="ann")):
        made = _limited(mine, operator)
        assert made == mine.within(operator)
        assert made.fields_set == mine.within(operator).fields_set
        assert _limited(mine, operator) is made
    assert _limited(None, Context(max_model_calls=3)) == Context(max_model_calls=3)


def test_equal_settings_of_which_others_were_set_are_limited_anew() -> None:
    operator = Context(max_model_calls=30)
    default = Context()
    chosen = Context(max_model_calls=default.max_model_calls)
    assert default == chosen
    assert _limited(default, operator).max_model_calls == 30
    assert _limited(chosen, operator).max_model_calls == default.max_model_calls
