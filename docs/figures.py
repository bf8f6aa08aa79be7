"""Save the figures of the gallery twice, for light pages and for dark ones. Sphinx-gallery calls `light_and_dark`."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.collections import Collection
from matplotlib.colors import to_rgba_array
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

DPI = 150
PAGE = 736  # pixels of a column of text
WIDEST = 9.6  # inches of a figure that is as wide as the column
INK, PAPER = 0.92, 0.075  # grey levels of text and background on dark pages
DARK, PALER = 0.5, 0.25  # colours with less luma than this are mixed with so much white on dark pages
LUMA = np.array([0.299, 0.587, 0.114])  # luma of red, green and blue
GREY = 0.06  # channels that differ by less are shown as grey

STYLE = {
    "font.size": 10.0,
    "axes.titlesize": "medium",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": True,
}
# What has a colour, and the properties that hold it.
COLOURED = (
    (Text, ("color",)),
    (Line2D, ("color", "markerfacecolor", "markeredgecolor")),
    (Patch, ("facecolor", "edgecolor")),
    (Collection, ("facecolor", "edgecolor")),
)


def set_style(gallery_conf: Any, name: str) -> None:
    """Reset what the script before has changed, and set the style of all figures."""
    mpl.rcdefaults()
    mpl.use("Agg")
    mpl.rcParams.update(STYLE)


def light_and_dark(block: Any, block_vars: Any, gallery_conf: Any) -> str:
    """Save all open figures, and return the markup that shows the right one of each pair."""
    import matplotlib.pyplot as plt

    markup = []
    for number in plt.get_fignums():
        figure = plt.figure(number)
        path = next(block_vars["image_path_iterator"])
        figure.savefig(path, dpi=DPI, facecolor="white")
        darken(figure)
        dark = path.replace(".png", "_dark.png")
        figure.savefig(dark, dpi=DPI, transparent=True)
        width = round(PAGE * min(1.0, figure.get_figwidth() / WIDEST))
        for file, kind in ((path, "only-light"), (dark, "only-dark")):
            at = file.removeprefix(str(gallery_conf["src_dir"]))
            alt = str(block_vars["target_file"]).rsplit("/", 1)[-1].removeprefix("plot_").removesuffix(".py")
            markup.append(
                f".. image:: {at}\n   :alt: {alt}\n   :class: sphx-glr-single-img {kind}\n   :width: {width}px\n"
            )
    plt.close("all")
    return "\n".join(["", *markup, ""])


def darken(figure: Any) -> None:
    """Exchange black and white, and all greys between them; make dark colours a little paler."""
    for artist in figure.findobj():
        if getattr(artist, "get_array", lambda: None)() is not None:
            continue  # its colours are numbers
        if isinstance(artist, Text) and min(to_rgba_array(artist.get_color())[0]) == 1.0:
            continue  # white text stands on a dark colour
        for kind, properties in COLOURED:
            if isinstance(artist, kind):
                colours = [(name, getattr(artist, f"get_{name}")()) for name in properties]
                for name, colour in colours:
                    if not isinstance(colour, str) or colour.lower() != "none":
                        getattr(artist, f"set_{name}")(_mirrored(colour, isinstance(artist, Collection)))
        for effect in getattr(artist, "get_path_effects", list)() or ():
            if "foreground" in getattr(effect, "_gc", {}):
                effect._gc["foreground"] = _mirrored(effect._gc["foreground"], False)


def _mirrored(colours: Any, several: bool) -> Any:
    rgba = to_rgba_array(colours)
    rgb = rgba[:, :3]
    grey = np.ptp(rgb, axis=1) < GREY
    rgb[grey] = INK + (PAPER - INK) * rgb[grey].mean(axis=1, keepdims=True)
    dark = ~grey & (rgb @ LUMA < DARK)
    rgb[dark] += PALER * (1.0 - rgb[dark])
    return rgba if several else tuple(rgba[0])
