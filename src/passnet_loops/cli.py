"""`passnet train`: an llm learns to write passes, from data to evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passnet.cli import options as opt
from passnet.cli.output import print_json, print_tables

if TYPE_CHECKING:
    from passnet.core.jobs.run_plan import RunPlan, RunShard


def _plan(num_actors: int | None, **options: Any) -> RunPlan:
    from passnet.core.jobs.executors import run_local, run_ray
    from passnet.core.jobs.run_plan import RunPlan

    executor = run_local if num_actors is None else run_ray
    return RunPlan(executor=executor, num_workers=num_actors or 1, **options)


@click.group("train")
def train() -> None:
    """Make training data, train a small llm on it, and evaluate it on tasks it has never seen."""


@train.command("data")
@click.argument("captures", type=opt.PATH)
@opt.out("The folder of the run and of the training data")
@opt.suites("--eval", "A suite to evaluate on: nothing of its structures or op sequences is "
            "learned from (repeatable).", "evaluation", required=True)  # fmt: skip
@opt.resume
@opt.count("--structures", "After how many structures mining ends.", "num_structures", default=6000)
@opt.count("--per-sequence", "The most structures of one op sequence.", "max_per_sequence",
           default=8)  # fmt: skip
@opt.shard("captured graphs")
@opt.path("--with", "The folder of another part, or training data, whose rows are taken in too and "
          "not made again (repeatable).",
          "others", multiple=True)  # fmt: skip
@opt.count("--minutes", "After how many minutes to stop; --resume goes on.")
@opt.flag("--unjudged", "Write rows that were not judged yet, too.", "has_unjudged")
@opt.flag("--no-judge", "Only make rows; a later call judges them.", "skips_judge")
@opt.actors
@opt.json
def train_data(captures: Path, out: Path, evaluation: tuple[str, ...], resume: bool,
               num_structures: int, max_per_sequence: int, shard: RunShard,
               others: tuple[Path, ...], minutes: int | None, has_unjudged: bool,
               skips_judge: bool, num_actors: int | None, as_json: bool) -> None:  # fmt: skip
    """Make training data of the captured graphs in CAPTURES, by rejection sampling.

    Subgraphs are mined, answered by the compiler author in the loops form, and judged.
    """
    from passnet.core.records.serialise import SCHEMA_VERSION
    from passnet.core.terminal.progress import progress
    from passnet.judge.suite.suite import read_suite_keys
    from passnet_loops.build import (
        DataInfo,
        DataSettings,
        Excluded,
        captured_graphs,
        known_rows,
        merge_rows,
        mine_rows,
    )
    from passnet_loops.judge_rows import deadline, judge_rows

    keys = read_suite_keys(evaluation)
    settings = DataSettings(num_structures, max_per_sequence, shard=(shard.number, shard.total))
    info = DataInfo(SCHEMA_VERSION, captures.name, keys.hashes, settings)
    rows = captured_graphs(captures, settings.shard)
    is_over = deadline(minutes)
    with progress("mining graphs", len(rows)) as step:
        excluded = Excluded(keys, {row.structure for part in others for row in known_rows(part)})
        plan = _plan(num_actors, resume=resume, progress=step)
        mine_rows(rows, out, info, excluded, plan, is_over)
    if not skips_judge:
        judge_rows(out, info, is_over, plan)
    manifest = merge_rows([out, *others], out, settings, keys, has_unjudged)
    if as_json:
        print_json(manifest)
    else:
        click.echo(f"{manifest.num_rows} rows, {manifest.num_structures} structures: {out}")


@train.command("judge")
@click.argument("folder", type=opt.PATH)
@opt.out("The folder of the run and of the training data")
@opt.resume
@opt.shard("rows")
@opt.parts("run")
@opt.count("--minutes", "After how many minutes to stop; --resume goes on.")
@opt.actors
@opt.json
def train_judge(folder: Path, out: Path, resume: bool, shard: RunShard, taken: tuple[Path, ...],
                minutes: int | None, num_actors: int | None, as_json: bool) -> None:  # fmt: skip
    """Judge the rows of the training data in FOLDER that have no verdict.

    The data is written anew, with all verdicts and without the rows that are wrong.
    """
    from passnet_loops.judge_rows import deadline, judge_training

    plan = _plan(num_actors, resume=resume, shard=shard, parts=taken)
    manifest = judge_training(folder, out, plan, deadline(minutes))
    if as_json:
        print_json(manifest)
    else:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in manifest.verdicts.items())
        wrong = manifest.left_out.get("wrong", 0)
        click.echo(f"{manifest.num_rows} rows, {counts}; {wrong} wrong ones left out: {out}")


@train.command("sft")
@click.argument("folder", type=opt.PATH)
@opt.out("The folder of the run")
@opt.resume
@opt.path("--from", "The folder of a run to begin with, instead of an untrained llm.", "start")
@opt.count("--copies", "How often each row is learned.", "num_copies", default=6)
@opt.flag("--same-names", "Learn all copies of a row as it stands, none under other names.",
          "has_same_names")  # fmt: skip
@opt.count("--batch", "Rows in one step.", "batch_size", default=16)
@opt.amount("--rate", "The learning rate.", "learning_rate", default=2e-3)
@opt.count("--width", "The width of an untrained llm.", default=192)
@opt.count("--layers", "Its number of layers.", "num_layers", default=4)
@opt.count("--structures", "Learn from so many structures only.", "num_structures")
@opt.count("--words", "Rows with more words, of prompt and answer, are left out.", "max_words",
           default=330)  # fmt: skip
@opt.number("--seed", "The seed of weights, names and order.", default=0)
@opt.path("--with", "More training data, all of it learned too: own answers of `passnet train "
          "answer` (repeatable).", "others", multiple=True)  # fmt: skip
@opt.flag("--float32", "Compute in float32 also where the processor has bfloat16.", "is_float32")
@opt.flag("--untrained", "Only write the untrained llm, to compare with.", "is_untrained")
def train_sft(folder: Path, out: Path, resume: bool, start: Path | None, width: int,
              num_layers: int, is_float32: bool, is_untrained: bool, has_same_names: bool,
              others: tuple[Path, ...], **options: Any) -> None:  # fmt: skip
    """Fine-tune a small llm on the training data in FOLDER, with TRL."""
    from passnet_loops.checkpoint import LlmShape, SftSettings, has_bfloat16
    from passnet_loops.sft import SftPlan, run_sft

    shape = LlmShape(width, num_layers, max(1, width // 48))
    settings = SftSettings(
        shape=shape,
        is_bfloat16=has_bfloat16() and not is_float32,
        is_renamed=not has_same_names,
        **options,
    )
    info = run_sft(folder, out, settings, SftPlan(start, resume, is_untrained, others))
    click.echo(
        f"{info.num_parameters / 1e6:.1f}M parameters, {info.num_rows} rows of "
        f"{info.num_structures} structures, {info.seconds:.0f} s: {out}"
    )


@train.command("answer")
@click.argument("folder", type=opt.PATH)
@opt.path("--from", "The folder of the run whose llm is asked.", "llm", required=True)
@opt.out("The folder of the run and of the training data")
@opt.resume
@opt.count("--draw", "Answers that are drawn where the likeliest one is not right.", "num_drawn",
           default=4)  # fmt: skip
@opt.count("--judge", "Of the answers to be kept, judge one in so many.", "judge_every", default=16)
@opt.count("--rows", "Ask for so many rows at most, drawn.", "num_rows")
@opt.option("--shard", "Ask only for this part of the rows, such as 2/8; passnet train sft --with "
            "puts parts together.", metavar="NUMBER/TOTAL", default="1/1",
            callback=opt.shard_callback)  # fmt: skip
@opt.number("--seed", "The seed of what is drawn.", default=0)
@opt.json
def train_answer(folder: Path, llm: Path, out: Path, resume: bool, as_json: bool,
                 **options: Any) -> None:  # fmt: skip
    """Have an llm answer the subgraphs in FOLDER that it has not learned, and keep what is right.

    The right answers are training data for `passnet train sft --with`: expert iteration, without a
    teacher. Right is what a run of its loops in torch shows to compute what eager torch does; some
    are judged, too.
    """
    from passnet_loops.own_answers import AnswerSettings, answer_rows, open_asked

    done = answer_rows(folder, open_asked(llm), out, AnswerSettings(**options), resume)
    if as_json:
        print_json(done)
    else:
        click.echo(
            f"{done.num_right} of {done.num_rows} rows have a right answer; "
            f"{done.num_correct} of {done.num_judged} judged are correct; {done.num_kept} kept: "
            f"{out}"
        )


@train.command("evaluate")
@opt.suite
@click.argument("checkpoints", nargs=-1, type=opt.PATH)
@opt.out("The folder of the evaluation, which goes on with what it holds")
@opt.path("--data", "Training data, for the nearest neighbour as a baseline.")
@opt.flag("--teacher", "Evaluate the compiler author too.", "has_teacher")
@opt.count("--tasks", "So many tasks, drawn.", "num_tasks")
@opt.count("--graphs", "Graphs of each task, drawn.", "per_task", default=1)
@opt.count("--draw", "Answers that an llm gives to each graph, of which the likeliest is judged.",
           "num_drawn", default=1)  # fmt: skip
@opt.flag("--check", "Run the loops of these answers with torch first, and pass over what is shown "
          "to be wrong.", "is_checked")  # fmt: skip
@opt.count("--samples", "Judge so many of them, the likeliest first; the first that is correct "
           "counts.", "num_samples", default=1)  # fmt: skip
@opt.flag("--timed", "Time the answers too.", "is_timed")
@opt.path("--answers", "The folder of an evaluation whose answers are judged again, so that nobody "
          "is asked for them anew (repeatable).", "answered", multiple=True)  # fmt: skip
@opt.flag("--free", "Let llms say any word, not only those that the grammar allows.", "is_free")
@opt.path("--figure", "A file to draw the curves of training and the figures in, NAME.svg or "
          "NAME.png.")  # fmt: skip
@opt.number("--seed", "The seed of what is drawn.", default=0)
@opt.json
def train_evaluate(suite: Any, checkpoints: tuple[Path, ...], out: Path, figure: Path | None,
                   as_json: bool, **options: Any) -> None:  # fmt: skip
    """Judge what llms answer for tasks of a suite, beside a teacher and the nearest neighbour.

    CHECKPOINTS are folders of `passnet train sft`.
    """
    from passnet_loops.comparison import EvaluationPlan, compare
    from passnet_loops.curves import draw_training

    comparison = compare(suite, checkpoints, out, EvaluationPlan(**options))
    if figure is not None:
        draw_training(checkpoints, comparison.systems, figure)
    if as_json:
        print_json(comparison)
    else:
        print_tables(comparison.tables())
