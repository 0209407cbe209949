"""All trees of several heads, evaluated at once.

Every comparison of every tree is made, whether the row comes past it or not, and each rules out the leaves on its other side: what is left
of a tree's leaves is the one the row falls into (after QuickScorer, Lucchese et al., SIGIR 2015). That is more arithmetic than a walk from
the roots and far less waiting: a few passes over neighbouring numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from router.requirements import TreeHead

Array = NDArray[np.float64]
_MOST_LEAVES: Final = 64
_ROWS: Final = 16  # their comparisons still fit into the cache


class Forest:
    """The trees of ``heads`` side by side; each head must be one that :func:`fits` accepts."""

    def __init__(self, heads: Sequence[TreeHead]) -> None:
        trees = [len(head.feature) for head in heads]
        reached = [_reached(head) for head in heads]
        inner = max(1, *(int((on & ~_leaves(head)).sum(axis=1).max()) for head, on in zip(heads, reached, strict=True)))
        leaves = max(int((on & _leaves(head)).sum(axis=1).max()) for head, on in zip(heads, reached, strict=True))
        mask = np.min_scalar_type(2**leaves - 1)
        # Comparison by tree, so that neighbours in memory are handled together.
        self._feature = np.zeros((inner, sum(trees)), np.intp)
        self._threshold = np.zeros((inner, sum(trees)))
        self._after_right = np.full((inner, sum(trees)), np.iinfo(mask).max, mask)  # leaves that are left where a row goes right
        self._differ = np.zeros_like(self._after_right)  # and what is otherwise where it goes left
        self._value = np.zeros((sum(trees), leaves + 1))  # column b + 1 is the leaf of bit b
        self._first = np.cumsum([0, *trees[:-1]])
        self._bias = np.array([head.bias for head in heads])
        for head, on, start in zip(heads, reached, self._first, strict=True):
            self._add(head, on, slice(start, start + len(on)))
        self._row = np.arange(sum(trees)) * (leaves + 1)

    def _add(self, head: TreeHead, reached: NDArray[np.bool_], trees: slice) -> None:
        leaves = _leaves(head) & reached
        tree, node = np.nonzero(leaves)
        bit = (leaves.cumsum(axis=1) - 1)[tree, node]
        self._value[trees][tree, bit + 1] = head.value[tree, node]
        below = np.zeros(leaves.shape, np.uint64)  # leaves below a node, as bits
        below[tree, node] = np.uint64(1) << bit.astype(np.uint64)
        for _ in range(head.depth):
            below |= np.take_along_axis(below, head.left, axis=1) | np.take_along_axis(below, head.right, axis=1)
        self._after_right[0, trees] = below[:, 0]  # for a tree that has no comparison
        inner = ~_leaves(head) & reached
        tree, node = np.nonzero(inner)
        at = (inner.cumsum(axis=1) - 1)[tree, node]
        left, right = head.left[tree, node], head.right[tree, node]
        self._feature[:, trees][at, tree] = head.feature[tree, node]
        self._threshold[:, trees][at, tree] = head.threshold[tree, node]
        self._after_right[:, trees][at, tree] = below[tree, 0] & ~below[tree, left]
        self._differ[:, trees][at, tree] = below[tree, left] ^ below[tree, right]

    def decision(self, x: Array) -> Array:
        """Log-odds, shape (n, heads)."""
        out = np.empty((len(x), self._bias.size))
        for start in range(0, len(x), _ROWS):
            goes_left = x[start : start + _ROWS].take(self._feature, axis=1) <= self._threshold
            left_over = np.bitwise_and.reduce(goes_left * self._differ ^ self._after_right, axis=1)
            position = np.frexp(left_over)[1]  # one bit is left: its number, from 1
            out[start : start + _ROWS] = np.add.reduceat(self._value.take(position + self._row), self._first, axis=1)
        return np.asarray(out + self._bias, dtype=np.float64)


def fits(head: TreeHead) -> bool:
    """Whether the head's nodes are trees that end within its depth, of at most 64 leaves each; nothing else is promised of a file."""
    reached = _reached(head)
    inner = reached & ~_leaves(head)
    tree, node = np.nonzero(inner)
    parents = np.zeros(reached.shape, np.intp)
    for child in (head.left, head.right):
        np.add.at(parents, (tree, child[tree, node]), 1)
    parents[:, 0] += 1
    return bool(len(reached) and (parents == reached).all() and (reached & _leaves(head)).sum(axis=1).max() <= _MOST_LEAVES)


def _leaves(head: TreeHead) -> NDArray[np.bool_]:
    own = np.arange(head.feature.shape[1])
    return np.asarray((head.left == own) & (head.right == own), dtype=np.bool_)


def _reached(head: TreeHead) -> NDArray[np.bool_]:
    """Nodes that a walk of the head's depth can come to, shape (trees, nodes)."""
    reached = np.zeros(head.feature.shape, np.bool_)
    reached[:, 0] = True
    for _ in range(head.depth):
        tree, node = np.nonzero(reached)
        reached[tree, head.left[tree, node]] = True
        reached[tree, head.right[tree, node]] = True
    return reached
