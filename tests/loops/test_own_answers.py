"""An llm's own answers: which it is asked for, which are kept, and what comes of a kill."""

import gc
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from passnet.core.jobs.run_plan import RunShard
from passnet.core.records.serialise import SCHEMA_VERSION
from passnet.errors import InputError
from passnet.judge.task import Task
from passnet.judge.trial import Trial
from passnet.passes.files import Files
from passnet_loops.checkpoint import TrainInfo
from passnet_loops.data.build import TrainingManifest, read_training, write_rows
from passnet_loops.data.examples import OWN_AUTHOR, TrainingRow
from passnet_loops.data.own_answers import (
    AnsweringSummary,
    AskedLlm,
    answer_rows,
    answer_run,
    asked_rows,
    own_answers,
    unlearned_rows,
)
from passnet_loops.data.row_judge import AnswerJudge
from passnet_loops.data.training_rows import split_rows_to_watch
from passnet_loops.language.run_answer import EagerRun
from passnet_loops.scripted_policy import ScriptedPolicy
from passnet_loops.settings import AnswerSettings, SftSettings

SHIPPED = Path(__file__).parents[2] / "training"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few short rows that are right where run, and some to watch."""
    if not SHIPPED.exists():
        pytest.skip("no training data beside the package")
    manifest, rows = read_training(SHIPPED)
    learned, watched = split_rows_to_watch(rows)
    few = [row for row in learned if row.words < 60 and row.dtype == "float32"][:8]
    out = tmp_path_factory.mktemp("data")
    write_rows(out, [*few, *watched[:2]], manifest.evaluation, Counter())
    return out


def info_of(manifest: TrainingManifest, **settings: Any) -> TrainInfo:
    hashes = tuple(shard.sha256 for shard in manifest.shards)
    return TrainInfo(SCHEMA_VERSION, "sft", 1, 1, 1, hashes, {}, SftSettings(**settings), 0.0)


def test_an_llm_is_asked_for_what_it_has_not_learned(data: Path) -> None:
    manifest, rows = read_training(data)
    learned, watched = split_rows_to_watch(rows)
    assert len(learned) == 8 and len(watched) == 2
    assert unlearned_rows(manifest, rows, info_of(manifest)) == []
    left = unlearned_rows(manifest, rows, info_of(manifest, num_structures=3))
    assert len(left) == 5 and not {row.full for row in left} & {row.full for row in watched}
    # rows that are too long for it to learn, and those of other data, are new to it
    most = max(row.words for row in learned)
    long = unlearned_rows(manifest, rows, info_of(manifest, max_words=most - 1))
    assert long and all(row.words == most for row in long)
    judged = replace(manifest, judged_from=("before",))
    assert unlearned_rows(judged, rows, replace(info_of(manifest), data=("before",))) == []
    other = replace(info_of(manifest), data=("another",))
    assert unlearned_rows(manifest, rows, other) == learned
    parts = [
        asked_rows(manifest, rows, other, AnswerSettings(shard=RunShard(number, 2)))
        for number in (1, 2)
    ]
    assert sorted(row.full for part in parts for row in part) == sorted(row.full for row in learned)
    assert len(asked_rows(manifest, rows, other, AnswerSettings(num_rows=3))) == 3
    assert asked_rows(manifest, rows, other, AnswerSettings(max_prompt_words=1)) == []


NONSENSE = "range nonsense"


def scripted(greedy: Sequence[TrainingRow], sampled: Sequence[TrainingRow]) -> ScriptedPolicy:
    """Knows the teacher's answers to some rows greedily, to others among its samples."""
    at_once = {row.prompt: row.loops for row in greedy}
    later = {row.prompt: row.loops for row in sampled}

    def script(prompt: str) -> list[str]:
        return [at_once.get(prompt, NONSENSE), NONSENSE, later.get(prompt, NONSENSE)]

    return ScriptedPolicy(script)


@dataclass
class EverySecondWrong:
    """A desk that finds every second answer wrong."""

    num_judged: int = 0

    def judge(self, task: Task, files: Files) -> list[Trial]:
        assert files
        self.num_judged += 1
        status = "ok" if self.num_judged % 2 else "wrong_values"
        return [Trial(task.name, task.graphs[0].name, "passes", status, smallest_t=-10)]  # type: ignore[arg-type]


def asked(policy: ScriptedPolicy, info: TrainInfo) -> AskedLlm:
    return AskedLlm(lambda: policy, info, "digest")


def test_no_llm_is_loaded_before_the_data_is_read(data: Path, tmp_path: Path) -> None:
    info = info_of(read_training(data)[0])
    llm = AskedLlm(lambda: pytest.fail("it was loaded"), info, "digest")
    with pytest.raises(InputError, match="holds no training data"):
        answer_rows(tmp_path, llm, tmp_path / "out", AnswerSettings())


def test_right_answers_become_training_data_and_a_kill_loses_nothing(
    data: Path, tmp_path: Path
) -> None:
    manifest, rows = read_training(data)
    learned, _ = split_rows_to_watch(rows)
    policy = scripted(learned[:4], learned[4:6])
    unknown = learned[6:]
    judge = AnswerJudge(EverySecondWrong())  # type: ignore[arg-type]
    llm = asked(policy, replace(info_of(manifest), data=("another",)))
    out, settings = tmp_path / "out", AnswerSettings(judge_every=2)

    def answer(settings: AnswerSettings, resume: bool = False) -> AnsweringSummary:
        return answer_rows(data, llm, out, settings, resume, lambda: nullcontext(judge))

    done = answer(settings)
    assert (done.num_rows, done.num_right, done.num_judged, done.num_correct) == (8, 6, 3, 2)
    assert done.num_kept == 5, "what the judge found wrong is left out"
    assert len(policy.prompts) == 8 + 4, "it is asked again where its greedy answer is wrong"
    made, own = read_training(out)
    assert made.evaluation == manifest.evaluation and made.left_out == {"wrong": 1}
    by_prompt = {row.prompt: row for row in learned}
    for row in own:
        assert row.author == OWN_AUTHOR and row.loops == by_prompt[row.prompt].loops
        assert row.prompt not in {each.prompt for each in unknown} and row.folder
    assert Counter(row.verdict for row in own) == {"correct": 2, "not judged": 3}
    records = answer_run(out).records()
    shares = [record.replaced for record in records.values() if record.answer]
    assert len(shares) == 6 and all(0 < share <= 1.001 for share in shares)

    path = answer_run(out).records_path
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]) + lines[-2][:30])
    policy.prompts.clear()
    with pytest.raises(InputError, match="add --resume"):
        answer(settings)
    again = answer(settings, resume=True)
    assert len(set(policy.prompts)) == 2, "only what was lost is asked for again"
    assert again.num_right == 6
    with pytest.raises(InputError, match="other data or settings"):
        answer(AnswerSettings(), resume=True)


def test_no_values_of_eager_torch_are_alive_while_the_llm_answers(data: Path) -> None:
    rows, _ = split_rows_to_watch(read_training(data)[1])
    known = scripted(rows[:4], rows[4:])

    def script(prompt: str) -> Sequence[str]:
        assert not [each for each in gc.get_objects() if isinstance(each, EagerRun)]
        return known.script(prompt)

    policy = ScriptedPolicy(script)
    given = list(own_answers(policy, rows, AnswerSettings()))
    assert sum(bool(own.answer) for own, _ in given) > len(rows) / 2
    assert len(policy.prompts) == len(rows) + len(rows[4:]), "again where it is asked again"


def test_where_all_is_learned_there_is_nothing_to_ask(data: Path, tmp_path: Path) -> None:
    manifest, _ = read_training(data)
    llm = asked(scripted((), ()), info_of(manifest))
    with pytest.raises(InputError, match="has learned all of its rows; give other data"):
        answer_rows(data, llm, tmp_path / "out", AnswerSettings())
    assert not (tmp_path / "out").exists()
