"""Measurements of the product. Each module runs alone: ``python -m benchmarks.<name>``."""
