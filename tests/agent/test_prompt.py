"""The prompt: every claim of it about the harness is true."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from passnet.agent.attempts.tools import TOOLS
from passnet.agent.prompt import EXAMPLES, PROMPTS, system_prompt, task_prompt
from passnet.agent.rule_examples import RULE_EXAMPLES, RuleExample
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.desk.desk import UNDECIDED, JudgeDesk
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import RULES, RulesName
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.suite.suite import load_suite
from passnet.judge.task import Task, TaskGraph
from passnet.passes.compilation import FLAGS, INCLUDE, find_compiler
from passnet.passes.files import read_files
from passnet.passes.folder import inspect_folder
from tests.agent.brief import brief_settings
from tests.judge.folders import PATTERN, small_graph, write_passes
from tests.passes.assembled import run_assembled
from tests.passes.interpreted import Job, job, run_interpreted

pytestmark = pytest.mark.xdist_group("prompt")


@pytest.fixture(scope="module")
def benches() -> Iterator[dict[str, JudgeDesk]]:
    with (
        JudgeDesk(brief_settings(rules="strict"), "direct") as strict,
        JudgeDesk(brief_settings(rules="open")) as opened,
    ):
        yield {"strict": strict, "open": opened}


def example_task(name: str = "example_cpp") -> Task:
    lines = (PROMPTS / name / "graph.txt").read_text(encoding="utf-8").splitlines()
    head = (
        "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, in_0, in_1):\n"
    )
    program = parse_program(head + "".join(f"        {line}\n" for line in lines))
    graphs = []
    for number, (dtype, shape) in enumerate(
        [("float32", (3, 40)), ("bfloat16", (2, 5, 16)), ("float32", (7,)), ("float16", (4, 33))]
    ):
        specs = tuple(
            TensorSpec(name, shape, dtype, mean=0.0, std=1.0) for name in ("in_0", "in_1")
        )
        graphs.append(TaskGraph("example", f"example-{number}", Graph(program, specs)))
    return Task("example", tuple(graphs))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES["cpu"])
def test_a_worked_example_passes_the_judge_under_strict_rules(
    name: str, benches: dict[str, JudgeDesk]
) -> None:
    trials = benches["strict"].judge(example_task(name), read_files(PROMPTS / name))
    assert [
        (trial.status, trial.smallest_t is not None and trial.smallest_t <= -5) for trial in trials
    ] == [("ok", True)] * 4
    assert not any(finding.weight != "note" for trial in trials for finding in trial.findings)


@pytest.mark.parametrize("name", EXAMPLES["cuda"])
def test_a_worked_example_for_cuda_is_clean_under_strict_rules(name: str) -> None:
    assert inspect_code(inspect_folder(PROMPTS / name), RULES["strict"]) == []


def example_jobs(name: str) -> list[Job]:
    folder = PROMPTS / name
    return [job(graph.name, folder, graph.graph, "fresh") for graph in example_task(name).graphs]


@pytest.mark.parametrize("name", EXAMPLES["cuda"])
def test_a_worked_example_for_cuda_is_right_under_the_interpreter(name: str) -> None:
    pytest.importorskip("triton", reason="triton is not installed")
    results = run_interpreted(example_jobs(name)).values()
    [listed] = inspect_folder(PROMPTS / name).names
    assert [(result.problem, result.matches) for result in results] == [(None, {listed: 1})] * 4
    assert all(result.t is not None and result.t <= CORRECT_AT for result in results)


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("name", EXAMPLES["cuda"])
def test_a_worked_example_for_cuda_compiles_for_a_gpu(
    name: str, capability: int, tmp_path: Path
) -> None:
    pytest.importorskip("triton", reason="triton is not installed")
    kernels = run_assembled(example_jobs(name), capability, tmp_path)
    kernel = "add_softmax_kernel" if name.endswith("rows") else "add_relu_kernel"
    assert list(kernels.values()) == [[kernel]] * 4


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["strict", "open"])
@pytest.mark.parametrize(
    "claim", RULE_EXAMPLES, ids=[claim.finding + claim.text[:20] for claim in RULE_EXAMPLES]
)
def test_what_the_prompt_forbids_is_found(
    claim: RuleExample, rules: RulesName, benches: dict[str, JudgeDesk], tmp_path: Path
) -> None:
    if rules not in claim.rules:
        pytest.skip("holds under other rules")
    code = claim.code.replace("def run(x)", "def replacement(x, y)")
    folder = write_passes(tmp_path / "passes", code)
    if claim.weight == "flag":
        findings = inspect_code(inspect_folder(folder), RULES[rules])
        assert claim.finding in [finding.name for finding in findings if finding.weight == "flag"]
        return
    task = Task("add_relu", (small_graph(),))
    (trial,) = benches[rules].judge(task, read_files(folder))
    names = [finding.name for finding in trial.findings if finding.weight == "reject"]
    if claim.finding == UNDECIDED and trial.status != "cheat":
        # of what text cannot tell the judge sees what runs, if the values are right
        right = folder / "Fuse.py"
        right.write_text(PATTERN + "def replacement(x, y):\n    return (x + y).relu()\n")
        (trial,) = benches[rules].judge(task, read_files(folder))
        names = [finding.name for finding in trial.findings if finding.weight == "reject"]
    assert trial.status == "cheat" and claim.finding in names, trial


@pytest.mark.slow
def test_what_the_rules_allow_is_accepted(benches: dict[str, JudgeDesk]) -> None:
    files = read_files(PROMPTS / EXAMPLES["cpu"][0])
    files["FuseAddRelu.py"] = files["FuseAddRelu.py"].replace(
        "    out = torch.empty_like(x)",
        "    torch.zeros(3).reshape(3, 1)\n"
        "    out = torch.empty(x.shape, dtype=x.dtype).view(x.shape)",
    )
    trials = benches["strict"].judge(example_task(), files)
    assert {trial.status for trial in trials} == {"ok"}


def test_the_system_prompt_names_what_there_is() -> None:
    text = system_prompt(brief_settings(rules="strict"), 12)
    assert "You have 12 turns" in text and "$" not in text
    header = (INCLUDE / "passnet_kernel.h").read_text(encoding="utf-8")
    for name in (
        "bf16",
        "f16",
        "load",
        "store",
        "rounded",
        "exp",
        "sigmoid",
        "silu",
        "tanh",
        "erf",
    ):
        assert name in text and f"{name}(" in header or f"struct {name}" in header
    assert "submit" in TOOLS and json.loads('["FuseAddRelu"]')[0] in text


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std"])
def test_eager_torch_accumulates_half_precision_in_float32(name: str, dtype: torch.dtype) -> None:
    text = system_prompt(brief_settings(), 5)
    assert f"`{name}`" in text and "accumulate in float32 and round their result once" in text
    x = (torch.randn(8, 5000, generator=torch.Generator().manual_seed(0)) + 3).to(dtype)
    for dim in (-1, 0):
        result = getattr(x, name)(dim)
        assert torch.equal(result, getattr(x.float(), name)(dim).to(dtype))


CONVERSIONS = {
    "load and store": ("f16", "store(out + i, load(x + i) * 2.0f)"),
    "a cast": ("_Float16", "out[i] = static_cast<_Float16>(static_cast<float>(x[i]) * 2.0f)"),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_loops_over_float16_are_vectorised_with_load_and_store_and_not_with_casts(
    name: str, tmp_path: Path
) -> None:
    assert "is not vectorised by g++ 12" in system_prompt(brief_settings(), 5)
    compiler = find_compiler()
    if compiler is None or not torch.cpu._is_avx512_supported():
        pytest.skip("measured with g++ 12 on a processor with AVX-512")
    command = [compiler, "-dumpversion"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if version.split(".")[0].strip() != "12":
        pytest.skip("the prompt speaks of g++ 12")
    kind, body = CONVERSIONS[name]
    file = tmp_path / "loop.cpp"
    file.write_text(
        '#include "passnet_kernel.h"\nusing namespace passnet;\n'
        f'extern "C" void run(const {kind}* __restrict x, {kind}* __restrict out, int64_t n) {{\n'
        f"#pragma omp simd\n  for (int64_t i = 0; i < n; i++) {body};\n}}\n"
    )
    told = ("-fopt-info-vec-optimized", f"-I{INCLUDE}", str(file), "-o", str(tmp_path / "loop.so"))
    compiled = subprocess.run([compiler, *FLAGS, *told], capture_output=True, text=True, check=True)
    is_vectorised = "loop.cpp" in compiled.stderr and "loop vectorized" in compiled.stderr
    assert is_vectorised == (name == "load and store")


def test_rules_follow_the_settings() -> None:
    strict, opened = (system_prompt(brief_settings(rules=rules), 5) for rules in ("strict", "open"))
    assert "No operation of torch computes" in strict
    assert "No operation of torch computes" not in opened and "are allowed" in opened
    assert "not shown" not in strict


def test_a_device_is_told_of_its_language_with_an_example_in_it() -> None:
    text = system_prompt(brief_settings(rules="strict", device="cuda"), 5)
    assert "Triton" in text and "passnet_kernel.h" not in text
    assert "def add_relu_kernel(x_ptr" in text and "$" not in text


def test_the_task_is_told_once_with_its_variants_as_a_table() -> None:
    task = next(task for task in load_suite("demo").tasks if task.name == "residual_layer_norm")
    text = task_prompt(task, brief_settings(rules="strict"))
    assert text.count("torch.nn.functional.layer_norm(") == 1
    assert (
        len([line for line in text.splitlines() if line.startswith("| ")]) == len(task.graphs) + 1
    )
    assert len(text) < 4000 and "$" not in text
