"""What every part shares: the protocols, linear algebra, optimisers, priors on hyperparameters, progress."""
