"""Does a decision stand when a request changes in ways that leave its work alone, and can a few added tokens overturn it?

``transformation`` says what a change is; ``surface``, ``wrappers``, ``clients`` and ``pasted`` hold them and ``registry`` lists them; ``groups``
compares translations and paraphrases; ``gadgets`` searches for suffixes that reroute; ``battery`` runs it all and ``report`` writes it down.
"""
