"""What a study came to: the winning configuration, every trial as a table, a summary."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import yaml
from optuna import Study
from optuna.importance import get_param_importances
from optuna.trial import FrozenTrial, TrialState

from gnnperf.errors import TuningError
from gnnperf.files import write_whole
from gnnperf.training.config import TrainingConfig
from gnnperf.tuning.confirmation import Confirmed
from gnnperf.tuning.options import Aim
from gnnperf.tuning.plots import plot_history, plot_importance
from gnnperf.tuning.space import SPACE, values_of, with_values
from gnnperf.tuning.study import IDENTITY, best_trial, own_trial

TRIALS_FILE = "trials.csv"
SUMMARY_FILE = "summary.json"
REPORT_FILE = "REPORT.md"
HISTORY_FILE = "history.png"
IMPORTANCE_FILE = "importance.png"
_LEAST_TRIALS_TO_RANK = 4  # complete ones; fewer say nothing of what matters
_SHOWN = 10  # parameters in the report


def trial_figures(trial: FrozenTrial) -> str:
    """A complete trial's figures for the terminal."""
    phases = ", ".join(
        f"{phase} {trial.user_attrs[phase]:.1f}" for phase in ("inference", "training") if phase in trial.user_attrs
    )
    return f"{trial.values[0]:.1f} % ({phases}; {trial.user_attrs['parameters']:,} parameters)"


def trials_table(study: Study) -> pd.DataFrame:
    """A row a trial: number, state, figures, CPU seconds, and a column for each value."""
    rows = []
    for trial in study.get_trials(deepcopy=False):
        attributes = trial.user_attrs
        families = {
            f"{family}_{phase}": value
            for family, phases in attributes.get("mape", {}).items()
            for phase, value in phases.items()
        }
        rows.append(
            {
                "trial": trial.number,
                "state": "diverged" if "diverged" in attributes else trial.state.name.lower(),
                "mape": trial.values[0] if trial.values else None,
                "reports": len(trial.intermediate_values),
                "inference": attributes.get("inference"),
                "training": attributes.get("training"),
                "parameters": attributes.get("parameters"),
                "predict_cpu_ms": attributes.get("predict_cpu_ms"),
                "cpu_s": attributes.get("cpu_s"),
            }
            | dict(sorted(families.items()))
            | {name: trial.params.get(name) for name in SPACE}
        )
    table = pd.DataFrame(rows)
    return table[[*(name for name in table if name not in SPACE), *SPACE]]


def importances(study: Study) -> dict[str, float]:
    """How much each value matters for reaching low errors (PED-ANOVA, Watanabe et al. 2023), largest first; sum 1.

    Empty where too few trials are complete.
    """
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(complete) < _LEAST_TRIALS_TO_RANK or len({trial.values[0] for trial in complete}) == 1:
        return {}
    return get_param_importances(study, target=lambda trial: trial.values[0])


def summary(study: Study, config: TrainingConfig, aim: Aim, confirmed: list[Confirmed]) -> dict:
    """Plain data for JSON: counts, the best trial, the configuration's own, the winner, importances, the Pareto front.

    The winner is the confirmed trial with the smallest mean, or without any the best trial.

    Raises:
        TuningError: no trial is complete.
    """
    trials = study.get_trials(deepcopy=False)
    best = best_trial(study)
    if best is None:
        raise TuningError("no trial is complete, so there is no winner: ask for more --trials")
    return {
        "study": study.study_name,
        "identity": study.user_attrs[IDENTITY],
        "objectives": list(aim.figures),
        "trials": {state.name.lower(): sum(trial.state == state for trial in trials) for state in TrialState},
        "diverged": sum("diverged" in trial.user_attrs for trial in trials),
        "cpu_s": round(sum(trial.user_attrs.get("cpu_s", 0.0) for trial in trials), 1),
        "winner": _described(trials[confirmed[0].trial] if confirmed else best),
        "best": _described(best),
        "configuration": _described(own_trial(study, values_of(config))),
        "confirmed": [{"trial": c.trial, "mape": c.mape, "mean": c.mean, "by_seed": c.others} for c in confirmed],
        "pareto": [_described(trial) for trial in study.best_trials] if len(aim.figures) > 1 else [],
        "importances": importances(study),
    }


def _described(trial: FrozenTrial | None) -> dict | None:
    if trial is None:
        return None
    figures = {name: value for name, value in trial.user_attrs.items() if name != "diverged"}
    return {"trial": trial.number, "values": trial.values, "parameters": trial.params, "figures": figures}


def write_results(
    study: Study, config: TrainingConfig, aim: Aim, folder: Path, name: str, confirmed: list[Confirmed]
) -> dict:
    """Write the winner as NAME.yaml, ``trials.csv``, ``summary.json``, ``REPORT.md`` and two plots into ``folder``.

    Args:
        study: the trials.
        config: that was tuned, with the rows and steps that the winner is to be trained with.
        aim: of the study.
        folder: made where it does not exist.
        name: of the winning configuration.
        confirmed: see :mod:`gnnperf.tuning.confirmation`; the smallest mean first.

    Returns:
        The :func:`summary`.

    Raises:
        TuningError: no trial is complete, or the folder cannot be written.
    """
    found = summary(study, config, aim, confirmed)
    won = found["winner"]
    heading = f"# Trial {won['trial']} of the study {study.study_name}, {won['values'][0]:.2f} % there.\n"
    values = with_values(config, won["parameters"]).model_copy(update={"name": name}).model_dump(mode="json")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{name}.yaml", (heading + yaml.safe_dump(values, sort_keys=False)).encode())
        write_whole(folder / TRIALS_FILE, trials_table(study).to_csv(index=False, float_format="%.6g").encode())
        write_whole(folder / SUMMARY_FILE, (json.dumps(found, indent=2) + "\n").encode())
        write_whole(folder / REPORT_FILE, report(found).encode())
        plot_history(study, folder / HISTORY_FILE)
        if found["importances"]:
            plot_importance(found["importances"], folder / IMPORTANCE_FILE)
    except OSError as error:
        raise TuningError(f"cannot write to {folder}: {error.strerror or error}") from None
    return found


def report(found: dict) -> str:
    """A :func:`summary` as Markdown."""
    counts = ", ".join(f"{count} {state}" for state, count in found["trials"].items() if count)
    lines = [f"# Study {found['study']}", "", f"Trials: {counts}; {found['cpu_s'] / 60:.0f} minutes of CPU time.", ""]
    lines += ["| | trial | error % | inference | training | parameters |", "| --- | --- | --- | --- | --- | --- |"]
    for title, key in (("winner", "winner"), ("best", "best"), ("the configuration's own values", "configuration")):
        if found[key]:
            figures = found[key]["figures"]
            inference, training = (_short(figures.get(phase)) for phase in ("inference", "training"))
            lines.append(
                f"| {title} | {found[key]['trial']} | {found[key]['values'][0]:.1f} | {inference} | {training} "
                f"| {figures['parameters']:,} |"
            )
    lines.append("")
    if found["pareto"]:
        lines += ["No trial is better in both:", "", f"| trial | {' | '.join(found['objectives'])} |"]
        lines += ["| --- " * (len(found["objectives"]) + 1) + "|"]
        for trial in sorted(found["pareto"], key=lambda trial: trial["values"][0]):
            lines.append(f"| {trial['trial']} | " + " | ".join(f"{value:,.4g}" for value in trial["values"]) + " |")
        lines.append("")
    if found["confirmed"]:
        seeds = list(found["confirmed"][0]["by_seed"])
        lines += ["| trial | error % when chosen | " + " | ".join(f"seed {seed}" for seed in seeds) + " | mean |"]
        lines += ["| --- " * (len(seeds) + 3) + "|"]
        for row in found["confirmed"]:
            others = " | ".join(f"{row['by_seed'][seed]:.1f}" for seed in seeds)
            lines.append(f"| {row['trial']} | {row['mape']:.1f} | {others} | {row['mean']:.1f} |")
        lines += ["", "The winner has the smallest mean over seeds that it was not chosen by.", ""]
    else:
        lines += ["The best of many trials is partly luck: other seeds give it more.", ""]
    if found["importances"]:
        lines += ["| value | importance | winner | own |", "| --- | --- | --- | --- |"]
        won, own = found["winner"]["parameters"], (found["configuration"] or {}).get("parameters", {})
        for name, share in list(found["importances"].items())[:_SHOWN]:
            lines.append(f"| {name} | {share:.2f} | {_short(won.get(name))} | {_short(own.get(name))} |")
        lines.append("")
    return "\n".join(lines)


def _short(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
