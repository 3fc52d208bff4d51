"""A pass folder of one pass, and what the static inspection finds in it."""

import json
from pathlib import Path

from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import Rules
from passnet.judge.verdict.findings import Finding
from passnet.passes.folder import inspect_folder

PASS = """
import torch

def pattern(x, y):
    return torch.relu(x @ y).softmax(-1)

def replacement_args(x, y):
    return x, y

def replacement_func():
    return fused
"""
NOTHING: set[tuple[str, str]] = set()
OP = {("reject", "torch_fallback")}
METHOD = {("flag", "torch_fallback")}
EVASION = {("flag", "evasion")}
PATTERN = {("flag", "pattern_called")}
PATCH = {("flag", "timer_patch")}
LIBRARY = {("flag", "patched_library")}
PROXY = {("flag", "patched_proxy")}
HARNESS = {("flag", "harness_detection")}
THREAD = {("flag", "thread")}
PROCESS = {("flag", "process")}
NETWORK = {("flag", "network")}
INTROSPECTION = {("flag", "introspection")}
PERSISTENCE = {("flag", "persistence")}
COMPARISON = {("flag", "overloaded_comparison")}
COMPILE = {("flag", "nested_compile")}
FOREIGN = {("note", "foreign_code")}


def findings(tmp_path: Path, source: str, rules: Rules, **modules: str) -> list[Finding]:
    """The findings in a folder with one pass, whose code besides its pattern is `source`."""
    files = {"Fuse": PASS + source} | modules
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "sorted_output_pass_rule_names.json").write_text(json.dumps(["Fuse"]))
    return inspect_code(inspect_folder(tmp_path), rules)


def kinds(found: list[Finding]) -> set[tuple[str, str]]:
    return {(item.weight, item.name) for item in found}


def body(expression: str, before: str = "", parameters: str = "x, y") -> str:
    return f"{before}\ndef fused({parameters}):\n    return {expression}\n"
