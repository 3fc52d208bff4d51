from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from passnet.core.records.serialise import read_json
from passnet.errors import InputError
from passnet.judge.suite.suite import load_suite
from passnet_loops.checkpoint import (
    CARD_FILE,
    INFO_FILE,
    MODEL_FOLDER,
    TrainInfo,
    llm_digest,
)
from passnet_loops.data.build import read_training, write_rows
from passnet_loops.data.examples import OWN_AUTHOR
from passnet_loops.data.training_rows import first_structures, split_rows_to_watch
from passnet_loops.language.expand import expand_answer
from passnet_loops.language.grammar import AnswerGrammar
from passnet_loops.language.prompt import loops_prompt
from passnet_loops.policy import Sampling, open_policy
from passnet_loops.settings import LlmShape, SftPlan, SftSettings
from passnet_loops.sft import (
    BEGIN_FILE,
    CURVE_FILE,
    STATES,
    begin_training,
    muon_optimizer,
    run_sft,
)
from tests.loops.misfit import first_misfit

SHIPPED = Path(__file__).parents[2] / "training"

BEGUN = TrainInfo(1, "untrained", 2, 3, 3, ("data",), {"demo": "hash"}, SftSettings(), 0.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"data": ("other data",)},
        {"settings": SftSettings(learning_rate=9e-3)},
        {"start": "digest of another LLM"},
        {"evaluation": {}},
    ],
)
def test_a_killed_run_goes_on_only_as_it_began(changes: dict[str, Any], tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), begin_training(tmp_path, BEGUN, False):
        (tmp_path / STATES / "checkpoint-100").mkdir(parents=True)
        raise KeyboardInterrupt
    other = begin_training(tmp_path, replace(BEGUN, **changes), True)
    with pytest.raises(InputError, match="began with other"), other:
        raise AssertionError("no step is made")
    again = begin_training(tmp_path, BEGUN, False)
    with pytest.raises(InputError, match="add --resume"), again:
        raise AssertionError("no step is made")
    with begin_training(tmp_path, BEGUN, True):
        pass


@pytest.mark.parametrize("name", [STATES, INFO_FILE, CURVE_FILE])
@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_does_not_say_how_it_began_is_refused(
    name: str, resume: bool, tmp_path: Path
) -> None:
    (tmp_path / name).touch()
    run = begin_training(tmp_path, BEGUN, resume)
    with pytest.raises(InputError, match=f"holds {name} but no {BEGIN_FILE}"), run:
        raise AssertionError("no step is made")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not SHIPPED.exists():
        pytest.skip("no training data beside the package")
    manifest, rows = read_training(SHIPPED)
    out = tmp_path_factory.mktemp("data")
    write_rows(out, first_structures(rows, 40), manifest.evaluation, Counter())
    return out


@pytest.mark.slow
def test_an_llm_is_fine_tuned_kept_and_answers(folder: Path, tmp_path: Path) -> None:
    for name in ("trl", "pytorch_optimizer"):
        pytest.importorskip(name, reason="needs passnet[train]")
    settings = SftSettings(LlmShape(32, 2, 2), num_copies=1, is_bfloat16=False)
    made = run_sft(folder, tmp_path, settings)
    assert read_json(tmp_path / INFO_FILE, TrainInfo) == made
    assert made.stage == "sft" and made.num_structures <= 40
    card = (tmp_path / MODEL_FOLDER / CARD_FILE).read_text()
    assert "demo, passbench-v0" in card and f"{made.num_structures} structures" in card
    with pytest.raises(InputError, match="add --resume"):
        run_sft(folder, tmp_path, settings)
    with pytest.raises(InputError, match="began with other"):
        run_sft(folder, tmp_path, replace(settings, seed=1), SftPlan(resume=True))

    prompt = loops_prompt(load_suite("demo").tasks[0].graphs[0].graph)
    policy = open_policy(tmp_path)
    words = "range t0 t1 for i0 N0 :"
    [read] = policy.tokenizer.batch_decode([policy.tokenizer(words)["input_ids"]])
    assert read == words, "a trainer reads answers as they were said"
    [[likeliest]] = policy.answers([prompt], Sampling(max_words=40))
    [drawn] = policy.answers([prompt], Sampling(3, temperature=1.0, max_words=40))
    assert len(drawn) == 3
    said = {word for answer in (likeliest, *drawn) for word in answer.split()}
    numbers = [word for word in said if word in ("True", "False") or word.strip("-")[:1].isdigit()]
    grammar = AnswerGrammar(prompt, [*numbers, "inf", "-inf", "nan"])
    for answer in (likeliest, *drawn):
        misfit = first_misfit(grammar, answer)
        is_cut_off = misfit is not None and misfit[0] == len(answer.split())
        assert misfit is None or is_cut_off, (answer, misfit)
    [ranked] = policy.ranked([prompt], 4, Sampling())
    assert 1 <= len(ranked) <= 4 and policy.answers([prompt])[0][0] in ranked
    likelihoods = policy.log_likelihoods(prompt, ranked)
    assert likelihoods == sorted(likelihoods, reverse=True) and max(likelihoods) < 0
    alone = [policy.log_likelihoods(prompt, [answer])[0] for answer in ranked]
    assert likelihoods == pytest.approx(alone, rel=1e-3), "a longer answer beside it changes none"
    [[free]] = policy.answers([prompt], Sampling(max_words=40, is_free=True))
    assert first_misfit(grammar, free) is not None, "an llm that knows nothing says nonsense"


@pytest.mark.slow
def test_own_answers_are_learned_beside_those_of_the_teacher(folder: Path, tmp_path: Path) -> None:
    for name in ("trl", "pytorch_optimizer"):
        pytest.importorskip(name, reason="needs passnet[train]")
    manifest, rows = read_training(folder)
    own, out = tmp_path / "own", tmp_path / "out"
    learned, _ = split_rows_to_watch(rows)
    own_rows = [replace(row, author=OWN_AUTHOR) for row in learned[-3:]]
    write_rows(own, own_rows, {"the demo": manifest.evaluation["demo"]}, Counter())
    settings = SftSettings(LlmShape(32, 2, 2), num_structures=5)
    made = run_sft(folder, out, settings, SftPlan(is_untrained=True, others=(own,)))
    taught = len(first_structures(learned, 5))
    assert (made.num_rows, made.num_own_rows) == (taught + 3, 3)
    assert made.data[0] == manifest.shards[0].sha256 and len(made.data) == 2
    card = (out / MODEL_FOLDER / CARD_FILE).read_text()
    assert "3 with an llm's own right answers" in " ".join(card.split())
    assert set(made.evaluation) == {"demo"}, "of what both are kept apart from, by content"

    # what it then learns adds to what it has learned
    again = run_sft(own, tmp_path / "again", SftSettings(), SftPlan(out, is_untrained=True))
    assert again.data == (made.data[1], made.data[0]) and again.start == llm_digest(out)
    assert again.settings.shape == settings.shape and set(again.evaluation) == {"the demo"}
    card = (tmp_path / "again" / MODEL_FOLDER / CARD_FILE).read_text()
    assert f"begun from the llm {llm_digest(out)[:16]}: LFM2, width 32" in " ".join(card.split())


@pytest.mark.slow
def test_the_shipped_llm_answers_what_the_judge_can_read() -> None:
    if not (SHIPPED / "llm").exists():
        pytest.skip("no llm beside the package")
    pytest.importorskip("transformers", reason="needs passnet[train]")
    info = read_json(SHIPPED / "llm" / INFO_FILE, TrainInfo)
    manifest, _ = read_training(SHIPPED)
    assert manifest.was_learned(info.data), "it learned from these"
    [task] = [task for task in load_suite("demo").tasks if task.name == "gelu_tanh"]
    prompt = loops_prompt(task.graphs[0].graph)
    [[answer]] = open_policy(SHIPPED / "llm").answers([prompt])
    assert expand_answer(prompt, answer)


@pytest.mark.slow
def test_muon_in_float32_moves_weights_as_that_in_bfloat16_does() -> None:
    """But for roundings: the method that it overrides is the one that is used."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("pytorch_optimizer", reason="needs passnet[train]")
    moved = {}
    for is_bfloat16 in (False, True):
        torch.manual_seed(0)
        layer = torch.nn.Sequential(torch.nn.Linear(24, 40), torch.nn.Linear(40, 8))
        before = [weight.detach().clone() for weight in layer.parameters()]
        optimizer = muon_optimizer(layer, 2e-3, is_bfloat16)
        for _ in range(3):
            layer(torch.randn(16, 24)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        moved[is_bfloat16] = [
            weight.detach() - old for weight, old in zip(layer.parameters(), before, strict=True)
        ]
    for one, other in zip(moved[False], moved[True], strict=True):
        assert other.norm() > 0 and (one - other).norm() < 0.3 * other.norm()
    assert not torch.equal(moved[False][0], moved[True][0])
