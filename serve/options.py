"""What one caller may change of the operator's policy."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from router.errors import InvalidInput
from router.route import Router
from router.selection import RoutingPolicy


def narrowed(router: Router, *, threshold: float | None = None, allow: Collection[str] = (), deny: Collection[str] = ()) -> Router:
    """The router under one caller's options: another threshold, for every language family, and a pool that can only get smaller.

    Raises
    ------
    InvalidInput
        If the threshold is not a number of at least 0, or nothing is left of the allow list.
    CatalogError
        If a model is not in the catalog.
    """
    if threshold is None and not allow and not deny:
        return router
    policy = router.policy
    return with_policy(
        router,
        replace(
            policy,
            shortfall_threshold=policy.shortfall_threshold if threshold is None else threshold,
            family_thresholds=policy.family_thresholds if threshold is None else {},
            allow=_both(policy.allow, frozenset(allow)),
            deny=policy.deny | frozenset(deny),
        ),
    )


def with_policy(router: Router, policy: RoutingPolicy) -> Router:
    """The same artefact, encoder and catalog under another policy; cheap, nothing is loaded."""
    return Router(router.artifact, router.encoder, router.catalog, policy, router.identifier)


def _both(operator: frozenset[str], caller: frozenset[str]) -> frozenset[str]:
    if not operator or not caller:
        return operator | caller
    left = operator & caller
    if not left:
        raise InvalidInput(f"allow is {', '.join(sorted(caller))}: the operator allows only {', '.join(sorted(operator))}")
    return left
