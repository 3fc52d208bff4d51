"""A checkout in KernelBench's layout, made up here, as a suite."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from passnet.cli import main
from passnet.core.hardware import version_of
from passnet.core.jobs.process import JobLimits
from passnet.core.jobs.run_plan import RunPlan
from passnet.errors import InputError
from passnet.judge.suite.suite import load_suite
from passnet_exchange.pairs.kernelbench import (
    ImportedSuite,
    find_other_files,
    find_problems,
    import_kernelbench,
)
from tests.exchange.pairs import REFERENCE, write

SQUARE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, a, signs):
        return torch.relu(a * signs)

batch_size = 512
shape = (512,)

def get_inputs():
    return [torch.rand(batch_size, *shape), torch.randint(0, 2, (batch_size,)).float()]

def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    write(folder / "KernelBench" / "level1" / "2_Net.py", REFERENCE)
    write(folder / "KernelBench" / "level1" / "10_Square_.py", SQUARE)
    write(folder / "KernelBench" / "level1" / "notes.py", "no problem")
    write(folder / "KernelBench" / "level2" / "1_Broken.py", "import absent_module_of_others\n")
    write(
        folder / "KernelBench" / "level2" / "2_Fixed.py",
        SQUARE.replace("*shape", "512").replace("(batch_size", "(512"),
    )
    return folder


def imported(checkout: Path, out: Path, resume: bool = False, retry: bool = False) -> ImportedSuite:
    limits, plan = JobLimits(60.0, 4096), RunPlan(resume=resume, retry=retry)
    announce = lambda _: nullcontext(lambda *_: None)  # noqa: E731
    return import_kernelbench(checkout, (), 64 * 1024, out, limits, plan, announce)


def test_problems_come_level_by_level_and_in_their_order(checkout: Path) -> None:
    names = ["level1/2_Net", "level1/10_Square_", "level2/1_Broken", "level2/2_Fixed"]
    assert [*find_problems(checkout, ())] == names
    assert [*find_problems(checkout / "KernelBench", (1,))] == names[:2]
    with pytest.raises(InputError, match="no level 7"):
        find_problems(checkout, (7,))
    with pytest.raises(InputError, match="give a checkout"):
        find_problems(checkout / "KernelBench" / "level1", ())


def test_a_checkout_becomes_a_suite_that_fits(checkout: Path, tmp_path: Path) -> None:
    out = tmp_path / "kb.parquet"
    made = imported(checkout, out)
    by_name = {each.name: each for each in made.problems}
    square = by_name["level1/10_Square_"]
    assert square.task == "level1-10_Square-reduced"
    assert square.changes == "batch_size 512 to 64, shape[0] 512 to 64", "one alone breaks it"
    assert square.problem.whole_bytes == 2 * 512 * 512 * 4 + 512 * 4
    assert square.problem.num_bytes == 2 * 64 * 64 * 4 + 64 * 4
    assert by_name["level1/2_Net"].task == "level1-2_Net"
    errors = {each.name: each.problem.error for each in made.left_out}
    assert errors.keys() == {"level2/1_Broken", "level2/2_Fixed"}
    assert "absent_module_of_others" in (errors["level2/1_Broken"] or "")
    assert "no smaller integers" in (errors["level2/2_Fixed"] or "")
    suite = load_suite(str(out))
    assert suite.content_hash == made.suite.content_hash
    nets = {graph.source.net for graph in suite.graphs if graph.source}
    assert f"kernelbench/level1/10_Square_ ({square.changes})" in nets
    records = (tmp_path / "kb.work" / "problems.jsonl").read_bytes()
    assert imported(checkout, out, resume=True) == made
    assert (tmp_path / "kb.work" / "problems.jsonl").read_bytes() == records, "nothing ran again"
    with pytest.raises(InputError, match="--resume"):
        imported(checkout, out)


def test_what_is_wrong_with_a_problem_is_said_and_all_that_is_left_out_is_counted(
    tmp_path: Path,
) -> None:
    level, out = tmp_path / "level1", tmp_path / "kb.parquet"
    write(level / "1_Net.py", SQUARE)
    text = "reference = lambda x: torch.reluu(x)\ninputs = lambda: [torch.ones(2)]"
    write(level / "2_Odd.py", f"import torch\n{text}")
    write(level / "notes.py", "")
    done = CliRunner().invoke(
        main, ["suite", "import", "kernelbench", str(tmp_path), "--out", str(out)]
    )
    assert "module 'torch' has no attribute 'reluu'" in done.stdout, done.output
    assert f"1 problem, 0 of them reduced, 2 left out, in {out}" in done.stdout
    assert "1 graph of 1 net: " in CliRunner().invoke(main, ["suite", "list", str(out)]).stdout


def test_any_file_with_a_number_is_a_problem_and_others_are_told(tmp_path: Path) -> None:
    level = tmp_path / "level4"
    for name in ("10_google-bert-large_bs1.py", "2_a b.c.py", "__init__.py", "below/1_Net.py"):
        write(level / name, "")
    (level / "3_folder.py").mkdir()
    assert [*find_problems(tmp_path, ())] == ["level4/2_a b.c", "level4/10_google-bert-large_bs1"]
    others = ["level4/3_folder.py", "level4/__init__.py", "level4/below/1_Net.py"]
    assert find_other_files(tmp_path, (4,)) == others


def test_a_changed_file_is_captured_again_only_with_retry(tmp_path: Path) -> None:
    net, out = tmp_path / "level1" / "1_Net.py", tmp_path / "kb.parquet"
    write(net, SQUARE)
    write(net.with_name("notes.py"), "")
    made = imported(tmp_path, out)
    assert made.other_files == ("level1/notes.py",)
    net.write_text(SQUARE.replace("relu", "sigmoid"))
    with pytest.raises(InputError, match=r"1_Net.py: has changed since .* add --retry"):
        imported(tmp_path, out, resume=True)
    again = imported(tmp_path, out, resume=True, retry=True)
    assert "sigmoid" in again.problems[0].problem.program
    assert again.suite.content_hash != made.suite.content_hash
    info = tmp_path / "kb.work" / "import.json"
    info.write_text(info.read_text().replace(version_of("torch"), "1.0"))
    with pytest.raises(InputError, match="another torch"):
        imported(tmp_path, out, resume=True)
