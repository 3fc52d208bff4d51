"""`passnet judge roofline`: the rates of this machine that T_sol is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from passnet.judge.timing.roofline import MachineRates
    from passnet.pages.tables.tables import Table


@dataclass(frozen=True, kw_only=True)
class JudgeRooflineOptions:
    """Options of `passnet judge roofline`."""

    device: str = opt.field("cpu", choices=("cpu", "cuda"))
    """Measure this device."""

    threads: int = opt.field(1, most=1024)
    """Measure so many threads, which run at the same time."""

    again: bool = False
    """Measure again, also where this machine's rates are known."""

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("roofline")
def judge_roofline(options: JudgeRooflineOptions) -> None:
    """Print this machine's rates of memory and arithmetic, measured at first.

    They are kept, and the judge takes the least time of every graph from them.
    """
    from passnet.judge.processes.machine_rates import machine_rates
    from passnet.judge.timing.roofline import MARGIN

    rates = machine_rates(options.threads, options.device, options.again)
    line = f"{rates.hardware.text}; a time below {MARGIN:.0%} of T_sol is impossible"
    print_result(options.json, rates, [line], rate_tables(rates), options.wide)


def rate_tables(rates: MachineRates) -> list[Table]:
    """Return the tables of rates: of memory by size, and of arithmetic by dtype."""
    from passnet.pages.tables.tables import Table

    memory = Table(
        "Memory, GB/s",
        ("size", "read", "written", "copied"),
        [(_size(row[0]), *(f"{rate / 1e9:.1f}" for rate in row[1:])) for row in rates.memory],
        note="copied: from one half to the other, read and written bytes together.",
    )
    arithmetic = Table(
        "Arithmetic, billions of operations a second",
        ("dtype", "products", "elementwise"),
        [
            (dtype, _giga(rates.products, dtype), _giga(rates.elementwise, dtype))
            for dtype in rates.products
        ],
        note="products: of matrices. elementwise: multiply-adds in registers, two operations each.",
    )
    return [memory, arithmetic]


def _size(num_bytes: int) -> str:
    return f"{num_bytes >> 20} MiB" if num_bytes >= 1 << 20 else f"{num_bytes >> 10} KiB"


def _giga(rates: Mapping[str, float], dtype: str) -> str:
    return f"{rates[dtype] / 1e9:.0f}" if dtype in rates else "–"
