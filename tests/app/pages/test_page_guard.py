"""Who may ask: hosts, tokens, owners and addresses."""

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from longtable.app.pages.page_guard import GuardRules, PageGuard, check_address, token_of
from longtable.base.errors import ConfigError


def owner(request: Request) -> Response:
    return PlainTextResponse(f"{request.state.owner}")


def client(rules: GuardRules, peer: str = "127.0.0.1") -> TestClient:
    app = Starlette(
        routes=[Route("/", owner, methods=["GET", "POST"])],
        middleware=[Middleware(PageGuard, rules=rules)],
    )
    return TestClient(app, base_url="http://127.0.0.1:80", client=(peer, 1))


def test_a_page_is_kept_to_its_own_server() -> None:
    answer = client(GuardRules()).get("/")
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert answer.headers["cache-control"] == "no-store"
    cookie = answer.headers["set-cookie"]
    assert "SameSite=Strict" in cookie
    assert "HttpOnly" in cookie


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.:80"])
def test_another_host_name_is_refused(host: str) -> None:
    answer = client(GuardRules()).get("/", headers={"host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize("host", ["localhost:8700", "LOCALHOST", "[::1]:80", "[::1]"])
def test_names_of_this_machine_are_allowed(host: str) -> None:
    assert client(GuardRules()).get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("sent", "origin", "status"),
    [
        (True, "", 200),
        (True, "http://127.0.0.1:80", 200),
        (True, "http://evil.example", 403),
        (True, "null", 403),
        (False, "", 403),
        ("x" * 43, "", 403),
        ("é" * 43, "", 403),
    ],
)
def test_a_post_needs_the_token_of_the_page(sent: Any, origin: str, status: int) -> None:
    http = client(GuardRules())
    http.get("/")
    token = http.cookies["longtable_token"] if sent is True else sent or ""
    headers: dict[str, Any] = {"x-longtable-token": token.encode(), "host": "127.0.0.1:80"}
    if origin:
        headers["origin"] = origin
    assert http.post("/", headers=headers).status_code == status


def test_without_a_cookie_no_token_counts() -> None:
    assert client(GuardRules()).post("/", headers={"x-longtable-token": ""}).status_code == 403


@pytest.mark.parametrize("cookie", ["longtable_token=short", "longtable_token", "a=b; =", "\x7f"])
def test_a_broken_cookie_is_no_token(cookie: str) -> None:
    assert token_of({"cookie": cookie}) == ""


PROXY = GuardRules(owner_header="x-user", proxies=("10.0.0.0/8",))


@pytest.mark.parametrize(
    ("peer", "header", "status", "name"),
    [
        ("10.1.2.3", "ann", 200, "ann"),
        ("10.1.2.3", "", 401, ""),
        ("10.1.2.3", "a" * 999, 401, ""),
        ("192.168.0.1", "ann", 401, ""),
        ("testclient", "ann", 401, ""),
    ],
)
def test_only_a_trusted_proxy_names_the_owner(
    peer: str, header: str, status: int, name: str
) -> None:
    answer = client(PROXY, peer).get("/", headers={"x-user": header} if header else {})
    assert answer.status_code == status
    assert not name or answer.text == name


def test_an_operator_may_say_who_asks() -> None:
    rules = GuardRules(auth=lambda request: request.headers.get("x-key"))
    assert client(rules).get("/", headers={"x-key": "bob"}).text == "bob"
    assert client(rules).get("/").status_code == 401


@pytest.mark.parametrize(
    "rules", [{"owner_header": "x-user"}, {"owner_header": "x", "proxies": ("nonsense",)}]
)
def test_rules_that_trust_everybody_are_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        GuardRules(**rules)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1"])
def test_a_server_that_knows_nobody_listens_on_loopback_only(host: str) -> None:
    with pytest.raises(ConfigError, match="owner_header"):
        check_address(host, GuardRules())
    check_address(host, PROXY)
    check_address("127.0.0.1", GuardRules())
