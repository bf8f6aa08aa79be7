"""Dirichlet classification as it is defined: a regression for each class, by inverses of its whole covariance."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.gaussian_process.kernels import CompoundKernel


class Regressions:
    """Separate exact regressions on the targets of Milios et al. (2018), one row for each copy of a label."""

    def __init__(self, X, labels, eps, kernel):
        # Each row is repeated for every positive label weight, with a noise of that fraction.
        rows, codes = np.nonzero(labels)
        self.X, self.share, self.kernel = X[rows], labels[rows, codes], kernel
        concentration = eps + np.eye(labels.shape[1])[codes]
        self.noise = np.log(1.0 + 1.0 / concentration)
        self.target = np.log(concentration) - 0.5 * self.noise
        precision = self.share[:, None] / self.noise
        self.offset = (precision * self.target).sum(axis=0) / precision.sum(axis=0)

    def kernels(self, theta):
        kernel = self.kernel.clone_with_theta(theta)
        several = isinstance(kernel, CompoundKernel)
        return kernel.kernels if several else [kernel] * self.noise.shape[1]

    def covariance(self, c, theta=None):
        """Return K + D_c; copies of a row have one latent value, so that noise of a `WhiteKernel` is common to them."""
        kernel = self.kernels(self.kernel.theta if theta is None else theta)[c]
        same = (self.X[:, None] == self.X[None]).all(axis=2)
        return np.where(same, kernel.diag(self.X), kernel(self.X, self.X.copy())) + np.diag(
            self.noise[:, c] / self.share
        )

    def evidence(self, theta=None):
        """Return Σ_c log N(target | offset, K + D); a share q < 1 of a row counts N(t | f, s)^q."""
        total = 0.0
        for c in range(self.noise.shape[1]):
            A, r = self.covariance(c, theta), self.target[:, c] - self.offset[c]
            total -= 0.5 * (r @ np.linalg.solve(A, r) + np.linalg.slogdet(2.0 * np.pi * A)[1])
            # N(t | f, s)^q = N(t | f, s/q) (2 pi s / q)^½ (2 pi s)^(-q/2)
            s, q = self.noise[:, c], self.share
            total += 0.5 * (np.log(2.0 * np.pi * s / q) - q * np.log(2.0 * np.pi * s)).sum()
        return total

    def predict(self, Z, keep=slice(None)):
        """Return means and variances at Z from some of the rows, with the offsets of all of them."""
        means, variances = [], []
        for c in range(self.noise.shape[1]):
            kernel = self.kernels(self.kernel.theta)[c]
            inverse = np.linalg.inv(self.covariance(c)[keep][:, keep])
            k = kernel(Z, self.X[keep])
            means.append(self.offset[c] + k @ inverse @ (self.target[keep, c] - self.offset[c]))
            variances.append(kernel.diag(Z) - np.einsum("ij,jk,ik->i", k, inverse, k))
        return np.stack(means, axis=1), np.stack(variances, axis=1)

    def second_class(self, Z, keep=slice(None)):
        """Return the probability of the second of two classes: E[sigma(d)] for the Gaussian difference d."""
        mean, variance = self.predict(Z, keep)
        x, weight = np.polynomial.hermite_e.hermegauss(101)
        d = (mean[:, 1] - mean[:, 0])[:, None] + np.sqrt(variance.sum(axis=1))[:, None] * x
        return expit(d) @ weight / weight.sum()
