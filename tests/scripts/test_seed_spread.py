"""The table of several runs in a model card."""

import seed_spread


def metrics(mape: float) -> dict:
    row = {"family": "all", "phase": "inference", "precision": "fp32", "mape_without_campaign": mape}
    return {"families": [row | {"family": "vgg"}, row], "in_space": [{"family": "fbnet", "batch": 1, "mape": 0.01}]}


def test_the_section_has_mean_and_deviation_and_replaces_an_older_one():
    text = seed_spread.section([seed_spread.figures(metrics(mape)) for mape in (0.10, 0.12, 0.14)])
    assert "| held-out families, inference, fp32 | 12.0 | 2.0 | 10.0, 12.0, 14.0 |" in text
    assert "| fbnet, batch 1 | 1.0 | 0.0 | 1.0, 1.0, 1.0 |" in text
    card = "# base\n\n## Accuracy\n\nfigures\n\n## Limits\n\nmany\n"
    once = seed_spread.with_section(card, text)
    assert once.index("## Accuracy") < once.index(seed_spread.HEADING) < once.index("## Limits")
    assert seed_spread.with_section(once, text) == once
