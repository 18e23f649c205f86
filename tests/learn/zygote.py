"""A parent that has torch loaded and forks a training for each line it reads; killed on demand.

It computes with one thread: a fork does not survive the threads of its parent.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

CALLS = ("fsync", "replace", "unlink", "rmdir", "mkdir", "rename")


def kill_at(number: int) -> None:
    """From now on the process dies as it makes its number-th call that touches the disk's order."""
    left = [number]

    def wrapped(call: Any) -> Any:
        def counting(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **options)

        return counting

    for name in CALLS:
        setattr(os, name, wrapped(getattr(os, name)))


def train(order: dict[str, Any]) -> int:
    """0 when trained to the end, 2 when refused; the refusal's sentence goes to a file beside the run."""
    import saccade

    if "call" in order:
        kill_at(order["call"])
    if "limit" in order:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["limit"], resource.RLIM_INFINITY))
    try:
        saccade.train(order["recipe"], run=order["run"], options=order.get("options", []))
    except saccade.SaccadeError as problem:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        Path(order["run"] + ".said").write_text(str(problem))
        return 2
    return 0


def main() -> None:
    """One JSON object a line in, one status a line out: the exit code, or minus the signal."""
    import torch._dynamo  # which torch's optimisers import when the first is made

    import saccade.learn.train

    assert torch._dynamo
    assert saccade.learn.train
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            try:
                code = train(order)
            except BaseException:
                import traceback

                traceback.print_exc()
                code = 70
            os._exit(code)
        if "after" in order:
            time.sleep(order["after"])
            os.kill(child, getattr(signal, order.get("signal", "SIGKILL")))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
