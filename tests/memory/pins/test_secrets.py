"""A password or a key is found in the user's words; a rule about one is none."""

import pytest

from longtable.memory.pins.secrets import holds_secret


@pytest.mark.parametrize(
    "text",
    [
        "the password is hunter2",
        "my api key: abc-def",
        "our door code is 4711",
        "use hunter2 as the password",
        "log in with anna and sonne123",
        "密码是 abc123",
        "门禁码4711",
    ],
)
def test_a_secret_is_found(text: str) -> None:
    assert holds_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "never show the password",
        "the password is never stored",
        "leave out the token column",
        "count logins by month",
        "the pin is on the map",
        "以后不要显示密码",
    ],
)
def test_a_rule_about_a_secret_is_none(text: str) -> None:
    assert not holds_secret(text)
