"""Active learning: choose the rows of an unlabelled pool whose labels are most informative.

`query` chooses rows by one of two scores, in nats. With y the label of a row, f the latent function, and everything
conditional on the training data, they are::

    entropy    H[y]                     uncertainty of the label, whatever its cause
    bald       H[y] - E_f H[y|f]        information of the label about f: I(y; f) (Houlsby et al. 2011)

Hyperparameters are kept, and no model is fitted again. `bald` needs a `GaussianProcessClassifier` with one model of
all classes (``multi_class="joint"``).
"""

from gpclass.active.scores import bald, entropy, query

__all__ = ["bald", "entropy", "query"]
