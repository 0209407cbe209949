import lightgbm
import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from router.errors import InvalidInput
from router.requirements import TreeHead
from training.fit import RequirementsEstimator, fit_calibration, sample_residuals, trees_from_booster
from training.metrics import expected_calibration_error as ece

NAMES = ("one", "two")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 6))
    p = 1 / (1 + np.exp(-np.stack([2 * x[:, 0] - 1, x[:, 1] * x[:, 2]], axis=1)))
    return x, (rng.random(p.shape) < p).astype(float), rng.integers(0, 200, 900)


class _Within01(RequirementsEstimator):
    """The checks of scikit-learn draw targets from anywhere; ours are requirements in [0, 1]."""

    def fit(self, X, y, groups=None, sample_weight=None):
        try:
            numbers = np.asarray(y, dtype=float)
        except (TypeError, ValueError):
            return super().fit(X, y, groups, sample_weight)
        if numbers.size and np.isfinite(numbers).all():
            y = (numbers - numbers.min()) / max(np.ptp(numbers), 1e-9)
        return super().fit(X, y, groups, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # against targets that were not mapped
        return tags


@parametrize_with_checks(
    [_Within01(kind="linear", calibration_folds=2), _Within01(kind="lightgbm", n_estimators=5, min_child_samples=2, calibration_folds=2)]
)
@pytest.mark.filterwarnings("ignore")
def test_it_keeps_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)
    assert estimator is not None


@pytest.mark.parametrize("kind", ["lightgbm", "linear", "blend"])
def test_heads_learn_are_calibrated_and_predict_what_the_arrays_say(data, kind):
    x, y, groups = data
    estimator = RequirementsEstimator(NAMES, kind=kind, n_estimators=80).fit(x, y, groups=groups)
    assert np.array_equal(estimator.predict(x), estimator.predictor_.predict(x))
    assert estimator.predictor_.capabilities == NAMES
    assert np.corrcoef(estimator.held_out_[:, 0], y[:, 0])[0, 1] > 0.45
    assert ece(estimator.held_out_[:, 0], y[:, 0]) < 0.05
    assert (estimator.bands_.low <= estimator.bands_.high).all()


def test_the_same_seed_gives_the_same_router(data):
    x, y, groups = data
    first, second = (RequirementsEstimator(NAMES, n_estimators=20).fit(x, y, groups=groups).predict(x) for _ in range(2))
    assert np.array_equal(first, second)


def test_trees_do_not_read_the_embedding(data):
    x, y, groups = data
    estimator = RequirementsEstimator(NAMES, kind="lightgbm", n_estimators=20, n_embedding=2).fit(x, y, groups=groups)
    heads = estimator.predictor_.heads
    assert all(isinstance(head, TreeHead) for head in heads)
    assert min(int(head.feature.min()) for head in heads) >= 2
    moved = x.copy()
    moved[:, :2] = 100.0
    assert np.array_equal(estimator.predict(moved), estimator.predict(x))


def test_arrays_of_trees_predict_what_lightgbm_predicts():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 8))
    y = (x[:, 0] + x[:, 1] ** 2 > 1).astype(float)
    booster = lightgbm.train({"objective": "cross_entropy", "num_leaves": 13, "verbosity": -1}, lightgbm.Dataset(x, y), 40)
    trees = trees_from_booster(booster)
    assert trees.decision(x) == pytest.approx(booster.predict(x, raw_score=True), abs=1e-9)


def test_one_group_cannot_be_calibrated(data):
    x, y, _ = data
    with pytest.raises(InvalidInput, match="one group"):
        RequirementsEstimator(NAMES, kind="linear").fit(x, y, groups=np.zeros(len(x)))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"kind": "forest"}, "forest"), ({"capabilities": ("one",)}, "do not match 2")],
)
def test_settings_that_do_not_fit_are_named(data, change, message):
    x, y, _ = data
    with pytest.raises(InvalidInput, match=message):
        RequirementsEstimator(**change).fit(x, y)


def test_what_kind_of_work_it_is_is_learned_from_prompts_that_need_nothing_too():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(1200, 4))
    exercised = np.stack([x[:, 0] > 0, x[:, 0] <= 0], axis=1).astype(float)
    need = (rng.random(1200) < 0.1 + 0.3 * (x[:, 1] > 0)).astype(float)
    targets = exercised * need[:, None]
    alone = RequirementsEstimator(NAMES, kind="linear").fit(x, targets)
    product = RequirementsEstimator(NAMES, kind="linear").fit(x, targets, exercised=exercised)
    truth = exercised * (0.1 + 0.3 * (x[:, 1] > 0))[:, None]
    assert np.abs(product.held_out_ - truth).mean() < np.abs(alone.held_out_ - truth).mean()
    assert product.predict(x).shape == targets.shape


def test_targets_out_of_range_are_named(data):
    x, y, _ = data
    with pytest.raises(InvalidInput, match=r"outside \[0, 1\]"):
        RequirementsEstimator(NAMES).fit(x, y * 1.5)


def test_a_capability_without_need_becomes_a_constant_head(data):
    x, y, groups = data
    y = np.stack([y[:, 0], np.zeros(len(y))], axis=1)
    estimator = RequirementsEstimator(NAMES, kind="linear").fit(x, y, groups=groups)
    assert estimator.predict(x)[:, 1].max() < 1e-3


def test_calibration_rises_and_does_not_tie_what_it_ranks():
    rng = np.random.default_rng(0)
    decision = rng.normal(size=3000)
    target = (rng.random(3000) < 1 / (1 + np.exp(-3 * decision))).astype(float)
    calibrated = fit_calibration(decision, target)(decision)
    order = np.argsort(decision)
    assert (np.diff(calibrated[order]) >= 0).all()
    assert len(np.unique(calibrated)) > 2000


def test_calibration_ranks_where_the_data_are_nearly_flat():
    rng = np.random.default_rng(1)
    decision = np.sort(rng.normal(size=1500))
    calibrated = fit_calibration(decision, (rng.random(1500) < 0.3 + 0.01 * decision).astype(float))(decision)
    inner = slice(60, -60)
    assert (np.diff(calibrated[inner]) > 0).all()
    assert abs(calibrated.mean() - 0.3) < 0.04


def test_calibration_on_falling_data_is_their_mean():
    decision = np.linspace(-1, 1, 600)
    calibrated = fit_calibration(decision, 0.5 - 0.2 * decision)(decision)
    assert np.allclose(calibrated, 0.5)


def test_residuals_of_a_perfect_prediction_are_zero():
    predicted = np.random.default_rng(0).random((300, 2))
    assert np.abs(sample_residuals(predicted, predicted).residuals).max() == 0
