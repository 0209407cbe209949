import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from router.errors import InvalidInput
from router.requirements import CAPABILITIES
from training.targets import TargetMapping, capability_weights, pair_need, pool_need, requirement_targets

_scores = arrays(np.float64, 6, elements=st.floats(0, 1))


@given(weak=_scores, strong=_scores)
def test_need_lies_within_0_and_1_and_is_0_where_the_weak_model_is_as_good(weak, strong):
    need = pair_need(weak, strong)
    assert ((need >= 0) & (need <= 1)).all()
    assert (need[weak >= strong] == 0).all()


@given(weak=_scores, strong=_scores)
def test_a_better_strong_answer_never_lowers_the_need(weak, strong):
    better = np.minimum(strong + 0.1, 1.0)
    for mapping in (TargetMapping(), TargetMapping(margin=0.1, full=0.5), TargetMapping(margin=0.1, soft=False)):
        assert (pair_need(weak, better, mapping) >= pair_need(weak, strong, mapping)).all()


def test_margin_and_full_bound_the_ramp():
    mapping = TargetMapping(margin=0.1, full=0.5)
    assert mapping.need(np.array([-0.2, 0.1, 0.3, 0.5, 0.9])) == pytest.approx([0, 0, 0.5, 1, 1])
    assert TargetMapping(margin=0.2, soft=False).need(np.array([0.2, 0.21])).tolist() == [0, 1]


@pytest.mark.parametrize("bad", [{"margin": -0.1}, {"margin": 0.5, "full": 0.5}, {"full": 1.5}])
def test_an_impossible_mapping_is_refused(bad):
    with pytest.raises(InvalidInput, match="margin"):
        TargetMapping(**bad)


@pytest.mark.parametrize("score", [np.nan, np.inf, -0.1, 1.1])
def test_scores_that_are_not_in_0_to_1_are_named(score):
    with pytest.raises(InvalidInput, match=r"strong score of row 1"):
        pair_need(np.array([0.0, 0.0]), np.array([0.5, score]))


def test_models_of_like_strength_smooth_one_answer():
    rng = np.random.default_rng(0)
    difficulty = rng.random(400)
    weak_pool = (rng.random((400, 20)) < (1 - difficulty)[:, None] * 0.6).astype(float)
    strong_pool = (rng.random((400, 20)) < 1 - 0.3 * difficulty[:, None]).astype(float)
    scores = np.concatenate([weak_pool, strong_pool], axis=1)
    truth = (1 - 0.3 * difficulty) - 0.6 * (1 - difficulty)
    one = pool_need(scores, weak_pool[:, 0], strong_pool[:, 0], bandwidth=0)
    many = pool_need(scores, weak_pool[:, 0], strong_pool[:, 0], bandwidth=0.05)
    assert np.corrcoef(many, truth)[0, 1] > np.corrcoef(one, truth)[0, 1] + 0.2


def test_models_that_did_not_answer_are_left_out_of_the_mean():
    scores = np.array([[0.0, np.nan, 1.0, 1.0], [0.0, 0.0, 1.0, np.nan], [0.0, 0.0, 1.0, 1.0]])
    need = pool_need(scores, scores[:, 0], scores[:, 2], bandwidth=0.05)
    assert need == pytest.approx([1, 1, 1])


def test_only_the_exercised_capability_has_a_target():
    weights = capability_weights(["code", "debugging", "math"], CAPABILITIES)
    targets = requirement_targets(np.array([0.5, 1.0, 0.25]), weights)
    assert targets.tolist() == [[0, 0.5, 0, 0], [0, 0, 1, 0], [0.25, 0, 0, 0]]


def test_a_task_of_no_capability_is_refused_with_what_is_allowed():
    with pytest.raises(InvalidInput, match=r"'cooking'.*code_gen"):
        capability_weights(["cooking"], CAPABILITIES)
