from __future__ import annotations

import random

import numpy as np
import pytest

from training.dedup import exact_duplicates, jaccard, near_duplicates, normalise, shingles, text_key

LONG = {
    "en": "Write a function that reads a list of orders, groups them by customer, and returns the three who spent most last month.",
    "ja": "注文の一覧を読み込み、顧客ごとにまとめて、先月もっとも多く支払った三人の顧客を返す関数を書いてください。例外も扱うこと。",
    "th": "เขียนฟังก์ชันที่อ่านรายการสั่งซื้อ จัดกลุ่มตามลูกค้า แล้วคืนลูกค้าสามคนที่ใช้จ่ายมากที่สุดในเดือนที่ผ่านมา พร้อมจัดการข้อผิดพลาด",
    "ta": "ஆர்டர்களின் பட்டியலைப் படித்து, வாடிக்கையாளர் வாரியாகக் குழுவாக்கி, கடந்த மாதம் அதிகம் செலவிட்ட மூவரைத் தரும் செயல்பாட்டை எழுதவும்.",
}


def test_normalisation_ignores_case_width_and_white_space() -> None:
    assert normalise("  Ｈｅｌｌｏ\n  Wörld ") == "hello wörld"
    assert text_key("STRASSE  1") == text_key("straße 1")
    assert text_key("1 + 1") != text_key("1 + 2")


def test_exact_duplicates_point_at_the_first() -> None:
    assert exact_duplicates(["a b", "c", "A  B", "a\nb"]) == [(0, 2), (0, 3)]


@pytest.mark.parametrize("language", LONG)
def test_near_duplicates_in_scripts_without_spaces(language: str) -> None:
    text = LONG[language]
    changed = text[:-4] + "!?"
    others = [other for name, other in LONG.items() if name != language]
    assert near_duplicates([text, *others, changed], similarity=0.8) == [(0, len(others) + 1)]


def test_agrees_with_exact_jaccard_over_all_pairs() -> None:
    rng = random.Random(3)
    words = [f"w{i}x" for i in range(60)]
    texts = [" ".join(rng.choices(words, k=40)) for _ in range(30)]
    texts += [text.replace(text.split()[5], "changed", 1) for text in texts[:10]]
    grams = [shingles(text) for text in texts]
    expected = [(i, j) for i in range(len(texts)) for j in range(i + 1, len(texts)) if jaccard(grams[i], grams[j]) >= 0.8]
    assert len(expected) >= 10
    assert near_duplicates(texts, similarity=0.8) == expected


def test_short_and_empty_texts() -> None:
    assert near_duplicates([]) == []
    assert near_duplicates(["", "", "hi", "ho", "hi"]) == [(0, 1), (2, 4)]
    assert jaccard(shingles(""), shingles("")) == 0.0


def test_does_not_depend_on_the_seed() -> None:
    texts = [*LONG.values(), LONG["en"] + " Thanks."]
    assert {tuple(near_duplicates(texts, seed=seed)) for seed in range(5)} == {((0, 4),)}


def test_very_long_texts_are_read_from_both_ends() -> None:
    rng = np.random.default_rng(0)
    base = "".join(map(chr, rng.integers(0x4E00, 0x9000, 20_000)))
    assert near_duplicates([base, base[:12_000] + "x" + base[12_000:]]) == [(0, 1)]
    assert near_duplicates([base, base[::-1]]) == []
