"""Active learning: choose the rows of an unlabelled pool whose labels are most informative.

`query` chooses rows by one of three scores. With y the label of a row, f the latent function, and everything
conditional on the training data, they are::

    entropy    H[y]                     uncertainty of the label, whatever its cause
    bald       H[y] - E_f H[y|f]        information of the label about f: I(y; f) (Houlsby et al. 2011)
    expected_log_loss_reduction
               mean_t I(y; y_t)         its information about the labels y_t of other rows: the expected
                                        reduction of the log loss there (Bickford Smith et al. 2023)

All are in nats. Hyperparameters are kept, and no model is fitted again. The arguments are a fitted classifier and
the rows of the pool. `bald` and the expected reduction need a `GaussianProcessClassifier` with one model of all classes
(``multi_class="joint"``).
"""

from gpclass.active.scores import bald, entropy, expected_log_loss_reduction, query

__all__ = ["bald", "entropy", "expected_log_loss_reduction", "query"]
