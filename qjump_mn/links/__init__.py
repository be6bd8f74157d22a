"""Link models, one per module: shape an interface, read it back, and interpret its counters."""
