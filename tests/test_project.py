"""What is written in several files of the project agrees: versions, dependencies, commands of the workflows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import gpclass

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# Actions that only prepare the machine or keep results; everything else is a target of the Makefile.
ACTIONS = {"actions/checkout", "actions/setup-python", "actions/upload-artifact"}


def read(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text("utf-8")


def steps(workflow: Path) -> list[dict[str, str]]:
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_of_the_makefile(workflow):
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    assert commands
    assert {command.removeprefix("make ") for command in commands} <= targets
    assert {step["uses"].split("@")[0] for step in steps(workflow) if "uses" in step} <= ACTIONS


def test_every_check_is_in_a_workflow():
    commands = {step["run"] for workflow in WORKFLOWS for step in steps(workflow) if "run" in step}
    assert {"make test", "make minimum", "make dist", "make docs"} <= commands


def test_classifiers_name_the_versions_of_python_that_are_tested():
    tests = yaml.safe_load(read(".github", "workflows", "tests.yml"))["jobs"]
    tested = tests["test"]["strategy"]["matrix"]["python-version"]
    named = [re.search(r":: (3\.\d+)$", classifier) for classifier in PROJECT["classifiers"]]
    assert [found.group(1) for found in named if found] == tested
    assert PROJECT["requires-python"] == f">={tested[0]}"


@pytest.mark.parametrize(
    "form", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_issue_templates_are_forms(form):
    content = yaml.safe_load(form.read_text("utf-8"))
    if form.stem == "config":
        assert content["blank_issues_enabled"] is True
        return
    assert content["name"]
    assert content["description"]
    fields = [field["id"] for field in content["body"] if field["type"] != "markdown"]
    assert len(fields) == len(set(fields)) > 0


def test_the_version_is_the_same_everywhere():
    version = gpclass.__version__
    assert yaml.safe_load(read("CITATION.cff"))["version"] == version
    assert yaml.safe_load(read("recipe", "recipe.yaml"))["context"]["version"] == version
    assert re.search(r"^## \[(\d.*)\]$", read("CHANGELOG.md"), re.MULTILINE).group(1) == version
    pages = "".join(
        read(*name) for name in (("README.md",), ("docs", "guide", "faq.md"), ("docs", "guide", "install.md"))
    )
    assert set(re.findall(r"(?:gpclass-|version(?: = {)?\s*)(\d+\.\d+\.\d+)", pages)) == {version}


def test_the_recipe_has_the_dependencies_of_the_package():
    recipe = yaml.safe_load(read("recipe", "recipe.yaml"))
    minimum = recipe["context"]["python_min"]
    assert PROJECT["requires-python"] == f">={minimum}"
    asked = {re.sub(r"\[.*\]", "", each) for each in PROJECT["dependencies"]}
    assert {each.replace(" ", "") for each in recipe["requirements"]["run"][1:]} == asked
    users = set(PROJECT["optional-dependencies"]) - {"all", "browser", "dev", "docs", "dist"}
    extras = {
        each for key in users for each in PROJECT["optional-dependencies"][key] if "gpclass" not in each
    }
    extras |= {
        each.replace("dask[distributed]", "distributed") for each in extras
    }  # packages of their own there
    names = {re.sub(r"\[.*?\]", "", each).replace("matplotlib", "matplotlib-base") for each in extras}
    assert {each.replace(" ", "") for each in recipe["requirements"]["run_constraints"]} == names
    assert recipe["build"]["noarch"] == "python"
    name, function = next(iter(PROJECT["scripts"].items()))
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {function}"]


def test_no_page_says_that_the_package_is_on_an_index():
    examples = (ROOT / "docs" / "examples").rglob("*.*")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs" / "guide").glob("*.md"), *examples]
    for page in pages:
        if page.name != "install.md":  # which explains what to type instead
            text = page.read_text("utf-8")
            assert not re.search(r"(pip|conda|uv) (install|add) (-\S+ )*[\"']?gpclass\b(?!-)", text), page
