# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the stack matrix for cuDNN and NCCL packages. Pure."""

from __future__ import annotations

from typing import Iterator, List, Mapping, Optional, Tuple

from ._stack_clash import CONFLICT, UNKNOWN, Clash, listed
from ._stack_data import CUDNN, CUDNN_END, NCCL, NCCL_END, LibrarySeries
from ._stack_input import Library, Stack, major_of, version_key
from ._stack_rules_gpu import generations_of, named
from ._stack_rules_toolkit import toolkits_near


def series_of(table: Tuple[LibrarySeries, ...], end: str, version: str) -> Optional[LibrarySeries]:
    """The series that a version belongs to; None where it is older or newer than the table."""
    key = version_key(version)
    reached = [series for series in table if version_key(series.first) <= key]
    return reached[-1] if reached and key < version_key(end) else None


def library_rules(stack: Stack) -> Iterator[Clash]:
    for field, title, table, end in (("cudnn", "cuDNN", CUDNN, CUDNN_END), ("nccl", "NCCL", NCCL, NCCL_END)):
        library = getattr(stack, field)
        if library is None:
            continue
        series = series_of(table, end, library.version)
        if series is None:
            yield Clash(
                field + "_unknown", UNKNOWN, "%s %s" % (title, library.version),
                "%s %s or later, before %s" % (title, table[0].first, end),
                "%s %s is not in the table" % (title, library.version), table[0].source,
            )
        yield from _library_toolkit(stack, field, title, library, series, table)
        if series is not None and series.architectures is not None:
            yield from _library_gpu(stack, field, title, library, series, table)


def _library_toolkit(
    stack: Stack,
    field: str,
    title: str,
    library: Library,
    series: Optional[LibrarySeries],
    table: Tuple[LibrarySeries, ...],
) -> Iterator[Clash]:
    """A package is built for one CUDA major, which a toolkit of the stack must have."""
    name = "%s %s" % (title, library.version)
    built = (library.cuda,) if library.cuda is not None else series.majors if series else ()
    perhaps = series.unconfirmed if series else ()
    if library.cuda is not None and series is not None and library.cuda not in series.majors:
        unsure = library.cuda in perhaps
        yield Clash(
            field + ("_build_unconfirmed" if unsure else "_build"), UNKNOWN if unsure else CONFLICT,
            "%s for CUDA %d" % (name, library.cuda), _builds_text(name, series),
            ("nobody has confirmed that %s was built for CUDA %d" if unsure else "%s was not built for CUDA %d")
            % (name, library.cuda),
            series.source,
            tuple({field: Library(library.version, major)} for major in series.majors)
            + _other_builds(field, library, [library.cuda], table),
        )
    toolkits = stack.toolkits or ((stack.default_toolkit,) if stack.default_toolkit else ())
    majors = sorted({major_of(toolkit) for toolkit in toolkits})
    if not majors or not built or set(majors) & set(built):
        return
    observed = "%s for CUDA %s, toolkits %s" % (name, listed(built), ", ".join(toolkits))
    if library.cuda is None and set(majors) & set(perhaps):
        yield Clash(
            field + "_toolkit_unconfirmed", UNKNOWN, observed, _builds_text(name, series) if series else "",
            "nobody has confirmed that %s was built for CUDA %s" % (name, listed(majors)),
            series.source if series else "cuda-repo",
        )
        return
    yield Clash(
        field + "_toolkit", CONFLICT, observed, "a build for CUDA %s" % listed(majors),
        "%s is built for CUDA %s, and the toolkits are %s" % (name, listed(built), listed(toolkits)),
        series.source if series else "cuda-repo",
        _other_builds(field, library, majors, table)
        + tuple(change for toolkit in toolkits for change in toolkits_near(stack, toolkit)),
    )


def _other_builds(
    field: str, library: Library, majors: List[int], table: Tuple[LibrarySeries, ...]
) -> Tuple[Mapping[str, Library], ...]:
    """This version for another CUDA where the build is part of the question, then other versions."""
    if library.cuda is None:
        return tuple({field: Library(version, None)} for version in _versions_near(table, library.version))
    versions = [library.version, *_versions_near(table, library.version)]
    return tuple({field: Library(version, major)} for major in majors for version in versions)


def _versions_near(table: Tuple[LibrarySeries, ...], version: str) -> List[str]:
    """Of older series their newest version, the nearest series first; then the first version of each newer one."""
    older = [series for series in table if version_key(series.first) <= version_key(version)]
    newest = [series.newest or series.first for series in reversed(older)]
    return newest + [series.first for series in table if series not in older]


def _builds_text(name: str, series: LibrarySeries) -> str:
    return "%s for CUDA %s" % (name, listed(series.majors))


def _library_gpu(
    stack: Stack, field: str, title: str, library: Library, series: LibrarySeries, table: Tuple[LibrarySeries, ...]
) -> Iterator[Clash]:
    for generation, gpus in generations_of(stack.gpus).items():
        if generation.name in (series.architectures or ()):
            continue
        having = [one for one in table if generation.name in (one.architectures or ())]
        yield Clash(
            field + "_gpu", CONFLICT, "%s %s, %s" % (title, library.version, generation.name),
            _range_text(title, table, having),
            "%s %s has no kernels for %s" % (title, library.version, named(gpus, generation)),
            series.source,
            tuple({field: Library(version, library.cuda)} for version in _versions_near(table, library.version)),
        )


def _range_text(title: str, table: Tuple[LibrarySeries, ...], having: List[LibrarySeries]) -> str:
    """``cuDNN 8.9 or later, before 9.11``"""
    if not having:
        return "no %s of the table" % title
    after = table[table.index(having[-1]) + 1:]
    return "%s %s or later%s" % (title, having[0].first, ", before %s" % after[0].first if after else "")
