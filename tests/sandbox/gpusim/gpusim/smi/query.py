# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`--query-gpu`, `--query-compute-apps`, `--query-remapped-rows`: comma-separated answers, header and units."""

import time

from . import answer, query_fields
from .answer import Failure


def render(machine, gpus: list, version: str, wanted) -> str:
    """Return the CSV text; one unknown field spoils the whole call (rc 2), as in the real tool."""
    if wanted.command == "query-compute-apps":
        table, rows = query_fields.COMPUTE_APPS, []
    elif wanted.command == "query-remapped-rows":
        table, rows = query_fields.REMAPPED_ROWS, gpus
    else:
        table, rows = query_fields.gpu_table(version), gpus
    fields = [_field(table, name) for name in wanted.fields]
    lines = []
    if "noheader" not in wanted.modifiers:
        lines.append(", ".join(name + (f" [{unit}]" if unit else "") for name, unit, _ in fields))
    context = query_fields.Context(machine, version, time.time())
    for one in rows:
        cells = [_cell(context, one, unit, get, "nounits" in wanted.modifiers) for _, unit, get in fields]
        lines.append(", ".join(cells))
    return "".join(line + "\n" for line in lines)


def _field(table: dict, name: str) -> tuple:
    canonical = query_fields.ALIASES.get(name, name)
    if canonical not in table:
        raise Failure(f'Field "{name}" is not a valid field to query.\n\n', answer.BAD_ARGUMENT)
    unit, get = table[canonical]
    return canonical, unit, get


def _cell(context, one, unit: str, get, bare: bool) -> str:
    value = get(context, one) if callable(get) else get
    if value in (None, query_fields.DEPRECATED):
        return f"[{value or 'N/A'}]"
    return str(value) if bare or not unit else f"{value} {unit}"
