"""The page's address: what a fragment says, and what the tests look at."""

from __future__ import annotations

from urllib.parse import parse_qs, quote, urlsplit

DATE = "fr: samedi 3 mai 1979"
MINUS = "\N{MINUS SIGN}"
CROSS = "decoder.blocks.0.cross"


def at(run: str, text: str = "", **more: object) -> str:
    """A fragment of the page's address."""
    values = {"run": run, "text": text, **more}
    return "#" + "&".join(f"{name}={quote(str(value))}" for name, value in values.items() if value != "")


def kept(visit) -> dict[str, str]:
    """What the address says."""
    return {name: values[0] for name, values in parse_qs(urlsplit(visit.page.url).fragment).items()}
