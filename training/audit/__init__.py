"""Label audit: how far the labels of a folder can be trusted, as a card, tables and verdicts on limits."""
