"""What an evaluation ran with: Python, packages, kind of machine and revision. No host, user or path."""

from __future__ import annotations

import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

PACKAGES: Final = ("interlock", "numpy", "scipy", "pandas", "scikit-learn", "lightgbm", "tokenizers", "onnxruntime", "matplotlib")
_ROOT: Final = Path(__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    """Name and version of everything that figures may depend on."""
    found = {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
    }
    if revision := git_revision(_ROOT):
        found["revision"] = revision
    return found | package_versions(PACKAGES)


def package_versions(names: tuple[str, ...]) -> dict[str, str]:
    """Version of every installed package of the names."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def git_revision(root: Path) -> str:
    """Short commit of a checkout, marked where files differ from it; empty outside a checkout or without git."""
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return ""
    commit, changed = _ask(git, root, "rev-parse", "--short=12", "HEAD"), _ask(git, root, "status", "--porcelain", "--untracked-files=no")
    return "" if not commit else f"{commit}, with changes" if changed else commit


def _ask(git: str, root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run([git, "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603 - fixed words
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
