"""`Limits`: how much a request may ask for. A refusal names the limit that was exceeded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Of one server; seconds, bytes or counts."""

    body: int = 1 << 20  # bytes of a request
    media: int = 16 << 20  # bytes of a request where a run reads more than texts
    requests: int = 512  # under way at a time, of all clients
    connections: int = 1024  # open at a time
    waiting: int = 256  # sequences that wait for a run beyond those it writes
    prompts: int = 64  # texts in one request
    n: int = 16  # answers to one prompt
    sequences: int = 128  # prompts x n of one request
    tokens: int = 8192  # of one prompt
    max_tokens: int = 4096  # of one answer
    logprobs: int = 20  # likeliest tokens beside each
    told: int = 1 << 16  # log-probabilities of one answer
    stop: int = 8  # stop strings of one request
    stop_length: int = 64  # characters of one of them
    beam: int = 16
    messages: int = 512  # of one chat
    rows: int = 64  # sequences that a run writes at a time
    cache: int = 4 << 30  # bytes of keys and values of a run that writes
    prefixes: int = 256 << 20  # bytes of beginnings that a run keeps
    answers: int = 256  # that can be looked into afterwards
    answer_bytes: int = 64 << 20  # of all of them
    look_tokens: int = 2048  # of one inspection, of all its sides
    looks: int = 64  # inspections that are kept
    look_bytes: int = 512 << 20  # of all of them
    look_waiting: int = 8  # inspections that wait for a run
    map_side: int = 1024  # cells a side of a map
    template: float = 2.0  # seconds that a chat template may take
    patience: float = 30.0  # seconds without a byte from or to a client
    grace: float = 5.0  # seconds that answers have to end when the server stops
