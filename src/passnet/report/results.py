"""The results of a run folder: its scores, tables and figure, made from its records."""

from collections.abc import Sequence
from pathlib import Path

from passnet.bench.files import FIGURE_FILE, SCORES_FILE, TABLES_FILE
from passnet.bench.run import run_folder
from passnet.bench.scores import CandidateScore, as_json, read_rows, score_rows
from passnet.errors import naming
from passnet.records.serialise import write_json, write_text
from passnet.report.tables import markdown, task_overview, task_tables, total_table


def write_results(out: Path) -> list[CandidateScore]:
    """The score of every candidate of a run folder, once `scores.json`, `tables.md` and `es.svg`
    are written beside its trials.

    Raises:
        InputError: the folder holds no trials, or none of a candidate can be scored.
    """
    scores = score_rows(read_rows(out))
    tables = [total_table(scores), task_overview(scores)]
    tables += task_tables(list(run_folder(out).records().values()))
    write_json(out / SCORES_FILE, as_json(scores))
    write_text(out / TABLES_FILE, markdown(tables))
    _draw_es(scores, out / FIGURE_FILE)
    return scores


def _draw_es(scores: Sequence[CandidateScore], path: Path) -> None:
    """ES_t over the tolerance level, a line a candidate."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for score in scores:
        es = score.suite.es
        label = f"{score.candidate} (AS {score.suite.score:.3f})"
        axes.plot(list(es), list(es.values()), marker="o", markersize=3, label=label)
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    axes.set_xlabel("tolerance level t")
    axes.set_ylabel("ES_t")
    axes.set_title("Error-aware Speedup Score by tolerance")
    axes.legend(fontsize=8)
    with naming(path):
        figure.savefig(path)
    plt.close(figure)
