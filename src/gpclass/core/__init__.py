"""Shared parts of the library: protocols, linear algebra, optimisers, priors on hyperparameters, progress."""
