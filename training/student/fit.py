"""The training loop: say the target, and be nearer to your own target than to the others in the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.progress import track
from torch import Tensor

from training.student.lexicon import Lexicon
from training.student.model import Student
from training.student.params import StudentParams

SIF = 1e-3  # Arora et al. (2017), smooth inverse frequency


@dataclass(frozen=True)
class Pieces:
    """Piece ids of many texts, one after another."""

    ids: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, tokenizer: Any, texts: Sequence[str], characters: int, batch: int = 1024) -> Pieces:
        """Tokenise, reading at most ``characters`` of each text, as the encoder does."""
        rows: list[list[int]] = []
        for start in range(0, len(texts), batch):
            shown = [text[:characters] for text in texts[start : start + batch]]
            rows += [encoding.ids for encoding in tokenizer.encode_batch(shown)]
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        return cls(np.fromiter((index for row in rows for index in row), np.int64, offsets[-1]), offsets)

    def spans(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The pieces of each text."""
        return [self.ids[self.offsets[row] : self.offsets[row + 1]] for row in rows]


@dataclass(frozen=True)
class Lessons:
    """Texts with the row of their target, parallel sentences and prompts apart."""

    sentences: Pieces
    sentence_target: NDArray[np.int64]
    prompts: Pieces
    prompt_target: NDArray[np.int64]
    targets: NDArray[np.float32]
    lexicon: Lexicon


def initial_student(teacher_table: NDArray[np.float32], counts: NDArray[np.int64], params: StudentParams) -> Student:
    """Start from the teacher's word table on its principal axes, with smooth inverse frequency weights."""
    torch.manual_seed(params.seed)
    centred = teacher_table - teacher_table.mean(axis=0)
    centred /= centred.std()
    student = Student(centred, params)
    _, _, axes = np.linalg.svd(centred[:: max(1, len(centred) // 8000)], full_matrices=False)
    share = counts / max(1, int(counts.sum()))
    with torch.no_grad():
        student.adapt.weight.copy_(torch.from_numpy(axes[: params.width]))
        student.log_weight.copy_(torch.from_numpy(np.log(SIF / (SIF + share)).astype(np.float32))[:, None])
    return student


def fit(student: Student, lessons: Lessons, params: StudentParams) -> list[float]:
    """Train in place; the mean loss of every epoch."""
    generator = np.random.default_rng(params.seed)
    optimiser = torch.optim.Adam(student.parameters(), lr=params.learning_rate)
    steps = steps_per_epoch(lessons, params)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, params.learning_rate, params.epochs * steps, pct_start=0.1)
    student.train()
    history = []
    for epoch in range(params.epochs):
        losses = []
        drawn = batches(lessons, params, generator, steps)
        for sentences, prompts in track(drawn, f"epoch {epoch + 1} of {params.epochs}", total=steps):
            optimiser.zero_grad(set_to_none=True)
            loss = batch_loss(student, lessons, sentences, prompts, params, generator)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            losses.append(float(loss.detach()))
        history.append(float(np.mean(losses)))
    student.eval()
    return history


def steps_per_epoch(lessons: Lessons, params: StudentParams) -> int:
    """Every sentence about once."""
    return max(1, len(lessons.sentence_target) // (params.groups_per_batch * params.languages_per_group))


def batches(
    lessons: Lessons, params: StudentParams, generator: np.random.Generator, steps: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows of sentences (several languages of each drawn meaning) and of prompts."""
    order = np.argsort(lessons.sentence_target, kind="stable")
    meanings, starts, sizes = np.unique(lessons.sentence_target[order], return_index=True, return_counts=True)
    for _ in range(steps):
        drawn = generator.choice(len(meanings), min(params.groups_per_batch, len(meanings)), replace=False)
        picks = generator.random((len(drawn), params.languages_per_group)) * sizes[drawn, None]
        sentences = order[(starts[drawn, None] + picks.astype(np.int64)).ravel()]
        count = min(params.prompts_per_batch, len(lessons.prompt_target))
        yield sentences, generator.choice(len(lessons.prompt_target), count, replace=False)


def batch_loss(
    student: Student,
    lessons: Lessons,
    sentences: NDArray[np.int64],
    prompts: NDArray[np.int64],
    params: StudentParams,
    generator: np.random.Generator,
) -> Tensor:
    """One minus cosine to the target, plus InfoNCE against the batch's targets (van den Oord et al., 2018)."""
    wanted = np.concatenate([lessons.sentence_target[sentences], lessons.prompt_target[prompts]])
    distinct, label = np.unique(wanted, return_inverse=True)
    targets, labels = torch.from_numpy(lessons.targets[distinct]), torch.from_numpy(label)
    asked = [
        lessons.lexicon.swap(span, generator, params.swapped_pieces) if generator.random() < params.swapped_prompts else span
        for span in lessons.prompts.spans(prompts)
    ]
    said = torch.cat([say(student, lessons.sentences.spans(sentences)), say(student, asked)])
    cosine = (said * targets[labels]).sum(dim=1)
    contrast = torch.nn.functional.cross_entropy(said @ targets.T / params.temperature, labels)
    return (1.0 - cosine).mean() + params.contrast * contrast


def say(student: Student, spans: Sequence[NDArray[np.int64]]) -> Tensor:
    """Vectors of texts given as pieces."""
    text = np.repeat(np.arange(len(spans)), [len(span) for span in spans])
    said: Tensor = student(torch.from_numpy(np.concatenate(spans)), torch.from_numpy(text), len(spans))
    return said
