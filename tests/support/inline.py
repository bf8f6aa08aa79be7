"""A worker of the explore page without a thread."""

from __future__ import annotations

import warnings


class Inline:
    """Does the same as `gpclass.explore.jobs.Worker`, at once and in the thread that asks."""

    def __init__(self, deliver, *, patient=False):
        pass

    def submit(self, parts, on_part, on_end=lambda error: None):
        error = None
        try:
            with warnings.catch_warnings(action="ignore"):
                for part in parts:
                    if part is not None:
                        on_part(part)
        except Exception as caught:
            error = caught
        on_end(error)

    def cancel(self):
        return False
