"""Parallel text and prompts in, a ``fast`` encoder folder out."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from router.encoder import TextEncoder
from router.encoders.e5_weights import E5Weights, read_e5
from router.encoders.fast import CHARACTERS_PER_TOKEN, FastEncoder, build_piece_tokenizer
from router.encoders.full import FullEncoder, build_full
from router.errors import InvalidInput
from router.files.e5_source import E5_SHA256, find_container
from router.files.encoders import EncoderFolder, check_encoder_output, write_encoder_folder
from training.student.evaluate import mean_cosine, translation_retrieval
from training.student.fit import Lessons, Pieces, fit, initial_student
from training.student.lexicon import learn_lexicon
from training.student.params import StudentParams
from training.student.targets import fit_projection, language_means, meaning_targets, targets_of
from training.student.teacher import teach
from training.student.texts import Texts, read_parallel, read_prompts
from training.student.vocabulary import choose_pieces, count_pieces


def run(parallel: Path, prompts: Path, output: Path, wheel: Path | None, cache: Path | None, params_file: Path | None) -> dict[str, Any]:
    """Train, evaluate on the held-out groups, write the folder; returns the metrics that its manifest also holds."""
    check_encoder_output(output)
    params = StudentParams.read(params_file)
    torch.set_num_threads(params.threads)
    started = time.monotonic()
    sentences = read_parallel(parallel, params.holdout)
    asked = read_prompts(prompts, params.sources, params.holdout)
    container = find_container(wheel)
    spec, full_parts = build_full(container, E5_SHA256)
    teacher = FullEncoder.from_bytes(spec, full_parts, threads=params.threads)
    parts, metrics = train(read_e5(container), teacher, sentences, asked, cache, params)
    metrics["minutes"] = round((time.monotonic() - started) / 60, 1)
    encoder = FastEncoder.from_bytes(parts)
    about = card(sentences, asked, teacher, params, metrics)
    write_encoder_folder(output, EncoderFolder(encoder.spec, parts, about))
    return metrics


def train(
    weights: E5Weights,
    teacher: TextEncoder,
    sentences: Texts,
    prompts: Texts,
    cache: Path | None,
    params: StudentParams,
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The student's parts and its metrics on held-out groups."""
    names, targets, prompt_targets = make_targets(teacher, sentences, prompts, cache, params)
    kept, scores = choose_vocabulary(weights, sentences, prompts, params)
    pieces = [weights.pieces[index][0] for index in kept]
    tokenizer = build_piece_tokenizer(pieces, scores.tolist(), params.max_tokens)
    characters = params.max_tokens * CHARACTERS_PER_TOKEN
    rows = targets_of(sentences, names, targets)
    seen = sentences.where(~sentences.held_out & (rows >= 0))
    asked = prompts.where(~prompts.held_out)
    sentence_pieces = Pieces.of(tokenizer, seen.text, characters)
    lessons = Lessons(
        sentence_pieces,
        rows[~sentences.held_out & (rows >= 0)],
        Pieces.of(tokenizer, asked.text, characters),
        len(names) + np.flatnonzero(~prompts.held_out),
        np.concatenate([targets, prompt_targets]),
        learn_lexicon(seen, sentence_pieces.ids, sentence_pieces.offsets, len(kept)),
    )
    table = weights.matrix("emb.word", weights.shape.vocabulary, weights.shape.hidden)[kept]
    used = np.bincount(np.concatenate([lessons.sentences.ids, lessons.prompts.ids]), minlength=len(kept))
    student = initial_student(table, used, params)
    losses = fit(student, lessons, params)
    parts = student.export(pieces, scores, params)
    metrics = held_out_metrics(FastEncoder.from_bytes(parts), sentences, prompts, names, targets, prompt_targets)
    return parts, {"loss": round(losses[-1], 4), "bytes": sum(map(len, parts.values())), **metrics}


def make_targets(
    teacher: TextEncoder, sentences: Texts, prompts: Texts, cache: Path | None, params: StudentParams
) -> tuple[NDArray[np.object_], NDArray[np.float32], NDArray[np.float32]]:
    """Names and targets of all meanings, and targets of all prompts; the projection is fitted without what is held out."""
    taught = sentences.where(np.isin(sentences.language.astype(str), params.teacher_languages))
    if not len(taught):
        raise InvalidInput(f"parallel text has none of the languages {', '.join(params.teacher_languages)}")
    vectors = teach(teacher, taught.text, cache)
    prompt_vectors = teach(teacher, prompts.text, cache)
    means = language_means(vectors[~taught.held_out], taught.language[~taught.held_out])
    centred = vectors - np.stack([means[language] for language in taught.language])
    names, meanings = meaning_targets(centred, taught.group)
    held_out = set(taught.group[taught.held_out].tolist())
    train_rows = np.array([name not in held_out for name in names])
    centre_of = [means.get(language, means["en"]) for language in prompts.language]
    prompt_centred = prompt_vectors - np.stack(centre_of)
    projection = fit_projection(means, meanings[train_rows], prompt_centred[~prompts.held_out], params.dimension, params.whitening)
    return names, projection.project(meanings), projection.project(prompt_centred)


def choose_vocabulary(
    weights: E5Weights, sentences: Texts, prompts: Texts, params: StudentParams
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Teacher ids of the kept pieces and their log-probabilities."""
    scores = [score for _, score in weights.pieces]
    whole = build_piece_tokenizer([text for text, _ in weights.pieces], scores, 100_000)
    texts = sentences.where(~sentences.held_out).text + prompts.where(~prompts.held_out).text
    counts = count_pieces(whole, texts, len(weights.pieces))
    kept = choose_pieces(weights.pieces, counts, params.pieces)
    return kept, np.array(scores, np.float32)[kept]


def held_out_metrics(
    encoder: FastEncoder,
    sentences: Texts,
    prompts: Texts,
    names: NDArray[np.object_],
    targets: NDArray[np.float32],
    prompt_targets: NDArray[np.float32],
) -> dict[str, Any]:
    """Retrieval of translations and cosine to the targets."""
    held = sentences.where(sentences.held_out)
    rows = targets_of(held, names, targets)
    said = encoder.encode([text for text, row in zip(held.text, rows, strict=True) if row >= 0])
    retrieval = translation_retrieval(encoder, held)
    asked = encoder.encode(prompts.where(prompts.held_out).text)
    return {
        "held_out_sentence_cosine": round(mean_cosine(said, targets[rows[rows >= 0]]), 4),
        "held_out_prompt_cosine": round(mean_cosine(asked, prompt_targets[prompts.held_out]), 4),
        "translation_candidates": int((held.language == "en").sum()),
        "translation_top1": round(retrieval.pop("mean"), 4),
        "translation_top1_by_language": {language: round(value, 3) for language, value in retrieval.items()},
    }


def card(sentences: Texts, prompts: Texts, teacher: TextEncoder, params: StudentParams, metrics: dict[str, Any]) -> dict[str, Any]:
    """What the manifest says about the encoder."""
    count = {str(name): int((prompts.source == name).sum()) for name in np.unique(prompts.source.astype(str))}
    return {
        "teacher": teacher.spec.to_mapping(),
        "sentences": {"count": len(sentences), "languages": len(set(sentences.language.tolist()))},
        "prompts": count,
        "held_out": f"{params.holdout:.0%} of the groups, by hash",
        "parameters": asdict(params),
        "metrics": metrics,
    }
