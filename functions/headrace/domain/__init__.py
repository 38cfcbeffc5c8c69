"""What headrace knows: pure rules, models and decisions, without I/O, clock or cloud."""
