"""Effects of columns on the latent function and the probabilities, and the importance of columns, with uncertainty.

Their records are returned by the methods ``effect`` and ``importance`` of the classifier.
"""

from gpclass.effects.effect import Effect
from gpclass.effects.importance import Importance

__all__ = ["Effect", "Importance"]
