"""`passnet judge serve`: the judge over HTTP, as the reward of a training run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_notes, say

if TYPE_CHECKING:
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.suite.suite import Suite
    from passnet_service.settings import JudgeDevice, ServiceLimits, ServiceSettings

    Devices: TypeAlias = tuple[JudgeDevice, ...]


def _parse_devices(text: str) -> tuple[JudgeDevice, ...]:
    from passnet_service.settings import parse_devices

    return parse_devices(text)


def _service_settings() -> ServiceSettings:
    from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
    from passnet_service.settings import ServiceSettings

    timing = TimingPlan(seconds=0.4)
    judge = JudgeSettings(
        timing=timing, rules="strict", compile_timeout_s=60.0, call_timeout_s=10.0
    )
    return ServiceSettings(RunSettings(judge))


@dataclass(frozen=True, kw_only=True)
class JudgeServeOptions:
    """Options of `passnet judge serve`."""

    out: Path
    """Keep the queue and the answers in this folder; a later service goes on from there."""

    devices: Devices = opt.field(
        option="device",
        type=click.STRING,
        convert=_parse_devices,
        default="cpu:0",
        metavar="DEVICE,…",
    )
    """Run a judge on each of these devices, such as cpu:0 or cuda:0,cuda:1. They compare side by
    side, but on the same hardware only one measures at a time.
    """

    suites: tuple[str, ...] = opt.field(
        (), option="suite", metavar="SUITE", complete=opt.completion.suites
    )
    """Let clients name tasks of this suite."""

    held_out: Suite | None = opt.shared("held_out")

    port: int = opt.field(8321, least=0, most=65535)
    """Listen on this port; 0 takes a free one."""

    host: str = "127.0.0.1"
    """Listen on this address; by default only this machine reaches it. Without TLS: put a proxy
    before it.
    """

    token_file: Path | None = None
    """Read the token of clients from this file; by default one is made in the folder."""

    plan: RunPlan = opt.plan("executor")

    limits: ServiceLimits = opt.fields_of("passnet_service.settings:ServiceLimits", "max_waiting")

    settings: ServiceSettings = opt.fields_of(
        _service_settings,
        "call",
        "budget_s",
        *(f"run.{path}" for path in (*opt.JUDGING[1:], *opt.LIMITS)),
    )

    sandbox: Sandbox = opt.shared("sandbox")


@opt.command("serve", goes_on=True)
def judge_serve(options: JudgeServeOptions) -> None:
    """Judge submissions over HTTP until interrupted: the reward of a training run.

    Clients name tasks of the suites, or send the graphs of their tasks. A kill loses nothing: the
    queue waits on when the service is started again with the same --out. The same task and files
    are answered from the folder.
    """
    from passnet.judge.suite.suite import load_suite
    from passnet_service.server import ServicePlan, serve

    print_notes((), options.sandbox)
    run = options.settings.run
    judge = replace(run.judge, device=options.devices[0].kind)
    run = replace(run, judge=judge, sandbox=options.sandbox.name)
    token = options.token_file
    plan = ServicePlan(
        out=options.out,
        devices=options.devices,
        settings=replace(options.settings, run=run),
        suites={name: load_suite(name) for name in options.suites},
        held_out=options.held_out,
        limits=options.limits,
        host=options.host,
        port=options.port,
        token=None if token is None else token.read_text(encoding="utf-8").strip(),
        on_ray=options.plan.is_on_ray,
    )
    path = token or options.out / "token"
    serve(plan, lambda url: say(f"serving {url}, with the token in {path}"))
