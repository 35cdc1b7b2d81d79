"""Write the command gpu-health as one file: `build_gpu_health.py TARGET`. The same bytes that the role installs."""

from __future__ import annotations

import sys
from pathlib import Path

from common import REPOSITORY

sys.path.insert(0, str(REPOSITORY / ".ansible" / "collections"))

from ansible_collections.gpufleet.server.plugins.plugin_utils._gpu_health_archive import (
    build_archive,
)


def main(target: str) -> int:
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(build_archive())
    path.chmod(0o755)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
