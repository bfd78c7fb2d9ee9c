"""Are the milliseconds of each operator sensible? Beside layers that were timed by themselves.

    python scripts/check_breakdown.py [--layers ../shared/data/resperfnet/models_1080ti] [--predictor FOLDER] [--json]

Ranks the distinct layers of six networks on a GTX 1080 Ti as measured (TensorFlow 1, each layer through a session, its
output copied to the host) and as predicted; docs/breakdown.md says what the columns mean. For BERT, of which no layers
were timed, the share of each operator class is printed, and products of matrices have to dominate.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from gnnperf import Predictor, zoo
from gnnperf.datasets.readers.resperfnet import BATCHES, NETWORKS
from gnnperf.errors import GnnperfError
from gnnperf.evaluation.breakdown import USE, class_shares, compare_networks, product_share

_BERT_BATCH = 32
_LEAST_PRODUCT_SHARE = 0.6


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(__file__).resolve().parents[2] / "shared" / "data" / "resperfnet" / "models_1080ti"
    parser.add_argument("--layers", type=Path, default=shared, help="ResPerfNet's folder models_1080ti")
    parser.add_argument("--predictor", type=Path, help="folder that `gnnperf train` wrote; default: the shipped one")
    parser.add_argument("--networks", default=",".join(NETWORKS), help="comma-separated")
    parser.add_argument("--batches", default="1,16,64", help=f"comma-separated, of {', '.join(map(str, BATCHES))}")
    parser.add_argument("--json", action="store_true", help="data instead of tables")
    return parser.parse_args()


def _check(arguments: argparse.Namespace) -> dict:
    predictor = Predictor.load(arguments.predictor)
    networks = arguments.networks.split(",")
    unknown = [name for name in networks if name not in NETWORKS]
    if unknown:
        raise GnnperfError(f"no layers were timed of {', '.join(unknown)}; there is {', '.join(NETWORKS)}")
    batches = [int(batch) for batch in arguments.batches.split(",")]
    records = compare_networks(predictor, arguments.layers, networks, batches)
    bert = predictor.predict(zoo.build("bert_base"), batch=_BERT_BATCH, stack="tensorflow-1")
    return {
        "use": str(USE),
        "networks": records,
        "bert_base": {"batch": _BERT_BATCH, "product_share": product_share(bert), "classes": class_shares(bert)},
    }


def _print(found: dict) -> None:
    columns = ("as_measured", "without_copy", "with_copy", "output_alone")
    print("| network | batch | layers (distinct, without operator) | ms measured / predicted | copies |", end="")
    print("".join(f" {name.replace('_', ' ')} |" for name in columns), "error with copy |")
    print("|" + " --- |" * (6 + len(columns)))
    for row in found["networks"]:
        counts = f"{row['layers']} ({row['distinct']}, {row['unmatched']})"
        sums = f"{row['measured_sum_ms']:.1f} / {row['predicted_sum_ms']:.1f}"
        print(f"| {row['network']} | {row['batch']} | {counts} | {sums} | {row['copy_share']:.0%} |", end="")
        for name in columns:
            value = row[name]
            print(f" {value['kendall_tau']:.2f} {value['spearman_rho']:.2f} {value['top']}/5 |", end="")
        print(f" {row['mape_with_copy']:.0%} |")
    session = found["networks"][0]
    print(
        f"\nA session, by the layers of all networks but {session['network']}: {session['scale']:.2f} times the "
        f"predicted ms, {1 / session['ms_per_mb']:.1f} GB/s for the output, {session['call_ms']:.2f} ms for the call."
        if session["ms_per_mb"]
        else "\nThe size of the output explains nothing."
    )
    bert = found["bert_base"]
    print(f"\nBERT base, batch {bert['batch']} x 128 tokens: products take {bert['product_share']:.0%}")
    print(", ".join(f"{name} {share:.1%}" for name, share in bert["classes"].items() if share >= 0.001))


def main() -> None:
    """Check and print; exit code 1 where the figures make no sense or the measurements are missing."""
    arguments = _arguments()
    try:
        found = _check(arguments)
    except (GnnperfError, ValueError) as error:
        sys.exit(f"error: {error}")
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        _print(found)
    if found["bert_base"]["product_share"] < _LEAST_PRODUCT_SHARE:
        sys.exit(f"error: products of matrices take less than {_LEAST_PRODUCT_SHARE:.0%} of BERT")


if __name__ == "__main__":
    main()
