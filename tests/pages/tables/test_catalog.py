"""The page about a run over the catalog: what is counted by library, and which failure is named."""

from passnet.data.capture.record import NetRecord
from passnet.pages.tables.catalog import summary

RECORDS = [
    NetRecord("timm/a", "captured", domain="cv", trace_s=1.0, wall_s=3.0, peak_mib=700.0),
    NetRecord("timm/b", "captured", domain="cv", trace_s=2.0, wall_s=5.0, mode="real"),
    NetRecord("timm/c", "failed", "timeout", "took | long\n from user code: x", wall_s=9.0),
    NetRecord("kornia/d", "failed", "crash", wall_s=1.0),
    NetRecord("kornia/e", "failed", "crash", "it ended", wall_s=2.0),
]


def test_libraries_domains_and_failures_are_counted() -> None:
    lines = summary(RECORDS).splitlines()
    assert "| kornia | 2 | 0 | 0.0 % | 0 | 0 | 0 | 0 | 0 | 0 | - | 1.5 | 0 |" in lines
    assert "| timm | 3 | 2 | 66.7 % | 0 | 0 | 0 | 0 | 0 | 1 | 1.5 | 5.0 | 700 |" in lines
    assert "| all | 5 | 2 | 40.0 % | 0 | 0 | 0 | 0 | 0 | 1 | 1.5 | 3.0 | 700 |" in lines
    assert "| cv | 2 | 100.0 % | 27.0 % |" in lines
    assert lines[-2:] == ["| kornia | crash | 2 | d:  |", "| timm | timeout | 1 | c: took / long |"]


def test_a_run_of_no_nets_is_a_page_too() -> None:
    assert "| all | 0 | 0 | 0.0 % | 0 | 0 | 0 | 0 | 0 | 0 | - | - | - |" in summary([])
