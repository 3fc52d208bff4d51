"""Rows at other sizes, in other dtypes as well."""

from dataclasses import replace

from passnet.data.dataset.store import Occurrence, Provenance, row_of_graph
from passnet.data.dataset.variant_sizes import is_variant_name
from recipes.passbench_v1 import crossed_rows
from tests.data.mine.test_fusion import graph

NORM_RELU = "a = torch.nn.functional.layer_norm(x, (16,), w, w)\nb = torch.relu(a)\nreturn (b,)\n"


def row(variant: str):
    target = graph(NORM_RELU, x=(32, 16), w=(16,))
    places = (Occurrence("g", 0, 2),)
    where = Provenance(("fusible",), variant, "o", "nlp", ("timm/a",), 1, 1, places)
    return row_of_graph(target, where, "test")


def test_a_row_at_another_size_is_made_in_the_other_dtypes_with_its_original():
    resized = row("batch=32")
    crossed = list(crossed_rows([resized]))
    assert [each.variant for each in crossed] == ["batch=32,float16", "batch=32,bfloat16"]
    assert all(is_variant_name(each.variant) for each in crossed)
    assert {each.structure for each in crossed} == {resized.structure}
    assert {each.original for each in crossed} == {"o"}
    assert len({each.full for each in (resized, *crossed)}) == 3
    assert [each.dtype for each in crossed] == ["float16", "bfloat16"]


def test_what_was_captured_or_has_a_dtype_of_its_own_is_left_as_it_is():
    captured = replace(row("batch=32"), variant="", original="")
    assert not list(crossed_rows([captured, row("float16"), row("batch=4,float16")]))
