"""RouteLLM's matrix factorisation in its own environment: ``python run_routellm.py FOLDER``.

Trained by their ``MFModel_Train`` and ``train_loops`` with the settings of their script (dimension 128, 100 epochs, batches of 64, Adam at
3e-4, decay 1e-5), on the battles of our pair; ties are no battles, as there. The win rate is then asked of their ``MFModel``. Its client
for OpenAI's embeddings is replaced by one that hands out ours; two names of their list stand for our two models.
"""

import sys
import types
from pathlib import Path

import numpy as np
import torch
from routellm.routers.matrix_factorization import model as serving
from routellm.routers.matrix_factorization import train_matrix_factorization as training

WEAK, STRONG = "mixtral-8x7b-instruct-v0.1", "gpt-4-1106-preview"
DIMENSION = 128


class InjectedEmbeddings:
    """Stands in for ``OpenAI().embeddings``: the prompt is a row number, the answer that row."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def create(self, input: list[str], model: str) -> types.SimpleNamespace:  # noqa: A002 - their keyword
        """The embedding of one prompt in the shape of an answer of the API."""
        return types.SimpleNamespace(data=[types.SimpleNamespace(embedding=self.rows[int(input[0])].tolist())])


def trained(X: np.ndarray, weak: np.ndarray, strong: np.ndarray, folder: Path) -> torch.nn.Module:
    """Their training model after their loop."""
    torch.manual_seed(42)
    np.save(folder / "embeddings.npy", X)
    battles = [
        {"model_a": WEAK, "model_b": STRONG, "winner": "model_a" if weak[i] > strong[i] else "model_b", "idx": int(i)}
        for i in np.random.default_rng(42).permutation(np.flatnonzero(weak != strong))
    ]
    cut = int(0.95 * len(battles))
    loaders = [training.PairwiseDataset(battles[:cut]).get_dataloaders(64, shuffle=True)]
    loaders.append(training.PairwiseDataset(battles[cut:]).get_dataloaders(1024, shuffle=False))
    net = training.MFModel_Train(
        dim=DIMENSION, num_models=len(serving.MODEL_IDS), num_prompts=len(X), text_dim=X.shape[1], npy_path=folder / "embeddings.npy"
    )
    training.train_loops(net, *loaders, lr=3e-4, weight_decay=1e-5, alpha=0.1, num_epochs=100, device="cpu")
    return net


def win_rates(net: torch.nn.Module, X: np.ndarray) -> np.ndarray:
    """Their serving model's probability that the strong model wins, for every row."""
    asked = serving.MFModel(dim=DIMENSION, num_models=len(serving.MODEL_IDS), text_dim=X.shape[1], num_classes=1, use_proj=True)
    state = net.state_dict()
    asked.load_state_dict(
        {"P.weight": state["P.weight"], "text_proj.0.weight": state["text_proj.weight"], "classifier.0.weight": state["classifier.weight"]}
    )
    asked.eval()
    serving.OPENAI_CLIENT = types.SimpleNamespace(embeddings=InjectedEmbeddings(X))
    strong, weak = serving.MODEL_IDS[STRONG], serving.MODEL_IDS[WEAK]
    return np.array([asked.pred_win_rate(strong, weak, str(i)) for i in range(len(X))])


def main(folder: Path) -> None:
    """Needs of every fold."""
    torch.set_num_threads(1)
    for part in sorted(folder.glob("fold-*")):
        train, held = np.load(part / "train.npz"), np.load(part / "held.npz")
        net = trained(train["X"], train["weak"], train["strong"], part)
        np.savez(part / "needs.npz", **{"routellm mf": win_rates(net, held["X"])})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
