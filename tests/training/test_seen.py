from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from router.errors import ArtifactError
from training.seen import SEEN, read_seen, seen_bytes, was_seen


def rows(*texts_and_groups: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame([{"turns": [{"role": "user", "content": text}], "group": group} for text, group in texts_and_groups])


FITTED = rows(("Sort this list", "sort"), ("Сложи два числа", "add"))


def test_a_text_or_a_group_that_was_fitted_on_is_known_with_all_of_its_group(tmp_path: Path) -> None:
    (tmp_path / SEEN).write_bytes(seen_bytes(FITTED))
    seen = read_seen(tmp_path)
    asked = rows(
        ("Sort  this\nlist", "other"),  # the same text but for white space
        ("Trie cette liste", "sort"),  # the same group
        ("Something else", "other"),  # of the group of a known text
        ("Something new", "new"),
    )
    assert was_seen(asked, seen).tolist() == [True, True, True, False]


def test_the_order_of_the_rows_changes_nothing() -> None:
    assert seen_bytes(FITTED) == seen_bytes(FITTED.iloc[::-1])
    assert len(seen_bytes(FITTED)) == 4 * 4


def test_a_folder_without_the_file_knows_nothing_and_a_broken_file_is_named(tmp_path: Path) -> None:
    assert read_seen(tmp_path) is None
    (tmp_path / SEEN).write_bytes(b"12345")
    with pytest.raises(ArtifactError, match=f"{SEEN} has 5 bytes"):
        read_seen(tmp_path)


def test_no_prompt_is_known_to_a_router_that_has_seen_none() -> None:
    assert not was_seen(FITTED, np.empty(0, dtype=np.uint32)).any()
