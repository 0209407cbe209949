"""Two routers on the same prompts, side by side, with paired tests."""

from training.compare.comparison import Comparison, compare
from training.compare.sides import Side, aligned, read_side, side_of

__all__ = ["Comparison", "Side", "aligned", "compare", "read_side", "side_of"]
