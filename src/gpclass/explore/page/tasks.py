"""What takes long on the page: each is done in a thread, shown as it goes, and can be cancelled."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpclass.explore import ask as asking
from gpclass.explore import differ, occam
from gpclass.explore import learn as learning
from gpclass.explore.fit import fit
from gpclass.explore.jobs import Task
from gpclass.explore.page import canvas as drawing
from gpclass.explore.page import controls, panels
from gpclass.explore.scene import scene
from gpclass.explore.share import KINDS, file_of
from gpclass.explore.state import add_point, set_theta

if TYPE_CHECKING:
    from gpclass.explore.page.session import Session

PAUSE = 0.12  # seconds between the steps of learning


def learn(page: Session) -> None:
    """Learn the hyperparameters, and show each step of it."""
    state, steps = page.state, list[Any]()
    page.remember()

    def work(task: Task) -> None:
        def report(theta: Any, evidence: float) -> None:
            task.show((theta, evidence, scene(set_theta(state, theta))))
            task.pause(PAUSE)

        path = learning.learn(state, report)
        task.show(f"Learned in {len(path.theta)} steps: log evidence {path.evidence[-1]:.3f}. {path.message}")

    def show(part: Any) -> None:
        if isinstance(part, str):
            panels.say(page.panels, part)
            return
        theta, evidence, found = part
        steps.append(theta)
        page.state = found.state
        page.quiet = True
        controls.show_dials(page.controls, page.state)
        page.quiet = False
        page.paint(found)
        panels.show_path(page.panels, page.state, np.array(steps))
        panels.say(page.panels, f"Learning: log evidence {evidence:.3f}.")

    page.run(work, show, "Learning the hyperparameters.")


def draw_surface(page: Session, wait: float = 0.0) -> None:
    """Draw the evidence over two hyperparameters, coarse first, if nothing happens before."""
    state, pair = page.state, panels.chosen(page.panels, page.state)

    def work(task: Task) -> None:
        task.pause(wait)
        for found in occam.surface(state, fit(state), pair):
            task.check()
            if found is not None:
                task.show(found)

    page.run(work, lambda found: panels.show_surface(page.panels, found), last=True)


def go_to(page: Session, x: Any, y: Any) -> None:
    """Go to the hyperparameters that were clicked on the surface."""
    if None in (x, y) or len(page.state.theta) < 2:
        return
    i, j = panels.chosen(page.panels, page.state)
    theta = np.array(page.state.theta)
    theta[[i, j]] = x * controls.LN10, y * controls.LN10
    page.act(lambda state: set_theta(state, theta))


def check(page: Session) -> None:
    """Say how wrong the approximation is, of both methods if two are compared."""
    state = page.state

    def work(task: Task) -> None:
        for method in dict.fromkeys(name for name in (state.method, state.other) if name):
            task.show(differ.verdict(fit(state, method), method))

    found: list[str] = []

    def show(verdict: str) -> None:
        found.append(verdict)
        words = "".join(f"<p>{panels.plain(each)}</p>" for each in found)
        page.panels.words.text = f"<p>{panels.plain(page.begun.words)}</p>{words}"
        panels.say(page.panels, "")

    page.run(work, show, "Comparing with importance sampling.")


def run_chains(page: Session) -> None:
    """Draw functions by Markov chains, more and more of them."""
    state = page.state

    def work(task: Task) -> None:
        for running in differ.run_chains(state):
            task.show(running)

    def show(running: differ.Running) -> None:
        drawing.show_running(page.canvas, state, running)
        panels.say(page.panels, f"MCMC (dashed): {running.n_draws} draws.")

    page.run(work, show, "Starting Markov chains.")


def ask(page: Session) -> None:
    """Find the most informative place."""
    state, score = page.state, page.panels.score.value

    def show(found: asking.Question) -> None:
        page.place = found.place
        cursor = tuple(found.place.tolist())
        page.state = replace(page.state, cursor=cursor, selected=None)
        drawing.show_points(page.canvas, page.state, cursor=True)
        known = "" if page.begun.oracle else " Nobody knows the label here: you are the oracle, press Enter."
        page.panels.asked.text = f"<p>{panels.plain(found.words + known)}</p>"
        page.panels.answer.disabled = page.begun.oracle is None

    page.run(lambda task: task.show(asking.question(state, fit(state), score)), show)


def answer(page: Session) -> None:
    """Add the label that the oracle gives."""
    oracle, place = page.begun.oracle, page.place
    if oracle is not None and place is not None:
        page.act(lambda state: add_point(state, place, min(oracle(place), state.n_classes - 1)))


def download(page: Session, kind: str) -> None:
    """Make a file, and have the browser save it."""
    state, (_, name, mime) = page.state, KINDS[kind]

    def show(content: bytes) -> None:
        text = base64.b64encode(content).decode()
        page.panels.file.value = ""  # the same file may be wanted twice
        page.panels.file.value = f"{name}|{mime}|{text}"
        panels.say(page.panels, f"{name} has {len(content):,} bytes.")

    page.run(lambda task: task.show(file_of(state, kind)), show, f"Making {name}.")
