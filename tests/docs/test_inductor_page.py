"""The blocks of docs/inductor.md, run as they stand."""

import contextlib
import io

import pytest
import torch

from tests.conftest import ROOT
from tests.docs.pages import blocks

pytestmark = pytest.mark.xdist_group("inductor")  # one process loads it


@pytest.mark.slow
def test_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    first, second, third = blocks(ROOT / "docs" / "inductor.md", "python")
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(first, names)
    assert printed.getvalue() == "1 match\n"
    exec(f"{second}\nwith torch.no_grad():\n    z = fast(x)", names)
    torch.testing.assert_close(names["z"], names["y"])
    assert names["own"].num_matches == 1  # type: ignore[attr-defined]
    exec(third, names)
    with torch.no_grad():
        torch.testing.assert_close(names["y"], names["net"](names["x"]), rtol=1e-4, atol=1e-5)  # type: ignore[operator]
