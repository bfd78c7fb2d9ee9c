"""Ways to choose the networks that are measured."""

from enum import StrEnum


class Choice(StrEnum):
    """How networks are chosen from a pool."""

    KMEANS = "kmeans"  # one for each cluster of networks
    RANDOM = "random"  # the ablation
