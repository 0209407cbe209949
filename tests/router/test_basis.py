"""Hats: smooth, bounded, and the same from bytes."""

import numpy as np
import pytest

from router.basis import HatBasis
from router.errors import ArtifactError


@pytest.fixture
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.column_stack([rng.normal(size=(300, 2)), rng.gamma(2, size=300), rng.integers(0, 2, 300), np.zeros(300)])


def test_a_weighted_sum_of_hats_is_a_curve_through_the_knots(rows: np.ndarray) -> None:
    basis = HatBasis.of(rows, 2, 5)
    curve = np.array([0.0, 1.0, -1.0, 2.0, 0.5])
    at = np.linspace(basis.low[0] - 1, basis.high[0] + 1, 50)
    x = np.zeros((50, rows.shape[1]))
    x[:, 2] = at
    knots = np.linspace(basis.low[0], basis.high[0], 5)
    assert basis.expand(x)[:, :4] @ curve[1:] == pytest.approx(np.interp(at, knots, curve))


def test_a_value_far_outside_counts_as_the_largest_seen(rows: np.ndarray) -> None:
    basis = HatBasis.of(rows, 0, 6)
    far = rows.copy()
    far[:, 2] = 1e9
    near = rows.copy()
    near[:, 2] = basis.high[2]
    assert np.array_equal(basis.expand(far), basis.expand(near))


def test_columns_without_variation_are_harmless(rows: np.ndarray) -> None:
    expanded = HatBasis.of(rows, 0, 6).expand(rows)
    assert expanded.shape == (300, 25)
    assert np.isfinite(expanded).all()
    assert not expanded[:, 20:].any()


@pytest.mark.parametrize(
    ("low", "high", "knots"),
    [([0.0], [0.0], 6), ([0.0], [np.inf], 6), ([0.0], [1.0], 1), ([0.0], [1.0], 10**6), ([0.0, 1.0], [1.0], 6)],
)
def test_a_basis_that_cannot_be_is_refused(low: list[float], high: list[float], knots: int) -> None:
    with pytest.raises(ArtifactError):
        HatBasis(0, np.array(low), np.array(high), knots)
