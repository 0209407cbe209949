"""Routers of the literature, learned on the same rows and inputs as ours, to be measured beside it.

``answers``  what every model of the tables scored on the rows
``pair``     any scikit-learn classifier or regressor as a router between two models
``matrix``   RouteLLM's matrix factorisation
``items``    a router by item response theory
``methods``  the list of them and the settings each is tuned over
``tune``     tuning, calibration, and predictions for rows that were not seen
"""

from training.learned_baselines.answers import answer_table
from training.learned_baselines.methods import METHODS, method_names
from training.learned_baselines.tune import FittedBaseline, fit_baseline, held_out_policies

__all__ = ["METHODS", "FittedBaseline", "answer_table", "fit_baseline", "held_out_policies", "method_names"]
