"""Scales are found where measurements tell them, and stay where they do not."""

import numpy as np
import pytest

from gnnperf.adaptation.choice import Choice
from gnnperf.adaptation.components import log_scales
from gnnperf.adaptation.cross_check import left_out_latencies
from gnnperf.adaptation.fit import fit_correction, fit_scales
from gnnperf.adaptation.suggest import choose, sensitivities
from gnnperf.devices.correction import SCALES, Correction
from gnnperf.errors import GnnperfError

DIGEST = "0123456789abcdef"
TRUE = {"launch": 1.6, "device": 0.7, "device_convolution_3x3": 1.3}


@pytest.fixture(scope="module")
def measured(parts) -> np.ndarray:
    """What a device would take that is as the scales say, within 2 %."""
    exact, _ = parts.scaled(log_scales(Correction(tuple(TRUE.items()), 1, DIGEST)))
    return exact * np.exp(np.random.default_rng(0).normal(0, 0.02, len(parts)))


def test_without_measurements_nothing_changes(parts):
    assert not fit_scales(parts[:0], np.zeros(0)).any()
    assert fit_correction(parts[:0], np.zeros(0), DIGEST) == Correction((), 0, DIGEST)


def test_measurements_that_agree_change_nothing(parts):
    assert np.abs(fit_scales(parts, parts.latency_ms)).max() < 1e-6


def test_scales_of_the_device_are_found(parts, measured):
    found = dict(zip(SCALES, np.exp(fit_scales(parts, measured)), strict=True))
    assert found["launch"] == pytest.approx(1.6, rel=0.15) and found["device"] == pytest.approx(0.7, rel=0.15)
    assert found["device"] * found["device_convolution_3x3"] == pytest.approx(0.7 * 1.3, rel=0.1)
    predicted = parts.scaled(fit_scales(parts, measured))[0]
    assert np.abs(predicted / measured - 1).mean() < 0.03


def test_ten_measurements_help_all_others(parts, measured):
    chosen = choose(parts, 10)
    others = np.setdiff1d(np.arange(len(parts)), chosen)
    predicted = parts[others].scaled(fit_scales(parts[chosen], measured[chosen]))[0]
    before = np.abs(parts.latency_ms[others] / measured[others] - 1).mean()
    assert before > 0.25 and np.abs(predicted / measured[others] - 1).mean() < before / 3


def test_one_erratic_measurement_is_no_device(parts):
    wrong = parts.latency_ms[:6].copy()
    wrong[0] *= 30
    alone = fit_scales(parts[:6], parts.latency_ms[:6])
    assert not alone.any()
    assert np.abs(fit_scales(parts[:6], wrong)).max() < np.log(30) / 2


def test_a_correction_holds_what_was_fitted(parts, measured):
    correction = fit_correction(parts, measured, DIGEST)
    assert correction.measurements == len(parts) and correction.predictor == DIGEST
    np.testing.assert_allclose(log_scales(correction), fit_scales(parts, measured), atol=1e-4)


def test_networks_are_scored_by_fits_that_left_them_out(parts, measured, cases):
    _, _, names = cases
    predicted = left_out_latencies(parts, measured, names)
    fitted = parts.scaled(fit_scales(parts, measured))[0]
    error, fitted_error = (np.abs(each / measured - 1).mean() for each in (predicted, fitted))
    assert fitted_error < error < 0.15
    one = [number for number, name in enumerate(names) if name == "resnet18"]
    others = np.setdiff1d(np.arange(len(names)), one)
    changed = measured.copy()
    changed[one] *= 3  # of a network that is left out, its own time changes nothing
    np.testing.assert_allclose(left_out_latencies(parts, changed, names)[one], predicted[one])
    assert np.isnan(left_out_latencies(parts[one], measured[one], ["resnet18"] * len(one))).all()
    assert len(others)


def test_kmeans_takes_different_networks_and_the_same_ones_again(parts):
    chosen = choose(parts, 6)
    assert len(set(chosen.tolist())) == 6
    np.testing.assert_array_equal(chosen, choose(parts, 6))
    space = sensitivities(parts)

    def farthest(positions) -> float:
        return np.square(space[:, None] - space[positions][None]).sum(2).min(1).max()

    at_random = [farthest(choose(parts, 6, Choice.RANDOM, seed)) for seed in range(20)]
    assert farthest(chosen) < np.median(at_random)
    assert len(set(choose(parts, len(parts)).tolist())) == len(parts)
    assert len(set(choose(parts, len(parts), Choice.RANDOM).tolist())) == len(parts)


def test_more_networks_than_there_are_is_one_clear_error(parts):
    with pytest.raises(GnnperfError, match=f"the pool holds {len(parts)} networks, so 100 cannot be chosen"):
        choose(parts, 100)
