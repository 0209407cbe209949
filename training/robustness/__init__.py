"""How far a decision stands when a request changes in ways that leave its work alone, and how few added tokens overturn it.

``transformation`` says what a change is; ``surface``, ``wrappers``, ``clients`` and ``pasted`` hold them and ``registry`` lists them.
``groups`` pairs translations and paraphrases, ``battery`` runs all of these, ``gadgets`` searches for tokens that reroute and ``attack``
tries them; ``run`` does everything in turn; ``copies`` makes changed prompts for training.
"""
