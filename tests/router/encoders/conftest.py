import importlib.util
import sys
from pathlib import Path

import pytest

# Loaded by path: under --import-mode=importlib a test folder is no package.
_spec = importlib.util.spec_from_file_location("tiny_encoders", Path(__file__).with_name("tiny.py"))
assert _spec
assert _spec.loader
tiny = importlib.util.module_from_spec(_spec)
sys.modules["tiny_encoders"] = tiny
_spec.loader.exec_module(tiny)


@pytest.fixture(scope="session")
def fast_parts():
    return tiny.fast_parts()


@pytest.fixture(scope="session")
def container():
    return tiny.e5_container()
