"""barrier (native/barrier)."""
