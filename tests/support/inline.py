"""A worker of the explore page without a thread."""

from __future__ import annotations

from gpclass.explore.jobs import Task


class Inline:
    """Does the same as `gpclass.explore.jobs.Worker`, at once and in the thread that asks."""

    def __init__(self, deliver, *, patient):
        self._deliver = deliver

    def submit(self, work, on_part, on_end=None):
        Task(work, self._deliver, on_part, on_end or (lambda error: None)).run()

    def cancel(self):
        return False

    def close(self):
        pass
