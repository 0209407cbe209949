"""The one path that decides a model."""

import dataclasses
import time

import numpy as np
import pytest

from router.catalog import ModelCatalog
from router.errors import CatalogError, EncoderError, InvalidInput
from router.features import FEATURE_NAMES
from router.health import HealthScore
from router.language_effects import LanguageEffects
from router.route import Router, model_input
from router.selection import RoutingPolicy
from router.text import classify_text
from router.types import Conversation

EASY, HARD, IMPOSSIBLE = [0.02] * 4, [0.9, 0.02, 0.02, 0.02], [1.0, 1.0, 1.0, 1.0]
HELLO = Conversation.from_text("hello")
IMAGE = Conversation.from_openai([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])
TOOLS = Conversation.from_openai([{"role": "user", "content": "x"}], [{"type": "function", "function": {"name": "f"}}])
SICK = HealthScore(0.1, "timeouts")


def held(model: str | None, *, compacted: bool = False) -> Conversation:
    return Conversation.from_openai([{"role": "user", "content": "hello"}], current_model=model, compacted=compacted)


def test_the_cheapest_model_that_is_good_enough_is_chosen(make_router) -> None:
    easy = make_router(EASY).route(HELLO)
    assert (easy.model, easy.decision, easy.boundary) == ("small", "initialize", "first_turn")
    hard = make_router(HARD).route(HELLO)
    assert hard.model == "large"
    assert hard.reason == "large is the cheapest model that is good enough: shortfall 0.000 within 0.100; too weak: small, middle"


def test_a_decision_explains_itself(make_router) -> None:
    decision = make_router(HARD).route(HELLO)
    assert list(decision.requirements.values.values()) == pytest.approx(HARD)
    assert [c.model for c in decision.candidates] == ["small", "middle", "large"]
    for candidate in decision.candidates:
        assert sum(candidate.shortfall_by_capability.values()) == pytest.approx(candidate.shortfall)
        assert candidate.eligible == (not candidate.gates and candidate.shortfall <= 0.1)
        assert candidate.expected_cost_usd > 0
    assert decision.flip_margin.shortfall_threshold_up is not None
    assert (decision.language, decision.family) == ("en", "English")
    assert decision.classified.text == "hello"
    assert 0 <= decision.confidence <= 1


def test_the_same_conversation_gets_the_same_decision(router: Router) -> None:
    assert router.route(HELLO) == router.route(Conversation.from_text("hello"))


@pytest.mark.parametrize(
    ("conversation", "policy", "model", "gate"),
    [
        (IMAGE, {}, "middle", "modality: cannot read image"),
        (TOOLS, {}, "middle", "tools: cannot call tools"),
        (Conversation.from_text("word " * 20_000), {}, "middle", "window: needs about"),
        (HELLO, {"deny": frozenset({"small"})}, "middle", "policy: on the deny list"),
        (HELLO, {"allow": frozenset({"large"})}, "large", "policy: not on the allow list"),
    ],
)
def test_gates(make_router, conversation: Conversation, policy: dict, model: str, gate: str) -> None:
    decision = make_router(EASY, **policy).route(conversation)
    assert decision.model == model
    assert decision.candidates[0].gates[0].startswith(gate)
    assert not decision.candidates[0].eligible


def test_an_unhealthy_model_is_passed_over_until_none_is_left(make_router) -> None:
    router = make_router(EASY)
    assert router.route(HELLO, {"small": SICK}).model == "middle"
    all_sick = router.route(HELLO, dict.fromkeys(("small", "middle", "large"), SICK))
    assert all_sick.model == "small"
    assert all_sick.reason.endswith("every open model is unhealthy, so health was ignored")
    # Health never opens what policy or modality closed.
    assert router.route(IMAGE, dict.fromkeys(("small", "middle", "large"), SICK)).model == "middle"


def test_nothing_open_names_every_model_and_its_gate(make_router) -> None:
    with pytest.raises(InvalidInput, match=r"no model .* \(small: modality: .*; middle: policy: .*; large: modality: ") as error:
        make_router(EASY, deny=frozenset({"middle"})).route(IMAGE)
    assert "\n" not in str(error.value)


def test_no_model_good_enough_falls_open_to_the_least_shortfall(make_router) -> None:
    decision = make_router(IMPOSSIBLE, shortfall_threshold=0.0, deny=frozenset({"large"})).route(HELLO)
    assert decision.model == "middle"
    assert "no model is good enough within 0.000; middle has the least shortfall" in decision.reason


def test_nothing_switches_between_boundaries(make_router) -> None:
    router = make_router(HARD)
    stays = router.route(held("small"))
    assert (stays.model, stays.decision, stays.boundary, stays.confidence) == ("small", "retain", None, 1.0)
    margin = stays.flip_margin
    assert {margin.shortfall_threshold_up, margin.shortfall_threshold_down, margin.price_factor, *margin.requirements.values()} == {None}
    compacted = router.route(held("small", compacted=True))
    assert (compacted.model, compacted.decision, compacted.boundary) == ("large", "switch", "compaction")
    assert router.route(held("large", compacted=True)).decision == "retain"


def test_a_gated_model_is_left_even_between_boundaries(make_router) -> None:
    decision = make_router(HARD).route(held("small"), {"small": SICK})
    assert (decision.model, decision.decision) == ("large", "switch")
    assert decision.reason.startswith("small may not take this turn; ")


def test_a_current_model_that_left_the_catalog_is_replaced_and_named(make_router) -> None:
    decision = make_router(EASY).route(held("retired-1"))
    assert (decision.model, decision.decision) == ("small", "initialize")
    assert decision.reason.startswith("retired-1 is not in the catalog; ")


def test_the_cache_makes_the_current_model_cheaper(make_router) -> None:
    costs = [make_router(EASY).route(held(model)).candidates[0].expected_cost_usd for model in ("small", "large")]
    assert costs[0] < costs[1]


def test_without_a_classifier_the_default_answers_and_gates_hold(make_router) -> None:
    router = make_router(EASY, default_model="small")
    decision = router.route_without_classifier(HELLO, "out of memory")
    assert (decision.model, decision.decision, decision.confidence) == ("small", "fallback", 0.0)
    assert decision.fallback_reason == "out of memory"
    assert router.route_without_classifier(IMAGE, "x").model == "middle"
    assert router.route_without_classifier(held("large"), "x").model == "large"
    assert make_router(EASY).route_without_classifier(HELLO, "x").model == "large"


@pytest.mark.parametrize("policy", [{"allow": frozenset({"smal"})}, {"deny": frozenset({"smal"})}, {"default_model": "smal"}])
def test_a_policy_that_names_an_unknown_model_is_refused(make_router, policy: dict) -> None:
    with pytest.raises(CatalogError, match=r"unknown model 'smal'.*did you mean 'small'"):
        make_router(EASY, **policy)


def test_a_weight_for_an_unknown_capability_is_refused(make_router) -> None:
    with pytest.raises(InvalidInput, match="unknown capability 'poetry'"):
        make_router(EASY, weights={"poetry": 1.0})


def test_a_capability_without_weight_is_not_asked_for(make_router) -> None:
    assert make_router(HARD, weights={"reasoning": 0.0}).route(HELLO).model == "small"


@pytest.mark.parametrize("value", [1.1, -0.1, float("nan")])
def test_a_health_score_out_of_range_is_refused(value: float) -> None:
    with pytest.raises(InvalidInput, match="health score"):
        HealthScore(value)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_an_encoder_that_gives_no_numbers_is_an_error_and_no_decision(artifact, catalog: ModelCatalog, router: Router) -> None:
    class Broken:
        spec = router.encoder.spec

        def encode(self, texts):
            return np.full((len(texts), self.spec.dimension), np.nan, np.float32)

    with pytest.raises(EncoderError, match="not finite"):
        Router(artifact, Broken(), catalog).route(HELLO)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\x00",
        "\ud83d",
        "🙂",
        "\u202eمرحبا\u202c",
        "e\u0301" * 3000,
        "a" * 2**20,
        "漢" * 2**20,
        "```",
        "<task></task>",
        "\n" * 10_000,
        "\U0010ffff",
    ],
)
def test_any_text_is_routed(router: Router, text: str) -> None:
    decision = router.route(Conversation.from_text(text)) if len(text) < 10**5 else _in_time(router, Conversation.from_text(text))
    assert np.isfinite([*decision.requirements.values.values(), decision.confidence]).all()


def test_ten_thousand_messages_are_routed_in_time(make_router) -> None:
    message = {"role": "user", "content": "turn " * 3}
    conversation = Conversation.from_openai([message, {"role": "assistant", "content": "x"}] * 5000)
    assert _in_time(make_router(EASY), conversation).model == "large"  # no other window holds as much


def _in_time(router: Router, conversation: Conversation):
    start = time.process_time()
    decision = router.route(conversation)
    assert time.process_time() - start < 1.0  # about 0.02 on a quiet core
    return decision


def test_training_and_serving_read_the_same_row(router: Router) -> None:
    conversations = [HELLO, TOOLS, IMAGE, Conversation.from_text("def f(): return [1, 2]")]
    classified = [classify_text(conversation, router.artifact.budget) for conversation in conversations]
    together = model_input(router.encoder, conversations, classified)
    assert together.shape == (4, router.encoder.spec.dimension + len(FEATURE_NAMES))
    assert np.isfinite(together).all()
    for row, conversation, text in zip(together, conversations, classified, strict=True):
        assert np.array_equal(model_input(router.encoder, [conversation], [text])[0], row)
    assert model_input(router.encoder, [], []).shape == (0, together.shape[1])
    predicted = router.predict(conversations, classified, ["und"] * 4)
    for row, conversation in zip(predicted, conversations, strict=True):
        assert list(router.route(conversation).requirements.values.values()) == pytest.approx(row.tolist(), abs=1e-12)


JAPANESE, GERMAN = Conversation.from_text("関数を書いて", language="ja"), Conversation.from_text("Schreib eine Funktion", language="de")


def test_a_family_may_have_a_threshold_of_its_own(make_router) -> None:
    router = make_router([0.35] * 4, shortfall_threshold=0.0, family_thresholds={"Japonic": 4.0})
    assert (router.route(GERMAN).model, router.route(JAPANESE).model) == ("middle", "small")
    assert router.route(JAPANESE).flip_margin.shortfall_threshold_down.value < 4.0


def test_raising_a_familys_threshold_never_selects_a_dearer_model_there_and_changes_no_other(make_router) -> None:
    taus = np.linspace(0, 2, 41)
    price = {name: rank for rank, name in enumerate(("small", "middle", "large"))}
    routed = [make_router([0.6] * 4, shortfall_threshold=0.1, family_thresholds={"Japonic": tau}) for tau in taus]
    chosen = [price[router.route(JAPANESE).model] for router in routed]
    assert chosen == sorted(chosen, reverse=True)
    assert len(set(chosen)) > 1
    assert len({router.route(GERMAN).model for router in routed}) == 1


def test_thresholds_come_with_the_artefact_unless_a_policy_is_given(artifact, catalog: ModelCatalog, router: Router) -> None:
    own = dataclasses.replace(artifact, default_threshold=0.3, family_thresholds={"Semitic": 0.05})
    assert dict(Router(own, router.encoder, catalog).policy.family_thresholds) == {"Semitic": 0.05}
    assert Router(own, router.encoder, catalog, RoutingPolicy(shortfall_threshold=0.2)).policy.threshold_for("Semitic") == 0.2


def test_what_a_language_adds_is_said_and_counted(router: Router) -> None:
    effects = LanguageEffects({"is": 2.0})
    moved = Router(dataclasses.replace(router.artifact, language_effects=effects), router.encoder, router.catalog)
    icelandic, english = (dataclasses.replace(HELLO, language=tag) for tag in ("is", "en"))
    assert moved.route(english).requirements.values == pytest.approx(router.route(english).requirements.values)
    assert moved.route(english).language_effect == 0.0
    before, after = router.route(icelandic), moved.route(icelandic)
    assert after.language_effect == 2.0
    assert all(after.requirements.values[k] >= before.requirements.values[k] for k in after.requirements.values)
    assert after.requirements != before.requirements
