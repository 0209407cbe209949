"""Where a conversation's model may change: only where no prompt cache is lost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from router.types import Conversation


class Boundary(StrEnum):
    """Kinds of cache boundary."""

    FIRST_TURN = "first_turn"
    COMPACTION = "compaction"


@dataclass(frozen=True, slots=True)
class BoundaryEvidence:
    """The boundary, if there is one, and what it was seen by."""

    boundary: Boundary | None
    evidence: str


def find_boundary(conversation: Conversation) -> BoundaryEvidence:
    """Say whether the model may change before the next turn.

    A conversation without a model that holds its cache is at its first turn. One whose history was just summarised has lost its cache
    anyway. Everywhere else the current model stays.
    """
    if conversation.current_model is None:
        return BoundaryEvidence(Boundary.FIRST_TURN, "no model holds this conversation's prompt cache")
    if conversation.compacted:
        return BoundaryEvidence(Boundary.COMPACTION, "the caller says that the history was compacted")
    return BoundaryEvidence(None, f"{conversation.current_model} holds the prompt cache and nothing was compacted")
