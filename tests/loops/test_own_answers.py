"""An llm's own answers: which it is asked for, which are kept, and what comes of a kill."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

from passnet.core.jobs.run_plan import RunShard
from passnet.core.records.serialise import SCHEMA_VERSION, write_json
from passnet.errors import InputError
from passnet.judge.task import TaskGraph
from passnet_loops import own_answers
from passnet_loops.build import TrainingManifest, read_training, write_rows
from passnet_loops.checkpoint import INFO_FILE, SftSettings, TrainInfo
from passnet_loops.examples import OWN_AUTHOR, TrainingRow
from passnet_loops.language.expand import expand_answer
from passnet_loops.language.prompt import Prompt
from passnet_loops.language.run_answer import EagerRun, eager_run
from passnet_loops.own_answers import (
    AnswerSettings,
    answer_rows,
    answer_run,
    asked_rows,
    unlearned_rows,
)
from passnet_loops.row_judge import JudgedAnswer
from passnet_loops.training_rows import split_rows_to_watch

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


@dataclass
class ToldPolicy:
    """Knows the teacher's answers to some rows at once, to others where it is asked again."""

    at_once: Sequence[TrainingRow]
    drawn: Sequence[TrainingRow]
    asked: list[str] = field(default_factory=list)

    def answers(
        self, prompts: Sequence[Prompt], num_samples: int = 1, temperature: float = 0.0,
        seed: int = 0, max_words: int = 0,
    ) -> list[list[str]]:  # fmt: skip
        self.asked += [prompt.text for prompt in prompts]
        known = {row.prompt: row.loops for row in (self.drawn if temperature else self.at_once)}
        nothing = "range nonsense"
        return [
            [nothing] * (num_samples - 1) + [known.get(prompt.text, nothing)] for prompt in prompts
        ]


class ToldJudge:
    """Finds every second answer wrong."""

    num_asked = 0

    def __enter__(self) -> "ToldJudge":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def judge_answer(self, _: TaskGraph, prompt: Prompt, answer: str) -> JudgedAnswer:
        assert expand_answer(prompt, answer)
        type(self).num_asked += 1
        verdict = "correct" if self.num_asked % 2 else "wrong"
        return JudgedAnswer(verdict, "ok", 0.5)  # type: ignore[arg-type]


def test_right_answers_become_training_data_and_a_kill_loses_nothing(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, rows = read_training(data)
    learned, _ = split_rows_to_watch(rows)
    at_once, drawn, unknown = learned[:4], learned[4:6], learned[6:]
    policy = ToldPolicy(at_once, drawn)
    monkeypatch.setattr(own_answers, "open_policy", lambda _: policy)
    monkeypatch.setattr(own_answers, "AnswerJudge", ToldJudge)
    llm, out = tmp_path / "llm", tmp_path / "out"
    llm.mkdir()
    write_json(llm / INFO_FILE, replace(info_of(manifest), data=("another",)))
    settings = AnswerSettings(judge_every=2)
    done = answer_rows(data, llm, out, settings)
    assert (done.num_rows, done.num_right, done.num_judged, done.num_correct) == (8, 6, 3, 2)
    assert done.num_kept == 5, "what the judge found wrong is left out"
    assert len(policy.asked) == 8 + 4, "it is asked again where its likeliest answer is wrong"
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
    policy.asked.clear()
    with pytest.raises(InputError, match="add --resume"):
        answer_rows(data, llm, out, settings)
    again = answer_rows(data, llm, out, settings, resume=True)
    assert len(set(policy.asked)) == 2, "only what was lost is asked for again"
    assert again.num_right == 6
    with pytest.raises(InputError, match="other data or settings"):
        answer_rows(data, llm, out, AnswerSettings(), resume=True)


def test_what_eager_torch_computes_is_kept_for_one_prompt_at_a_time(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, _ = split_rows_to_watch(read_training(data)[1])
    runs: list[ref[EagerRun]] = []

    def spied(prompt: Prompt) -> EagerRun:
        assert not [run for run in runs if run() is not None]
        made = eager_run(prompt)
        runs.append(ref(made))
        return made

    monkeypatch.setattr(own_answers, "eager_run", spied)
    policy = ToldPolicy(rows[:4], rows[4:])
    given = list(own_answers.own_answers(policy, rows, AnswerSettings()))  # type: ignore[arg-type]
    assert sum(bool(own.answer) for own, _ in given) > len(rows) / 2
    assert len(runs) == len(rows) + len(rows[4:]), "again where it is asked again"


def test_where_all_is_learned_there_is_nothing_to_ask(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, _ = read_training(data)
    monkeypatch.setattr(own_answers, "open_policy", lambda _: None)
    write_json(tmp_path / INFO_FILE, info_of(manifest))
    with pytest.raises(InputError, match="has learned all of its rows; give other data"):
        answer_rows(data, tmp_path, tmp_path / "out", AnswerSettings())
    assert not (tmp_path / "out").exists()
