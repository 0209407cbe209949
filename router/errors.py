"""Every error the product raises on purpose, on one page.

The command line prints the message after ``error:`` and exits with code 2; the service turns it into a problem document. A message names
the value that was refused, what was allowed, and the way out.
"""


class RouterError(Exception):
    """Base of all errors that are the caller's to fix."""


class InvalidInput(RouterError, ValueError):
    """A value from outside (a message, a table, an option) is not usable."""


class CatalogError(RouterError):
    """The model catalog is missing, malformed, or contradicts itself."""


class ArtifactError(RouterError):
    """A router artefact or an encoder folder is missing, tampered with, or of another format."""


class EncoderError(RouterError):
    """A text encoder cannot be built or loaded, or does not match the artefact."""


class LabelError(RouterError):
    """Labelling cannot start or go on (settings, endpoint, budget, stored answers)."""


class EngineError(RouterError):
    """What training is spread over cannot be used (Dask missing, scheduler unreachable, unlike versions)."""
