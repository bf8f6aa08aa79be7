"""Learning and fitting: from a problem to a fitted model."""
