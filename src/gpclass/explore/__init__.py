"""A page in the browser to place points and see the predictions of each method: `gpclass explore`.

Needs Bokeh (the extra ``explore``), which is imported when a server is made. Everything that is shown
is computed by functions of records: `PageState` (points, kernel, method) in, `Scene` out. The package `page` draws it.
"""

from gpclass.explore.server import make_server, serve
from gpclass.explore.state import MOST_CLASSES, PageState, from_table, start

__all__ = ["MOST_CLASSES", "PageState", "from_table", "make_server", "serve", "start"]
