"""A worker of the explore page without a thread."""

from __future__ import annotations


class Inline:
    """Does the same as `gpclass.explore.jobs.Worker`, at once and in the thread that asks."""

    def __init__(self, deliver, *, patient):
        pass

    def submit(self, parts, on_part, on_end=lambda error: None, pause=0.0):
        error = None
        try:
            for part in parts:
                if part is not None:
                    on_part(part)
        except Exception as caught:
            error = caught
        on_end(error)

    def cancel(self):
        return False
