"""Who is let in, and with what: hosts, origins, keys, bodies; and what every answer carries."""

from __future__ import annotations

import socket
import time

import httpx
import pytest
from examples import proofs
from small import serving, wait_for, writing
from starlette.requests import Request

from saccade.serve.page import Page
from saccade.serve.refusal import Refusal

KEY = "open-sesame-37"
JSON = {"Content-Type": "application/json"}
GOOD = b'{"prompt": "a", "max_tokens": 1}'


@pytest.fixture(scope="module")
def locked():
    with serving({"run": writing()}, key=KEY, body=10_007, patience=1.0) as made:
        yield made


@pytest.fixture(scope="module")
def door(locked):
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=locked.url, headers=headers, timeout=30) as made:
        yield made


def post(door, content: bytes, **headers: str) -> httpx.Response:
    return door.post("/v1/completions", content=content, headers={**JSON, **headers})


def told(response: httpx.Response) -> str:
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert len(error["message"]) <= 400
    return error["message"]


def test_the_key_opens(door):
    assert post(door, GOOD).status_code == 200


@pytest.mark.parametrize(
    "header",
    proofs(
        ["", "Bearer", "Bearer wrong", f"Basic {KEY}", KEY, f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", "Bearer \xff"],
        but=["", f"Bearer {KEY}x"],
    ),
)
def test_a_wrong_key_opens_nothing(locked, header):
    with httpx.Client(base_url=locked.url) as stranger:
        raw = [(b"authorization", header.encode("latin-1"))]
        for method, path in (
            ("GET", "/v1/models"),
            ("GET", "/metrics"),
            ("GET", "/openapi.json"),
            ("GET", "/v1/inspect/x/map"),
            ("DELETE", "/v1/inspect/x"),
            ("POST", "/v1/completions"),
            ("POST", "/v1/chat/completions"),
            ("POST", "/v1/translate"),
            ("POST", "/v1/predict"),
            ("POST", "/v1/inspect"),
            ("GET", "/nothing"),
        ):
            response = stranger.request(method, path, headers=raw)
            assert response.status_code == 401, path
            assert response.headers["www-authenticate"] == "Bearer"
            assert KEY not in response.text


def test_health_and_the_page_need_no_key(locked):
    with httpx.Client(base_url=locked.url) as stranger:
        assert stranger.get("/health").json() == {"status": "ok"}
        assert stranger.get("/").status_code in (200, 404)  # 404 where the page's folder is empty
        assert stranger.get("/page/none.js").status_code == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost:1@evil.example", "", "a/b", "[::1"]
)
def test_a_foreign_host_is_refused(door, host):
    for path in ("/health", "/v1/models", "/"):
        assert door.get(path, headers={"Host": host}).status_code in (400, 403)


@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost", "LOCALHOST:8017", "[::1]:80"])
def test_loopback_has_several_names(door, host):
    assert door.get("/health", headers={"Host": host}).status_code == 200


def test_a_foreign_page_may_not_ask(door, locked):
    for origin in ("http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", "file://", "x"):
        assert post(door, GOOD, Origin=origin).status_code == 403, origin
        assert door.get("/health", headers={"Origin": origin}).status_code == 403
    assert post(door, GOOD, Origin=locked.url).status_code == 200
    assert door.get("/v1/models", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert door.get("/v1/models", headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
    assert door.get("/v1/models", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_nobody_is_granted_another_origin(door):
    response = door.options("/v1/completions", headers={"Origin": "http://evil.example"})
    assert response.status_code in (403, 405)
    for each in (response, post(door, GOOD), door.get("/health")):
        assert not [name for name in each.headers if name.startswith("access-control")]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"])
def test_a_body_is_json_by_its_name(door, kind):
    assert door.post("/v1/completions", content=GOOD, headers={"Content-Type": kind}).status_code == 415


def test_json_may_tell_its_letters(door):
    assert post(door, GOOD, **{"Content-Type": "application/json; charset=utf-8"}).status_code == 200
    assert post(door, GOOD, **{"Content-Encoding": "gzip"}).status_code == 415


BODIES = {
    "empty": (b" ", "not JSON"),
    "half": (b'{"prompt": "a', "not JSON"),
    "list": (b"[1, 2]", "the request should be an object"),
    "number": (b"7", "the request should be an object"),
    "null": (b"null", ""),
    "nan": (b'{"prompt": "a", "temperature": NaN}', "NaN is no number"),
    "infinity": (b'{"prompt": "a", "temperature": -Infinity}', "-Infinity is no number"),
    "huge": (b'{"prompt": "a", "temperature": 1e999}', "too large"),
    "long number": (b'{"prompt": "a", "seed": ' + b"9" * 5000 + b"}", "not JSON"),
    "latin": (b'{"prompt": "caf\xe9"}', "not UTF-8"),
    "zeros": (b"\x00" * 50, "not JSON"),
    "utf-16": ('{"prompt": "a"}'.encode("utf-16"), "not UTF-8"),
    "deep list": (b"[" * 5000, "nested too deeply"),
    "deep prompt": (b'{"prompt": ' + b"[" * 4900 + b"]" * 4900 + b"}", "nested too deeply"),
    "deep object": (b'{"a":' * 2000, "nested too deeply"),
    "less deep": (b'{"prompt": ' + b"[" * 400 + b"]" * 400 + b"}", "prompt"),
    "long": (b'{"prompt": 3.5, "' + b"x" * 9000 + b'": 1}', ""),
    "long value": (b'{"prompt": "a", "temperature": "' + b"x" * 9000 + b'"}', "temperature"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_broken_body_is_refused_in_one_sentence(door, name):
    content, said = BODIES[name]
    response = post(door, content)
    assert response.status_code == 400
    assert said in told(response)
    assert len(response.content) < 1500


def test_a_large_body_is_refused_before_it_is_read(door, locked):
    assert post(door, b"x" * 10_008).status_code == 413
    with socket.create_connection(("127.0.0.1", locked.port), timeout=5) as line:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n".encode())
        assert b" 413 " in line.recv(4096)


def test_a_body_in_chunks_is_counted_while_it_comes(door):
    def chunks(count):
        for _ in range(count):
            yield b" " * 1000

    assert door.post("/v1/completions", content=chunks(5), headers=JSON).status_code == 400
    assert door.post("/v1/completions", content=chunks(11), headers=JSON).status_code == 413


def test_a_body_without_a_length_is_refused(locked):
    with socket.create_connection(("127.0.0.1", locked.port), timeout=5) as line:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
        assert b" 411 " in line.recv(4096)


def test_a_body_that_does_not_come_is_not_waited_for(locked):
    with socket.create_connection(("127.0.0.1", locked.port), timeout=10) as line:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{".encode())
        assert b" 408 " in line.recv(4096)


@pytest.mark.parametrize(
    "begin", [b"", b"GET / HTTP/1.1\r\nHo", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /h"]
)
@pytest.mark.proof
def test_a_request_that_does_not_come_is_not_waited_for(locked, begin):
    with socket.create_connection(("127.0.0.1", locked.port), timeout=10) as line:
        line.sendall(begin)
        start = time.monotonic()
        while line.recv(4096):
            pass
        assert time.monotonic() - start < 8


def test_two_headers_of_one_name_are_nobodys(locked):
    with httpx.Client(base_url=locked.url) as stranger:
        keys = [("Authorization", f"Bearer {KEY}"), ("Authorization", "Bearer other")]
        assert stranger.get("/v1/models", headers=keys).status_code == 401


def test_every_answer_has_the_headers_of_safety(door):
    for response in (door.get("/health"), door.get("/nothing"), post(door, b"x"), post(door, GOOD), door.get("/")):
        assert response.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert "server" not in response.headers


@pytest.mark.parametrize(
    "path", ["/page/../serve.py", "/page/%2e%2e/serve.py", "/page/..%2fserve.py", "/page//etc/passwd"]
)
def test_no_address_reaches_the_disk(door, path):
    assert door.get(path).status_code == 404


def test_a_file_of_the_page_is_sent_once_and_then_known(tmp_path):
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "main.js").write_text("1")
    (tmp_path / "secret.py").write_text("")
    page = Page(tmp_path)
    sent = page.send("main.js", asked())
    assert (sent.body, sent.headers["content-type"]) == (b"1", "text/javascript; charset=utf-8")
    assert sent.headers["cache-control"] == "no-cache"
    (tmp_path / "main.js").write_text("2")
    assert page.send("main.js", asked()).body == b"1", "files are read at the start"
    again = page.send("main.js", asked(sent.headers["etag"]))
    assert (again.status_code, again.body) == (304, b"")
    with pytest.raises(Refusal):
        page.send("secret.py", asked())


def asked(tag: str = "") -> Request:
    return Request({"type": "http", "headers": [(b"if-none-match", tag.encode())]})


def test_unknown_routes_and_methods_have_the_same_shape(door):
    assert told(door.get("/v1/nothing"))
    assert door.get("/v1/completions").status_code == 405
    assert told(door.get("/v1/completions"))


def test_too_many_requests_are_told_to_come_later():
    with serving({"run": writing()}, requests=0) as made, httpx.Client(base_url=made.url) as client:
        response = client.get("/v1/models")
        assert response.status_code == 429
        assert response.headers["retry-after"] == "1"
        assert client.get("/health").status_code == 200


def test_metrics_count(door, locked):
    before = door.get("/metrics").text
    assert '# TYPE saccade_tokens_total counter\nsaccade_tokens_total{model="run"} ' in before
    post(door, b'{"prompt": "a", "max_tokens": 13}')
    wait_for(lambda: _tokens(door.get("/metrics").text) == _tokens(before) + 13)


def _tokens(text: str) -> int:
    (line,) = [line for line in text.splitlines() if line.startswith("saccade_tokens_total{")]
    return int(line.split()[-1])
