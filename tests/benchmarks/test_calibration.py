"""Every calibration that is compared says probabilities that rise with the log-odds."""

import numpy as np
import pytest

from benchmarks.calibration import CHOSEN, METHODS
from training.metrics import expected_calibration_error


@pytest.fixture
def held_out():
    rng = np.random.default_rng(0)
    decision = rng.normal(-1, 1.5, 4000)
    return decision, (rng.random(4000) < 1 / (1 + np.exp(-(0.6 * decision + 0.4)))).astype(float)


@pytest.mark.parametrize("name", METHODS)
def test_a_calibration_rises_within_0_and_1(name, held_out):
    decision, target = held_out
    found = METHODS[name](decision[:2000], target[:2000])(np.linspace(-8, 8, 200))
    assert found.min() >= 0
    assert found.max() <= 1
    assert (np.diff(found) >= -1e-12).all()


@pytest.mark.parametrize("name", [name for name in METHODS if name != "none"])
def test_a_calibration_is_nearer_to_the_truth_than_none(name, held_out):
    decision, target = held_out

    def error(method):
        return expected_calibration_error(METHODS[method](decision[:2000], target[:2000])(decision[2000:]), target[2000:])

    assert error(name) < error("none")


def test_a_head_that_never_meets_its_capability_is_calibrated_to_nothing():
    decision = np.linspace(-3, 3, 500)
    for name in ("Platt", "beta", CHOSEN):
        assert np.allclose(METHODS[name](decision, np.zeros(500))(decision), 0)
