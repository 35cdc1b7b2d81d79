# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `lab` tells a person instead of a traceback."""

from __future__ import annotations


class LabError(Exception):
    """Something a person can act on; the message says what was found, what was wanted, and what to do."""


class UsageError(LabError):
    """The request itself is wrong: an unknown host, profile or image, or a broken inventory. Nothing was started."""


class Interrupted(BaseException):
    """SIGINT or SIGTERM arrived. Not an Exception, so that no handler of ordinary errors swallows it."""
