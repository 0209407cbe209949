import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from router.encoder import EncoderSpec, l2_normalise
from router.encoders.e5_weights import read_e5
from router.errors import InvalidInput
from training.student.params import StudentParams
from training.student.targets import fit_projection, language_means, meaning_targets
from training.student.texts import read_parallel, read_prompts
from training.student.vocabulary import choose_pieces

torch = pytest.importorskip("torch")

_spec = importlib.util.spec_from_file_location("tiny_encoders", Path(__file__).parents[1] / "router" / "encoders" / "tiny.py")
tiny = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tiny)

WORDS = ["hello", "world", "the", "cat", "sat", "on", "mat", "at", "he", "was"]
SMALL = StudentParams(
    pieces=60, width=8, window=8, hidden=16, dimension=6, max_tokens=24,
    epochs=20, learning_rate=0.02, groups_per_batch=12, prompts_per_batch=8,
    languages_per_group=2, holdout=0.2, teacher_languages=("en", "de"), sources=("ours",), threads=1,
)  # fmt: skip


class ToyTeacher:
    """A vector per multiset of letters, and an offset per script, so that language shows."""

    spec = EncoderSpec("full", "toy", "1", "", 64, 12)

    def encode(self, texts):
        rows = np.zeros((len(texts), 12), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for letter in text.lower():
                row[ord(letter) % 11] += 1
            row[11] = 3.0 if text.isupper() else 0.0
        return l2_normalise(rows)


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    meanings = [" ".join(rng.choice(WORDS, 5)) for _ in range(60)]
    rows = [(f"g{i}", language, text) for i, text in enumerate(meanings) for language in ("en", "de", "fr")]
    rows = [(group, language, text.upper() if language == "de" else text) for group, language, text in rows]
    pd.DataFrame(rows, columns=["group", "language", "text"]).to_parquet(tmp_path / "parallel.parquet")
    turns = [json.dumps([{"role": "user", "content": " ".join(rng.choice(WORDS, 9))}]) for _ in range(40)]
    prompts = pd.DataFrame({"source": "ours", "prompt_id": [f"a#{i}" for i in range(40)], "language": "en", "turns": turns})
    prompts.to_parquet(tmp_path / "prompts.parquet")
    return tmp_path


def test_a_group_is_held_out_whole(files):
    texts = read_parallel(files / "parallel.parquet", 0.2)
    assert 0 < texts.held_out.mean() < 0.5
    by_group = pd.Series(texts.held_out).groupby(texts.group.astype(str)).nunique()
    assert (by_group == 1).all()


def test_meaning_targets_do_not_show_the_language(files):
    texts = read_parallel(files / "parallel.parquet", 0.2)
    vectors = ToyTeacher().encode(texts.text)
    means = language_means(vectors, texts.language)
    centred = vectors - np.stack([means[language] for language in texts.language])
    names, meanings = meaning_targets(centred, texts.group)
    assert len(names) == 60
    projection = fit_projection(means, meanings, meanings, 4, 0.5)
    projected = projection.project(meanings)
    np.testing.assert_allclose(np.linalg.norm(projected, axis=1), 1, rtol=1e-5)


def test_training_learns_repeats_and_exports_what_it_trained(files):
    from training.student.run import train

    sentences = read_parallel(files / "parallel.parquet", SMALL.holdout)
    prompts = read_prompts(files / "prompts.parquet", SMALL.sources, SMALL.holdout)
    weights = read_e5(tiny.e5_container())
    parts, metrics = train(weights, ToyTeacher(), sentences, prompts, files / "cache", SMALL)
    again, _ = train(weights, ToyTeacher(), sentences, prompts, files / "cache", SMALL)
    assert parts == again
    assert metrics["held_out_sentence_cosine"] > 0.2
    assert metrics["translation_candidates"] > 0
    assert set(metrics["translation_top1_by_language"]) == {"de", "fr"}


def test_the_torch_twin_agrees_with_the_served_encoder():
    from router.encoders.fast import FastEncoder
    from training.student.fit import Pieces, say
    from training.student.model import Student

    torch.manual_seed(0)
    pieces = ["<unk>", "▁", *"abcdehlortw"]
    student = Student(np.random.default_rng(0).normal(size=(len(pieces), 10)).astype(np.float32), SMALL).eval()
    encoder = FastEncoder.from_bytes(student.export(pieces, -np.arange(len(pieces), dtype=np.float32), SMALL))
    texts = ["hello world", "a", "the cat"]
    spans = Pieces.of(encoder._tokenizer, texts, 100).spans(np.arange(3))
    with torch.no_grad():
        said = say(student, spans).numpy()
    assert (said * encoder.encode(texts)).sum(axis=1).min() > 0.999


def test_vocabulary_keeps_the_unknown_first_and_characters_before_words():
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁hello", -1.0), ("a", -2.0), ("好", -3.0), ("<mask>", 0.0)]
    kept = choose_pieces(pieces, np.array([0, 0, 0, 0, 5, 0, 0, 0]), 3)
    assert kept.tolist() == [3, 4, 5]  # the Han character occurs nowhere
    assert choose_pieces(pieces, np.array([0, 0, 0, 0, 5, 0, 1, 0]), 3).tolist() == [3, 5, 6]


def test_bad_files_are_named(files):
    with pytest.raises(InvalidInput, match="cannot read"):
        read_parallel(files / "absent.parquet", 0.1)
    with pytest.raises(InvalidInput, match="no column 'source'"):
        read_prompts(files / "parallel.parquet", SMALL.sources, 0.1)
    with pytest.raises(InvalidInput, match="no prompts of the sources theirs"):
        read_prompts(files / "prompts.parquet", ["theirs"], 0.1)


@pytest.mark.parametrize(("text", "message"), [("colour = 1", "unknown"), ("width = 'a'", "expected int"), ("width = ", "cannot read")])
def test_parameter_files(tmp_path, text, message):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        StudentParams.read(tmp_path / "p.toml")
    (tmp_path / "p.toml").write_text("width = 64\nsources = ['a']")
    assert StudentParams.read(tmp_path / "p.toml").sources == ("a",)
