"""Meta files and graph directories: what is read, what is refused, that writing loses nothing."""

import json
import math
from pathlib import Path

import pytest

from passnet.errors import GraphError
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.files import GraphSample, find_graphs, read_sample, write_sample
from passnet.graph.text.meta import MAX_ELEMENTS, parse_meta, render_meta
from tests.graph.programs import program_of, text_of

HEAD = "class Program_weight_tensor_meta_a:\n"


def meta_of(name: str = "a", **fields: str) -> str:
    """The text of one class; the fields are Python text, and None drops one."""
    values = {"name": repr(name), "shape": "[2]", "dtype": "'torch.float32'"} | fields
    lines = [f"\t{key} = {text}\n" for key, text in values.items() if text is not None]
    return f"class Program_weight_tensor_meta_{name}:\n" + "".join(lines)


def only_spec(text: str) -> TensorSpec:
    [spec] = parse_meta(text, "weight_meta.py")
    return spec


def test_every_field_is_read():
    text = meta_of(
        original_name="'L_self_weight'",
        dtype="'torch.int64'",
        device="'cuda:0'",
        mean="None",
        std="0.125",
        min_val="-3",
        max_val="4",
        data="[1, -2]",
    )
    assert only_spec(text) == TensorSpec(
        name="a",
        shape=(2,),
        dtype="int64",
        device="cuda:0",
        mean=None,
        std=0.125,
        min_val=-3,
        max_val=4,
        data=(1, -2),
        original_name="L_self_weight",
        keys=(
            *("name", "shape", "dtype", "original_name", "device", "mean", "std"),
            *("min_val", "max_val", "data"),
        ),
    )


def test_tabs_and_spaces_and_imports_are_equal():
    tabs = meta_of()
    assert only_spec(tabs) == only_spec("import torch\n" + tabs.replace("\t", "    "))


def test_only_name_shape_and_dtype_must_be_there():
    spec = only_spec(meta_of())
    assert (spec.device, spec.mean, spec.std, spec.data) == ("cpu", None, None, None)
    assert spec.keys == ("name", "shape", "dtype")


@pytest.mark.parametrize("value, number", [("-0.000", 0.0), ("1e-05", 1e-05), ("3", 3)])
def test_a_mean_is_any_number(value: str, number: float):
    assert only_spec(meta_of(mean=value)).mean == number


def test_a_spread_that_is_no_number_was_not_measured():
    assert only_spec(meta_of(std="float('nan')")).std is None
    assert only_spec(meta_of(mean='float("inf")')).mean == math.inf
    assert only_spec(meta_of(mean="float('-inf')")).mean == -math.inf


def test_data_may_be_one_number_or_special():
    assert only_spec(meta_of(shape="[]", data="7")).data == (7,)
    assert only_spec(meta_of(data="[True, False]", dtype="'torch.bool'")).data == (True, False)
    assert only_spec(meta_of(data="[float('-inf'), float('nan')]")).data == (-math.inf, math.nan)


def test_an_empty_file_describes_nothing():
    assert parse_meta("", "input_meta.py") == () == parse_meta("# none\n", "input_meta.py")


REFUSED = {
    "no name": (meta_of().replace("\tname = 'a'\n", ""), ":1: .*field name is missing"),
    "no shape": (meta_of(shape="None"), ":1: a: field shape is missing"),
    "no dtype": (meta_of(dtype="None"), ":1: a: field dtype is missing"),
    "an unknown field": (meta_of(colour="1"), ":1: a: unknown field colour"),
    "our own role field": (meta_of(role="'input'"), ":1: a: unknown field role"),
    "a field that stands twice": (meta_of() + "\tname = 'b'\n", ":5: field name stands there twi"),
    "an unknown dtype": (meta_of(dtype="'torch.float7'"), "dtype is 'torch.float7', known are"),
    "a dtype that is no text": (meta_of(dtype="3"), "dtype is 3"),
    "a shape that is no list": (meta_of(shape="2"), "shape is 2, expected a list"),
    "a negative size": (meta_of(shape="[2, -1]"), r"shape is \[2, -1\]"),
    "a size that is true": (meta_of(shape="[True]"), r"shape is \[True\]"),
    "a shape of terabytes": (meta_of(shape=f"[{MAX_ELEMENTS}, 2]"), "has more than"),
    "a name that is no text": (meta_of().replace("'a'", "1"), "name is 1, expected str"),
    "an original name that is no text": (meta_of(original_name="1"), "original_name is 1"),
    "a device that is no text": (meta_of(device="None"), "device is None"),
    "a mean that is text": (meta_of(mean="'1'"), "mean is '1', expected a number"),
    "a spread that is true": (meta_of(std="True"), "std is True, expected a number"),
    "too little data": (meta_of(data="[1]"), r"data has 1 values for shape \[2\]"),
    "nested data": (meta_of(data="[[1, 2]]"), "flat list of numbers"),
    "a call": (meta_of(mean="open('x')"), ":5: expected a literal"),
    "a name": (meta_of(mean="nan"), ":5: expected a literal"),
    "arithmetic": (meta_of(shape="[2 ** 40]"), ":3: expected a literal"),
    "a comprehension": (meta_of(data="[i for i in (1, 2)]"), ":5: expected a literal"),
    "a method": (HEAD + "\tdef f(self):\n\t\tpass\n", ":2: expected `field = literal`"),
    "two targets": (HEAD + "\tname = shape = 'a'\n", ":2: expected `field = literal`"),
    "a statement": ("open('x')\n", ":1: only classes may stand here"),
    "signs nested deeply": (meta_of(mean="-" * 1500 + "1"), "nested|parsed"),
    "no Python": ("class :\n", ":1: not Python"),
}


@pytest.mark.parametrize("claim", REFUSED)
def test_a_meta_file_is_refused_with(claim: str):
    text, message = REFUSED[claim]
    with pytest.raises(GraphError, match=f"^weight_meta.py.*({message})"):
        parse_meta(text, "weight_meta.py")


def test_what_is_printed_is_read_back_equal():
    keys = ("name", "original_name", "shape", "dtype", "device", "mean", "std", "data", "max_val")
    specs = (
        TensorSpec("a", (), "bfloat16", mean=-0.5, std=None),
        TensorSpec("b", (2, 0), "int8", "cuda:1", keys=("shape", "name", "dtype", "device")),
        TensorSpec(
            *("c", (3,), "float64", "cpu", -math.inf, math.inf, None, 1e300),
            data=(math.nan, -math.inf, 1.5),
            original_name="L['self'].weight",
            keys=keys,
        ),
        TensorSpec("d", (2,), "bool", data=(True, False), keys=keys, role="weight"),
    )
    assert parse_meta(render_meta(specs), "weight_meta.py") == specs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph directory with two arguments, as a corpus holds it."""
    files = {
        "model.py": text_of("x = a + b", returns="(x,)"),
        "weight_meta.py": meta_of("b") + "\n\n" + meta_of("a"),
        "graph_net.json": json.dumps({"framework": "torch", "dynamic": False, "model_name": "n"}),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_directory_is_read_with_its_arguments_in_order(folder: Path):
    sample = read_sample(folder)
    assert [spec.name for spec in sample.graph.tensors] == ["a", "b"]
    assert sample.info == {"framework": "torch", "dynamic": False, "model_name": "n"}
    assert (sample.constraints, sample.graph_hash, sample.sources) == ("", None, None)


def test_an_argument_may_be_described_as_an_input(folder: Path):
    (folder / "weight_meta.py").write_text(meta_of("b"))
    (folder / "input_meta.py").write_text(meta_of("a"))
    assert [spec.role for spec in read_sample(folder).graph.tensors] == ["input", "weight"]


def test_a_directory_written_is_read_back_equal(tmp_path: Path):
    specs = (
        TensorSpec("a", (2, 3), "float16", mean=0.1, std=None, role="input"),
        TensorSpec("b", (), "int64", data=(4,)),
    )
    sample = GraphSample(
        Graph(program_of("x = a * b", "x[0] = -inf", returns="(x, b)"), specs),
        {"framework": "torch", "model_name": "Zoë", "num": 1},
        "dynamic_dim_constraint_symbols = []\n",
        "0" * 64,
        {"parent": [[0, 2]]},
    )
    write_sample(tmp_path / "new" / "graph", sample)
    assert read_sample(tmp_path / "new" / "graph") == sample
    assert list(find_graphs(tmp_path)) == [tmp_path / "new" / "graph"]
    with pytest.raises(GraphError, match="already holds a graph"):
        write_sample(tmp_path / "new" / "graph", sample)


def test_graphs_are_found_in_sorted_order_and_only_where_both_files_are(tmp_path: Path):
    for name in ("b/x", "a", "c"):
        (tmp_path / name).mkdir(parents=True)
        for file in ("graph_net.json", "model.py")[: 1 if name == "c" else 2]:
            (tmp_path / name / file).touch()
    assert list(find_graphs(tmp_path)) == [tmp_path / "a", tmp_path / "b" / "x"]
    with pytest.raises(GraphError, match="no such directory"):
        list(find_graphs(tmp_path / "missing"))


BROKEN = {
    "a described argument twice": ("weight_meta.py", meta_of("a") * 2, "argument a is .* twice"),
    "an argument in no meta file": ("weight_meta.py", meta_of("a"), "argument b .* no meta file"),
    "an argument forward does not take": (
        "weight_meta.py",
        meta_of("a") + meta_of("b") + meta_of("c"),
        "describe c, which forward does not take",
    ),
    "JSON that is cut off": ("graph_net.json", '{"framework":', "graph_net.json: not JSON"),
    "JSON that is a list": ("graph_net.json", "[]", "graph_net.json: expected a JSON object"),
    "JSON nested deeply": ("graph_net.json", "[" * 99_999, "graph_net.json: not JSON"),
    "JSON with an endless number": ("graph_net.json", "9" * 5000, "graph_net.json: not JSON"),
    "sources that are no JSON": ("subgraph_sources.json", "x", "subgraph_sources.json: not JSON"),
    "no Python": ("model.py", "(", r"model.py:1: not Python"),
}


@pytest.mark.parametrize("claim", BROKEN)
def test_a_directory_is_refused_with(claim: str, folder: Path):
    name, text, message = BROKEN[claim]
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(GraphError, match=f"^{folder}.*{message}"):
        read_sample(folder)


@pytest.mark.parametrize("name", ["model.py", "weight_meta.py", "graph_net.json"])
def test_a_missing_file_is_named(name: str, folder: Path):
    (folder / name).unlink()
    with pytest.raises(GraphError, match=f"{folder / name}: No such file"):
        read_sample(folder)


@pytest.mark.parametrize("name", ["model.py", "weight_meta.py", "graph_net.json"])
def test_a_file_that_is_not_utf_8_is_named(name: str, folder: Path):
    (folder / name).write_bytes(b"# \xff\xfe\n" + (folder / name).read_bytes())
    with pytest.raises(GraphError, match=f"{folder / name}: not UTF-8 text"):
        read_sample(folder)


@pytest.mark.parametrize(
    "name",
    [
        *("model.py", "weight_meta.py", "input_meta.py", "graph_net.json", "graph_hash.txt"),
        *("input_tensor_constraints.py", "subgraph_sources.json"),
    ],
)
def test_a_link_to_outside_of_a_directory_is_not_read(name: str, folder: Path):
    files = {
        "input_meta.py": "",
        "graph_hash.txt": "0",
        "input_tensor_constraints.py": "",
        "subgraph_sources.json": "{}",
    }
    for other, text in files.items():
        (folder / other).write_text(text)
    read_sample(folder)
    inside, outside = folder / "inside.txt", folder.with_name(f"{folder.name}-outside.txt")
    (folder / name).rename(inside)
    (folder / name).symlink_to(inside)
    read_sample(folder)
    inside.rename(outside)
    (folder / name).unlink()
    (folder / name).symlink_to(outside)
    with pytest.raises(GraphError, match=f"^{folder / name}: a link to outside of its folder"):
        read_sample(folder)


def test_a_snapshot_of_the_hub_is_read_and_links_past_its_blobs_are_not(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
):
    """The hub's cache holds links from `snapshots` to `blobs`."""
    cache = tmp_path_factory.mktemp("cache")
    blobs, snapshot = cache / "blobs", cache / "snapshots" / "1f" / "graph"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    expected = read_sample(folder)
    for number, file in enumerate(sorted(folder.iterdir())):
        (blobs / str(number)).write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(f"../../../blobs/{number}")
    assert read_sample(snapshot) == expected
    elsewhere = cache / "elsewhere"
    blobs.rename(elsewhere)
    blobs.symlink_to(elsewhere)
    with pytest.raises(GraphError, match="a link to outside of its folder"):
        read_sample(snapshot)


def test_a_directory_behind_a_link_is_read(folder: Path):
    behind = folder.with_name(f"{folder.name}-link")
    behind.symlink_to(folder)
    assert read_sample(behind) == read_sample(folder)


def test_nothing_of_a_directory_runs(folder: Path, tmp_path: Path):
    marker = tmp_path / "ran"
    touch = f"open({str(marker)!r}, 'w')"
    code = f"class GraphModule({touch}):\n    def forward(self, a: {touch}, b):\n"
    (folder / "model.py").write_text(code + "        x = a + b\n        return (x,)\n")
    (folder / "input_tensor_constraints.py").write_text(touch)
    (folder / "__init__.py").write_text(touch)
    sample = read_sample(folder)
    build(sample.graph.program)
    assert sample.constraints == touch
    assert not marker.exists()
