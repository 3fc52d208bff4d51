import signal
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from passnet.cli import main
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import SCHEMA_VERSION, encode
from passnet.data.capture.store import GraphRow, GraphSource, write_set
from passnet.errors import AuthorError, InputError
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.text.render import render_program
from passnet.judge.suite.suite import load_suite, read_suite_keys
from passnet.judge.task import TaskGraph
from passnet_loops.comparison import NearestNeighbour
from passnet_loops.data.build import (
    DataInfo,
    Excluded,
    check_apart,
    data_run,
    known_rows,
    merge_rows,
    mine_rows,
    read_training,
    select_rows,
)
from passnet_loops.data.examples import TrainingRow, time_limit
from passnet_loops.data.training_rows import TextPair, first_structures, pairs_of, renamed
from passnet_loops.settings import DataSettings

PROMPT = "sizes N0 e9\na0 : float32 N0\nt0 : float32 N0 = mul a0 F0\nreturn ( t0 )\nanswer"
LOOPS = "range t0 t0\nfor i0 N0 :\n  put t0 [ i0 ] mul a0 [ i0 ] F0\nend"


def row(structure: str, ops: tuple[str, ...], verdict: str = "correct") -> TrainingRow:
    return TrainingRow(
        full=structure + "full", structure=structure, op_sequence=ops, num_ops=len(ops),
        dtype="float32", net="library/net", program="", tensors="[]", author="compiler",
        prompt=PROMPT, loops=LOOPS, folder="", words=30, verdict=verdict,
    )  # fmt: skip


def captured(graph: TaskGraph) -> GraphRow:
    prints = fingerprints(graph.graph)
    assert prints.full is not None
    return GraphRow(
        prints.full, prints.literals, prints.structure, render_program(graph.graph.program),
        encode(graph.graph.tensors).decode(), op_sequence(graph.graph.program), "{}", "cv", "",
        (GraphSource("library/net", 0),),
    )  # fmt: skip


def test_a_row_of_evaluation_is_not_kept() -> None:
    keys = read_suite_keys(["demo"])
    leaking = row("a", next(iter(keys.sequences)))
    kept, left_out = select_rows([leaking, row("b", ("torch.nothing",))], DataSettings(), keys)
    assert [each.structure for each in kept] == ["b"]
    assert left_out == Counter({"of evaluation": 1})


def test_the_leak_check_fails_where_a_row_leaks() -> None:
    keys = read_suite_keys(["demo"])
    check_apart([row("b", ("torch.nothing",))], keys)
    with pytest.raises(InputError, match="1 rows of training data leak.*op sequence"):
        check_apart([row("a", next(iter(keys.sequences)))], keys)
    with pytest.raises(InputError, match="structure"):
        check_apart([row(next(iter(keys.structures)), ("torch.nothing",))], keys)


def test_rows_are_balanced_over_op_sequences_and_wrong_ones_left_out() -> None:
    rows = [row(f"s{n}", ("torch.a", "torch.b")) for n in range(5)]
    rows += [
        row("s9", ("torch.c",)),
        row("s10", ("torch.d",), "wrong"),
        row("s0", ("torch.a", "torch.b")),
    ]
    keys = read_suite_keys([])
    kept, left_out = select_rows(rows, DataSettings(max_per_sequence=2), keys)
    assert Counter(each.op_sequence for each in kept) == {
        ("torch.a", "torch.b"): 2,
        ("torch.c",): 1,
    }
    assert left_out["wrong"] == 1 and left_out["op sequence has enough"] >= 3


def test_mining_that_was_stopped_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    suite = load_suite("demo")
    rows = [captured(task.graphs[0]) for task in suite.tasks if task.name in
            ("gelu_tanh", "gated_activation")]  # fmt: skip
    keys = read_suite_keys(["demo-small"])
    info = DataInfo(SCHEMA_VERSION, "captures", keys.hashes, DataSettings(max_windows=3))
    worked_on: list[str] = []

    def is_over() -> bool:
        return len(worked_on) == 1

    mine_rows(rows, tmp_path, info, Excluded(keys), RunPlan(progress=worked_on.append), is_over)
    [first] = data_run(tmp_path).records()
    with pytest.raises(InputError, match="add --resume"):
        mine_rows(rows, tmp_path, info, Excluded(keys))
    mine_rows(rows, tmp_path, info, Excluded(keys), RunPlan(True, progress=worked_on.append))
    assert list(data_run(tmp_path).records()) == [first, rows[1].full]
    assert len(worked_on) == 2
    made = [each for record in data_run(tmp_path).records().values() for each in record.rows]
    assert made and all(each.loops.startswith("range t") for each in made)
    manifest = merge_rows([tmp_path], tmp_path / "data", info.settings, keys, has_unjudged=True)
    assert manifest.verdicts == {"not judged": manifest.num_rows}
    assert read_training(tmp_path / "data")[1]
    assert merge_rows([tmp_path], tmp_path / "judged", info.settings, keys).num_rows == 0


def test_data_of_other_captures_is_another_run(tmp_path: Path) -> None:
    first, second = [captured(task.graphs[0]) for task in load_suite("demo").tasks][:2]
    words = ["train", "data", str(tmp_path / "captures"), "--out", str(tmp_path / "data"),
             "--no-judge", "--unjudged", "--resume"]  # fmt: skip
    (tmp_path / "captures").mkdir()
    write_set(tmp_path / "captures", [first], {})
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(main, words).exit_code == 0
    write_set(tmp_path / "captures", [first, second], {})
    other = CliRunner().invoke(main, words)
    assert other.exit_code == 2 and "(captures was " in other.output


def test_what_other_data_has_is_taken_in_and_not_made_again(tmp_path: Path) -> None:
    [task] = [task for task in load_suite("demo").tasks if task.name == "gelu_tanh"]
    keys = read_suite_keys(["demo-small"])
    info = DataInfo(SCHEMA_VERSION, "captures", keys.hashes, DataSettings(max_windows=3))
    rows = [captured(task.graphs[0])]
    mine_rows(rows, tmp_path / "first", info, Excluded(keys))
    data = merge_rows([tmp_path / "first"], tmp_path / "data", info.settings, keys, True)
    known = {row.structure for row in known_rows(tmp_path / "data")}
    assert len(known) == data.num_structures > 0
    mine_rows(rows, tmp_path / "second", info, Excluded(keys, known))
    assert known_rows(tmp_path / "second") == []
    folders = [tmp_path / "second", tmp_path / "data"]
    again = merge_rows(folders, tmp_path / "both", info.settings, keys, True)
    assert again.shards == data.shards
    with pytest.raises(InputError, match=r"training\.json"):
        known_rows(tmp_path)


def test_renaming_changes_names_in_prompt_and_answer_alike() -> None:
    prompt, answer = renamed(PROMPT, LOOPS, Random(3))
    assert (prompt, answer) != (PROMPT, LOOPS)
    back = dict(zip(prompt.split(), PROMPT.split(), strict=True))
    assert " ".join(back.get(word, word) for word in answer.split()) == " ".join(LOOPS.split())


def test_a_curve_learns_from_fewer_structures_of_the_same() -> None:
    rows = [row(f"s{n}", ("torch.a",)) for n in range(9)]
    few, more = first_structures(rows, 3), first_structures(rows, 6)
    assert {each.structure for each in few} < {each.structure for each in more}
    assert len(pairs_of(rows, 3, 0, 100)) == 27 and pairs_of(rows, 1, 0, 10) == []


def test_the_nearest_neighbour_is_the_prompt_most_alike() -> None:
    pairs = [TextPair("t0 = relu a0", "one"), TextPair("t0 = add a0 a1", "two")]
    assert NearestNeighbour(pairs).answer("t0 = add a0 F0") == "two"
    repeated = [TextPair("a b a b a b", "long"), TextPair("a b", "short"), TextPair("b a", "no")]
    assert NearestNeighbour(repeated).answer("a b") == "short"
    assert NearestNeighbour(repeated).answer("a b a b c") == "long", "3 of 7 pairs, 1 of 4"


def test_work_has_a_limit_of_its_own_time_and_a_wait_of_ten_times_that() -> None:
    with time_limit(0.1):
        time.sleep(0.3)
    for is_working in (True, False):
        with pytest.raises(AuthorError, match="took more than 0 s"), time_limit(0.1):
            while is_working:
                pass
            time.sleep(5)
    assert signal.getitimer(signal.ITIMER_PROF) == signal.getitimer(signal.ITIMER_REAL) == (0, 0)
