# `make demo` shows the whole path, `make test` checks it. Both need only Python, pip and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: help demo test lint types check fast clean
help:
	@echo "make demo   install, train on the embedded sample, evaluate, serve, ask in a dozen languages"
	@echo "make test   install what tests need and run them all"
	@echo "make fast   the tests without the slow ones"
	@echo "make lint   ruff; make types: mypy; make check: all of it"
	@echo "make clean  remove the virtual environment and everything made"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: $(BIN)/python pyproject.toml
	@echo "installing interlock with what training and serving need (no PyTorch)"
	$(BIN)/python -m pip install --quiet --editable ".[serve,train]"
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	@echo "installing interlock with what the tests need"
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/interlock demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest

fast: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

check: lint types test

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis runs mlruns mlflow.db
