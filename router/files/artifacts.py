"""Router artefacts, catalogs and language identification from disk."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from router.artifact import MANIFEST, RouterArtifact, artifact_id, dump_artifact, load_artifact
from router.catalog import ModelCatalog
from router.encoder import TextEncoder
from router.errors import ArtifactError, CatalogError
from router.files.atomic import require_replaceable, write_folder_atomically
from router.files.encoders import load_encoder
from router.languages import LanguageIdentifier
from router.route import Router
from router.selection import RoutingPolicy

_SHIPPED: Final = Path(__file__).parent / "shipped"
SHIPPED_ROUTER: Final = _SHIPPED / "router"
_REPOSITORY_CATALOG: Final = Path(__file__).parents[2] / "data" / "catalog.yaml"
SHIPPED_CATALOG: Final = _SHIPPED / "catalog.yaml" if (_SHIPPED / "catalog.yaml").exists() else _REPOSITORY_CATALOG
_LARGEST_PART_BYTES: Final = 512 * 2**20


def read_artifact(folder: Path | None = None) -> tuple[RouterArtifact, str]:
    """Load an artefact folder (default: the shipped one) and return it with its id.

    Raises
    ------
    ArtifactError
        If the folder is missing, or a part of it is missing, tampered with or of another format.
    """
    folder = SHIPPED_ROUTER if folder is None else folder
    if not folder.is_dir() or not (folder / MANIFEST).is_file():
        raise ArtifactError(f"no router artefact in {folder}: give a folder that `interlock train` wrote")
    parts: dict[str, bytes] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".npz"):
            if path.stat().st_size > _LARGEST_PART_BYTES:
                raise ArtifactError(f"part {path.name!r} of {folder} is larger than {_LARGEST_PART_BYTES >> 20} MiB")
            parts[path.name] = path.read_bytes()
    return load_artifact(parts), artifact_id(parts)


def write_artifact(artifact: RouterArtifact, folder: Path, extra: Mapping[str, bytes] | None = None) -> str:
    """Write an artefact folder in one step and return its id; ``extra`` adds files such as a model card.

    Raises
    ------
    InvalidInput
        If the folder holds other files than an artefact's: writing replaces it whole.
    """
    check_artifact_output(folder)
    parts = dump_artifact(artifact)
    write_folder_atomically(folder, {**parts, **(extra or {})})
    return artifact_id(parts)


def check_artifact_output(folder: Path) -> None:
    """Refuse a folder that an artefact may not replace, before hours are spent on training one."""
    require_replaceable(folder, MANIFEST, "artefact")


def read_catalog(path: Path | None = None) -> ModelCatalog:
    """Load a catalog file (default: the shipped one).

    Raises
    ------
    CatalogError
        If the file is missing, is not YAML, or is not a catalog.
    """
    path = SHIPPED_CATALOG if path is None else path
    return ModelCatalog.from_mapping(read_yaml(path))


class _StrictLoader(yaml.SafeLoader):
    """Safe YAML in which a key must not stand twice: the second would silently win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge"]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"key {twice!r} stands twice", node.start_mark)
        return dict(super().construct_mapping(node, deep))


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping; a :class:`CatalogError` names the file otherwise."""
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), _StrictLoader)  # noqa: S506 - a SafeLoader
    except FileNotFoundError:
        raise CatalogError(f"no catalog at {path}") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise CatalogError(f"{path} cannot be read as YAML: {' '.join(str(error).split())}") from error
    if not isinstance(raw, dict):
        raise CatalogError(f"{path} is empty or not a mapping: a catalog has a key 'models'")
    return raw


class _LangId:
    """Adapter of py3langid."""

    def __init__(self) -> None:
        from py3langid.langid import MODEL_FILE
        from py3langid.langid import LanguageIdentifier as Model

        self._model = Model.from_model_file(MODEL_FILE)

    def classify(self, text: str) -> str:
        return str(self._model.classify(text)[0])


@lru_cache(maxsize=1)
def language_identifier() -> LanguageIdentifier:
    """The identifier used everywhere, loaded once (0.5 s, 120 MB)."""
    return _LangId()


def load_router(
    artifact: Path | None = None,
    catalog: Path | ModelCatalog | None = None,
    policy: RoutingPolicy | None = None,
    *,
    encoder: TextEncoder | None = None,
    threads: int = 1,
) -> tuple[Router, str]:
    """A ready router and the id of its artefact; without arguments the shipped artefact and catalog.

    The encoder is the one the artefact names, loaded with ``threads`` threads unless given.
    """
    loaded, name = read_artifact(artifact)
    models = catalog if isinstance(catalog, ModelCatalog) else read_catalog(catalog)
    text_encoder = load_encoder(loaded.encoder, threads) if encoder is None else encoder
    return Router(loaded, text_encoder, models, policy, language_identifier()), name
