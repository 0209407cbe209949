"""Copies that teach what should not matter belong to the prompts they were made of."""

import numpy as np
import pandas as pd

from training.parallel import Translations
from training.prompts import Conversations
from training.robustness.copies import COPIES, with_changed_copies
from training.robustness.groups import paraphrases

NOTHING = Translations([], *(np.array([], dtype=object) for _ in range(4)))


def prompts() -> pd.DataFrame:
    return paraphrases().drop_duplicates("group").reset_index(drop=True)


def test_copies_follow_their_prompt_and_a_held_out_one_takes_them_with_it() -> None:
    table = prompts()
    made = with_changed_copies(NOTHING, table, Conversations(table), 10, seed=1)
    assert set(made.source) == {COPIES}
    assert len(set(made.meaning)) == 10
    held_out = table[table["prompt_id"] == made.prompt[0][1]]
    left = made.of(made.seen_by(held_out))
    assert made.prompt[0] not in set(left.prompt)
    assert len(set(left.meaning)) == 9


def test_every_meaning_has_its_prompt_and_copies_that_differ() -> None:
    table = prompts()
    made = with_changed_copies(NOTHING, table, Conversations(table), 4)
    originals = {row.prompt_id: row.turns[0]["content"] for row in table.itertuples()}
    for meaning in set(made.meaning):
        rows = np.flatnonzero(made.meaning == meaning)
        texts = [made.conversations[i].user_texts[0] for i in rows]
        assert texts[0] == originals[made.prompt[rows[0]][1]]
        assert len(set(texts)) == len(texts) >= 8


def test_the_same_seed_makes_the_same_copies_behind_what_was_there() -> None:
    table = prompts()
    first, second = (with_changed_copies(NOTHING, table, Conversations(table), 5, seed=2) for _ in range(2))
    assert first.conversations == second.conversations
    again = with_changed_copies(first, table, Conversations(table), 5, seed=3)
    assert again.conversations[: len(first)] == first.conversations
    assert len(again) > len(first)
