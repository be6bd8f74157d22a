"""The program tap: a tap on a switch's ports."""
