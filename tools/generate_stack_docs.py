"""Write docs/stack.md from the tables of the stack matrix: `python tools/generate_stack_docs.py [--check]`."""

from __future__ import annotations

import sys

from generated_page import REPOSITORY, load, row, write_or_check

PAGE = REPOSITORY / "docs" / "stack.md"

INTRODUCTION = """\
# Which parts of a CUDA stack fit together

The filter `gpufleet.server.stack_conflicts` judges a stack: GPUs, driver, CUDA toolkits, the system they are installed
on, cuDNN, NCCL, gcc, Python, PyTorch and TensorFlow, or any few of them. It asks no machine and no network. Each
conflict names the parties and the nearest combination that works.

```yaml
- name: Does this stack fit together?
  hosts: localhost
  gather_facts: false
  vars:
    stack:
      os: ubuntu
      os_version: "24.04"
      gpus: ["Tesla V100-SXM2-32GB"]
      driver: "580"
      toolkits: ["12.9", "13.0"]
      torch: "2.11"
    findings: "{{ stack | gpufleet.server.stack_conflicts }}"
  tasks:
    - name: Show what does not fit, and what would
      ansible.builtin.debug:
        msg: "{{ item.severity }}: {{ item.message }}. Remedy: {{ item.remedy }}"
      loop: "{{ findings }}"
      loop_control:
        label: "{{ item.id }}"

    - name: Stop where it cannot work
      ansible.builtin.assert:
        that: findings | selectattr('severity', 'eq', 'critical') | length == 0
```

It answers:

```
critical: toolkit 13.0 cannot compile for Tesla V100-SXM2-32GB (volta). Remedy: use toolkits 12.9
critical: torch 2.11+cu130 has no kernels for Tesla V100-SXM2-32GB (volta); it has those for turing to blackwell. \
Remedy: use torch cuda cu126, or torch 2.10
```

* `critical`: it cannot work. Each mapping in the finding's `nearest` resolves it, alone, when its keys replace those of
  the stack: `stack | combine(findings[0].nearest[0])`. The list is empty where no change of one part helps, nor a
  change of the toolkit with what follows from it (cuDNN, NCCL, gcc). Resolve the others first then, and ask again.
* `warning`: the tables below do not know. Nothing is refused for that, and nothing is passed.
* `info`: it works, with a limit: a toolkit newer than the driver (minor-version compatibility), or one that only the
  distribution's archive has.
* What is not given is not judged. A torch without `torch_cuda` is the wheel of the Python package index.
* Versions are text: write them in quotes. `ansible-doc -t filter gpufleet.server.stack_conflicts` lists all keys.

This page is generated from the tables (`make docs`), which were last compared with their sources on %s.
The source of each entry is in `plugins/module_utils/_stack_data.py` and `_stack_data_frameworks.py`."""


def render() -> str:
    data, frameworks, rules = load("_stack_data"), load("_stack_data_frameworks"), load("_stack_rules_toolkit")
    sections = (_toolkits(data, rules), _generations(data), _systems(data), _libraries(data), _torch(frameworks),
                _tensorflow(frameworks))
    lines = [INTRODUCTION % data.REVIEWED]
    for title, text, head, rows in sections:
        lines += ["", "## " + title, "", *text, "", row(*head), "|" + "---|" * len(head)]
        lines += [row(*cells) for cells in rows]
    return "\n".join(lines) + "\n"


def _toolkits(data, rules):
    rows = []
    for toolkit in data.TOOLKITS.values():
        family = data.FAMILIES.get(int(toolkit.name.split(".")[0]))
        names = rules.architectures_of(toolkit.name)
        rows.append((toolkit.name, family.driver if family else "unknown", toolkit.driver or "unknown",
                     "%s to %s" % (names[0], names[-1]), str(toolkit.gcc_max or "unknown")))
    text = ["*runs with driver*: programs of this toolkit start with that driver or a later one (minor-version",
            "compatibility). *all of it with*: the driver that came with the toolkit, for new interfaces and PTX."]
    return "Toolkits", text, ("toolkit", "runs with driver", "all of it with", "compiles for", "gcc up to"), rows


def _generations(data):
    rows = []
    for one in data.GENERATIONS.values():
        last = "%d.x" % one.last_major if one.last_major else "current"
        rows.append((one.name, ", ".join(one.capabilities), one.first_toolkit or "-", last,
                     str(one.first_driver or "-"), str(one.last_driver or "current")))
    head = ("architecture", "compute capability", "first toolkit", "last toolkit", "first driver", "last driver")
    return "GPU architectures", ["A dash: older than everything here."], head, rows


def _systems(data):
    rows = [("%s %s" % (one.os, one.os_version), one.origin, ", ".join(one.toolkits), ", ".join(one.unconfirmed) or "-")
            for one in data.REPOSITORIES]
    text = ["`nvidia`: packages `cuda-toolkit-X-Y` of NVIDIA's repository. `archive`: `nvidia-cuda-toolkit` of the",
            "distribution, in /usr. The lists were read for amd64; on arm64 what stands here is unconfirmed."]
    return "Systems", text, ("system", "repository", "toolkits", "unconfirmed"), rows


def _libraries(data):
    rows = []
    for title, table in (("cuDNN", data.CUDNN), ("NCCL", data.NCCL)):
        for one in table:
            gpus = "%s to %s" % (one.architectures[0], one.architectures[-1]) if one.architectures else "any"
            rows.append((title, one.first, _numbers(one.majors), _numbers(one.unconfirmed), gpus))
    text = ["A row holds from its version up to the next row's. A package is built for one CUDA major, which one of",
            "the toolkits must have."]
    return "cuDNN and NCCL", text, ("library", "from", "for CUDA", "unconfirmed", "GPUs"), rows


def _numbers(numbers):
    return ", ".join(str(number) for number in numbers) or "-"


def _torch(frameworks):
    rows = [(one.name, one.default, ", ".join(one.builds) or "-", _perhaps(one), "%s to %s" % one.python)
            for one in frameworks.TORCH.values()]
    text = ["Wheels bring their own CUDA (`cu128`: 12.8), which runs with the drivers of the toolkits of its major.",
            "Of builds that are not in this list nobody says for which GPUs they have kernels.",
            "", *(_kernels(one) for one in frameworks.TORCH_BUILDS if one.architectures)]
    return "PyTorch", text, ("torch", "default", "other builds", "unconfirmed", "Python"), rows


def _perhaps(release):
    """What sources disagree on."""
    return ", ".join((*release.unconfirmed, *("Python " + name for name in release.unconfirmed_python))) or "-"


def _kernels(build):
    perhaps = "".join(", perhaps " + name for name in build.unconfirmed)
    return "* `%s` from torch %s: %s to %s%s" % (
        build.name, build.first, build.architectures[0], build.architectures[-1], perhaps)


def _tensorflow(frameworks):
    rows = [(one.name, one.cuda, "%s to %s" % one.python, "%s to %s" % (one.architectures[0], one.architectures[-1]))
            for one in frameworks.TENSORFLOW.values()]
    return "TensorFlow", ["`tensorflow[and-cuda]`."], ("tensorflow", "CUDA", "Python", "kernels for"), rows


def main() -> int:
    return write_or_check(PAGE, render)


if __name__ == "__main__":
    sys.exit(main())
