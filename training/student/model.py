"""The torch twin of :class:`router.encoders.fast.FastEncoder`, and its export to that encoder's parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from router.encoders.fast import pack
from training.student.params import StudentParams

NAME = "interlock-fast"


class Student(nn.Module):
    """Texts come as one flat row of piece ids plus the text each piece belongs to, so nothing is padded.

    A table row is ``teacher_row @ adapt + own``: pieces that training never meets still get a row from the teacher's word table.
    """

    teacher_table: Tensor

    def __init__(self, teacher_table: NDArray[np.float32], params: StudentParams) -> None:
        super().__init__()
        pieces, teacher_width = teacher_table.shape
        self.register_buffer("teacher_table", torch.from_numpy(teacher_table))
        self.adapt = nn.Linear(teacher_width, params.width, bias=False)
        self.own = nn.Parameter(torch.zeros(pieces, params.width))
        self.log_weight = nn.Parameter(torch.zeros(pieces, 1))
        self.window = nn.Linear(3 * params.width, params.window)
        pooled = params.width + 2 * params.window
        self.direct = nn.Linear(pooled, params.dimension, bias=False)
        self.hidden = nn.Linear(pooled, params.hidden)
        self.output = nn.Linear(params.hidden, params.dimension)

    def rows(self, ids: Tensor) -> Tensor:
        """Table rows with their weight."""
        base: Tensor = self.adapt(self.teacher_table[ids])
        return (base + self.own[ids]) * torch.exp(self.log_weight[ids])

    def forward(self, ids: Tensor, text: Tensor, count: int) -> Tensor:
        """Vectors of shape ``(count, dimension)`` for pieces ``ids`` of texts ``text`` (ascending)."""
        unique, inverse = torch.unique(ids, return_inverse=True)
        x = self.rows(unique)[inverse]
        y = torch.relu(self.window(self._windows(x, text)))
        length = torch.bincount(text, minlength=count).clamp(min=1).unsqueeze(1)
        mean_x = torch.zeros(count, x.shape[1]).index_add(0, text, x) / length
        mean_y = torch.zeros(count, y.shape[1]).index_add(0, text, y) / length
        lengths = torch.bincount(text, minlength=count)
        max_y = torch.segment_reduce(y, "max", lengths=lengths, initial=0.0)
        pooled = torch.cat([mean_x, mean_y, max_y], dim=1)
        out = self.direct(pooled) + self.output(torch.relu(self.hidden(pooled)))
        return nn.functional.normalize(out, dim=1)

    @staticmethod
    def _windows(x: Tensor, text: Tensor) -> Tensor:
        same = (text[1:] == text[:-1]).unsqueeze(1).to(x.dtype)
        edge = x.new_zeros(1, x.shape[1])
        before = torch.cat([edge, x[:-1] * same])
        after = torch.cat([x[1:] * same, edge])
        return torch.cat([before, x, after], dim=1)

    @torch.no_grad()
    def export(self, pieces: Sequence[str], scores: NDArray[np.float32], params: StudentParams) -> dict[str, bytes]:
        """Parts of the encoder; the table becomes int8 with one scale per row."""
        rows = self.rows(torch.arange(len(pieces))).numpy()
        scale = np.maximum(np.abs(rows).max(axis=1) / 127.0, 1e-8).astype(np.float32)
        table = np.clip(np.rint(rows / scale[:, None]), -127, 127).astype(np.int8)
        before, at, after = self.window.weight.T.reshape(3, params.width, params.window)
        network = {
            "before": before,
            "at": at,
            "after": after,
            "window_bias": self.window.bias,
            "direct": self.direct.weight.T,
            "hidden": self.hidden.weight.T,
            "hidden_bias": self.hidden.bias,
            "output": self.output.weight.T,
            "output_bias": self.output.bias,
        }
        arrays = {name: np.ascontiguousarray(value.numpy().astype(np.float16)) for name, value in network.items()}
        config = {"name": NAME, "max_tokens": params.max_tokens, "dimension": params.dimension}
        return pack(config, pieces, {"scores": scores, "table": table, "scale": scale, **arrays})
