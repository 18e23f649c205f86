"""Hosts as requests name them: in a Host header, in an Origin, in numbers."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")  # what listens at every address of the machine


def host_of(header: str) -> str | None:
    """The name in a Host header without its port; None where it is not valid."""
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return None
    strange = parts.path or parts.query or parts.fragment or parts.username is not None
    return None if strange or not parts.hostname else parts.hostname.lower().removesuffix(".")


def origin_of(origin: str) -> str | None:
    """The host and port of an origin of the web."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in ("http", "https") else None


def is_number(name: str) -> bool:
    """Whether a host is an address in numbers."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
