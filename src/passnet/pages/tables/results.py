"""The results of a run folder: its scores, tables and figure, made from its records."""

from pathlib import Path

from passnet.bench.run_record import FIGURE_FILE, SCORES_FILE, TABLES_FILE, run_folder
from passnet.bench.scores import CandidateScore, as_json, read_rows, score_rows
from passnet.bench.shares import shares_for
from passnet.core.records.serialise import write_json, write_text
from passnet.pages.figures.es_figure import draw_es
from passnet.pages.tables.tables import markdown, task_overview, task_tables, total_table


def write_results(out: Path) -> list[CandidateScore]:
    """Write the scores, tables and figure of a run folder beside its trials, and return the scores.

    Raises:
        InputError: the folder holds no trials, or none of a candidate can be scored.
    """
    scores, shares = score_rows(read_rows(out)), shares_for(out)
    tables = [total_table(scores, shares), task_overview(scores)]
    tables += task_tables(list(run_folder(out).records().values()))
    write_json(out / SCORES_FILE, as_json(scores, shares=shares))
    write_text(out / TABLES_FILE, markdown(tables))
    draw_es(scores, out / FIGURE_FILE)
    return scores
