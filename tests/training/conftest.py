from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the tables of real outcomes; tests on them skip where there is none."""
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("INTERLOCK_SHARED_DATA", root.parent / "shared" / "data"))
    if not (folder / "prompts.parquet").is_file():
        pytest.skip(f"no real outcome tables at {folder}; set INTERLOCK_SHARED_DATA")
    return folder
