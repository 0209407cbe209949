"""LLMRouter's kNN, SVM and MLP routers in its own environment: ``python run_llmrouter.py FOLDER``.

Each is configured by YAML, trained by its own trainer and asked by its own ``route_single``. The embedding of a query, which theirs
computes with a Longformer from a hub, is replaced by ours. ``route_single`` names a model and gives no number; the number behind it is
read from the model that its trainer fitted. Settings are those of its published configurations (kNN has none: scikit-learn's).
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import yaml
from llmrouter.models.knnrouter import router as knn
from llmrouter.models.knnrouter.trainer import KNNRouterTrainer
from llmrouter.models.mlprouter import router as mlp
from llmrouter.models.mlprouter.trainer import MLPTrainer
from llmrouter.models.svmrouter import router as svm
from llmrouter.models.svmrouter.trainer import SVMRouterTrainer

ROUTERS = {
    "knn": (knn, knn.KNNRouter, KNNRouterTrainer, {"n_neighbors": 5}),
    "svm": (svm, svm.SVMRouter, SVMRouterTrainer, {"kernel": "rbf", "C": 1.0, "gamma": "scale", "probability": True}),
    "mlp": (
        mlp,
        mlp.MLPRouter,
        MLPTrainer,
        {"hidden_layer_sizes": [128, 64], "activation": "relu", "lr": 0.001, "epochs": 100, "batch_size": 32, "alpha": 0.0001},
    ),
}


def write_data(part: Path, train: dict, settings: dict) -> Path:
    """Their files: embeddings by number, a row a query and model with its performance, and the configuration."""
    torch.save(torch.from_numpy(train["X"]), part / "embeddings.pt")
    # On a tie their idxmax takes the first row, so the cheaper model stands first.
    rows = [
        {"query": f"{i:08d}", "embedding_id": i, "model_name": name, "performance": float(train[name][i])}
        for i in range(len(train["X"]))
        for name in ("weak", "strong")
    ]
    (part / "routing.jsonl").write_text("\n".join(map(json.dumps, rows)))
    model = str(part / "model.pkl")
    configuration = {
        "data_path": {"query_embedding_data": str(part / "embeddings.pt"), "routing_data_train": str(part / "routing.jsonl")},
        "model_path": {"ini_model_path": "", "save_model_path": model, "load_model_path": model},
        "hparam": settings,
    }
    (part / "router.yaml").write_text(yaml.safe_dump(configuration))
    return part / "router.yaml"


def number_behind(name: str, trainer: object, router: object, X: np.ndarray) -> np.ndarray:
    """Probability of the strong model by what the trainer fitted."""
    if name == "mlp":
        trainer.model.eval()
        with torch.no_grad():
            return torch.softmax(trainer.model(torch.from_numpy(X)), dim=1)[:, router.model_to_idx["strong"]].numpy()
    return trainer.model.predict_proba(X)[:, list(trainer.model.classes_).index("strong")]


def needs(name: str, part: Path, train: dict, X: np.ndarray) -> dict[str, np.ndarray]:
    """The decision and the number behind it, for every row."""
    module, router_class, trainer_class, settings = ROUTERS[name]
    torch.manual_seed(0)
    module.get_longformer_embedding = lambda query: torch.from_numpy(X[int(query)])
    router = router_class(str(write_data(part, train, settings)))
    trainer = trainer_class(router, device="cpu")
    trainer.train()
    decided = [router.route_single({"query": str(i)})["model_name"] == "strong" for i in range(len(X))]
    behind = number_behind(name, trainer, router, X)
    return {f"llmrouter {name} decision": np.array(decided, dtype=float), f"llmrouter {name} probability": np.asarray(behind, dtype=float)}


def main(folder: Path) -> None:
    """Needs of every fold."""
    torch.set_num_threads(1)
    for part in sorted(folder.glob("fold-*")):
        train, held = dict(np.load(part / "train.npz")), np.load(part / "held.npz")["X"]
        found = {}
        for name in ROUTERS:
            found |= needs(name, part, train, held)
        np.savez(part / "needs.npz", **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
