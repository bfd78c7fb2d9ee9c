"""Which networks to measure first on a new device.

CDMPP (Hu et al.: CDMPP: a device-model agnostic framework for latency prediction of tensor programs. EuroSys 2024)
clusters what its predictor makes of tasks by KMeans and measures one task of each cluster. Here a network is seen as
the scales of an adaptation see it, by how much each would change its latency: the space in which measurements tell
scales apart.
"""

from __future__ import annotations

import numpy as np

from gnnperf.adaptation.choice import Choice
from gnnperf.adaptation.components import Components
from gnnperf.adaptation.fit import prior_deviation
from gnnperf.errors import GnnperfError


def choose(parts: Components, count: int, how: Choice = Choice.KMEANS, seed: int = 0) -> np.ndarray:
    """``[count]`` positions of the cases to measure, those that stand for most others first.

    Args:
        parts: predictions for a pool of cases, taken apart.
        count: how many.
        how: KMeans takes the case nearest to each centre.
        seed: of the centres to start from, or of the draw.

    Raises:
        GnnperfError: the pool holds fewer cases.
    """
    if count > len(parts):
        raise GnnperfError(f"the pool holds {len(parts)} networks, so {count} cannot be chosen from it: give more")
    if how is Choice.RANDOM:
        return np.random.default_rng(seed).choice(len(parts), count, replace=False)
    from sklearn.cluster import KMeans

    space = sensitivities(parts)
    clusters = KMeans(count, n_init=10, random_state=seed).fit(space)
    size = np.bincount(clusters.labels_, minlength=count)
    distance = np.square(space[:, None] - clusters.cluster_centers_[None]).sum(axis=2)
    chosen: list[int] = []
    for cluster in np.argsort(-size, kind="stable"):
        nearest = np.argsort(distance[:, cluster], kind="stable")
        chosen.append(int(next(case for case in nearest if case not in chosen)))
    return np.array(chosen)


def sensitivities(parts: Components) -> np.ndarray:
    """``[G, len(SCALES)]`` by how much (of its logarithm) a latency changes with one prior deviation of each scale."""
    return parts.scaled(np.zeros(len(prior_deviation())))[1] * prior_deviation()
