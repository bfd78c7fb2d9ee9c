import numpy as np
import pandas as pd
import pytest

from gnnperf.conditions import Phase, Stack
from gnnperf.datasets.schema import COLUMNS, concatenate, measurements, typed, validate
from gnnperf.errors import DataError


@pytest.fixture
def frame() -> pd.DataFrame:
    return measurements(
        source="test",
        model=["vgg16", "resnet18", "vgg16"],
        device="1080ti",
        stack=Stack.PYTORCH,
        batch=[1, 2, 4],
        latency_ms=[1.0, 2.0, 3.0],
        phase=[Phase.INFERENCE, Phase.INFERENCE, Phase.TRAINING],
        citation="a.csv",
    )


def test_rows_have_every_column_and_the_zoos_family(frame):
    assert tuple(frame.columns) == COLUMNS
    assert frame["family"].tolist() == ["vgg", "resnet", "vgg"]
    assert validate(frame, "test").equals(frame)


@pytest.mark.parametrize("latency", [np.nan, np.inf, 0.0, -1.0])
def test_a_latency_that_is_no_positive_number_is_refused_with_its_row(frame, latency):
    frame.loc[1, "latency_ms"] = latency
    with pytest.raises(DataError, match=r"bench\.csv, row 1: latency_ms .*resnet18.*from a\.csv"):
        validate(frame, "bench.csv")


def test_an_impossible_batch_is_refused(frame):
    frame.loc[2, "batch"] = 0
    with pytest.raises(DataError, match="row 2: batch has to be 1 or more"):
        validate(frame, "t")


@pytest.mark.parametrize("column", ["stack", "phase", "precision", "window", "optimizer", "kind", "use"])
def test_an_unknown_condition_is_refused(frame, column):
    frame[column] = ["bogus", *frame[column].astype(str)[1:]]
    with pytest.raises(DataError, match=f"row 0: {column} has to be one of"):
        validate(frame, "t")


@pytest.mark.parametrize("column", ["model", "device", "source", "citation"])
def test_an_empty_name_is_refused(frame, column):
    frame[column] = [*frame[column].astype(str)[:2], None]
    with pytest.raises(DataError, match=f"row 2: {column} is empty"):
        validate(frame, "t")


def test_a_missing_column_and_text_among_numbers_are_refused(frame):
    with pytest.raises(DataError, match=r"columns missing.*batch"):
        typed(frame.drop(columns="batch"))
    with pytest.raises(DataError, match="latency_ms holds values that are not float64"):
        typed(frame.assign(latency_ms=["fast", "slow", "1"]))


def test_concatenation_unites_categories(frame):
    other = frame.assign(device="k80")
    both = concatenate([frame, other])
    assert both["device"].tolist() == ["1080ti"] * 3 + ["k80"] * 3
    assert both.dtypes.astype(str).to_dict() == frame.dtypes.astype(str).to_dict()
    assert concatenate([]).empty
