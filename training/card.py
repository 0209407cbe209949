"""The model card of a router, from the numbers its manifest carries."""

from __future__ import annotations

from typing import Any, Final

from router.artifact import RouterArtifact

_METRICS: Final = (
    ("apgr", "APGR"),
    ("auc", "AUC"),
    ("ece", "ECE"),
    ("quality_vs_strong", "quality / always-strong"),
    ("strong_share", "strong calls"),
)


def model_card(artifact: RouterArtifact, name: str = "router") -> str:
    """Markdown: what it is, what it was trained on and under which licences, what was measured, and what it cannot do."""
    card, metrics = artifact.card, artifact.metrics
    lines = [
        f"# Model card: {name}",
        "",
        f"{card.get('title') or 'A router'}. Made {card.get('created', '')} from {card.get('prompts', 0)} prompts with "
        f"`interlock train`; encoder `{artifact.encoder.kind}` ({artifact.encoder.name}, {artifact.encoder.dimension} dimensions); "
        f"capabilities {', '.join(artifact.capabilities)}; default shortfall threshold {artifact.default_threshold:.3f}.",
        "",
        "## Training data",
        "",
        *_table(("source", "prompts", "groups", "languages", "weak", "strong", "score", "mean need", "licence"), _sources(card)),
        "",
        f"Prompts by family: {', '.join(f'{k} {v}' for k, v in card.get('families', {}).items())}.",
        "",
        *_parallel(card.get("parallel")),
        "## Measured on held-out folds",
        "",
        "Every prompt was scored by heads that saw neither it nor any other prompt of its group (source document, repository, problem or "
        "translation group). In brackets the 95 % interval from a bootstrap over groups. APGR: random is 0.5.",
        "",
        *[line for kind in ("pooled", "source", "family") for line in _metric_table(kind, metrics.get(kind, {}))],
        *_guarantee(card.get("guarantee")),
        "## Limits",
        "",
        "- A requirement says how much a stronger model of the training pairs added, not how hard a task is as such.",
        "- Most training prompts are English and most pairs are of 2023 to 2024; families with few rows above are extrapolated.",
        "- Within one kind of work a prompt alone says little about which model will fail; most of the gain is between kinds of work.",
        "- The default threshold fits the training pairs. Set your own for your catalog: `interlock evaluate` shows what each one costs.",
    ]
    return "\n".join(lines) + "\n"


def _guarantee(found: Any) -> list[str]:
    """What is promised of the thresholds and for what, where anything was asked for."""
    if not found:
        return []
    about = found["about"]
    return [
        "## Guarantee",
        "",
        found["statement"],
        "",
        f"Calibrated on {about['prompts']} prompts of {about['groups']} groups that the heads were not fitted on "
        f"({', '.join(about['sources'])}; {about['weak']} to {about['strong']}). It holds for prompts that come about as these did, for "
        "this pair of models, and for these thresholds: see docs/guarantee.md.",
        "",
    ]


def _sources(card: Any) -> list[tuple[Any, ...]]:
    keys = ("source", "prompts", "groups", "languages", "weak", "strong", "score_kind", "mean_need", "licence")
    return [tuple(row.get(key, "") for key in keys) for row in card.get("sources", [])]


def _parallel(texts: Any) -> list[str]:
    """Translations that the heads were held to answer alike on, without any answer or score."""
    if not texts:
        return []
    columns = ("source", "texts", "meanings", "languages", "licence")
    return [
        "Translations, of which only how the inputs vary between them was learned, no answers:",
        "",
        *_table(columns, [tuple(row.get(name, "") for name in columns) for row in texts]),
        "",
    ]


def _metric_table(kind: str, slices: Any) -> list[str]:
    rows = []
    for name, values in slices.items():
        n = max((numbers[3] for numbers in values.values()), default=0)
        rows.append((name, n, *(_interval(values.get(key)) for key, _ in _METRICS)))
    return [*_table((kind, "n", *(title for _, title in _METRICS)), rows), ""] if rows else []


def _interval(numbers: Any) -> str:
    if not numbers or numbers[0] is None:
        return "-"
    value, low, high = numbers[:3]
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} ({low:.3f} to {high:.3f})"


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |" for row in rows),
    ]
