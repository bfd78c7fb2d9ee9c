"""A Markdown table of what ``gnnperf predict`` says of every ONNX file in a folder.

python scripts/predict_table.py FOLDER [--device 1080ti] [--batch 1,16]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gnnperf import Predictor
from gnnperf.conditions import Conditions
from gnnperf.devices import get_device
from gnnperf.errors import GnnperfError
from gnnperf.graph import read_graph


def main() -> None:
    """Predict and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="1080ti")
    parser.add_argument("--batch", default="1,16")
    arguments = parser.parse_args()
    batches = [int(batch) for batch in arguments.batch.split(",")]
    case = (get_device(arguments.device), Conditions())
    predictor = Predictor.load()

    print("| file | " + " | ".join(f"ms at batch {batch}" for batch in batches) + " | warnings |")
    print("| --- |" + " --- |" * (len(batches) + 1))
    for path in sorted(arguments.folder.glob("*.onnx")):
        cells, warnings = [], []
        for batch in batches:
            try:
                prediction = predictor.predict_graph(read_graph(path, batch=batch), [case])[0]
            except GnnperfError as error:
                cells.append(str(error))
                continue
            kept = "" if prediction.batch == batch else f" (batch {prediction.batch})"
            cells.append(f"{prediction.latency_ms:.3g}{kept}")
            warnings += [warning for warning in prediction.warnings if warning not in warnings]
        print(f"| {path.stem} | " + " | ".join(cells) + f" | {'; '.join(warnings)} |")


if __name__ == "__main__":
    main()
