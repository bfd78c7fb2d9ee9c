"""The rows of both truths."""

import numpy as np
import pandas as pd

from gnnperf.datasets.splits import HEADLINE_FAMILIES
from gnnperf.evaluation.benchmark.networks import left_out, table_groups
from gnnperf.evaluation.benchmark.truths import Truth, side_by_side, truth_rows
from gnnperf.resources import resource


def test_end_to_end_rows_are_the_published_ones_of_two_phases(end_to_end):
    published = pd.read_csv(resource("data/published.csv"))
    published = published[published["phase"].isin(["inference", "training"])]
    assert sorted(end_to_end.frame["latency_ms"]) == sorted(published["latency_ms"])
    assert (end_to_end.frame["citation"].str.len() > 0).all()
    assert (end_to_end.frame["layers_key"] == end_to_end.frame["graph_key"]).all()


def test_each_row_is_predicted_by_a_fold_without_its_family(end_to_end):
    for row in end_to_end.frame.itertuples():
        assert row.family in left_out(row.fold)
        assert set(HEADLINE_FAMILIES) <= set(left_out(row.fold))


def test_a_table_counts_every_row_once_beside_its_totals(end_to_end):
    groups = table_groups(end_to_end.frame)
    singles = [part for name, part in groups.items() if name not in ("all three", "all others")]
    assert sorted(index for part in singles for index in part.index) == sorted(end_to_end.frame.index)
    assert len(groups["all three"]) == sum(len(groups[name]) for name in ("lenet", "alexnet", "vgg16"))


def test_layer_sums_are_the_sums_of_the_files_and_their_graphs_hold_the_timed_layers(shared):
    folder = shared / "data" / "resperfnet"
    dataset = truth_rows(folder)
    sums = dataset.frame[dataset.frame["truth"] == Truth.LAYER_SUM]
    assert len(sums) == 48 and set(sums["use"]) == {"evaluate"}
    row = sums[(sums["network"] == "vgg16") & (sums["batch"] == 16)].iloc[0]
    layers = pd.read_csv(folder / "models_1080ti" / "vgg16" / "vgg16_16.csv")
    assert np.isclose(row["latency_ms"], layers["time_median"].sum())
    timed, network = dataset.graphs[row["layers_key"]], dataset.graphs[row["graph_key"]]
    assert np.isclose(timed.column("macs").sum(), network.column("macs").sum())
    # Edges stay inside a layer: from a product to its own activation.
    assert ((timed.edge_index[1] - timed.edge_index[0]) == 1).all() and timed.edge_index.shape[1] < len(layers)


def test_graphs_side_by_side_keep_their_edges_apart(end_to_end):
    first, second = (end_to_end.graphs[key] for key in list(end_to_end.graphs)[:2])
    joined = side_by_side([first, second])
    assert joined.num_nodes == first.num_nodes + second.num_nodes
    edges = first.edge_index.shape[1]
    assert (joined.edge_index[:, :edges] == first.edge_index).all()
    assert (joined.edge_index[:, edges:] == second.edge_index + first.num_nodes).all()
    assert joined.output_bytes == first.output_bytes + second.output_bytes
