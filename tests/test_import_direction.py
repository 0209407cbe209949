"""Who may import whom, and what may not be used anywhere."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("router", "training", "serve", "interlock")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

# The core is arrays and text. Disk belongs to router.files; router.encoders may load its library when an encoder is built.
PURE_STDLIB = {
    "__future__", "abc", "collections", "dataclasses", "difflib", "enum", "functools", "hashlib", "importlib", "io", "itertools", "json",
    "math", "re", "reprlib", "struct", "threading", "typing", "unicodedata", "zipfile", "zlib",
}  # fmt: skip
PURE_LIBRARIES = {"numpy"}
ENCODER_LIBRARIES = {"onnx", "onnxruntime", "tokenizers", "sentence_transformers", "torch", "transformers"}
FORBIDDEN_ANYWHERE = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
FORBIDDEN_CALLS = {"eval", "exec", "__import__"}
# Runs a model's answer against its unit tests: a process of its own with limited resources, started by nothing but the grader.
SANDBOX = "training/label/sandbox_child.py"
MAY_IMPORT = {
    "router": {"router"},
    "training": {"training", "router"},
    "serve": {"serve", "router"},
    "interlock": {"interlock", "training", "serve", "router"},
}


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every module a file imports, and whether it does so on import of the file itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_import = set(_outside_functions(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in at_import) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or "", node in at_import


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _outside_functions(child)


def calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def pure(path: Path) -> bool:
    return not relative(path).startswith("router/files/")


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_package_imports_only_what_stands_below_it(path: Path) -> None:
    package = relative(path).split("/")[0]
    others = {name.split(".")[0] for name, _ in imports(path)} & set(PACKAGES)
    # What is only ever run, `python -m package`, may hand over to the command line; nothing imports it.
    entry_point = {"interlock"} if path.name == "__main__.py" else set()
    assert others <= MAY_IMPORT[package] | entry_point


@pytest.mark.parametrize("path", [path for path in SOURCES if relative(path).startswith("router/") and pure(path)], ids=relative)
def test_the_core_touches_no_disk_network_clock_or_environment(path: Path) -> None:
    in_encoders = relative(path).startswith("router/encoders/")
    for name, at_import in imports(path):
        top = name.split(".")[0]
        if top == "router":
            assert not name.startswith("router.files"), f"{name}: the core must not reach for files"
        elif in_encoders and not at_import:
            assert top in PURE_STDLIB | PURE_LIBRARIES | ENCODER_LIBRARIES, name
        else:
            assert top in PURE_STDLIB | PURE_LIBRARIES, name
    assert {"open", "print", "input", "io.open"}.isdisjoint(calls(path))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_nothing_unpickles_or_evaluates(path: Path) -> None:
    assert {name.split(".")[0] for name, _ in imports(path)}.isdisjoint(FORBIDDEN_ANYWHERE)
    used = set(calls(path))
    assert used.isdisjoint(FORBIDDEN_CALLS) or relative(path) == SANDBOX
    assert not {name for name in used if name in ("torch.load", "numpy.load", "yaml.unsafe_load", "yaml.full_load")}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.load":
            options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            assert options.get("allow_pickle", "False") == "False"


def test_only_tracking_knows_mlflow() -> None:
    users = {relative(path) for path in SOURCES if any(name.split(".")[0] == "mlflow" for name, _ in imports(path))}
    assert users <= {"training/tracking.py"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_it_is(package: str) -> None:
    assert ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8")))
