"""Public data sets, turned into the canonical prompt and outcome tables.

Nothing is downloaded: a loader reads a file that the user fetched under the data set's own licence.
"""

from training.sources.base import Converted, Source, write_converted
from training.sources.registry import SOURCES, convert, source_named

__all__ = ["SOURCES", "Converted", "Source", "convert", "source_named", "write_converted"]
