"""A pass folder: a bad one gives one clear error, and looking at one runs nothing."""

import json
import os
import sys
from pathlib import Path

import pytest
import torch

from passnet.errors import PassError, PassFolderError
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import OPEN
from passnet.passes.apply.rewrite import apply_passes
from passnet.passes.folder import inspect_folder, is_pass_folder
from passnet.passes.load import load_passes, loaded_passes
from passnet.passes.match.pattern import Pass
from tests.passes.graphs import CLAMP_ALONE as GOOD
from tests.passes.graphs import graph_of, write_folder

LIST = "sorted_output_pass_rule_names.json"
INPUT_LIST = "sorted_input_pass_rule_names.json"


def test_a_good_folder_lists_its_passes_in_order(tmp_path: Path) -> None:
    folder = inspect_folder(write_folder(tmp_path, ["Second", "First"], First=GOOD, Second=GOOD))
    assert [file.name for file in folder.passes] == ["Second", "First"]
    assert folder.unlisted == () and is_pass_folder(tmp_path)
    assert [pass_.name for pass_ in load_passes(folder)] == ["Second", "First"]


def test_an_empty_list_is_a_folder_without_passes(tmp_path: Path) -> None:
    assert load_passes(inspect_folder(write_folder(tmp_path, []))) == []


def test_no_folder_gives_one_error(tmp_path: Path) -> None:
    with pytest.raises(PassFolderError, match="nowhere: no such folder"):
        inspect_folder(tmp_path / "nowhere")


def test_no_list_gives_one_error_that_says_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "Fuse.py").write_text(GOOD)
    assert not is_pass_folder(tmp_path)
    with pytest.raises(PassFolderError, match=f"{LIST}: missing; write a JSON list"):
        inspect_folder(tmp_path)


@pytest.mark.parametrize(
    "text", [b'["Fuse"', b"Fuse", b"\xff\xfe", b"[" * 100_000, b'["Fuse",]', b""]
)
def test_a_list_that_is_not_json_gives_one_error(tmp_path: Path, text: bytes) -> None:
    write_folder(tmp_path, Fuse=GOOD)
    (tmp_path / LIST).write_bytes(text)
    with pytest.raises(PassFolderError, match=f"{LIST}: not a JSON list of pass names"):
        inspect_folder(tmp_path)


@pytest.mark.parametrize("value", [{"Fuse": 1}, "Fuse", 3, None, ["Fuse", 3], [["Fuse"]]])
def test_json_that_is_no_list_of_names_gives_one_error(tmp_path: Path, value: object) -> None:
    write_folder(tmp_path, Fuse=GOOD)
    (tmp_path / LIST).write_text(json.dumps(value))
    with pytest.raises(PassFolderError, match=f"{LIST}: expected a JSON list of pass names"):
        inspect_folder(tmp_path)


@pytest.mark.parametrize(
    "name", ["Fuse.py", "sub/Fuse", "../Fuse", "/etc/passwd", "", " Fuse", "Fuse "]
)
def test_a_name_that_is_no_module_name_gives_one_error(tmp_path: Path, name: str) -> None:
    write_folder(tmp_path, [name], Fuse=GOOD)
    with pytest.raises(PassFolderError, match="is no name of a pass; give that of its file"):
        inspect_folder(tmp_path)


def test_a_name_may_have_spaces_between_its_words(tmp_path: Path) -> None:
    write_folder(tmp_path, ["Fuse it"], Fuse=GOOD)
    (tmp_path / "Fuse.py").rename(tmp_path / "Fuse it.py")
    [fused] = load_passes(inspect_folder(tmp_path))
    assert fused.name == "Fuse it"


def test_a_name_that_is_listed_twice_is_one_pass(tmp_path: Path) -> None:
    write_folder(tmp_path, ["Fuse", "Other", "Fuse"], Fuse=GOOD, Other=GOOD)
    passes = load_passes(inspect_folder(tmp_path))
    assert [pass_.name for pass_ in passes] == ["Fuse", "Other"]


@pytest.mark.parametrize("name", ["2Fuse", "Fuse.v2", "fuse-relu", "class", "a.b.c"])
def test_a_pass_may_have_any_name_that_a_file_can_have(tmp_path: Path, name: str) -> None:
    text = GOOD + "from .kernel import FACTOR\nfrom pass_dir.kernel import FACTOR as AGAIN\n"
    write_folder(tmp_path, [name], **{name: text, "kernel": "FACTOR = 2\n"})
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.py").write_text("raise OSError('this is another module')\n")
    [pass_] = load_passes(inspect_folder(tmp_path))
    assert isinstance(pass_, Pass) and pass_.name == name


def test_a_pass_and_a_module_that_are_imported_by_one_name_are_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, ["Fuse.v2"], **{"Fuse.v2": GOOD, "Fuse%v2": "FACTOR = 2\n"})
    with pytest.raises(PassFolderError, match=r"Fuse\.v2\.py: is imported as Fuse%v2"):
        inspect_folder(tmp_path)


def test_a_missing_file_gives_one_error(tmp_path: Path) -> None:
    write_folder(tmp_path, ["Gone"])
    with pytest.raises(PassFolderError, match=r"Gone\.py: missing, though the list names Gone"):
        inspect_folder(tmp_path)


def test_a_syntax_error_is_told_with_its_line(tmp_path: Path) -> None:
    write_folder(tmp_path, Fuse="import torch\n\ndef pattern(x:\n    return x\n")
    with pytest.raises(PassFolderError, match=r"Fuse\.py:3: not Python: "):
        inspect_folder(tmp_path)


@pytest.mark.parametrize("text", [b"\xff\xfe", b"x = 1\0", b"#" * (5 * 2**20)])
def test_a_file_that_cannot_be_read_as_python_gives_one_error(tmp_path: Path, text: bytes) -> None:
    write_folder(tmp_path, Fuse=GOOD)
    (tmp_path / "Fuse.py").write_bytes(text)
    with pytest.raises(PassFolderError, match=r"Fuse\.py"):
        inspect_folder(tmp_path)


@pytest.mark.parametrize("name", ["pattern", "replacement_args", "replacement_func"])
def test_a_missing_function_is_named(tmp_path: Path, name: str) -> None:
    write_folder(tmp_path, Fuse=GOOD.replace(f"def {name}(", "def other("))
    with pytest.raises(PassFolderError, match=rf"Fuse\.py: defines no {name}; a pass needs"):
        inspect_folder(tmp_path)


PARTS = """
def pattern(x): return x.exp()
def replacement_args(x): return (x,)
def fused(x): return x
def replacement_func(): return fused
"""
IMPORT = "from pass_dir.parts import pattern, replacement_args, replacement_func\n"
BOUND = {
    "imported": IMPORT,
    "imported by other names": "from pass_dir.parts import pattern as f, fused\npattern = f\n"
    "replacement_args = lambda x: (x,)\nreplacement_func = lambda: fused\n",
    "imported inside try": f"try:\n    {IMPORT}except ImportError:\n    raise\n",
    "imported inside if inside try": f"try:\n  if True:\n    {IMPORT}finally:\n    pass\n",
    "defined inside try": "try:\n" + PARTS.replace("\ndef", "\n    def") + "finally:\n    pass\n",
    "imported with all else": "from pass_dir.parts import *\n",
    "bound by exec": f"exec({PARTS!r})\n",
    "bound by globals": "import pass_dir.parts as p\nglobals().update(vars(p))\n",
    "bound by a call": "import pass_dir.parts as p\ndef make():\n"
    "    return p.pattern, p.replacement_args, p.replacement_func\n"
    "pattern, replacement_args, replacement_func = make()\n",
    "bound in a function": "import pass_dir.parts as p\ndef make():\n"
    "    global pattern, replacement_args, replacement_func\n"
    "    pattern, replacement_args = p.pattern, p.replacement_args\n"
    "    replacement_func = p.replacement_func\nmake()\n",
}


@pytest.mark.parametrize("style", BOUND)
def test_functions_may_be_bound_in_any_way(tmp_path: Path, style: str) -> None:
    folder = inspect_folder(write_folder(tmp_path, ["Fuse"], Fuse=BOUND[style], parts=PARTS))
    assert [type(pass_) for pass_ in load_passes(folder)] == [Pass]
    assert folder.unlisted == ("parts",)


def test_a_function_that_exec_was_to_bind_and_did_not_is_named(tmp_path: Path) -> None:
    folder = inspect_folder(write_folder(tmp_path, Fuse="exec('def pattern(x): return x.exp()')"))
    with pytest.raises(PassError, match=r"Fuse\.py: defines no replacement_args; a pass needs"):
        load_passes(folder)


NOT_TRACED = {
    "if on a value": "def pattern(x, y):\n    return x.exp() if x else y\n",
    "another number": "def replacement_args(x):\n    return x\n",
    "no signature": "pattern.__signature__ = 'x'\n",
    "no signature of a class": "class Made:\n    __signature__ = 3\n"
    "    def __call__(self, x, y):\n        return x + y\npattern = Made()\n",
    "a signature that is another": "import inspect\npattern.__signature__ = inspect.Signature()\n",
}


@pytest.mark.parametrize("why", NOT_TRACED)
def test_a_pass_that_cannot_be_traced_is_skipped_and_the_others_apply(
    tmp_path: Path, why: str
) -> None:
    write_folder(tmp_path, ["Broken", "Fuse"], Broken=GOOD + NOT_TRACED[why], Fuse=GOOD)
    passes = load_passes(inspect_folder(tmp_path))
    module = graph_of(lambda x, y: torch.relu(x + y))
    broken, report = apply_passes(module, passes)[0]
    assert broken.num_matches == 0 and report.num_matches == 1
    sentence = broken.sentence()
    assert sentence is not None and sentence.startswith("Broken: skipped: "), sentence
    write_folder(tmp_path, ["Broken"])
    with pytest.raises(PassError):
        load_passes(inspect_folder(tmp_path))


ANNOTATED = "def pattern(x: [int], y: {'a': 1}):\n    return torch.relu(x + y)\n"


def test_an_annotation_that_is_no_type_says_nothing(tmp_path: Path) -> None:
    write_folder(tmp_path, Fuse=GOOD + ANNOTATED)
    [pass_] = load_passes(inspect_folder(tmp_path))
    assert isinstance(pass_, Pass)


@pytest.mark.parametrize("text", ["def f(:\n", "\0", "x = " + "(" * 5000])
def test_a_broken_file_that_nobody_lists_is_no_matter(tmp_path: Path, text: str) -> None:
    write_folder(tmp_path, ["Fuse"], Fuse=GOOD, draft=text)
    folder = inspect_folder(tmp_path)
    assert load_passes(folder) and folder.unlisted == ()
    assert inspect_code(folder, OPEN) == []


LOADING = {
    "raise OSError('no kernel')\n": "loading pass Fuse: OSError: no kernel",
    "from pass_dir.nowhere import kernel\n": "loading pass Fuse: ModuleNotFoundError",
    "pattern = None\n": "Fuse.pattern is no function",
    "def replacement_func():\n    return lambda x, y: x\n": "returned two different objects",
    "def replacement_args(x):\n    return x\n": "pattern takes 2 arguments and replacement_args 1",
    "def pattern(x, y):\n    return x.exp() if x else y\n": "tracing Fuse.pattern",
}


@pytest.mark.parametrize("text", LOADING)
def test_a_folder_that_fails_to_load_gives_one_error(tmp_path: Path, text: str) -> None:
    folder = inspect_folder(write_folder(tmp_path, Fuse=GOOD + text))
    with pytest.raises(PassError, match=LOADING[text]):
        load_passes(folder)


def test_a_helper_module_is_imported_from_the_folder_it_lies_in(tmp_path: Path) -> None:
    text = GOOD.replace("import torch", "import torch\nfrom pass_dir.kernel import FACTOR", 1)
    text = text.replace("return torch.clamp(x + y, min=0)", "return x * FACTOR")
    for name, factor in (("one", 2), ("other", 3)):
        folder = write_folder(tmp_path / name, ["Fuse"], Fuse=text, kernel=f"FACTOR = {factor}\n")
        [pass_] = load_passes(inspect_folder(folder))
        assert pass_.replacement(1, 0) == factor


def test_a_pass_that_is_not_listed_is_noted_and_a_helper_is_not(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, ["Fuse"], Fuse=GOOD, Forgotten=GOOD, kernel="def run(): ...\n")
    assert inspect_folder(folder).unlisted == ("Forgotten",)


def with_input_passes(path: Path, names: str, **modules: str) -> None:
    write_folder(path, [], **modules)
    (path / LIST).rename(path / INPUT_LIST)
    (path / INPUT_LIST).write_text(names)


@pytest.mark.parametrize("location", ["passes/const_pass_dir", "const_pass_dir"])
def test_input_passes_apply_first(tmp_path: Path, location: str) -> None:
    folder = write_folder(tmp_path / "passes", Fuse=GOOD)
    with_input_passes(tmp_path / location, '["Input"]', Input=GOOD)
    passes = load_passes(inspect_folder(folder))
    assert [pass_.name for pass_ in passes] == ["Input", "Fuse"]
    assert passes[0].replacement.__module__ == "const_pass_dir.Input"


def test_an_output_pass_takes_the_place_of_the_input_pass_of_its_name(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "passes", Fuse=GOOD, Input=GOOD)
    with_input_passes(tmp_path / "const_pass_dir", '["Input", "Kept"]', Input=GOOD, Kept=GOOD)
    passes = load_passes(inspect_folder(folder))
    modules = [pass_.replacement.__module__ for pass_ in passes]
    assert modules == ["pass_dir.Input", "const_pass_dir.Kept", "pass_dir.Fuse"]


def test_the_code_hash_changes_with_any_file(tmp_path: Path) -> None:
    def code_hash() -> str:
        return inspect_folder(tmp_path / "passes").code_hash

    write_folder(tmp_path / "passes", ["Fuse"], Fuse=GOOD, kernel="FACTOR = 2\n")
    seen = [code_hash()]
    assert code_hash() == seen[0]
    (tmp_path / "passes" / "kernel.py").write_text("FACTOR = 3\n")
    seen.append(code_hash())
    write_folder(tmp_path / "passes", [])
    seen.append(code_hash())
    with_input_passes(tmp_path / "const_pass_dir", '["Input"]', Input=GOOD)
    seen.append(code_hash())
    (tmp_path / "const_pass_dir" / "Input.py").write_text(GOOD + "# changed\n")
    seen.append(code_hash())
    assert len(set(seen)) == len(seen)


def test_the_code_hash_does_not_depend_on_where_the_folder_lies_or_was_loaded(
    tmp_path: Path,
) -> None:
    folders = [inspect_folder(write_folder(tmp_path / name, Fuse=GOOD)) for name in ("a", "b")]
    assert folders[0].code_hash == folders[1].code_hash
    load_passes(folders[0])
    assert inspect_folder(tmp_path / "a").code_hash == folders[0].code_hash


def test_looking_at_a_folder_runs_none_of_it(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    text = GOOD + f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n"
    folder = inspect_folder(write_folder(tmp_path / "passes", Fuse=text))
    assert not marker.exists()
    load_passes(folder)
    assert marker.exists()


def test_a_change_within_the_same_second_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for factor in "23":
        write_folder(tmp_path, Fuse=GOOD.replace("torch.clamp(x + y, min=0)", f"x * {factor}"))
        os.utime(tmp_path / "Fuse.py", (1000, 1000))
        [pass_] = loaded_passes(tmp_path)
        assert pass_.replacement(torch.ones(()), 0) == int(factor)
    assert not sys.dont_write_bytecode


def test_a_folder_is_loaded_once_while_it_stays_as_it_is(tmp_path: Path) -> None:
    write_folder(tmp_path, Fuse=GOOD)
    assert loaded_passes(tmp_path)[0] is loaded_passes(str(tmp_path))[0]


def test_bytecode_in_the_folder_is_not_run_in_place_of_the_file(tmp_path: Path) -> None:
    import importlib.util
    import py_compile

    folder = write_folder(tmp_path, First=GOOD)
    path = tmp_path / "First.py"
    honest = path.read_text()
    path.write_text("raise RuntimeError('the bytecode was run')\n")
    cached = importlib.util.cache_from_source(str(path))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(path), cached, invalidation_mode=mode)
    path.write_text(honest)
    assert load_passes(inspect_folder(folder))
