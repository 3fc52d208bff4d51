"""A check of any catalog: one of its entries is captured and computes what its net does."""

import pytest

from passnet.data.capture.catalog import names_of
from passnet.data.capture.entry_capture import capture_entry
from passnet.data.capture.record import CaptureSettings
from passnet.errors import InputError


def assert_captured(name: str, small: str) -> None:
    """Capture the entry `small` of a library, or its first; skip where it is not installed."""
    try:
        names = names_of(name)
    except InputError:
        pytest.skip(f"{name} is not installed")
    assert len(names) == len(set(names)) and names == names_of(name)
    entry = f"{name}/{small}" if f"{name}/{small}" in names else names[0]
    record = capture_entry(entry, CaptureSettings()).record
    assert record.status == "captured", record.error
    assert record.constraints is not None and record.constraints.error is None
    assert record.constraints.runnable
    assert record.task and record.versions
