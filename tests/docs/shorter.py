"""Differences between pages and their tests: shorter runs, and commands that come before."""

Exchange = dict[str, str]

_ONE = "--task gelu_tanh --seconds 0.1 --self-tolerance 100"
_PARTS = "--task rms_norm --task pool_concat --seconds 0.05 --self-tolerance 100"
_SMALL = {"--suite demo ": "--suite demo-small "}
_HELD_OUT = {"passbench-v1 ": "demo ", "passbench-v1-held-out": "demo-held-out"}

SHORTER: tuple[tuple[str, tuple[Exchange, str]], ...] = (
    (
        "passnet bench run --suite passbench-v1 --candidate inductor",
        ({"passbench-v1": "demo-small"}, _PARTS),
    ),
    (
        "passnet bench run --suite passbench-v1 --candidate eager",
        ({"passbench-v1": "demo-small"}, "--seconds 0.4"),
    ),
    ("passnet bench run --suite passbench-v1 --held-out", (_HELD_OUT, _ONE)),
    ("passnet bench run --suite passbench-v1-small", ({"passbench-v1-small": "demo-small"}, _ONE)),
    ("passnet bench run --suite passbench-v1-hot", ({"passbench-v1-hot": "demo-small"}, _ONE)),
    (
        "passnet bench run --suite passbench-v1 --candidate runs/name",
        ({"passbench-v1": "demo-small", "runs/name": "runs/script"}, _ONE),
    ),
    ("passnet bench run --suite demo ", (_SMALL, _ONE)),
    ("passnet library export ", ({}, "--all")),
    ("passnet library import ", ({}, "--seconds 0.05")),
    ("passnet suite check demo", ({}, "--task gelu_tanh --quick")),
    (
        "passnet suite check passbench-v1@1.0",
        ({"passbench-v1@1.0": "demo-small"}, "--task gelu_tanh"),
    ),
    ("passnet suite check ", ({}, "--quick")),
    ("passnet agent stats ", ({"runs/name runs/other": "runs/script"}, "")),
    ("passnet agent run --suite demo --author search", (_SMALL, f"{_ONE} --turns 2")),
    ("passnet agent run ", (_SMALL, _ONE)),
    (
        "passnet extract timm/resnet18 ",
        (
            {
                "timm/resnet18": "timm/test_resnet",
                "transformers/bert": "timm/test_vit",
                "torchvision/swin*": "timm/test_conv*",
            },
            "",
        ),
    ),
    ("passnet extract 'timm/resnet18*' ", ({"'timm/resnet18*'": "timm/test_resnet"}, "")),
    ("passnet extract --catalog timm ", ({"--catalog timm": "timm/test_resnet"}, "")),
    ("passnet dataset merge runs/timm runs/hub", ({"runs/hub": "runs/nets"}, "")),
    ("passnet dataset sample captures ", ({"captures": "runs/own"}, "")),
    ("passnet dataset build captures --out data --resume --sizes", ({}, "--num-sizes 1")),
    ("passnet dataset build captures --sizes", ({}, "--num-sizes 1")),
    ("passnet dataset verify data", ({}, "--run 2")),
    (
        "python -m recipes.publication",
        (
            {
                " --graphs captures/training": "",
                " --trajectories chats.jsonl": "",
                " --suite passbench-v0-classical": "",
                "--suite passbench-v1": "--suite demo-small",
            },
            "",
        ),
    ),
    ("passnet suite make ", ({}, "--tasks 2 --min-graphs 1 --max-graphs 2 --quick")),
    (
        "passnet optimize audit ",
        ({" tests/nets": " tests/nets/harmless/mlp.py"}, "--backend graph --seconds 0.05"),
    ),
    (
        "passnet optimize torchvision/resnet18",
        ({"torchvision/resnet18": "timm/test_resnet"}, "--backend graph --seconds 0.05"),
    ),
    (
        "passnet optimize timm/convnext_atto",
        (
            {"timm/convnext_atto": "timm/test_convnext"},
            "--budget 60s --seconds 0.05 --backend graph --backend passes",
        ),
    ),
    (
        "passnet optimize my_nets.py:make --author",
        ({}, "--budget 5m --seconds 0.05 --backend graph --backend passes"),
    ),
    ("passnet optimize ", ({}, "--budget 60s --seconds 0.05 --backend graph --backend passes")),
    (
        "passnet profile timm/resnet18",
        (
            {"timm/resnet18": "timm/test_resnet", "transformers/Bert*": "timm/test_resne*"},
            "--seconds 0.05",
        ),
    ),
    ("passnet profile runs/", ({}, "")),
    ("passnet profile subgraphs ", ({}, "--limit 2 --seconds 0.05")),
    ("passnet profile ", ({}, "--limit 4 --seconds 0.1")),
    (
        "passnet train data ",
        (
            {
                " --eval passbench-v1-held-out": "",
                " --eval passbench-v0": "",
                "passbench-v1": "demo-small",
            },
            "--structures 6",
        ),
    ),
    ("passnet train answer ", ({"runs/first": "training/llm"}, "--limit 2")),
    (
        "passnet train evaluate ",
        (
            {"runs/first runs/second": "training/llm"},
            "--tasks 1 --draw 2",
        ),
    ),
)
"""Start of a command -> exchanged parts, and words to add; the first that fits counts."""

NOT_RUN: tuple[tuple[str, str], ...] = (
    ("openai/", "asks an LLM of a provider"),
    ("hub/google", "downloads from a hub"),
    ("runs/published", "needs published scores; tests/bench/test_published.py reads some"),
    (
        "agent export runs/name",
        "PassBench has the recorded LLM's task; tests/agent/test_selection.py runs parts",
    ),
    ("--executor ray", "needs a Ray cluster"),
    ("--device cuda", "needs a GPU"),
    ("recipes.passbench_hot", "takes hours; tests/recipes runs its choice of op sequences"),
    ("recipes.train_v1", "takes an hour"),
    ("recipes/gpu/train.py", "trains an LLM of billions; tests/train trains a tiny one so"),
    ("examples/triton", "needs Triton"),
    (
        "kernelbench KernelBench",
        "needs a checkout of KernelBench; tests/exchange runs it on one like it",
    ),
    ("benchmarks.deployed runs", "takes hours"),
    ("bench apply", "judges whole nets for minutes; tests/bench/test_in_nets.py runs it"),
    ("suite weigh", "judges whole nets for minutes; tests/bench/test_shares.py runs it"),
    ("--shares runs", "needs measured shares; tests/bench/test_shares.py runs it"),
    ("kernelbench.parquet", "needs a checkout of KernelBench"),
    ("train sft", "needs TRL, and minutes; tests/loops runs it where TRL is installed"),
    ("--out site-of-entries", "needs entries; docs/leaderboard.md runs it with some"),
    ("judge serve", "serves until it is stopped; tests/train/service runs it"),
    ("recipes/captures.py", "captures whole libraries; tests/recipes runs it"),
    (
        "upload release --repo",
        "uploads to a hub; tests/recipes/test_upload.py runs it against a local server",
    ),
    ("recipes/growth.py", "draws into the shipped captures; tests/recipes runs its parts"),
    ("recipes/patterns.py", "folds all captures, a minute; tests/recipes runs its parts"),
    ("integrations.harbor", "needs a wheel; tests/integrations runs it"),
)
"""Parts of commands that are only parsed -> the reason."""

PROGRAMS_NOT_RUN: dict[str, str] = {
    "make": "installs into the checkout and runs for minutes; what it calls is tested by itself",
    "pip": "installs into the environment of the tests; recipes/release.sh tries the wheels",
    "pytest": "is what runs this",
    "inspect": "asks an LLM of a provider",
    "transformers": "serves an LLM until it is stopped",
    "export": "names a service for a recipe that needs a GPU",
}
"""Programs of pages that no test runs -> the reason."""


def shortened(text: str) -> str | None:
    """Return a command as the test runs it; None if it does not."""
    if text.split()[0] in PROGRAMS_NOT_RUN or any(part in text for part, _ in NOT_RUN):
        return None
    for start, (exchanged, extra) in SHORTER:
        if text.startswith(start):
            for old, new in exchanged.items():
                text = text.replace(old, new)
            return f"{text} {extra}".rstrip()
    return text


BEFORE: dict[str, tuple[tuple[str, str], ...]] = {
    "docs/dataset.md": (
        (
            "passnet dataset import",
            "passnet dataset export data --out GraphNet/samples --layout graphnet",
        ),
    ),
    "docs/profiling.md": (
        ("passnet profile data", "passnet extract my_nets.py:make --out runs/own"),
        ("passnet profile data", "passnet dataset build runs/own --out data"),
    ),
    "docs/site.md": (
        (
            "passnet report runs/mine",
            f"passnet bench run --suite demo-small --candidate my_passes --out runs/mine {_ONE}",
        ),
    ),
}
"""Page -> starts of its commands or blocks, and commands that run before them."""

WITH_DATASET = ("docs/site.md", "docs/suites.md")
"""Pages that begin with a dataset of the captures, in `data`."""

CORPORA = (
    "tests/exploits/graphs",
    "tests/exploits/kernels",
    "tests/exploits/f05_patched_clock",
    "tests/honest/graphs",
    "tests/honest/plain_cpp",
    "tests/nets/harmless/mlp.py",
)
"""The part of the corpora that audits run on."""

BLOCKS_NOT_RUN: tuple[tuple[str, str], ...] = (
    ("@triton.jit", "needs Triton"),
    ("LLM(", "needs vLLM, whose wheels need CUDA"),
)
"""Parts of Python blocks that are only compiled -> the reason."""

BLOCKS_RUN_ELSEWHERE: dict[str, str] = {
    "docs/inductor.md": "tests/docs/test_inductor_page.py",
    "docs/backends.md": "tests/docs/test_backends_page.py",
}
"""Pages whose Python blocks a test of their own runs -> that test."""

_TORCHVISION = """
from passnet.data.capture.mismatched_wheels import import_torchvision
import_torchvision()
"""
"""Imports torchvision also where its wheel does not fit torch; docs/capture.md says more."""

_SERVICE = """
import atexit, subprocess, sys, time
from pathlib import Path

words = ["--device", "cpu:0", "--suite", "demo", "--out", "runs/judge"]
service = subprocess.Popen([sys.executable, "-m", "passnet.cli", "judge", "serve", *words])
atexit.register(service.terminate)
while not Path("runs/judge/token").exists():
    assert service.poll() is None
    time.sleep(0.1)
"""
"""The service that the page has started; its client asks again until it answers."""

_STAND_IN_TRL = """
import sys
from pathlib import Path
from types import ModuleType

trl = ModuleType("trl")
trl.GRPOTrainer = type("GRPOTrainer", (), {"__init__": lambda self, **words: None, "train": print})
trl.GRPOConfig = lambda folder: folder
sys.modules["trl"] = trl
"""
"""A trainer that learns nothing; tests/train runs TRL where it is installed."""

_STAND_IN_KERNELS = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

def get_local_kernel(folder):
    spec = spec_from_file_location("kernel", folder / "build/torch-cpu/__init__.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

kernels = sys.modules["kernels"] = ModuleType("kernels")
kernels.get_local_kernel = get_local_kernel
"""
"""A loader of one variant; tests/optimizer runs `kernels` where it is installed."""

PREAMBLES: dict[str, tuple[str, Exchange]] = {
    "README.md": (
        "",
        {
            "optimize(net, x)": 'optimize(net, x, backends=("graph",), seconds=0.1)',
            "optimize(net, x, out": 'optimize(net, x, backends=("graph",), seconds=0.1, out',
        },
    ),
    "docs/environments.md": (
        _SERVICE + _STAND_IN_TRL,
        {'training_tasks("train-v1")': "{}"},  # prompts of all take minutes
    ),
    "docs/service.md": (_SERVICE, {}),
    "docs/library.md": (_STAND_IN_KERNELS, {}),
    "docs/mining.md": ("", {'device="cuda"': 'device="cpu"'}),
    "docs/optimize.md": (
        _TORCHVISION,
        {
            f"{more})\n": f'{more}, backends=("graph",), seconds=0.1)\n'
            for more in (
                '"length": (1, 512)}',
                "{1: (1, 512)}}",
                "(ids,)]",
                "model, ids",
                "tolerance=1e-2",
                'precision=("int8",)',
                "may_lose=0.005",
            )
        },
    ),
    "training/README.md": (
        "import shutil\nfrom pathlib import Path\n"
        'Path("runs/sft/model").mkdir(parents=True)\n'
        'shutil.copy("training/llm/model/model.safetensors", "runs/sft/model")\n',
        {},
    ),
    "docs/variants.md": ("", {"timm/resnet18": "timm/test_resnet"}),
}
"""Page -> code before its Python blocks, and the parts of them that are exchanged."""
