"""No error repeats a secret, and a secret is recognised by its form."""

import time

import pytest

from longtable.base.errors import LongtableError
from longtable.base.redaction import redacted
from tests.support.errors import CLASSES, INSIDE, PEM, SECRETS, made


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_no_error_repeats_a_secret_and_a_person_reads_nothing_from_inside(
    cls: type[LongtableError],
) -> None:
    error = made(cls)
    assert not [secret for secret in SECRETS if secret in str(error)]
    assert not [secret for secret in SECRETS if secret in repr(error)]
    for language in ("en", "zh", "fr"):
        said = error.user_text(language)
        assert not [inside for inside in INSIDE if inside in said]
        assert 3 < len(said) < 200
    assert error.user_text("zh") != error.user_text("en")
    assert error.code


@pytest.mark.parametrize(
    "text",
    [
        "connection to postgresql://ann:hun@TAIL@db:5432/shop failed",
        'invalid URI: "postgresql://ann:first TAIL@db/shop"',
        "redis://:TAIL@127.0.0.1:6379/0",
        "https://TAIL@git.example/x",
        "host=db password='first TAIL' dbname=x",
        "password = TAIL",
        (
            "PGPASSWORD=TAIL OPENAI_API_KEY=TAIL LONGTABLE_STORE_KEY=TAIL"
            " aws_secret_access_key=TAIL client_secret=TAIL"
        ),
        "x-api-key: TAIL",
        "{'x-api-key': 'TAIL', \"refresh_token\": \"TAIL\"}",
        "Incorrect API key provided: TAIL. You can find it",
        "https://api.example/v1?key=TAIL&x=1 https://blob.example/c?sv=1&sig=TAIL",
        "github_pat_TAIL glpat-TAIL xapp-1-TAIL gsk_TAIL sk_live_TAIL",
        f"-----{PEM}----- MIIE TAIL -----END RSA PRIVATE KEY-----",
    ],
)
def test_a_secret_is_recognised_by_its_form(text: str) -> None:
    assert "9f8e7d6c5b4a" not in redacted(text.replace("TAIL", "9f8e7d6c5b4a"))


@pytest.mark.parametrize(
    "unit", ["://", "a:", "a-", "_", "api_key: ", "eyJ", f"-----{PEM}-----", "secret "]
)
def test_a_hostile_text_is_read_in_linear_time(unit: str) -> None:
    def seconds(length: int) -> float:
        started = time.process_time()
        redacted(unit * (length // len(unit)))
        return time.process_time() - started

    seconds(1_000)
    # Eight times the text; quadratic would be 64.
    assert seconds(80_000) < 16 * max(seconds(10_000), 0.004)


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096, token=5",
        "api_key: Field required",
        "SELECT token FROM password WHERE basic = 'x'",
        "the key of orders is order_id",
        "http://127.0.0.1:8000/v1",
        "ann@example.org",
        "sk-7",
        "write postgresql://user:password@host:5432/database",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text
