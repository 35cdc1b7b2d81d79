# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`--query-gpu` and its siblings: comma-separated answers, header and units."""

import time

from . import answer, query_fields, query_lists
from .answer import Failure


def render(machine, gpus: list, version: str, wanted) -> str:
    """Return the CSV text; one unknown field spoils the whole call (rc 2), as in the real tool."""
    lists = wanted.command != "query-gpu"
    table = query_lists.TABLES[wanted.command] if lists else query_fields.gpu_table(version)
    fields = [_field(table, name, lists) for name in wanted.fields]
    lines = []
    if "noheader" not in wanted.modifiers:
        lines.append(", ".join(name + (f" [{unit}]" if unit else "") for name, unit, _ in fields))
    context = query_fields.Context(machine, version, time.time())
    bare = "nounits" in wanted.modifiers
    for one in gpus:
        for row in query_lists.rows(wanted.command, one) if lists else [None]:
            cells = (
                get(context, one, row) if lists else get(context, one) if callable(get) else get for *_, get in fields
            )
            lines.append(", ".join(_cell(value, unit, bare) for value, (_, unit, _) in zip(cells, fields)))
    return "".join(line + "\n" for line in lines)


def _field(table: dict, name: str, lists: bool) -> tuple:
    canonical = query_lists.canonical(table, name) if lists else query_fields.ALIASES.get(name, name)
    if canonical not in table:
        raise Failure(f'Field "{name}" is not a valid field to query.\n\n', answer.BAD_ARGUMENT)
    unit, get = table[canonical]
    return canonical, unit, get


def _cell(value, unit: str, bare: bool) -> str:
    if value is None or value in query_fields.ERRORS_IN_PLACE:
        return f"[{value or 'N/A'}]"
    return str(value) if bare or not unit else f"{value} {unit}"
