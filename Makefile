# What the README calls. Everything runs from .venv, made on first use; no environment need be active.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Settings for a chat: copy .env.example to .env. Read by the shell, so quote values with blanks. Exported variables win over it.
ENV := exported=$$(export -p); set -a; [ ! -f .env ] || . ./.env; eval "$$exported"; set +a;

# What a chat needs, and more on request, as in: make chat EXTRAS=postgres,excel
BASIC := demo,charts
EXTRAS :=
comma := ,
MORE := $(subst $() ,,$(EXTRAS))
CHAT := $(VENV)/.demo$(addprefix -,$(MORE))

.PHONY: chat web demo test lint docs pictures eval bench notebook clean

chat: $(CHAT)
	@$(ENV) exec $(BIN)/longtable chat

web: $(VENV)/.web
	@$(ENV) exec $(BIN)/longtable web

demo: $(CHAT)
	@$(BIN)/longtable demo

# Three workers for two processors: tests of other processes wait a good deal.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 3 --dist worksteal

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python -m mkdocs build --strict

# Without --quiet: it would hide warnings from --strict.
docs: $(VENV)/.dev
	$(BIN)/python -m docs.generate
	$(BIN)/python -m mkdocs build --strict
	@echo "Open site/index.html"

# The pictures of the web chat in README and docs. Needs Debian's chromium.
pictures: $(VENV)/.dev
	$(BIN)/python -m docs.screenshots

eval: $(VENV)/.dev
	$(BIN)/python -m evals.analyst

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

notebook: $(VENV)/.dev
	$(BIN)/python -m pytest tests/test_notebooks.py

clean:
	rm -rf $(VENV) build site *.egg-info .pytest_cache .mypy_cache .ruff_cache

# One stamp an extra: installed again when pyproject.toml changes. Editable, so that the sources are what runs.
$(CHAT): pyproject.toml | $(BIN)/python
	@echo "Installing longtable, the extras $(BASIC)$(addprefix $(comma),$(MORE)) into $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --editable '.[$(BASIC)$(addprefix $(comma),$(MORE))]'
	@touch $@

$(VENV)/.web: pyproject.toml | $(BIN)/python
	@echo "Installing longtable, the extras $(BASIC)$(comma)web into $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --editable '.[$(BASIC)$(comma)web]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing what development needs into $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.demo $(VENV)/.web

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "longtable needs Python 3.11 or newer; there is no $(PYTHON). Try: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "longtable needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment; on Debian: apt install python3-venv" >&2; exit 1; }
