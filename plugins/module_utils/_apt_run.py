# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run apt-get through a :class:`Host` until it did its work, or until waiting has no more point.

Another apt is waited for, up to a limit: `DPkg::Lock::Timeout` covers dpkg's locks only, not that of the lists. What
passes by itself (a mirror that answers 503 or is in the middle of an update) is tried again three times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Mapping, Optional, Sequence, Tuple

from ._apt_problems import Problem, is_busy, may_pass, parse_problems, retry_delay_s
from ._host import CommandResult, Host

LOCK_POLL_S = 5.0
UPDATE_ARGV = ("apt-get", "-q", "-o", "Acquire::Retries=0", "update")
"""Tries are counted here: where one server refuses some requests and answers others, apt 2.6's own retries hang."""


@dataclass(frozen=True)
class AptRun:
    """The last try: its result and what apt complained about. `tries` counts those that no lock kept from running."""

    result: CommandResult
    problems: Tuple[Problem, ...]
    tries: int


def run_apt(
    host: Host,
    argv: Sequence[str],
    timeout_s: float,
    lock_timeout_s: float,
    environment: Mapping[str, str],
    sleep: Callable[[float], None],
    clock: Callable[[], float],
    before_retry: Optional[Callable[[], object]] = None,
) -> AptRun:
    """`timeout_s` is for one try. `before_retry` is called before another one, e.g. to read the lists again."""
    deadline = clock() + lock_timeout_s
    tries = 1
    while True:
        result = host.run(argv, timeout_s=timeout_s, env=environment)
        problems = parse_problems(result.stdout + "\n" + result.stderr)
        if is_busy(problems):
            if clock() >= deadline:
                return AptRun(result, problems, tries)
            sleep(LOCK_POLL_S)
            continue
        delay = retry_delay_s(tries)
        if not may_pass(problems) or delay is None:
            return AptRun(result, problems, tries)
        sleep(delay)
        if before_retry is not None:
            before_retry()
        tries += 1
