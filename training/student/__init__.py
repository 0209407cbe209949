"""Trains the ``fast`` encoder: a small student of the ``full`` one, on parallel text and prompts.

``params`` what can be set; ``texts`` what is read and held out; ``teacher`` vectors of the full encoder, cached; ``targets`` what
the student should say; ``vocabulary`` the pruned pieces; ``model`` the torch twin of :mod:`router.encoders.fast`; ``fit`` the
training loop; ``evaluate`` retrieval of translations; ``run`` the whole.
"""
