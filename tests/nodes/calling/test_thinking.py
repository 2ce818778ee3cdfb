"""A model of langchain-openai that keeps reasoning is a new one; the caller's stays as it was."""

from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr, SecretStr

from longtable.nodes.calling.thinking import with_reasoning_kept


class Tagged(ChatOpenAI):
    tag: str = "none"
    _seen: list[str] = PrivateAttr(default_factory=list)


def test_the_new_model_has_every_field_and_private_attribute_of_the_callers() -> None:
    model = Tagged(model="gpt-4o", api_key=SecretStr("none"), max_completion_tokens=5, tag="blue")
    model._seen.append("one")
    kept = with_reasoning_kept(model)
    assert type(model) is Tagged
    assert isinstance(kept, Tagged)
    assert type(kept) is not Tagged
    assert type(kept).__name__ == "Tagged"
    assert [name for name, value in model if getattr(kept, name) is not value] == []
    assert kept._seen is model._seen
    assert kept.model_fields_set == model.model_fields_set
    assert with_reasoning_kept(kept) is kept
