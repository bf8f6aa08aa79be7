"""What predictions depend on: effects and importance of columns, with uncertainty, and the training rows behind them.

These records are returned by the methods of `gpclass.explanations.Explanations`.
"""

from gpclass.effects.effect import Effect
from gpclass.effects.importance import Importance
from gpclass.effects.rows import DoubtfulLabel, Influences

__all__ = ["DoubtfulLabel", "Effect", "Importance", "Influences"]
