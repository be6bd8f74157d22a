"""How each figure is drawn: one module a drawing, one style sheet for all, published values with their source in ``published/``.

A drawing is a module with ``draw(run, manifest, arms) -> list[style.Figure]``, ``arms`` being the arms' measures; ``qjump_mn.report.drawing``
finds this package, in the checkout beside ``qjump_mn`` and in an installed one inside it.
"""
