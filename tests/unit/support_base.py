"""A machine and an inventory for the tests of role base: both settled, for tests to change one thing of."""

from dataclasses import replace

from ansible_collections.gpufleet.server.plugins.module_utils._base_desired import Desired
from ansible_collections.gpufleet.server.plugins.module_utils._base_plan import plan_base
from ansible_collections.gpufleet.server.plugins.module_utils._dpkg import Package, Policy
from ansible_collections.gpufleet.server.plugins.module_utils._kernels import BootKernel
from ansible_collections.gpufleet.server.plugins.module_utils._observe_base import BaseFacts, OwnFile, Unit

RELEASE = "5.15.0-164-generic"


def packages(*names, **states):
    found = {name: Package(name, "1.0-1", "amd64", "install", "installed") for name in names}
    found.update({name: Package(name, "1.0-1", "amd64", "install", state) for name, state in states.items()})
    return found


def policies(**candidates):
    names = {name.replace("_", "-"): candidate for name, candidate in candidates.items()}
    return {name: Policy(name, None, candidate) for name, candidate in names.items()}


INSTALLED = packages("kmod", "pciutils", "linux-headers-" + RELEASE, "linux-headers-generic", "systemd-timesyncd")


def ubuntu(version="22.04", name="ubuntu", codename="jammy"):
    return {"ID": name, "VERSION_ID": version, "VERSION_CODENAME": codename, "PRETTY_NAME": "%s %s" % (name, version)}


def wanted(**changes):
    """The role's defaults, with two packages."""
    fields = {
        "packages": ["kmod", "pciutils"],
        "kernel_headers": True,
        "apt_lock_timeout_s": 600,
        "needrestart": "list",
        "unattended_upgrades_keep_out": ["nvidia-", "linux-image"],
        "limits_memlock": "unlimited",
        "limits_nofile": 1048576,
        "sysctl": {"vm.swappiness": 10},
        "numa_balancing": False,
        "thp": "madvise",
        "time_sync": "auto",
        "journal_persistent": True,
        "journal_max_use_mb": 4096,
    }
    fields.update(changes)
    return Desired(**fields)


def machine(**changes):
    """An Ubuntu server on bare metal in which all settings of `wanted()` are in force, without our files."""
    fields = {
        "os_release": ubuntu(),
        "arch": "amd64",
        "nr_open": 1048576,
        "hard_limits": {"nofile": "524288", "memlock": "8388608"},
        "kernel": BootKernel(RELEASE, "generic", "boot", RELEASE, (RELEASE,)),
        "headers_built": True,
        "packages": INSTALLED,
        "policies": {},
        "apt_lists": ("archive.ubuntu.com_ubuntu_dists_jammy_InRelease",),
        "sysctl": {"vm.swappiness": "10", "kernel.numa_balancing": "0"},
        "login_limits": {
            "nobody nofile": "1048576",
            "nobody memlock": "unlimited",
            "root nofile": "1048576",
            "root memlock": "unlimited",
        },
        "manager": {"DefaultLimitNOFILE": "1048576", "DefaultLimitMEMLOCK": "infinity"},
        "thp": "madvise",
        "journal_on_disk": True,
        "units": {
            "systemd-timesyncd": Unit("loaded", "active", "enabled", 1000.0),
            "systemd-journald": Unit("loaded", "active", "static", 1000.0),
        },
        "clock_synchronised": True,
    }
    fields.update(changes)
    return BaseFacts(**fields)


def settled(desired=None, **changes):
    """The same machine after a run: our files are there, older than the daemons that read them."""
    facts = machine(**changes)
    files = dict(plan_base(desired or wanted(), facts).files)
    own = {
        path: OwnFile(text, "0644 root:root", 900.0, "file")
        for path, text in files.items()
        if text is not None and path.find("sources.list") < 0
    }
    own.update(changes.get("own", {}))
    return replace(facts, own=own)
