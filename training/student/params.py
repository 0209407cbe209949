"""Parameters of one student; a TOML file may override any of them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from router.errors import InvalidInput


@dataclass(frozen=True)
class StudentParams:
    """Sizes are chosen for at most 12 MB and 1 ms at 200 tokens; see docs/decisions."""

    seed: int = 20
    pieces: int = 64_000
    width: int = 128
    window: int = 192
    hidden: int = 512
    dimension: int = 256
    max_tokens: int = 384
    epochs: int = 3
    groups_per_batch: int = 192
    languages_per_group: int = 4
    prompts_per_batch: int = 192
    learning_rate: float = 2e-3
    temperature: float = 0.05
    contrast: float = 0.3
    whitening: float = 0.5
    swapped_prompts: float = 0.5
    swapped_pieces: float = 0.9
    holdout: float = 0.1
    teacher_languages: tuple[str, ...] = ("en", "de", "fr", "es", "ru", "zh", "ja", "ar", "hi", "tr", "id")
    sources: tuple[str, ...] = (
        "routellm_mmlu",
        "routellm_gsm8k",
        "routellm_mtbench",
        "livecodebench_gen",
        "livecodebench_repair",
        "swebench_verified_systems2024",
        "swebench_lite_systems2024",
        "shaberi_tengu_bench",
        "shaberi_ja-mt-bench-1shot",
        "shaberi_rakuda-questions",
    )
    threads: int = 1

    @classmethod
    def read(cls, path: Path | None) -> StudentParams:
        """Defaults, overridden by the file."""
        if path is None:
            return cls()
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise InvalidInput(f"cannot read parameters {path}: {error}") from error
        known = {field.name: field for field in fields(cls)}
        for name, value in values.items():
            default = getattr(cls, name, None)
            if name not in known:
                raise InvalidInput(f"parameter {name!r} in {path} is unknown; known: {', '.join(known)}")
            if isinstance(default, tuple):
                values[name] = tuple(value)
            elif not isinstance(value, (int, float)) or (isinstance(default, int) and not isinstance(value, int)):
                raise InvalidInput(f"parameter {name!r} in {path} is {value!r}; expected {type(default).__name__}")
        return cls(**values)
