"""Plan files: reading, writing, building."""
