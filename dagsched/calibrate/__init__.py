"""Times from measured runs into plans: read a trace, match its events to ops, write the times into the plan's text."""
