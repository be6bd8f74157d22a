"""The program barrier (native/barrier)."""
