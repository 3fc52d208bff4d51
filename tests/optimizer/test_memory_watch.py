"""Weights that the kernel watches: every write is seen, by whomever and however it is made."""

import ctypes
import fcntl
import mmap
import os
import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from passnet.optimizer.call import compiled_check
from passnet.optimizer.call.call_check import Misfit, input_signature
from passnet.optimizer.call.fast_net import FastNet
from passnet.optimizer.call.net_call import weights_of
from tests.optimizer.hand_made import entry_of

X = torch.ones(2)
PAGE = mmap.PAGESIZE
NUM_FLOATS = 100_003
"""Some 400 KB: pages that hold nothing else, and ends that are parts of pages."""


class Held(torch.nn.Module):
    """A net of one large weight, one small one, and a view of the large one."""

    def __init__(self, large):
        super().__init__()
        self.large = torch.nn.Parameter(large, requires_grad=False)
        self.register_buffer("small", torch.ones(3))
        self.register_buffer("view", large[5:9])

    def forward(self, x):
        return x


def check_of(net, is_to_watch=True):
    entry = entry_of(net, X, is_frozen=True, compares=True)
    return compiled_check.compiled_check(input_signature(net, entry), is_to_watch)


num_watched = compiled_check.num_watched_bytes


def fits(check):
    return check((X,), {}) != Misfit.FROZEN


@pytest.fixture
def net():
    net = Held(torch.randn(NUM_FLOATS)).eval()
    if not num_watched(check_of(net)):
        pytest.skip("the kernel does not tell which pages were written (Linux 6.7 does)")
    return net


def read_into(net, source="/dev/zero"):
    """Let the kernel write, as a file that is read straight into a weight does."""
    with open(source, "rb", buffering=0) as file:  # noqa: PTH123
        assert file.readinto(net.large.numpy()[50_000:50_100].data) == 400


def write_zeros_by_address(net):
    ctypes.memset(net.large.data_ptr() + 4 * 60_000, 0, 8)


WRITES = {
    "counted": lambda net: net.large.mul_(2),
    "data": lambda net: net.large.data.mul_(2),
    "view": lambda net: net.view.numpy().__setitem__(1, 7.0),
    "first": lambda net: net.large.numpy().__setitem__(0, 7.0),
    "middle": lambda net: net.large.numpy().__setitem__(NUM_FLOATS // 2, 7.0),
    "last": lambda net: net.large.numpy().__setitem__(NUM_FLOATS - 1, 7.0),
    "address": write_zeros_by_address,
    "kernel": read_into,
}


@pytest.mark.parametrize("how", WRITES)
def test_every_write_is_seen_until_it_is_undone(net, how):
    check, before = check_of(net), net.large.clone()
    with torch.no_grad():
        for _ in range(2):
            assert fits(check) and fits(check)
            WRITES[how](net)
            assert not fits(check) and not fits(check)
            net.large.copy_(before)
            assert fits(check) and num_watched(check) > 0.9 * 4 * NUM_FLOATS


def test_what_is_written_with_the_same_values_still_fits(net):
    check = check_of(net)
    net.large.data.copy_(net.large.clone())
    assert fits(check)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, NUM_FLOATS - 1), st.sampled_from([0.0, 1.0])), max_size=5))
def test_watching_says_what_summing_says(writes):
    net = Held(torch.zeros(NUM_FLOATS)).eval()
    watched, summed = check_of(net), check_of(net, is_to_watch=False)
    assert num_watched(summed) == 0
    for place, value in writes:
        net.large.numpy()[place] = value
        assert fits(watched) == fits(summed) == (not net.large.any())


def test_of_two_checks_neither_hides_a_write_from_the_other(net):
    first, second = check_of(net), check_of(net)
    assert fits(first) and fits(second)
    net.large.data[70_000] += 1
    assert not fits(first) and not fits(second)
    third = check_of(net)
    assert fits(third) and not fits(first) and not fits(second)


def test_a_check_that_is_made_after_a_write_hides_it_from_none(net):
    first = check_of(net)
    net.large.data[70_000] += 1
    assert fits(check_of(net)) and not fits(first)


def in_child(act):
    """Whether something is true in a child of this process."""
    child = os.fork()
    if not child:
        is_true = False
        try:
            is_true = bool(act())
        finally:
            os._exit(0 if is_true else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_sees_its_own_writes_and_its_parent_sees_its_own(net):
    check = check_of(net)

    def write():
        net.large.numpy()[70_000] += 1

    def written_in_child():
        is_as_it_was = fits(check)
        write()
        return is_as_it_was and not fits(check) and not fits(check)

    assert fits(check)
    assert in_child(written_in_child)
    assert fits(check) and num_watched(check)
    write()
    assert in_child(lambda: not fits(check))
    assert not fits(check)


def test_what_was_written_before_a_fork_is_seen_in_the_child(net):
    check = check_of(net)
    net.large.numpy()[70_000] += 1
    assert in_child(lambda: not fits(check)) and not fits(check)


def test_memory_that_others_can_write_is_not_watched(net, tmp_path):
    shared = torch.randn(NUM_FLOATS).share_memory_()
    path = tmp_path / "weights.bin"
    net.large.numpy().tofile(path)
    mapped = torch.from_numpy(np.memmap(path, np.float32, "c"))
    for large in (shared, mapped):
        other = Held(large).eval()
        check = check_of(other)
        assert num_watched(check) == 0 and fits(check)
        other.large.data[70_000] += 1
        assert not fits(check)


def test_a_process_that_writes_shared_weights_is_seen():
    shared = Held(torch.randn(NUM_FLOATS).share_memory_()).eval()
    check = check_of(shared)
    assert in_child(lambda: shared.large.numpy().__setitem__(70_000, 0.0) is None)
    assert not fits(check)


def test_pages_that_were_mapped_anew_are_summed_and_watched_again(net):
    check = check_of(net)
    page = (net.large.data_ptr() + 40 * PAGE) // PAGE * PAGE
    held = ctypes.string_at(page, PAGE)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    fixed = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10
    assert libc.mmap(page, PAGE, mmap.PROT_READ | mmap.PROT_WRITE, fixed, -1, 0) == page
    assert not fits(check)
    ctypes.memmove(page, held, PAGE)
    assert fits(check) and num_watched(check)


def protect_anew(begin, end):
    """Take the kernel's note of what was written away, as a device that copies never left one."""
    scan, protects, written = 0xC0606610, 1, 2
    arguments = struct.pack("12Q", 96, protects, begin, end, 0, 0, 0, 0, 0, written, 0, written)
    with open("/proc/self/pagemap", "rb", buffering=0) as file:  # noqa: PTH123
        fcntl.ioctl(file, scan, arguments)


def test_what_torch_counts_is_seen_where_the_kernel_saw_nothing(net):
    check = check_of(net)
    page = (net.large.data_ptr() + 40 * PAGE) // PAGE * PAGE
    place = (page - net.large.data_ptr()) // 4
    net.large.numpy()[place] += 1
    protect_anew(page, page + PAGE)
    assert fits(check)
    net.large.mul_(1)
    protect_anew(net.large.data_ptr() // PAGE * PAGE, page + 100 * PAGE)
    assert not fits(check)


def test_a_net_tells_how_much_of_its_weights_is_watched(net):
    fast = FastNet(net, [entry_of(net, X, is_frozen=True, compares=True)])
    share = num_watched(check_of(net)) / (4 * NUM_FLOATS + 12)
    assert f"(weights compared, {share:.0%} of their bytes watched by the kernel)" in repr(fast)


def test_weights_of_a_watched_net_are_those_of_the_net(net):
    assert set(weights_of(net)) == {"large", "small", "view"}
    check = check_of(net)
    net.small.data[1] = 2.0
    assert not fits(check)
