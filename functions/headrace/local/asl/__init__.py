"""The parts of the interpreter: loading and refusing, expressions, limits, tasks, one execution."""
