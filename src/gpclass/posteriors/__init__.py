"""Posteriors: latent processes over inputs, whichever method made them."""
