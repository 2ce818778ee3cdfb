"""Fields of settings are checked by their annotations, and an unknown one is refused with the
nearest name.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import pytest
from pydantic import Field

from longtable.base.errors import ConfigError, UnknownSettingError
from longtable.base.settings_base import Settings, SettingWarning, is_owner, nearest


@dataclass(frozen=True, kw_only=True)
class Oven(Settings):
    REPLACED: ClassVar = {"gas_mark": "set degrees"}
    WITHOUT_EFFECT: ClassVar = {"lamp": "it is always on"}

    degrees: Annotated[int, Field(ge=50, le=250)] = 180
    heat: Literal["top", "both"] = "both"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"degrees": 300}, "Oven.degrees must be a whole number from 50 to 250, found 300"),
        ({"degrees": "180"}, "Oven.degrees must be a whole number from 50 to 250, found '180'"),
        ({"degrees": True}, "found True"),
        ({"heat": "side"}, "Oven.heat must be 'top' or 'both', found 'side'"),
        ({"gas_mark": 4}, "Oven has no field 'gas_mark' any more: set degrees"),
    ],
)
def test_a_wrong_value_names_field_value_and_what_is_allowed(
    values: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        Oven(**values)  # type: ignore[arg-type]  # wrong on purpose
    assert message in str(refused.value)


def test_an_unknown_field_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownSettingError, match="did you mean degrees") as refused:
        Oven(degress=200)  # type: ignore[call-arg]  # misspelt on purpose
    assert (refused.value.name, refused.value.near) == ("degress", "degrees")


def test_a_field_without_effect_is_left_out_with_a_warning() -> None:
    with pytest.warns(SettingWarning, match="it is always on"):
        oven = Oven(lamp=True)  # type: ignore[call-arg]  # of an earlier version
    assert oven == Oven()


def test_the_nearest_name_is_empty_if_none_is_near() -> None:
    assert nearest("privcy", ["privacy", "owner"]) == "privacy"
    assert nearest("zzz", ["privacy", "owner"]) == ""


@pytest.mark.parametrize("owner", ["ana", "王芳", "a" * 200])
def test_printable_text_names_an_owner(owner: str) -> None:
    assert is_owner(owner)


@pytest.mark.parametrize("owner", ["", " ana", "a\nb", "a" * 201, None, 7])
def test_other_values_name_no_owner(owner: object) -> None:
    assert not is_owner(owner)
