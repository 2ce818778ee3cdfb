"""`longtable web` as a command: addresses, ports, and files of others."""

import asyncio
import hashlib
import signal
import socket
import subprocess
import time
import tomllib
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from longtable.app.pages import page_server
from longtable.app.pages.page_server import address_of_socket, listening_socket
from longtable.base.errors import ConfigError
from tests.app.pages.served_pages import serving
from tests.app.runner import PROGRAM, make_home

STATIC = Path(page_server.__file__).parent / "static"


def test_a_port_that_is_taken_says_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="name another --port"):
            listening_socket("127.0.0.1", taken.getsockname()[1])


def test_an_address_of_another_machine_is_told_as_such() -> None:
    with pytest.raises(ConfigError, match="--host names an address of this machine"):
        listening_socket("192.0.2.1", 0)


def test_a_socket_takes_callers_before_anything_is_loaded() -> None:
    with listening_socket("127.0.0.1", 0) as listener:
        host, port = listener.getsockname()
        assert address_of_socket(listener) == f"http://127.0.0.1:{port}/"
        socket.create_connection((host, port), timeout=5).close()


def test_small_answers_do_not_wait_for_the_network_to_confirm_earlier_ones() -> None:
    async def delays_are_off() -> bool:
        """Return whether the server's end of a connection sends each write at once."""
        found: asyncio.Queue[int] = asyncio.Queue()

        async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            found.put_nowait(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()
            await writer.wait_closed()

        with listening_socket("127.0.0.1", 0) as listener:
            address = listener.getsockname()
            async with await asyncio.start_server(connected, sock=listener):
                with socket.create_connection(address, timeout=5):
                    return bool(await asyncio.wait_for(found.get(), 5))

    assert asyncio.run(delays_are_off())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "owner_header"),
        (["--port", "99999"], "--port"),
        (["--port", "x"], "--port"),
        (["--database", "sqlite:///none.db"], "none.db"),
    ],
)
def test_what_cannot_be_served_is_said_at_once(
    tmp_path: Path, options: list[str], words: str
) -> None:
    home = make_home(tmp_path)
    done = home.run("web", *options)
    assert done.returncode == 1
    assert words in done.stdout + done.stderr


def test_ctrl_c_ends_it_quietly(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    with serving(home) as server:
        with httpx.Client() as client:
            assert client.get(server.address).status_code == 303
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(15) in (0, 130)
        assert server.process.stdout is not None
        assert "Traceback" not in server.process.stdout.read()


def test_a_connection_outlives_the_pause_between_two_looks_for_news(tmp_path: Path) -> None:
    with serving(make_home(tmp_path)) as server:
        address = urlsplit(server.address)
        with closing(HTTPConnection(address.hostname or "", address.port, timeout=20)) as browser:
            browser.connect()
            connection = browser.sock
            for pause in (6, 0):
                browser.request("GET", "/")
                browser.getresponse().read()
                time.sleep(pause)
            assert browser.sock is connection


def test_help_names_what_it_takes() -> None:
    text = subprocess.run(
        [str(PROGRAM), "web", "--help"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "--port" in text
    assert "--host" in text


def test_files_of_others_are_what_they_were() -> None:
    listed = tomllib.loads((STATIC / "VENDORED.toml").read_text())
    scripts = {path.name for path in STATIC.glob("*.js")} - {"page.js"}
    assert set(listed) == scripts
    for name, facts in listed.items():
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == facts["sha256"]
        assert facts["version"] == "4.0.1"
        assert "0BSD" in facts["licence"]


@pytest.mark.parametrize(("name", "most"), [("page.js", 150), ("style.css", 400)])
def test_our_own_files_stay_small(name: str, most: int) -> None:
    assert len((STATIC / name).read_text().splitlines()) <= most


def test_no_template_runs_a_script_or_loads_from_elsewhere() -> None:
    for path in (STATIC.parent / "templates").rglob("*.html"):
        text = path.read_text()
        assert "hx-on" not in text, path
        assert "js:" not in text, path
        assert "style=" not in text, path
        assert "https://" not in text, path
