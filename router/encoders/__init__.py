"""Encoders built from bytes: ``fast`` (shipped), ``full`` (multilingual-e5-small) and ``sentence`` (any SentenceTransformer)."""
