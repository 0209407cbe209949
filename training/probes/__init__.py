"""The profile of a new model from a few probe prompts: item response theory on outcomes of models that are known already."""
