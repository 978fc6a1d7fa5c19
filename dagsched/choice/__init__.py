"""Choose streams and issue order: candidates by rule and by search, each simulated, the quickest kept."""
