# Two words do all the set-up: `make chat`, `make test`.
# The virtual environment is made once and again only when pyproject.toml changes.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: chat test lint eval bench notebook clean

chat: .venv/chat.stamp
	@$(BIN)/longtable chat

test: .venv/dev.stamp
	$(BIN)/python -m pytest -n 2

lint: .venv/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

eval: .venv/dev.stamp
	$(BIN)/python -m evals.analyst

bench: .venv/dev.stamp
	$(BIN)/python -m benchmarks

notebook: .venv/dev.stamp
	$(BIN)/python -m pytest tests/test_notebooks.py

.venv/created:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"longtable needs Python 3.11 or newer, {sys.executable} is {v[0]}.{v[1]}: make PYTHON=/path/to/python3.11 chat")'
	@echo "making .venv" >&2
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/chat.stamp: .venv/created pyproject.toml
	@echo "installing longtable with its demo data (once; a minute or two)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]' >&2
	@touch $@

.venv/dev.stamp: .venv/created pyproject.toml
	@echo "installing longtable with all it needs for development (once; a few minutes)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' >&2
	@touch $@ .venv/chat.stamp

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
