# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stack as somebody asks about it, read and checked: `parse_stack`. Pure.

A stack is a mapping of any of `KEYS`. A key that is missing, null or empty is not given, and what is not given is not
judged. Versions are text: YAML makes 12.10 of ``12.1`` a number and loses the difference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ._gpu_models import is_datacenter, model_of_name
from ._stack_data import ARCHITECTURES

SYSTEM_ARCHITECTURES = {"amd64": "amd64", "x86_64": "amd64", "arm64": "arm64", "aarch64": "arm64", "sbsa": "arm64"}
"""Names of Debian, of the kernel and of NVIDIA."""


class StackError(ValueError):
    """A stack that cannot be read: the text names the key, the value and what is allowed."""

    def __init__(self, key: str, value: Any, allowed: str) -> None:
        super().__init__("%s: found %r; allowed is %s" % (key, value, allowed))
        self.key, self.value, self.allowed = key, value, allowed


@dataclass(frozen=True)
class Gpu:
    """`architecture` and `datacenter` are None where the name does not tell."""

    name: str
    architecture: Optional[str]
    datacenter: Optional[bool]


@dataclass(frozen=True)
class Library:
    """cuDNN or NCCL. `cuda`: the CUDA major that the package is built for, None where not given."""

    version: str
    cuda: Optional[int]


@dataclass(frozen=True)
class Stack:
    """What was given, in one spelling. `toolkits` and `default_toolkit`: ``12.8``; `gcc`: major; `python`: ``3.11``;
    `torch`, `tensorflow`: ``2.9``; `torch_cuda`: ``cu128``."""

    os: Optional[str] = None
    os_version: Optional[str] = None
    architecture: Optional[str] = None
    gpus: Tuple[Gpu, ...] = ()
    driver: Optional[str] = None
    toolkits: Tuple[str, ...] = ()
    default_toolkit: Optional[str] = None
    cudnn: Optional[Library] = None
    nccl: Optional[Library] = None
    gcc: Optional[int] = None
    python: Optional[str] = None
    torch: Optional[str] = None
    torch_cuda: Optional[str] = None
    tensorflow: Optional[str] = None


def version_key(version: str) -> Tuple[int, ...]:
    """``12.10`` after ``12.9``; ``580`` before ``580.65.06``."""
    return tuple(int(part) for part in version.split("."))


def minor_of(version: str) -> str:
    """``12.8.1`` → ``12.8``."""
    return ".".join(version.split(".")[:2])


def major_of(version: str) -> int:
    return int(version.split(".", 1)[0])


def parse_stack(stack: Any) -> Stack:
    """Read a stack. Raises `StackError` for an unknown key, a value of a wrong type, a malformed version."""
    if not isinstance(stack, Mapping):
        raise StackError("stack", stack, "a mapping of any of " + ", ".join(KEYS))
    for key in stack:
        if key not in KEYS:
            raise StackError(str(key), stack[key], "no key of this name, only " + ", ".join(KEYS))
    given = {key: KEYS[key](key, value) for key, value in stack.items() if value is not None and value not in ("", [])}
    return Stack(**_with_wheel_suffix(_with_debian_release(given)))


def _with_debian_release(given: Dict[str, Any]) -> Dict[str, Any]:
    """Ansible calls a point release of Debian 12 ``12.11``; repositories know 12."""
    if given.get("os") != "debian" or "os_version" not in given:
        return given
    return dict(given, os_version=str(major_of(given["os_version"])))


def _with_wheel_suffix(given: Dict[str, Any]) -> Dict[str, Any]:
    """``torch: 2.9.1+cu128`` says `torch_cuda` too; another value beside it contradicts it."""
    version, _plus, suffix = given.get("torch", "").partition("+")
    if not suffix:
        return given
    if given.get("torch_cuda", suffix) != suffix:
        raise StackError("torch_cuda", given["torch_cuda"], "%s, as torch %s+%s says" % (suffix, version, suffix))
    return dict(given, torch=version, torch_cuda=suffix)


def _text(key: str, value: Any, allowed: str, whole_numbers: bool = False) -> str:
    if not isinstance(value, (str, int) if whole_numbers else str):
        quotes = "%s in quotes" % allowed if isinstance(value, (int, float)) else allowed
        raise StackError(key, value, quotes)
    return str(value).strip()


def _version(pattern: str, allowed: str, whole_numbers: bool = False) -> Callable[[str, Any], "re.Match"]:
    compiled = re.compile(pattern)

    def parse(key: str, value: Any) -> "re.Match":
        found = compiled.fullmatch(_text(key, value, allowed, whole_numbers))
        if found is None:
            raise StackError(key, value, allowed)
        return found

    return parse


_OS_VERSION = _version(r"\d+(\.\d+)?", "a release such as '24.04' or '12'", whole_numbers=True)
_DRIVER = _version(r"\d{3}(\.\d+){0,2}", "a branch such as '580' or a version such as '580.178.04'", whole_numbers=True)
_TOOLKIT = _version(r"(\d+\.\d+)(\.\d+)?", "a release such as '12.8'")
_LIBRARY = _version(r"(\d+(?:\.\d+){1,3})(?:-\d+)?(?:\+cuda(\d+)(?:\.\d+)*)?",
                    "a version such as '9.10.2' or '2.28.3-1+cuda12.9'")
_GCC = _version(r"(\d+)(\.\d+){0,2}", "a version such as '13' or '13.2'", whole_numbers=True)
_PYTHON = _version(r"(\d+\.\d+)(\.\d+)?", "a version such as '3.12'")
_TORCH = _version(r"(\d+\.\d+)(?:\.\d+)?(?:\+(cu\d{3}))?", "a version such as '2.9', '2.9.1' or '2.9.1+cu128'")
_TORCH_CUDA = _version(r"cu(\d{2})(\d)|(\d{2})\.(\d)", "a build such as 'cu128' or a CUDA version such as '12.8'")
_TENSORFLOW = _version(r"(\d+\.\d+)(\.\d+)?", "a version such as '2.20' or '2.20.0'")


def _minor(parse: Callable[[str, Any], "re.Match"]) -> Callable[[str, Any], str]:
    return lambda key, value: parse(key, value).group(1)


def _parse_os(key: str, value: Any) -> str:
    return _text(key, value, "a name such as 'ubuntu' or 'debian'").lower()


def _parse_architecture(key: str, value: Any) -> str:
    allowed = "any of " + ", ".join(SYSTEM_ARCHITECTURES)
    name = _text(key, value, allowed).lower()
    if name not in SYSTEM_ARCHITECTURES:
        raise StackError(key, value, allowed)
    return SYSTEM_ARCHITECTURES[name]


def _parse_gpus(key: str, value: Any) -> Tuple[Gpu, ...]:
    names = _strings(key, value, "architectures (%s) or model names such as 'H100'" % ", ".join(ARCHITECTURES))
    return tuple(gpu_of(name) for name in dict.fromkeys(names))


def gpu_of(name: str) -> Gpu:
    """A GPU by its architecture (``volta``) or its model (``Tesla V100-SXM2-16GB``)."""
    if name.lower() in ARCHITECTURES:
        return Gpu(name.lower(), name.lower(), None)
    model = model_of_name(name)
    return Gpu(name, model.architecture if model else None, is_datacenter(name))


def _parse_toolkits(key: str, value: Any) -> Tuple[str, ...]:
    names = value if isinstance(value, (list, tuple)) else [value]
    return tuple(dict.fromkeys(_TOOLKIT(key, name).group(1) for name in names))


def _strings(key: str, value: Any, allowed: str) -> Tuple[str, ...]:
    names = value if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise StackError(key, value, "a list of " + allowed)
    return tuple(" ".join(name.split()) for name in names)


def _parse_library(key: str, value: Any) -> Library:
    found = _LIBRARY(key, value)
    return Library(found.group(1), int(found.group(2)) if found.group(2) else None)


def _parse_torch(key: str, value: Any) -> str:
    found = _TORCH(key, value)
    return found.group(1) + ("+" + found.group(2) if found.group(2) else "")


def _parse_torch_cuda(key: str, value: Any) -> str:
    return "cu" + "".join(part for part in _TORCH_CUDA(key, value).groups() if part)


KEYS: Dict[str, Callable[[str, Any], Any]] = {
    "os": _parse_os,
    "os_version": lambda key, value: _OS_VERSION(key, value).group(0),
    "architecture": _parse_architecture,
    "gpus": _parse_gpus,
    "driver": lambda key, value: _DRIVER(key, value).group(0),
    "toolkits": _parse_toolkits,
    "default_toolkit": _minor(_TOOLKIT),
    "cudnn": _parse_library,
    "nccl": _parse_library,
    "gcc": lambda key, value: int(_GCC(key, value).group(1)),
    "python": _minor(_PYTHON),
    "torch": _parse_torch,
    "torch_cuda": _parse_torch_cuda,
    "tensorflow": _minor(_TENSORFLOW),
}
"""What a stack may have, and how each value is read."""
