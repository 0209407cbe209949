"""From prompts to a trained router: labels, features, fitting, evaluation."""
