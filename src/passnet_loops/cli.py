"""`passnet train`: an LLM learns to write passes, from data to evaluation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.groups import ExtensibleGroup
from passnet.cli.terminal.output import print_json, print_result, print_tables
from passnet.errors import InputError
from passnet_loops.settings import (
    AnswerSettings,
    DataSettings,
    EvaluationPlan,
    SftPlan,
    SftSettings,
)

if TYPE_CHECKING:
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.judge.suite.suite import Suite


@click.group("train", cls=ExtensibleGroup)
def train() -> None:
    """Make training data, train a small LLM on it, and evaluate it on tasks it has never seen."""


def _checked(plan: RunPlan) -> RunPlan:
    """Return a plan whose workers are actors of a Ray cluster, or one worker here."""
    if plan.num_workers > 1 and not plan.is_on_ray:
        raise InputError("--jobs goes with --executor ray; or divide the work by --shard")
    return plan


@dataclass(frozen=True, kw_only=True)
class TrainDataOptions:
    """Options of `passnet train data`."""

    captures: Path = opt.argument()

    out: Path
    """Write the run and the training data to this folder."""

    evaluation: tuple[str, ...] = opt.shared("evaluation")

    settings: DataSettings = opt.fields_of(
        DataSettings, "num_structures", "max_per_sequence", "rare"
    )

    plan: RunPlan = opt.plan("resume", "shard", "parts", "executor", "num_workers", jobs=1)

    budget: float | None = opt.shared("budget")

    unjudged: bool = False
    """Write rows that were not judged yet too."""

    no_judge: bool = False
    """Only make rows; a later call judges them."""

    json: bool = opt.shared("json")


@opt.command("data", train)
def train_data(options: TrainDataOptions) -> None:
    """Make training data of the captured graphs in CAPTURES, by rejection sampling.

    Subgraphs are mined, answered by the compiler author in the loops form, and judged; those of
    PassBench and of --eval are left out. Folders of --with may also hold training data; their rows
    are not made again.
    """
    from passnet.core.records.serialise import SCHEMA_VERSION
    from passnet.core.records.untrusted import untrusted_digest
    from passnet.core.terminal.progress import progress
    from passnet.data.capture.store import MANIFEST_FILE
    from passnet.judge.suite.suite import benchmarks, read_suite_keys
    from passnet_loops.data.build import (
        DataInfo,
        Excluded,
        captured_graphs,
        known_rows,
        merge_rows,
        mine_rows,
    )
    from passnet_loops.data.judge_rows import deadline, judge_rows
    from passnet_loops.data.rare_ops import RareOps

    plan, out = _checked(options.plan), options.out
    keys = read_suite_keys([*options.evaluation, *benchmarks()])
    settings = replace(options.settings, shard=(plan.shard.number, plan.shard.total))
    rows = captured_graphs(options.captures, settings.shard)
    digest = untrusted_digest(options.captures / MANIFEST_FILE).hex()
    info = DataInfo(SCHEMA_VERSION, digest, keys.hashes, settings)
    is_over = deadline(options.budget)
    with progress("mining graphs", len(rows)) as step:
        known = [row for part in plan.parts for row in known_rows(part)]
        rare = RareOps.of_rows(settings.rare, (row.op_sequence for row in known))
        structures = {row.structure for row in known}
        excluded = Excluded(keys, structures, rare if settings.rare else None)
        mine_rows(rows, out, info, excluded, replace(plan, progress=step), is_over)
    if not options.no_judge:
        judge_rows(out, info, is_over, plan)
    manifest = merge_rows([out, *plan.parts], out, settings, keys, options.unjudged)
    line = f"{manifest.num_rows} rows, {manifest.num_structures} structures: {out}"
    print_result(options.json, manifest, [line])


@dataclass(frozen=True, kw_only=True)
class TrainJudgeOptions:
    """Options of `passnet train judge`."""

    folder: Path = opt.argument()

    out: Path
    """Write the run and the training data to this folder."""

    plan: RunPlan = opt.plan("resume", "shard", "parts", "executor", "num_workers", jobs=1)

    budget: float | None = opt.shared("budget")

    json: bool = opt.shared("json")


@opt.command("judge", train)
def train_judge(options: TrainJudgeOptions) -> None:
    """Judge the rows of the training data in FOLDER that have no verdict.

    The data is written anew, with all verdicts and without wrong rows.
    """
    from passnet_loops.data.judge_rows import deadline, judge_training

    is_over = deadline(options.budget)
    manifest = judge_training(options.folder, options.out, _checked(options.plan), is_over)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in manifest.verdicts.items())
    wrong = manifest.left_out.get("wrong", 0)
    line = f"{manifest.num_rows} rows, {counts}; {wrong} wrong ones left out: {options.out}"
    print_result(options.json, manifest, [line])


@dataclass(frozen=True, kw_only=True)
class TrainSftOptions:
    """Options of `passnet train sft`."""

    folder: Path = opt.argument()

    out: Path
    """Write the run to this folder."""

    plan: SftPlan = opt.fields_of(SftPlan, "resume", "start", "is_untrained", "others")

    settings: SftSettings = opt.fields_of(
        SftSettings,
        "num_copies",
        "batch_size",
        "learning_rate",
        "shape.width",
        "shape.num_layers",
        "num_structures",
        "max_words",
        "seed",
    )

    same_names: bool = False
    """Learn all copies of a row under the same names."""

    float32: bool = False
    """Compute in float32 also where the processor has bfloat16."""

    json: bool = opt.shared("json")


@opt.command("sft", train)
def train_sft(options: TrainSftOptions) -> None:
    """Fine-tune a small LLM on the training data in FOLDER, with TRL."""
    from passnet_loops.checkpoint import has_bfloat16
    from passnet_loops.sft import run_sft

    shape = options.settings.shape
    settings = replace(
        options.settings,
        shape=replace(shape, num_heads=max(1, shape.width // 48)),
        is_renamed=not options.same_names,
        is_bfloat16=has_bfloat16() and not options.float32,
    )
    info = run_sft(options.folder, options.out, settings, options.plan)
    text = (
        f"{info.num_parameters / 1e6:.1f}M parameters, {info.num_rows} rows of "
        f"{info.num_structures} structures, {info.seconds:.0f} s: {options.out}"
    )
    print_result(options.json, info, [text])


@dataclass(frozen=True, kw_only=True)
class TrainAnswerOptions:
    """Options of `passnet train answer`."""

    folder: Path = opt.argument()

    llm: Path = opt.field(option="from")
    """Ask the LLM of this run."""

    out: Path
    """Write the run and the training data to this folder."""

    plan: RunPlan = opt.plan("resume", "shard")

    settings: AnswerSettings = opt.fields_of(
        AnswerSettings, "num_drawn", "judge_every", "num_rows", "seed"
    )

    json: bool = opt.shared("json")


@opt.command("answer", train)
def train_answer(options: TrainAnswerOptions) -> None:
    """Have an LLM answer the subgraphs in FOLDER that it has not learned; keep right answers.

    They are training data for `passnet train sft --with`: expert iteration, without a teacher. An
    answer is right if its loops, run in torch, compute what eager torch does; some are judged too.
    """
    from passnet_loops.data.own_answers import answer_rows, open_asked

    settings = replace(options.settings, shard=options.plan.shard)
    llm = open_asked(options.llm)
    answered = answer_rows(options.folder, llm, options.out, settings, options.plan.resume)
    line = (
        f"{answered.num_right} of {answered.num_rows} rows have a right answer; "
        f"{answered.num_correct} of {answered.num_judged} judged are correct; "
        f"{answered.num_kept} kept: {options.out}"
    )
    print_result(options.json, answered, [line])


@dataclass(frozen=True, kw_only=True)
class TrainEvaluateOptions:
    """Options of `passnet train evaluate`."""

    suite: Suite = opt.suite()

    checkpoints: tuple[Path, ...] = opt.argument(nargs=-1, required=False)

    out: Path
    """Write the evaluation to this folder, and go on with one in it."""

    plan: EvaluationPlan = opt.fields_of(
        EvaluationPlan,
        "data",
        "has_teacher",
        "num_tasks",
        "per_task",
        "num_drawn",
        "is_checked",
        "num_samples",
        "is_timed",
        "answered",
        "is_free",
        "seed",
    )

    figure: Path | None = opt.shared("figure")

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("evaluate", train, goes_on=True)
def train_evaluate(options: TrainEvaluateOptions) -> None:
    """Judge the answers of LLMs to tasks of a suite, beside a teacher and the nearest neighbour.

    CHECKPOINTS are folders of `passnet train sft`. The figure has the curves of training.
    """
    from passnet_loops.comparison import compare
    from passnet_loops.curves import draw_training

    comparison = compare(options.suite, options.checkpoints, options.out, options.plan)
    if options.figure is not None:
        draw_training(options.checkpoints, comparison.systems, options.figure)
    if options.json:
        print_json(comparison)
    else:
        print_tables(comparison.tables(), options.wide)
