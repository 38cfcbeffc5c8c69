"""The same cloud in memory, on a simulated clock: whole runs in milliseconds, the same seed the same log."""
