"""Write docs/health-findings.md from the code: `python tools/generate_health_docs.py [--check]`."""

from __future__ import annotations

import sys
import types
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "health-findings.md"
PACKAGE = "gpufleet_module_utils"


def _load(name: str):
    """A file of module_utils, without a collection loader."""
    if PACKAGE not in sys.modules:
        package = types.ModuleType(PACKAGE)
        package.__path__ = [str(REPOSITORY / "plugins" / "module_utils")]
        sys.modules[PACKAGE] = package
    return __import__("%s.%s" % (PACKAGE, name), fromlist=["*"])


def render() -> str:
    catalog, policy, xids = _load("_findings_catalog"), _load("_health_policy"), _load("_xid_catalog")
    lines = [
        "# Health findings",
        "",
        "Every finding that `gpu-health` and the health modules can make. This page is generated from the code",
        "(`make docs`); the short names of sources are explained in `plugins/module_utils/_findings_catalog.py`.",
        "",
        "A `critical` finding makes a machine **failed**, a `warning` makes it **degraded**, `info` changes nothing.",
        "A finding marked *unread* stands for something that was due and could not be read: it makes a machine",
        "**unknown**, unless something else makes it failed.",
        "",
        "## Findings",
        "",
        "| id | severity | meaning | what to do | source |",
        "|---|---|---|---|---|",
    ]
    for name, entry in sorted(catalog.CATALOG.items()):
        severity = entry.severity + (" (unread)" if entry.unread else "")
        lines.append(_row("`%s`" % name, severity, entry.meaning, entry.remedy, entry.source))
    lines += [
        "",
        "## Xids",
        "",
        "An Xid of the kernel log is the finding `xid_<number>`. An application fault is information, unless",
        "`xid_repeat_max` processes meet it on one GPU (`xid_repeated`). `by word`: the line itself says Fatal or",
        "Nonfatal. `by action`: the line names the recovery action.",
        "",
        "| Xid | severity | meaning | NVIDIA's action | what to do |",
        "|---|---|---|---|---|",
    ]
    for number, xid in sorted(xids.XIDS.items()):
        severity = {"app": "info (application)"}.get(xid.severity, xid.severity.replace("_", " "))
        lines.append(_row(str(number), severity, xid.meaning, xid.nvidia_action or "-", xids.REMEDIES[xid.remedy]))
    lines += [
        "",
        "## Thresholds",
        "",
        "Any of them can be overridden for all GPUs or for one model, by the variable `gpu_health_policy`, the module",
        "option `policy`, or `gpu-health --policy FILE` (JSON). Unknown names are refused.",
        "",
        "```json",
        '{"default": {"power_limit_w": 500}, "models": {"L40S": {"expected_pcie_width": 8}}}',
        "```",
        "",
        "| threshold | default | meaning | source |",
        "|---|---|---|---|",
    ]
    for name, (_kind, default, meaning, source) in policy.THRESHOLDS.items():
        lines.append(_row("`%s`" % name, "-" if default is None else str(default), meaning, source))
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return "| %s |" % " | ".join(cell.replace("|", "\\|") for cell in cells)


def main() -> int:
    text = render()
    if sys.argv[1:] == ["--check"]:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("%s is not what the code says: run `make docs`" % PAGE.relative_to(REPOSITORY))
        return 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    print("wrote %s" % PAGE.relative_to(REPOSITORY))
    return 0


if __name__ == "__main__":
    sys.exit(main())
