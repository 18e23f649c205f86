# `make setup` makes .venv; every other target sets up what it needs.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt
INPUTS := pyproject.toml constraints.txt
# Named data sets that lie beside the project are used; without them their tests skip and say so.
ifneq ($(wildcard ../shared/data),)
export SACCADE_DATA ?= $(abspath ../shared/data)
endif

.PHONY: setup demo test proof check bench chaos soak clean

setup: .venv/.setup
demo: .venv/.setup
	$(BIN)/saccade demo
# A file of tests at a time on each of two cores, each with one thread: two threads of small tensors only wait. Not
# `worksteal`, which would cut files in two: fixtures of a file (a trained run, a server with a browser) are made once.
# `test` is every law in its cheapest form; `proof` is what takes long: compilers, kills, peers, every recipe.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile
test: .venv/.test
	$(PYTEST)
proof: .venv/.test
	$(PYTEST) -m proof
check: .venv/.check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -m "" tests/test_house.py
bench: .venv/.bench
	$(BIN)/saccade bench attention
	$(BIN)/saccade bench decode
# The killing of trainings, 200 times; `make proof` does it 30 times.
chaos: .venv/.test
	SACCADE_KILLS=200 $(BIN)/python -m pytest -m "" tests/learn/test_resume.py
# Two minutes of mixed load on the server, with memory watched; `make proof` does some seconds of it.
soak: .venv/.test
	SACCADE_SOAK=120 $(BIN)/python -m pytest -m "" tests/serve -k soak
clean:
	rm -rf .venv

# torch first and by its pin: a looser request would bring the newest build and all of CUDA.
.venv/.setup: $(INPUTS)
	$(PYTHON) -m venv .venv
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	$(PIP) -e '.[translate,look,image,sound,lines,boxes,serve]'
	touch $@
# The page's tests drive Debian's chromium; where it cannot be installed they skip and say so.
.venv/.test: .venv/.setup
	$(PIP) -e '.[test]'
	command -v chromium >/dev/null || { apt-get update; apt-get install -y chromium; } >/dev/null 2>&1 || \
	  echo "chromium is not there and cannot be installed: the tests of the page will be skipped"
	touch $@
.venv/.check: .venv/.test
	$(PIP) -e '.[check]'
	touch $@
.venv/.bench: .venv/.setup
	$(PIP) -e '.[bench]'
	touch $@
