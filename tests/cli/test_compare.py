"""Comparing methods: table, JSON and figure."""

from __future__ import annotations

import json
import re

import pytest
from cli_runner import one_sentence, run
from sklearn.datasets import make_moons
from sklearn.preprocessing import StandardScaler

from gpclass import compare


class TestCompare:
    @pytest.mark.slow
    def test_built_in_problem(self, tmp_path):
        pytest.importorskip("matplotlib")
        figure = tmp_path / "f.pdf"
        text = run("compare", "-m", "laplace", "-o", figure).stdout
        assert re.search(r"laplace/probit +-7\.48", text)
        assert re.search(r"laplace/logit +-\d", text)
        assert figure.read_bytes().startswith(b"%PDF")

    def test_plane_as_json(self, tmp_path):
        out = json.loads(
            run("compare", "--problem", "moons", "-m", "laplace", "-l", "probit", "--json").stdout
        )
        (row,) = out["methods"]
        assert row["method"] == "laplace"
        assert 0.0 < row["log_loss"] < 0.5
        assert out["scored_rows"] == 500

    def test_data(self, folder):
        options = ("--target", "ill", "-m", "laplace", "-m", "vi", "--test-fraction", 0.3, "--json")
        out = json.loads(run("compare", folder / "mixed.csv", *options).stdout)
        assert [row["method"] for row in out["methods"]] == ["laplace", "vi"]
        assert (out["training_rows"], out["scored_rows"]) == (56, 24)
        two = ("-t", "y", "-m", "laplace", "--cv", 3, "--json")
        out = json.loads(run("compare", folder / "moons.csv.gz", *two).stdout)
        X, y = make_moons(60, noise=0.2, random_state=0)
        X = StandardScaler().fit_transform(X)
        wanted = compare(X, y, methods=["laplace"], cv=None, n_samples=0)["laplace"].evidence
        assert out["methods"][0]["evidence"] == pytest.approx(wanted, rel=1e-6)

    def test_usage(self, folder):
        assert "--target" in run("compare", folder / "iris.csv", code=2).stderr
        assert "DATA" in run("compare", "--target", "y", code=2).stderr
        assert "two ways" in run("compare", folder / "iris.csv", "-t", "y", "--cv", 3, "--test-fraction", 0.5,
                                 code=2).stderr  # fmt: skip
        assert "need DATA" in one_sentence(run("compare", "--cv", 3, code=1))

    def test_baselines_and_findings(self, folder):
        options = ("-t", "y", "-m", "laplace", "--cv", 2, "--json")
        out = json.loads(run("compare", folder / "moons.csv.gz", *options, "--baselines").stdout)
        names = [row["method"] for row in out["methods"]]
        assert names == ["laplace", "sklearn-gp", "logistic-regression", "gradient-boosting"]
        assert set(out["tied"]["log_loss"]) <= set(names)
        assert any("log loss" in sentence or "predicts" in sentence for sentence in out["findings"])
        one = json.loads(
            run("compare", folder / "moons.csv.gz", *options, "-m", "logistic-regression").stdout
        )
        assert [row["method"] for row in one["methods"]] == ["laplace", "logistic-regression"]
        assert "gradient-boosting" in run("compare", "-m", "forest", code=2).stderr
