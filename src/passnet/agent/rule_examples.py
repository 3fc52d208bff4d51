"""The rules in a prompt: each sentence with code that breaks it, and its verdict."""

from dataclasses import dataclass

from passnet.judge.inspection.rules import RulesName


@dataclass(frozen=True, slots=True)
class RuleExample:
    """A sentence for an author, a replacement that breaks the rule, and the finding on it."""

    text: str
    code: str
    finding: str
    weight: str = "reject"
    rules: tuple[RulesName, ...] = ("strict", "open")


RULE_EXAMPLES = (
    RuleExample(
        "No operation of torch computes: no `torch.add`, `torch.matmul`, no function of "
        "`torch.nn.functional` or `torch.ops` outside `pattern`.",
        "def run(x):\n    return torch.nn.functional.relu(x)\n",
        "torch_fallback",
        rules=("strict",),
    ),
    RuleExample(
        "No tensor method or operator computes either (`x + y`, `x.sum()`, `x @ y`).",
        "def run(x):\n    return x.softmax(-1)\n",
        "torch_fallback",
        rules=("strict",),
    ),
    RuleExample(
        "No linear algebra of a library from native code (BLAS, MKL, libtorch): such code is "
        "marked, and does not count once a person has read it.",
        'SOURCE = "void cblas_sgemm(int);"\n\ndef run(x):\n    return x\n',
        "torch_fallback",
        "flag",
        rules=("strict",),
    ),
    RuleExample(
        "Code is written out: no `exec`, `eval`, `compile`, `__import__`, `importlib`.",
        "def run(x):\n    return eval('x')\n",
        "evasion",
    ),
    RuleExample(
        "No threads or processes of your own (OpenMP inside a kernel is fine).",
        "import threading as t\n\ndef run(x):\n    t.Thread(target=print).start()\n    return x\n",
        "thread",
    ),
    RuleExample(
        "No network.",
        "import socket\n\ndef run(x):\n    socket.socket()\n    return x\n",
        "network",
    ),
    RuleExample(
        "No nested compiler: no `torch.compile`, no `torch.jit`.",
        "def run(x):\n    return torch.compile(lambda y: y)(x)\n",
        "nested_compile",
    ),
    RuleExample(
        "No look at other frames, modules or objects of the process.",
        "import gc\n\ndef run(x):\n    gc.get_objects()\n    return x\n",
        "introspection",
    ),
    RuleExample(
        "Nothing is written to disk or kept for later processes.",
        "def run(x):\n    torch.save(x, 'x.pt')\n    return x\n",
        "persistence",
    ),
)

ALLOWED = {
    "strict": "Torch may create, describe and move tensors (`torch.empty`, `empty_like`, `zeros`, "
    "`view`, `reshape`, `transpose`, `contiguous`, `expand`, `shape`, `stride`, `data_ptr`, …); "
    "all arithmetic is in your kernels.",
    "open": "Torch operations are allowed in replacements, as a real compiler may rewrite one "
    "into others.",
}
"""Allowed names in replacements, by rules."""
FOUND_BY_RUNNING = (
    "Results are compared on values that you have not seen, in every call that is timed; what is "
    "cached between calls, computed early or late, or on another thread, is found out and scores "
    "as a cheat.",
    "Passes are also tried on shapes of the task that are not shown; one that is wrong there "
    "scores as a cheat. (One that has no match there, or raises an error, does not.)",
)
"""Exploits that only show when code runs; the exploit tests of the judge show each."""


def rules_text(rules: RulesName, held_out: bool) -> str:
    """Return the rules in force, as a list."""
    sentences = [example.text for example in RULE_EXAMPLES if rules in example.rules]
    sentences += FOUND_BY_RUNNING[: 2 if held_out else 1]
    return "\n".join(["## Rules", "", ALLOWED[rules], "", *(f"- {text}" for text in sentences)])
