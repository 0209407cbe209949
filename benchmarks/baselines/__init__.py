"""Our router beside the learned baselines on several pools: ``python -m benchmarks.baselines --data DIR --output runs/baselines``."""
