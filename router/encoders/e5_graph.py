"""multilingual-e5-small as an int8 ONNX graph, written node by node (no torch, no exporter).

Weights are int8 with one scale per output column (per row for the word table); activations are quantised while running
(``DynamicQuantizeMatMul``). Uses onnxruntime's ``com.microsoft`` operators, so other runtimes cannot load it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from router.encoders.e5_weights import E5Weights
from router.errors import EncoderError

CONTRIB = "com.microsoft"
GRAPH_VERSION = 1  # raise when the same weights would give other vectors


def build_graph(weights: E5Weights) -> bytes:
    """Serialised model: ``input_ids``, ``attention_mask`` (int64, batch x tokens) -> ``embedding`` (batch x hidden, L2 norm 1).

    Raises
    ------
    EncoderError
        The ``onnx`` package is missing.
    """
    builder = _Graph(weights)
    hidden = builder.embeddings()
    for layer in range(weights.shape.layers):
        hidden = builder.layer(layer, hidden)
    builder.pool(hidden)
    return builder.serialise()


class _Graph:
    """Collects nodes and weights; each method adds one stage and returns the name of its output."""

    def __init__(self, weights: E5Weights) -> None:
        try:
            import onnx
            from onnx import helper, numpy_helper
        except ImportError as error:
            raise EncoderError("building the full encoder needs the onnx package; run: pip install onnx") from error
        self.onnx, self.helper, self.numpy_helper = onnx, helper, numpy_helper
        self.weights = weights
        self.shape = weights.shape
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.append(self.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, kind: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(self.helper.make_node(kind, list(inputs), [output], domain=domain, **attributes))
        return output

    def embeddings(self) -> str:
        shape = self.shape
        table, scale = quantise(self.weights.matrix("emb.word", shape.vocabulary, shape.hidden), axis=1)
        word = self.node("Gather", [self.constant("word", table), "input_ids"], "word_int8")
        word = self.node("Cast", [word], "word_float", to=self.onnx.TensorProto.FLOAT)
        rows = self.node("Gather", [self.constant("word_scale", scale), "input_ids"], "word_row_scale")
        word = self.node("Mul", [word, rows], "word_embedding")
        position = self.weights.vector("emb.pos").reshape(shape.positions, shape.hidden)
        position = position + self.weights.vector("emb.type")[: shape.hidden]  # every token has type 0
        length = self.node("Shape", ["input_ids"], "length", start=1, end=2)
        start = self.constant("zero", np.zeros(1, np.int64))
        table_name = self.constant("position", position.astype(np.float32))
        used = self.node("Slice", [table_name, start, length, start], "position_embedding")
        total = self.node("Add", [word, used], "embedding_sum")
        norm = [self.constant(f"embedding_norm_{part}", self.weights.vector(f"emb.ln.{part}")) for part in "wb"]
        return self.node("LayerNormalization", [total, *norm], "embedded", axis=-1, epsilon=shape.epsilon)

    def linear(self, prefix: str, names: Sequence[str], source: str, outputs: int, inputs: int) -> str:
        """One int8 product; several layers with the same input are stacked."""
        stacked = np.concatenate([self.weights.matrix(f"{name}.w", outputs, inputs) for name in names])
        bias = np.concatenate([self.weights.vector(f"{name}.b") for name in names])
        weight, scale = quantise(stacked, axis=1)
        operands = [
            self.constant(f"{prefix}_weight", weight.T),
            self.constant(f"{prefix}_scale", scale[:, 0]),
            self.constant(f"{prefix}_zero", np.zeros(len(scale), np.int8)),
            self.constant(f"{prefix}_bias", bias),
        ]
        return self.node("DynamicQuantizeMatMul", [source, *operands], f"{prefix}_out", CONTRIB)

    def residual_norm(self, prefix: str, name: str, source: str, skip: str) -> str:
        # Two plain operators: the fused SkipLayerNormalization of onnxruntime 1.32 is nine times slower on a CPU.
        total = self.node("Add", [source, skip], f"{prefix}_sum")
        parts = [self.constant(f"{prefix}_{part}", self.weights.vector(f"{name}.{part}")) for part in "wb"]
        return self.node("LayerNormalization", [total, *parts], prefix, axis=-1, epsilon=self.shape.epsilon)

    def layer(self, index: int, hidden: str) -> str:
        shape, name, prefix = self.shape, f"l{index}", f"layer{index}"
        packed = self.linear(f"{prefix}_qkv", [f"{name}.{part}" for part in "qkv"], hidden, shape.hidden, shape.hidden)
        parts = [f"{prefix}_{part}" for part in ("query", "key", "value")]
        self.nodes.append(self.helper.make_node("Split", [packed], parts, axis=-1, num_outputs=3))
        attention = self.node("MultiHeadAttention", [*parts, "", "key_mask"], f"{prefix}_attention", CONTRIB, num_heads=shape.heads)
        projected = self.linear(f"{prefix}_projection", [f"{name}.ao"], attention, shape.hidden, shape.hidden)
        hidden = self.residual_norm(f"{prefix}_attention_norm", f"{name}.aln", projected, hidden)
        wide = self.linear(f"{prefix}_wide", [f"{name}.fi"], hidden, shape.feed_forward, shape.hidden)
        wide = self.node("Gelu", [wide], f"{prefix}_gelu", CONTRIB)
        narrow = self.linear(f"{prefix}_narrow", [f"{name}.fo"], wide, shape.hidden, shape.feed_forward)
        return self.residual_norm(f"{prefix}_output", f"{name}.oln", narrow, hidden)

    def pool(self, hidden: str) -> str:
        """Mean over real tokens, then L2 norm 1."""
        last = self.constant("last_axis", np.array([-1], np.int64))
        tokens = self.constant("token_axis", np.array([1], np.int64))
        mask = self.node("Cast", ["attention_mask"], "mask_float", to=self.onnx.TensorProto.FLOAT)
        mask = self.node("Unsqueeze", [mask, last], "mask_column")
        kept = self.node("Mul", [hidden, mask], "kept")
        total = self.node("ReduceSum", [kept, tokens], "total", keepdims=0)
        # The mean and the sum have the same direction, so the division by the token count is left out.
        return self.node("LpNormalization", [total], "embedding", axis=-1, p=2)

    def serialise(self) -> bytes:
        helper, kinds = self.helper, self.onnx.TensorProto
        mask = helper.make_node("Cast", ["attention_mask"], ["key_mask"], to=kinds.INT32)
        inputs = [helper.make_tensor_value_info(name, kinds.INT64, ["batch", "tokens"]) for name in ("input_ids", "attention_mask")]
        output = helper.make_tensor_value_info("embedding", kinds.FLOAT, ["batch", self.shape.hidden])
        graph = helper.make_graph([mask, *self.nodes], "multilingual_e5_small", inputs, [output], self.constants)
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="interlock")
        return bytes(model.SerializeToString())


def quantise(matrix: NDArray[np.float32], axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 along an axis: ``matrix`` is close to ``values * scale``; scale keeps the reduced axis with length 1."""
    largest = np.abs(matrix).max(axis=axis, keepdims=True) / 127.0
    scale: NDArray[np.float32] = np.where(largest > 0, largest, 1.0).astype(np.float32)
    return np.clip(np.rint(matrix / scale), -127, 127).astype(np.int8), scale
