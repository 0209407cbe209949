"""The ``sentence`` kind: refusals need no PyTorch; the rest runs on a tiny, real SentenceTransformer where that is installed."""

import importlib.machinery
import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from router.encoder import EncoderSpec
from router.encoders.full import FullEncoder, build_full
from router.encoders.sentence import SentenceEncoder
from router.errors import EncoderError
from router.files import sentence_models
from router.files.encoders import load_encoder

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TEXTS = ["hello world", "the cat sat", "你好世界", "مرحبا", "こんにちは"]


class FakeModel:
    """Answers with the lengths of the texts, as far as the wrapper asks."""

    max_seq_length = 512

    def __init__(self, default_prompt_name=None):
        self.prompts = {"query": "query: "}
        self.default_prompt_name = default_prompt_name
        self.seen: list[str] = []

    def get_embedding_dimension(self):
        return 2

    def encode(self, texts, prompt, batch_size, show_progress_bar):
        self.seen += texts
        return np.array([[len(text), 1.0] for text in texts])


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERLOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def extra(monkeypatch):
    """As if sentence-transformers were installed, with a hub that cannot be reached; nothing gets as far as using it."""
    module = ModuleType("sentence_transformers")
    module.__spec__ = importlib.machinery.ModuleSpec("sentence_transformers", None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)

    def unreachable(self, *args, **kwargs):
        raise ConnectionError("no network\nlong story")

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", unreachable)
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *args, **kwargs: None)


@pytest.fixture(scope="session")
def made(tmp_path_factory, container):
    """A tiny SentenceTransformer folder with the weights of the tiny full encoder."""
    pytest.importorskip("sentence_transformers")
    where = Path(__file__).parents[3] / "benchmarks" / "e5_folder.py"
    spec = importlib.util.spec_from_file_location("e5_folder", where)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("sentence") / "tiny"
    module.write_folder(container, folder)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "tiny"))


def test_prefix_and_length():
    model = FakeModel(default_prompt_name="query")
    encoder = SentenceEncoder.of(model, "some/model", COMMIT)
    assert encoder.spec == EncoderSpec("sentence", "some/model", COMMIT, "query: ", 512, 2)
    vectors = encoder.encode(["hello", " "])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1.0, 0.0], atol=1e-6)
    assert model.seen == ["query: hello"]


@pytest.mark.parametrize(("default", "given", "used"), [(None, None, ""), (None, "q: ", "q: "), ("query", "", ""), ("query", "q: ", "q: ")])
def test_a_prefix_that_is_given_wins(default, given, used):
    assert SentenceEncoder.of(FakeModel(default), "some/model", COMMIT, given).spec.prefix == used


def test_only_a_sentence_transformer_takes_a_prefix():
    with pytest.raises(EncoderError, match="does not go with the encoder 'fast'"):
        load_encoder("fast", prefix="query: ")


def test_without_the_extra_the_message_names_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    (tmp_path / "modules.json").write_text("[]")
    for name in ("some/model", "some-model", str(tmp_path)):
        with pytest.raises(EncoderError, match=r"needs sentence-transformers; run: pip install 'interlock\[encoders\]'"):
            load_encoder(name)


@pytest.mark.parametrize("name", ["./absent", "/absent/model", "a/b/c", "~/absent-model", "absent/"])
def test_a_folder_that_is_not_there_is_not_looked_for_elsewhere(name, extra):
    with pytest.raises(EncoderError, match="no encoder folder"):
        load_encoder(name)


def test_a_folder_without_a_model_is_refused(tmp_path, extra):
    with pytest.raises(EncoderError, match=r"is not a SentenceTransformer folder: it has neither modules\.json"):
        load_encoder(str(tmp_path))


def test_without_a_network_it_says_so_in_one_line(extra, caplog):
    with pytest.raises(EncoderError, match=r"hub cannot be asked \(no network\); download it .* give its folder") as refused:
        load_encoder("all-MiniLM-L6-v2")
    assert "\n" not in str(refused.value)
    assert "sentence-transformers/all-MiniLM-L6-v2 is not in the Hugging Face cache; asking the hub" in caplog.text


def test_a_name_that_cannot_be_one_is_refused(extra, monkeypatch):
    def refuse(*args, **kwargs):
        raise ValueError("Repo id must use alphanumeric chars")

    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", refuse)
    with pytest.raises(EncoderError, match="neither a folder nor a model name: Repo id"):
        load_encoder("a model")


def test_a_model_of_the_hub_is_pinned_to_its_commit(extra, monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda self, name, **_: SimpleNamespace(sha=COMMIT))
    assert sentence_models.find_model("some-model") == sentence_models.SentenceModel(
        "sentence-transformers/some-model", COMMIT, cached=False
    )


def test_a_cached_model_needs_no_network(extra, monkeypatch):
    asked = []

    def cached(name, file, revision):
        asked.append((name, file, revision))
        return f"/cache/models--some--model/snapshots/{COMMIT}/{file}"

    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", cached)
    assert sentence_models.hub_model("some/model", COMMIT) == sentence_models.SentenceModel("some/model", COMMIT)
    assert asked == [("some/model", "modules.json", COMMIT)]


def test_bytes_and_names_are_the_revision_of_a_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    for name in ("modules.json", "sub/weights"):
        (tmp_path / name).write_text(name)
    first = sentence_models.folder_model(tmp_path)
    for name in ("README.md", ".gitattributes"):
        (tmp_path / name).write_text("no part of the model")
    assert sentence_models.folder_model(tmp_path) == first
    (tmp_path / "sub" / "weights").write_text("sub/Weights")
    assert sentence_models.folder_model(tmp_path).revision != first.revision


def test_a_pinned_folder_that_changed_or_went_away_is_refused(tmp_path, cache):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    known = sentence_models.folder_model(tmp_path / "model")
    spec = EncoderSpec("sentence", known.name, known.revision, "", 16, 4)
    (tmp_path / "model" / "config.json").write_text("{ }")
    with pytest.raises(EncoderError, match=f"not the encoder that this router was trained with.*expected {known.revision}; put"):
        load_encoder(spec)
    shutil.rmtree(tmp_path / "model")
    with pytest.raises(EncoderError, match=r"is not there; put it back, or into .*encoders, or train again"):
        load_encoder(spec)


@pytest.mark.slow
def test_a_real_folder_reads_as_the_full_encoder_does(folder, container):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    encoder = load_encoder(str(folder))
    assert encoder.spec.prefix == "query: "
    assert encoder.spec.name == str(folder)
    vectors = encoder.encode(TEXTS)
    np.testing.assert_allclose(np.vstack([encoder.encode([text]) for text in TEXTS]), vectors, atol=1e-5)
    full = FullEncoder.from_bytes(*build_full(container, "0" * 64)).encode(TEXTS)
    assert (full * vectors).sum(axis=1).min() > 0.98


@pytest.mark.slow
def test_a_real_folder_is_met_again_wherever_it_lies(folder, cache):
    spec = load_encoder(str(folder), prefix="passage: ").spec
    assert spec.prefix == "passage: "
    (cache / "encoders").mkdir(parents=True)
    folder.rename(cache / "encoders" / "tiny")
    assert load_encoder(spec).spec == spec


@pytest.mark.slow
def test_a_damaged_model_is_one_line(folder):
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(EncoderError, match="cannot load the SentenceTransformer") as refused:
        load_encoder(str(folder))
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_hub_model_in_the_cache_loads_offline(folder, tmp_path, monkeypatch):
    import huggingface_hub

    home = tmp_path / "hub" / "models--some--model"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(COMMIT)
    shutil.copytree(folder, home / "snapshots" / COMMIT)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: pytest.fail("asked the network"))
    monkeypatch.setattr("router.files.sentence_models.log.warning", lambda *_: pytest.fail("said that it downloads"))
    encoder = load_encoder("some/model")
    assert (encoder.spec.name, encoder.spec.revision) == ("some/model", COMMIT)
    assert load_encoder(encoder.spec).spec == encoder.spec
