"""Pools of more than two models: rows with the scores and costs of every model, routers fitted for a pool, and their evaluation."""
