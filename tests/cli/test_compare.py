"""Comparing methods: table, JSON, figure and interruption."""

from __future__ import annotations

import json
import re

import pytest
from cli_runner import one_sentence, run
from sklearn.datasets import make_moons
from sklearn.preprocessing import StandardScaler

from gpclass import GaussianProcessClassifier, compare


class TestCompare:
    @pytest.mark.slow
    def test_built_in_problem(self, tmp_path):
        pytest.importorskip("matplotlib")
        figure = tmp_path / "f.pdf"
        text = run("compare", "-m", "laplace", "-o", figure).stdout
        assert re.search(r"laplace +-\d", text)
        assert figure.read_bytes().startswith(b"%PDF")

    def test_plane_as_json(self, tmp_path):
        out = json.loads(run("compare", "--problem", "moons", "-m", "laplace", "--json").stdout)
        (row,) = out["methods"]
        assert row["method"] == "laplace"
        assert 0.0 < row["log_loss"] < 0.5
        assert out["scored_rows"] == 500

    def test_data(self, folder):
        options = ("--target", "ill", "-m", "laplace", "-m", "vi", "--kernel", "rbf", "--cv", 2, "--json")
        out = json.loads(run("compare", folder / "mixed.csv", *options).stdout)
        assert [row["method"] for row in out["methods"]] == ["laplace", "vi"]
        assert (out["training_rows"], out["scored_rows"]) == (80, 80)
        two = ("-t", "y", "-m", "laplace", "--kernel", "rbf", "--cv", 2, "--json")
        out = json.loads(run("compare", folder / "moons.csv.gz", *two).stdout)
        X, y = make_moons(60, noise=0.2, random_state=0)
        X = StandardScaler().fit_transform(X)
        wanted = compare(X, y, kernel="rbf", methods=["laplace"], cv=None, n_samples=0)["laplace"].evidence
        assert out["methods"][0]["evidence"] == pytest.approx(wanted, rel=1e-6)

    def test_an_interruption_keeps_what_was_finished(self, monkeypatch):
        fit, calls = GaussianProcessClassifier.fit, []

        def second_is_cut(self, X, y, sample_weight=None):
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return fit(self, X, y)

        monkeypatch.setattr(GaussianProcessClassifier, "fit", second_is_cut)
        result = run("compare", "-m", "laplace", "-m", "ep", code=130)
        assert "interrupted after 1 of 2 methods" in result.stdout
        assert result.stderr.strip().startswith("gpclass: interrupted")

    def test_usage(self, folder):
        assert "--target" in run("compare", folder / "iris.csv", code=2).stderr
        assert "DATA" in run("compare", "--target", "y", code=2).stderr
        assert "99" in one_sentence(run("compare", folder / "iris.csv", "-t", "y", "--cv", 99, code=1))

    def test_baselines_and_findings(self, folder):
        options = ("-t", "y", "-m", "laplace", "--kernel", "rbf", "--cv", 2, "--json")
        out = json.loads(run("compare", folder / "moons.csv.gz", *options, "--baselines").stdout)
        names = [row["method"] for row in out["methods"]]
        assert names == ["laplace", "sklearn-gp", "logistic-regression", "gradient-boosting"]
        assert set(out["tied"]["log_loss"]) <= set(names)
        assert any("log loss" in sentence or "predicts" in sentence for sentence in out["findings"])
        one = json.loads(
            run("compare", folder / "moons.csv.gz", *options, "-m", "logistic-regression").stdout
        )
        assert [row["method"] for row in one["methods"]] == ["laplace", "logistic-regression"]
        assert "forest" in one_sentence(run("compare", "-m", "forest", code=1))
