"""The HTTP service: settings, wire format, and thin handlers around :class:`router.route.Router`. Nothing here decides a model.

``serve.wire`` and ``serve.options`` need only the base install; everything else needs the ``serve`` extra.
"""
