"""Active learning: which rows of a pool are worth a label.

A label y is one of the classes, f the latent function, and everything is given the training data::

    entropy    H[y]                     how uncertain the label is, for whatever reason
    bald       H[y] - E_f H[y|f]        what the label tells about f: I(y; f) (Houlsby et al. 2011)
    expected_log_loss_reduction
               mean_t I(y; y_t)         what it tells about the labels y_t of other inputs: by how much the
                                        log loss there is expected to fall (Bickford Smith et al. 2023)

All are in nats. Hyperparameters stay what they are, and nothing is fitted again.
"""

from gpclass.active.scores import bald, entropy, expected_log_loss_reduction, query

__all__ = ["bald", "entropy", "expected_log_loss_reduction", "query"]
