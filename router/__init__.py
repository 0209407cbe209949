"""Interlock's pure core: from a conversation to an explained model choice.

Read :mod:`router.route` first. Nothing here touches files, the network, the clock or the environment, except :mod:`router.files`.
"""

from router.catalog import ModelCatalog, ModelProfile
from router.decision import FlipMargin, RoutingDecision
from router.encoder import EncoderSpec, TextEncoder
from router.errors import ArtifactError, CatalogError, EncoderError, InvalidInput, RouterError
from router.health import HealthScore
from router.requirements import CAPABILITIES, Requirements, RequirementsPredictor
from router.route import Router
from router.selection import RoutingPolicy
from router.types import Conversation, Message

__all__ = [
    "CAPABILITIES",
    "ArtifactError",
    "CatalogError",
    "Conversation",
    "EncoderError",
    "EncoderSpec",
    "FlipMargin",
    "HealthScore",
    "InvalidInput",
    "Message",
    "ModelCatalog",
    "ModelProfile",
    "Requirements",
    "RequirementsPredictor",
    "Router",
    "RouterError",
    "RoutingDecision",
    "RoutingPolicy",
    "TextEncoder",
]
