"""What every test stands on."""

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path):
    """A folder of the test's own for token stores and data: the user's is neither read nor written."""
    with pytest.MonkeyPatch.context() as patch:  # its own, so that a test's `monkeypatch.undo` leaves it
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield tmp_path / "cache"
