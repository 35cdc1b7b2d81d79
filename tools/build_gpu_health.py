"""Write the command gpu-health: `python tools/build_gpu_health.py build/gpu-health`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


def _builder():
    path = REPOSITORY / "plugins" / "plugin_utils" / "_gpu_health_archive.py"
    spec = importlib.util.spec_from_file_location("gpu_health_archive", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(_builder().build_archive())
    target.chmod(0o755)
    print("wrote %s, %d bytes" % (target, target.stat().st_size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
