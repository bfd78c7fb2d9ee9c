"""Conformal quantiles over families: coverage on made-up exchangeable families, and what weights do."""

import numpy as np
import pytest

from gnnperf.domain import UNMEASURED
from gnnperf.errors import DataError
from gnnperf.evaluation.conformal import Scores, fit_intervals, fit_scale, quantiles
from gnnperf.intervals import SCALE_TERMS, Intervals

DISTANCE = SCALE_TERMS.index("distance")
PLAIN = dict.fromkeys(SCALE_TERMS, 0.0) | {"constant": 1.0}


def scores(error, fold, phase="inference", distance=1.0, is_space=False):
    rows = len(error)
    terms = np.zeros((rows, len(SCALE_TERMS)))
    terms[:, 0], terms[:, DISTANCE] = 1.0, distance
    return Scores(
        np.asarray(error, float), terms, np.asarray(fold).astype(str), np.broadcast_to(phase, rows).astype(str),
        np.broadcast_to(is_space, rows).astype(bool),
    )  # fmt: skip


def families(random, count, rows=(5, 40)):
    """Families of different sizes, each off by a bias of its own and by noise, twice as much at distance 3 as at 1."""
    error, fold, distance = [], [], []
    for family in range(count):
        size, far = random.integers(*rows), random.uniform(0.5, 3)
        error.append(np.abs(random.normal(0, 0.1) + random.normal(0, 0.1, size)) * (1 + far) / 2)
        fold += [f"family {family}"] * size
        distance += [far] * size
    return scores(np.concatenate(error), fold, distance=np.array(distance))


def covered(intervals, other):
    return other.error <= intervals.quantile["inference"] * intervals.scale(other.terms)


@pytest.mark.parametrize("count", [6, 9, 20])
def test_a_further_family_is_covered_to_about_nine_tenths(count):
    random = np.random.default_rng(count)
    found = [covered(fit_intervals(families(random, count))[0], families(random, 1)).mean() for _ in range(80)]
    assert 0.87 < np.mean(found) < 0.97
    # What is guaranteed for so few families is less, and is what was reached at least.
    report = fit_intervals(families(random, count))[0].report
    assert report["guaranteed_coverage"]["inference"] == pytest.approx(report["level"] * count / (count + 1), abs=1e-3)
    assert report["guaranteed_coverage"]["inference"] < np.mean(found)


def test_folds_that_are_left_out_are_covered_to_nine_tenths_on_average():
    data = families(np.random.default_rng(3), 8)
    _, left_out = fit_intervals(data)
    assert len(left_out) == 8
    each = [covered(left_out[fold], data.where(data.fold == fold)).mean() for fold in left_out]
    assert np.mean(each) >= 0.9


def test_quantile_by_hand_families_weigh_the_same():
    # 100 rows of one family and 1 of each of three: half of the weight lies at 1 and 2.
    data = scores([1.0] * 100 + [2.0, 3.0, 4.0], ["a"] * 100 + ["b", "c", "d"])
    assert quantiles(data, PLAIN, 0.25, ["inference"])["inference"] == 1.0
    assert quantiles(data, PLAIN, 0.5, ["inference"])["inference"] == 2.0
    assert quantiles(data, PLAIN, 0.9, ["inference"])["inference"] == 4.0


def test_a_phase_with_too_few_families_borrows_the_others_and_is_widened():
    inference, training = scores([0.4, 0.5, 0.6], ["a", "b", "c"]), scores([0.1], ["a"], phase="training")
    data = Scores(*(np.concatenate([getattr(inference, n), getattr(training, n)]) for n in Scores.__dataclass_fields__))
    found = quantiles(data, PLAIN, 0.9, ["inference"])
    assert found == {"inference": 0.6, "training": pytest.approx(1.25 * 0.6)}
    assert quantiles(inference, PLAIN, 0.9, ["inference"])["training"] == pytest.approx(1.25 * 0.6)


def test_search_spaces_widen_what_waits_for_launches_and_nothing_else():
    networks, folds = [0.2, 0.3, 0.4], ["a", "b", "c"]
    alone, _ = fit_intervals(scores(networks, folds))
    assert alone.coefficients["launches"] == 0
    data = scores([*networks, 0.8, 0.9], [*folds, "s", "t"], is_space=[False] * 3 + [True] * 2)
    data.terms[3:, SCALE_TERMS.index("launches")] = 0.9
    beside, _ = fit_intervals(data)
    assert beside.coefficients["launches"] > 0.1
    assert covered(beside, data.where(data.is_space)).all()
    network = data.where(~data.is_space).terms
    np.testing.assert_allclose(beside.scale(network), alone.scale(network))


def test_no_coefficient_is_negative_and_distance_always_widens():
    random = np.random.default_rng(0)
    distance = random.uniform(0, 3, 200)
    fold = random.integers(0, 8, 200)
    # Errors that fall with the distance: what was left out cannot show that far inputs are safer.
    falling = fit_scale(scores(0.5 - 0.1 * distance, fold, distance=distance))
    assert min(falling.values()) >= 0 and falling["distance"] >= 0.5 * falling["constant"] > 0
    rising = fit_scale(scores(0.1 + 0.3 * distance, fold, distance=distance))
    assert rising["distance"] == pytest.approx(0.3, abs=0.02) and rising["constant"] == pytest.approx(0.1, abs=0.02)
    assert all(rising[name] > 0 for name in UNMEASURED)


def test_a_perfect_predictor_still_has_an_interval():
    intervals, _ = fit_intervals(scores(np.zeros(9), np.repeat(list("abc"), 3)))
    assert intervals.scale(scores([0.0], ["a"]).terms)[0] > 0
    assert Intervals.from_dict(intervals.to_dict()) == intervals


def test_too_few_families_are_one_line():
    with pytest.raises(DataError, match=r"at least 3 folds .* have 2"):
        fit_intervals(scores([0.1, 0.2], ["a", "b"]))
    with pytest.raises(DataError, match="have 0"):
        fit_intervals(scores([], []))
