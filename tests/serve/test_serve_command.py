"""`saccade serve` as a user starts it: what it refuses, what it says, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest
from small import serving, slow, writing

from saccade.error import SaccadeError
from saccade.serve.serve import bound, key_of, open_runs, permit, serve

CODE = "from saccade.cli import main; main()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "small"
    writing(room=4001, width=96).save(path)
    return path


def started(*args: object, **variables: str) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if key != "SACCADE_API_KEY"}
    return subprocess.Popen(
        [sys.executable, "-c", CODE, "serve", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"} | variables,
    )


def address(process: subprocess.Popen[str]) -> str:
    """What it says once it listens."""
    line = process.stdout.readline()
    found = re.search(r"http://\S+", line)
    assert found, line + process.stderr.read()
    return found.group()


@pytest.mark.proof
def test_it_ends_well_in_the_middle_of_an_answer(folder):
    process = started(folder, f"other={folder}", "--port", 0)
    try:
        url = address(process)
        with httpx.Client(base_url=url, timeout=30) as client:
            names = [each["id"] for each in client.get("/v1/models").json()["data"]]
            assert names == ["small", "other"]
            body = {"model": "small", "prompt": "the eye", "max_tokens": 3900, "stream": True}
            told = []
            with client.stream("POST", "/v1/completions", json=body) as response:
                for line in response.iter_lines():
                    told.append(line)
                    if len(told) == 5:
                        process.send_signal(signal.SIGTERM)
                        begin = time.monotonic()
            assert told[-2] == "data: [DONE]", "the stream is whole, though it may say that the server stops"
        assert process.wait(15) == 0
        assert time.monotonic() - begin < 12
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.communicate()


def test_what_it_cannot_do_is_told_in_one_sentence(command, folder, tmp_path):
    done = command("serve", folder, "--host", "0.0.0.0", "--port", 0)
    assert done.returncode == 2
    assert done.stderr.startswith("saccade: 0.0.0.0 can be reached from elsewhere: give a key")
    assert done.stderr.count("\n") == 1
    with pytest.raises(SaccadeError, match="is no folder"):
        open_runs([str(tmp_path / "none")])
    with pytest.raises(SaccadeError, match="two runs are called 'small'"):
        open_runs([str(folder), str(folder)])
    with pytest.raises(SaccadeError, match="cannot be read"):
        key_of(None, str(tmp_path / "none"))


@pytest.mark.proof
def test_ctrl_c_ends_it_at_once_when_nobody_asks(folder):
    process = started(folder, "--port", 0)
    try:
        address(process)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
        assert time.monotonic() - begin < 4
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()


@pytest.mark.proof
def test_a_key_of_the_environment_is_asked_for(folder):
    process = started(folder, "--port", 0, SACCADE_API_KEY="k3y")
    try:
        url = address(process)
        assert httpx.get(f"{url}/v1/models").status_code == 401
        assert httpx.get(f"{url}/v1/models", headers={"Authorization": "Bearer k3y"}).status_code == 200
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.parametrize("name", ["fastapi", "uvicorn", "jinja2"])
def test_a_package_that_is_missing_is_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SaccadeError, match=rf"the server needs {name}: pip install 'saccade\[serve\]'"):
        serve([])


@pytest.mark.proof
def test_the_door_opens_without_what_is_behind_it():
    """Whoever lacks the packages is told so, and not by an import that fails."""
    code = "import sys\nsys.modules['starlette'] = sys.modules['fastapi'] = None\nimport saccade.serve.serve"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_keys_are_found_where_they_may_be(tmp_path, monkeypatch):
    monkeypatch.delenv("SACCADE_API_KEY", raising=False)
    assert key_of(None, None) is None
    (tmp_path / "key").write_text("abc\n")
    assert key_of(None, str(tmp_path / "key")) == "abc"
    monkeypatch.setenv("SACCADE_API_KEY", "xyz")
    assert key_of(None, None) == "xyz"
    assert key_of("own", None) == "own"
    for wrong in ("", "a b", "\n", "é"):
        with pytest.raises(SaccadeError, match="printable"):
            key_of(wrong, None)
    with pytest.raises(SaccadeError, match="not both"):
        key_of("a", "b")


def test_strangers_need_a_key_or_a_word_of_the_operator():
    for host in ("127.0.0.1", "localhost", "::1", "[::1]"):
        permit(host, None, auth=True)
    permit("0.0.0.0", "key", auth=True)
    permit("0.0.0.0", None, auth=False)
    for host in ("0.0.0.0", "::", "192.0.2.7", "example.org", ""):
        with pytest.raises(SaccadeError, match="give a key"):
            permit(host, None, auth=True)


def test_a_run_is_called_by_its_folder_or_as_told(folder):
    assert list(open_runs([str(folder), f"b={folder}"])) == ["small", "b"]
    with pytest.raises(SaccadeError, match="no name"):
        open_runs([f"={folder}"])


def test_a_port_that_is_taken_is_told():
    with bound("127.0.0.1", 0) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(SaccadeError, match=f"cannot listen at 127.0.0.1:{port}"):
            bound("127.0.0.1", port)


def test_a_server_that_stops_tells_those_who_wait(tmp_path):
    """In this process: what is not done when the grace is over is ended with a sentence."""
    told: list[str] = []
    with serving({"run": slow(writing(), 0.05)}, grace=0.3) as made:
        body = {"prompt": "the eye", "max_tokens": 300, "stream": True}

        def read() -> None:
            with httpx.stream("POST", f"{made.url}/v1/completions", json=body, timeout=30) as response:
                told.extend(response.iter_lines())

        thread = threading.Thread(target=read)
        thread.start()
        while made.server.served["run"].engine.steps < 3:
            time.sleep(0.01)
        made.listener.should_exit = True
        thread.join(10)
    assert "the server is stopping" in told[-4]
    assert told[-2] == "data: [DONE]"
