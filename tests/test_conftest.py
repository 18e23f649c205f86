"""The laws of the tests themselves: what takes long is marked, and what is shared is made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).with_name("conftest.py").read_text()
INI = "[pytest]\naddopts = -m 'not proof' -p no:cacheprovider\nmarkers = proof: takes long\n"


@pytest.fixture
def house(pytester):
    """A folder of tests under our conftest, in which nothing may take longer than a twentieth of a second."""
    pytester.makeconftest(CONFTEST.replace("MOST = 5.0", "MOST = 0.05"))
    pytester.makefile(".ini", pytest=INI)
    profile = settings.get_current_profile_name()
    yield pytester
    settings.load_profile(profile)


WORK = "    end = time.process_time() + 0.1\n    while time.process_time() < end: pass\n"


def test_what_takes_long_and_is_not_marked_fails(house):
    house.makepyfile(f"import time, pytest\ndef test_long():\n{WORK}\n@pytest.mark.proof\ndef test_proof():\n{WORK}")
    found = house.runpytest_inprocess("-m", "")
    found.assert_outcomes(passed=1, failed=1)
    found.stdout.fnmatch_lines(["*seconds: mark it `proof`*"])
    house.runpytest_inprocess().assert_outcomes(failed=1, deselected=1)
    house.runpytest_inprocess("-m", "proof").assert_outcomes(passed=1, deselected=1)


def test_the_work_of_a_child_counts_and_waiting_does_not(house):
    child = "subprocess.run([sys.executable, '-c', 'import time\\nwhile time.process_time() < 0.2: pass'])"
    house.makepyfile(f"import subprocess, sys, time\ndef test_child(): {child}\ndef test_wait(): time.sleep(0.1)")
    house.runpytest_inprocess().assert_outcomes(passed=1, failed=1)


def test_hypothesis_runs_in_both_with_few_examples_and_with_all(house):
    house.makepyfile(examples=Path(__file__).with_name("examples.py").read_text())
    house.makepyfile(
        "from examples import examples\nfrom hypothesis import given, strategies as st\nfrom pathlib import Path\n"
        "@examples(50)\n@given(st.integers())\ndef test_law(n):\n"
        "    with Path('tried').open('a') as file: print(n, file=file)\n"
    )
    counts = []
    for arguments in ((), (), ("-m", "proof")):
        house.runpytest_inprocess(*arguments).assert_outcomes(passed=1)
        counts.append((house.path / "tried").read_text())
        (house.path / "tried").unlink()
    assert counts[0] == counts[1], "the same examples each time"
    assert [each.count("\n") for each in counts[1:]] == [10, 50]


def test_what_is_shared_is_made_once(shared, tmp_path):
    def make(folder):
        (folder / "made").write_text(str(tmp_path))

    first = shared("of test_conftest", make)
    assert shared("of test_conftest", pytest.fail) == first
    assert (first / "made").exists()
    with pytest.raises(ZeroDivisionError):
        shared("broken, of test_conftest", lambda folder: (folder / "half").touch() or 1 / 0)
    assert not list(shared("broken, of test_conftest", lambda folder: None).iterdir())
