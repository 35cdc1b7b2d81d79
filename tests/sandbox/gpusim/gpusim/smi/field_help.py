# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`--help-query-gpu` and its siblings: each field's names in quotes, a line about it, a blank line."""

from . import query_fields, query_lists


def render(switch: str, version: str) -> str:
    """Return the help text of one `query-…` switch."""
    text = f'List of valid properties to query for the switch "--{switch}":\n\n'
    if switch == "query-gpu":
        table = query_fields.gpu_table(version)
        other = {}
        for alias, name in query_fields.ALIASES.items():
            other.setdefault(name, []).append(alias)
    else:
        table = query_lists.TABLES[switch]
        other = {first: list(spellings[1:]) for first, spellings in query_lists.ALIASES.items() if first in table}
        other["process_name"] = ["name"]
    for name, (unit, _) in table.items():
        names = " or ".join(f'"{spelling}"' for spelling in (name, *other.get(name, ())))
        words = name.replace(".", " ").replace("_", " ").capitalize()
        text += f"{names}\n{words}{f', in {unit}' if unit else ''}.\n\n"
    return text
