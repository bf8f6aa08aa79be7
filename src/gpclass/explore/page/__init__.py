"""The page itself: Bokeh figures and widgets that show a state and turn events into actions."""
