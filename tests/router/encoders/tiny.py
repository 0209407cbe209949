"""Tiny encoders with random weights, in the same byte formats as the real ones."""

from __future__ import annotations

import struct

import numpy as np

from router.encoders.fast import pack

SAMPLE = "hello world the cat sat on a mat مرحبا بالعالم 你好世界 こんにちは"


def fast_parts(dimension: int = 8, width: int = 6, window: int = 5, hidden: int = 7, max_tokens: int = 32) -> dict[str, bytes]:
    """A fast encoder over single characters."""
    pieces = ["<unk>", "▁", *sorted(set(SAMPLE) - {" "}), "▁hello", "▁the"]
    rng = np.random.default_rng(5)
    pooled = width + 2 * window
    shapes = {
        "before": (width, window),
        "at": (width, window),
        "after": (width, window),
        "window_bias": (window,),
        "direct": (pooled, dimension),
        "hidden": (pooled, hidden),
        "hidden_bias": (hidden,),
        "output": (hidden, dimension),
        "output_bias": (dimension,),
    }
    arrays = {name: rng.normal(size=shape).astype(np.float16) for name, shape in shapes.items()}
    arrays["scores"] = -np.arange(len(pieces), dtype=np.float32)
    arrays["table"] = rng.integers(-127, 128, (len(pieces), width)).astype(np.int8)
    arrays["scale"] = np.full(len(pieces), 0.01, np.float32)
    return pack({"name": "tiny", "max_tokens": max_tokens, "dimension": dimension}, pieces, arrays)


def e5_container(hidden: int = 32, layers: int = 2, heads: int = 2, feed_forward: int = 64, positions: int = 24) -> bytes:
    """A container in the layout of ``router.encoders.e5_weights``, with random weights."""
    rng = np.random.default_rng(3)
    words = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁query", ":", *sorted(set(SAMPLE) - {" "}), "<mask>"]
    text = [word.encode() for word in words]
    shape = (hidden, layers, heads, feed_forward, len(words), positions, 2)
    head = b"E5S1" + struct.pack("<i7ifi", 1, *shape, 1e-12, 32) + struct.pack("<5i", len(words), 0, 2, 1, 3)
    offsets = np.cumsum([0, *map(len, text)]).astype("<u4").tobytes()
    scores = (-np.arange(len(words))).astype("<f4").tobytes()
    head += struct.pack("<Q", sum(map(len, text))) + offsets + scores + b"".join(text) + struct.pack("<iI", 0, 0)
    tensors = list(_tensors(rng, hidden, layers, feed_forward, len(words), positions))
    directory_bytes = 4 + sum(2 + len(name) + 1 + 20 for name, *_ in tensors)
    position = len(head) + directory_bytes
    directory, body = struct.pack("<i", len(tensors)), b""
    for name, kind, count, data in tensors:
        entry = struct.pack("<H", len(name)) + name.encode() + struct.pack("<B", kind)
        directory += entry + struct.pack("<IQQ", count, position + len(body), len(data))
        body += data
    return head + directory + body


def _tensors(rng, hidden, layers, feed_forward, words, positions):
    yield "emb.word", 1, words * hidden, _q4(rng, words * hidden)
    yield "emb.pos", 0, positions * hidden, _f4(rng.normal(size=positions * hidden) * 0.1)
    yield "emb.type", 0, 2 * hidden, _f4(rng.normal(size=2 * hidden) * 0.1)
    yield from _norm("emb.ln", hidden)
    for layer in range(layers):
        sizes = {"q": (hidden, hidden), "k": (hidden, hidden), "v": (hidden, hidden), "ao": (hidden, hidden)}
        sizes |= {"fi": (feed_forward, hidden), "fo": (hidden, feed_forward)}
        for part, (outputs, inputs) in sizes.items():
            yield f"l{layer}.{part}.w", 1, outputs * inputs, _q4(rng, outputs * inputs)
            yield f"l{layer}.{part}.b", 0, outputs, _f4(rng.normal(size=outputs) * 0.1)
        yield from _norm(f"l{layer}.aln", hidden)
        yield from _norm(f"l{layer}.oln", hidden)


def _norm(name, hidden):
    yield f"{name}.w", 0, hidden, _f4(np.ones(hidden))
    yield f"{name}.b", 0, hidden, _f4(np.zeros(hidden))


def _f4(values) -> bytes:
    return np.asarray(values, "<f4").tobytes()


def _q4(rng, count: int) -> bytes:
    blocks = np.empty((count // 32, 18), np.uint8)
    blocks[:, :2] = np.full((count // 32, 1), 0.05, "<f2").view(np.uint8)
    blocks[:, 2:] = rng.integers(0, 256, (count // 32, 16))
    return blocks.tobytes()
