# Copyright (c) 2026 The gpufleet authors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the manifest's templates to concrete packages: names filled in, relations spelt out, files rendered. Pure.

A context is a flat dict of names → text; `{b}` in the manifest and `@B@` in a file of files/ are filled from it.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, List, Mapping, Sequence, Tuple

from . import elf
from .manifest import FILES_DIR
from .schema import PROPRIETARY, Distribution, FileSpec, Kernel, Manifest, ManifestError, ScriptPart, Template

KERNEL_MODULES = ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm", "nvidia-peermem")
MODULE_DEPENDS = {"nvidia": "", "nvidia-drm": "nvidia-modeset"}
"""Every other module needs `nvidia` itself."""

Context = Mapping[str, str]
Which = Callable[[Template], bool]
"""Which templates of a set are wanted."""


def everything(_template: Template) -> bool:
    return True


def metapackages(template: Template) -> bool:
    """Those that name the newest kernel."""
    return template.follows_kernel


def of_one_kernel(template: Template) -> bool:
    """Those that are made for one kernel and have its release in their names, or nothing to do with kernels."""
    return not template.follows_kernel


@dataclass(frozen=True)
class PackageFile:
    path: str
    data: bytes
    mode: int


@dataclass(frozen=True)
class Package:
    """One .deb. `relations` are control fields; `links` go from path to target; `scripts` from name to text."""

    name: str
    version: str
    arch: str
    component: str
    relations: Mapping[str, Tuple[str, ...]]
    files: Tuple[PackageFile, ...] = ()
    links: Tuple[Tuple[str, str], ...] = ()
    scripts: Tuple[Tuple[str, str], ...] = ()
    pinned: bool = False

    @property
    def filename(self) -> str:
        """As archives have it: without the version's epoch."""
        return "%s_%s_%s.deb" % (self.name, self.version.partition(":")[2] or self.version, self.arch)


@dataclass(frozen=True)
class Expander:
    """Turns templates into packages. `public_keys` are the binary keyrings that some packages ship."""

    manifest: Manifest
    public_keys: Mapping[str, bytes]

    def expand(
        self, set_names: Iterable[str], context: Context, kernels: Sequence[Kernel] = (), which: Which = everything
    ) -> List[Package]:
        packages = []
        for set_name in set_names:
            for template in filter(which, self.manifest.sets[set_name]):
                for row in self._rows(template, context):
                    for kernel in kernels if template.per_kernel else (None,):
                        full = {**context, **row, **(kernel_context(kernel) if kernel else {})}
                        packages.append(self.package(template, full))
        return packages

    def _rows(self, template: Template, context: Context) -> Sequence[Mapping[str, str]]:
        """The rows of a template that apply: a branch may have no proprietary modules."""
        rows = template.each or ({},)
        branch = self.manifest.branches.get(context.get("b", ""))
        if branch is None or not branch.open_only:
            return rows
        return () if template.proprietary else [row for row in rows if row.get("license") != PROPRIETARY]

    def package(self, template: Template, context: Context) -> Package:
        name = fill(template.name, context)
        family = [fill(template.family, context)] if template.family else []
        rivals = family + [fill(text, {**context, "sb": branch}) for text in template.supersedes
                           for branch in self.manifest.suffixed_branches()]
        relations = {
            "Provides": [entry for entry in family if entry != name]
            + [fill(text, context) for text in template.provides],
            "Depends": [fill(text, context) for text in template.depends],
            "Recommends": [fill(text, context) for text in template.recommends],
            "Conflicts": list(dict.fromkeys(rivals)),
            "Replaces": list(dict.fromkeys(rivals)),
        }
        files: List[PackageFile] = []
        links: Dict[str, str] = {}
        scripts: Dict[str, List[str]] = {"postinst": [], "prerm": [], "postrm": []}
        for payload_name in template.payloads:
            payload = self.manifest.payloads[payload_name]
            files += [self._file(spec, context) for spec in payload.files]
            links.update({fill(path, context): fill(target, context) for path, target in payload.links.items()})
            for library in payload.libraries:
                real, soname = "%s.%s" % (library.stem, context["v"]), fill(library.soname, context)
                files.append(PackageFile("%s/%s" % (context["lib"], real), elf.shared_library(soname), 0o644))
                links["%s/%s" % (context["lib"], soname)] = real
            for modules in payload.modules:
                directory, licence = fill(modules.directory, context), fill(modules.license, context)
                files += module_files(directory, context["v"], licence, fill(modules.kernel, context))
            for script, parts in scripts.items():
                parts += [render_part(part, context) for part in getattr(payload, script)]
        return Package(
            name=name,
            version=fill(template.version, context),
            arch=template.arch,
            component=template.component,
            relations={field: tuple(filter(None, entries)) for field, entries in relations.items() if any(entries)},
            files=tuple(files),
            links=tuple(sorted(links.items())),
            scripts=tuple((script, "#!/bin/sh\nset -e\n\n%s\nexit 0\n" % "\n".join(parts))
                          for script, parts in scripts.items() if parts),
            pinned=template.pinned,
        )

    def _file(self, spec: FileSpec, context: Context) -> PackageFile:
        if spec.key is not None:
            data = self.public_keys[fill(spec.key, context)]
        elif spec.source is not None:
            data = render_source(fill(spec.source, context), context).encode("utf-8")
        elif spec.text is not None:
            data = fill(spec.text, context).encode("utf-8")
        else:
            raise ManifestError("the file %s has no content" % spec.path)
        return PackageFile(fill(spec.path, context), data, int(spec.mode, 8))


def fill(text: str, context: Context) -> str:
    """`{name}` from the context; a name that is not there is an error in the manifest."""
    try:
        return text.format_map(context)
    except KeyError as missing:
        raise ManifestError("%r needs %s, which has no value here" % (text, missing)) from missing


def render_source(name: str, context: Context) -> str:
    """A file of files/ with each @NAME@ replaced from the context (lower or upper case names)."""
    text = (FILES_DIR / name).read_text(encoding="utf-8")

    def value(match: "re.Match[str]") -> str:
        for key in (match.group(1), match.group(1).lower()):
            if key in context:
                return context[key]
        raise ManifestError("files/%s needs %s, which has no value here" % (name, match.group(0)))

    return re.sub(r"@([A-Z_]+)@", value, text)


def render_part(part: ScriptPart, context: Context) -> str:
    return render_source(part.source, {**context, **part.values})


def module_files(directory: str, version: str, licence: str, kernel: str) -> List[PackageFile]:
    files = []
    for module in KERNEL_MODULES:
        info = {"version": version, "license": licence, "depends": MODULE_DEPENDS.get(module, "nvidia")}
        if kernel:
            info["vermagic"] = "%s SMP mod_unload modversions " % kernel
        data = elf.kernel_module(module.replace("-", "_"), info)
        files.append(PackageFile("%s/%s.ko" % (directory, module), data, 0o644))
    return files


def kernel_context(kernel: Kernel) -> Dict[str, str]:
    return {"K": kernel.release, "KM": kernel.version, "KV": kernel.meta_version}


def driver_context(manifest: Manifest, version: str, revision: str) -> Dict[str, str]:
    return {
        "b": manifest.branch_of(version),
        "v": version,
        "dv": "%s-%s" % (version, revision),
        "lib": manifest.library_dir,
        "host": manifest.host,
    }


def nvidia_packages(expander: Expander, distribution_name: str) -> List[Package]:
    """Everything in the NVIDIA repository of one distribution."""
    manifest, repository = expander.manifest, expander.manifest.nvidia
    distribution = repository.distributions[distribution_name]
    newest = manifest.branches[distribution.branches[-1]].versions[-1]
    base = {**driver_context(manifest, newest, distribution.revision), "distribution": distribution_name,
            "key": distribution.key, "keyring_pin": distribution.keyring_pin}
    packages = expander.expand([*repository.always, *distribution.sets], base)
    for toolkit_name in distribution.cuda:
        packages += expander.expand([repository.cuda], {**base, **toolkit_context(manifest, toolkit_name)})
    for branch_name in distribution.branches:
        branch = manifest.branches[branch_name]
        sets = manifest.eras[branch.era][distribution.family]
        for version in branch.versions:
            packages += expander.expand(sets, driver_context(manifest, version, distribution.revision))
    pinned = " ".join(sorted({package.name for package in packages if package.pinned}))
    return packages + pinning_packages(expander, distribution, {**base, "PINNED": pinned})


def toolkit_context(manifest: Manifest, name: str) -> Dict[str, str]:
    """`12-9` → its texts. Open modules come first where a metapackage brings a driver, proprietary ones will do."""
    toolkit = manifest.cuda[name]
    major, _, minor = name.partition("-")
    driver = "nvidia-open (>= {0}) | cuda-drivers (>= {0})".format(toolkit.driver) if toolkit.driver else ""
    return {"t": name, "xy": "%s.%s" % (major, minor), "tv": toolkit.version + "-1", "full": toolkit.version,
            "major": major, "priority": major + minor, "driver": driver}


def flat_packages(expander: Expander, name: str) -> List[Package]:
    """Everything in one of the other flat repositories."""
    manifest = expander.manifest
    return expander.expand(manifest.flat[name].sets, {"lib": manifest.library_dir, "host": manifest.host})


def docker_packages(expander: Expander, tag: str) -> List[Package]:
    """Everything in one suite of Docker's repository; `tag` ends its versions (`ubuntu.24.04~noble`)."""
    return expander.expand(expander.manifest.docker.sets, {"tag": tag})


def pinning_packages(expander: Expander, distribution: Distribution, context: Context) -> List[Package]:
    """One pinning package per branch (`580`) and one per version (`580.178.04`)."""
    packages = []
    for branch_name in distribution.branches:
        versions = expander.manifest.branches[branch_name].versions
        rows = [(branch_name, "%s.*" % branch_name, versions[-1])]
        rows += [(version, "%s-*" % version, version) for version in versions]
        for pin_name, pin, version in rows:
            row = {"pin_name": pin_name, "PIN": pin, "dv": "%s-%s" % (version, distribution.revision)}
            packages += expander.expand([expander.manifest.nvidia.pinning], {**context, **row})
    return packages


def archive_packages(expander: Expander, release_name: str, pocket_name: str) -> List[Package]:
    """Everything in one pocket of the Ubuntu archive double (`""`, `-updates`, `-security`, `-proposed`)."""
    manifest, archive = expander.manifest, expander.manifest.ubuntu
    release, pocket = archive.releases[release_name], archive.pockets[pocket_name]
    versions = [version for version in pocket.versions if manifest.branch_of(version) in release.branches]
    desktop = [version for version in pocket.desktop if manifest.branch_of(version) in release.branches]
    packages = []
    for wanted, kernels, which in ((pocket.kernels, release.kernels, everything),
                                   (pocket.next_kernels, release.next_kernels, of_one_kernel),
                                   (pocket.follow, release.next_kernels, metapackages)):
        for kernel in kernels if wanted else ():
            packages += expander.expand(archive.kernel_sets, kernel_context(kernel), which=which)
    for name, version in release.toolkits.items() if pocket.toolkits else ():
        packages += expander.expand(archive.toolkit_sets, {"name": name, "version": version})
    for family, suffix, tag, wanted_versions in (("archive", "-server", "srv", versions), ("desktop", "", "", desktop)):
        for version in wanted_versions:
            branch = manifest.branches[manifest.branch_of(version)]
            context = {**driver_context(manifest, version, release.revision), "s": suffix, "srv": tag}
            packages += _driver_of_archive(expander, branch.era, family, context, release_name, pocket_name)
    if pocket.transitional:
        packages += transitional_packages(expander, release_name, versions)
    return packages


def _driver_of_archive(
    expander: Expander, era: str, family: str, context: Context, release_name: str, pocket_name: str
) -> List[Package]:
    """One driver version in one pocket: with its modules for the kernels there, or only what follows the next ones."""
    archive, sets = expander.manifest.ubuntu, expander.manifest.eras[era][family]
    release, pocket = archive.releases[release_name], archive.pockets[pocket_name]
    if pocket.follow:
        return expander.expand(sets, context, release.next_kernels, metapackages)
    packages = expander.expand(sets, context, release.kernels)
    if pocket.next_kernels:
        packages += expander.expand(sets, context, release.next_kernels,
                                    lambda template: template.per_kernel and of_one_kernel(template))
    return packages


def transitional_packages(expander: Expander, release_name: str, versions: Sequence[str]) -> List[Package]:
    """Packages of an old branch's names that install the new branch's and are otherwise empty."""
    manifest = expander.manifest
    release = manifest.ubuntu.releases[release_name]
    packages = []
    for transition in manifest.ubuntu.transitional:
        if transition.releases and release_name not in transition.releases:
            continue
        for version in versions:
            if manifest.branch_of(version) != transition.new:
                continue
            context = {**driver_context(manifest, version, release.revision), "s": "-server"}
            # A name with the full version in it never was installed under another branch's version.
            plain = [dataclasses.replace(template, payloads=(), family="", supersedes=(), provides=(), recommends=(),
                                         depends=(template.name.replace("{b}", transition.new) + " (>= {v})",))
                     for set_name in transition.sets for template in manifest.sets[set_name]
                     if "{v}" not in template.name]
            for template in plain:
                for row in template.each or ({},):
                    packages.append(expander.package(template, {**context, **row, "b": transition.old}))
    return packages


def image_package_names(manifest: Manifest, release_name: str) -> List[str]:
    kernel = manifest.ubuntu.releases[release_name].kernels[0]
    return [fill(name, kernel_context(kernel)) for name in manifest.ubuntu.image_packages]


def image_packages(expander: Expander, release_name: str) -> List[Package]:
    """What a stand-in image holds before any role runs: the first kernel, its metapackage, the archive's sources."""
    manifest = expander.manifest
    wanted = image_package_names(manifest, release_name)
    context = {"host": manifest.host, "codename": release_name}
    packages = expander.expand(manifest.ubuntu.image_sets, context)
    packages += expander.expand(
        manifest.ubuntu.kernel_sets, kernel_context(manifest.ubuntu.releases[release_name].kernels[0])
    )
    return [package for package in packages if package.name in wanted]


def emptied(package: Package) -> Package:
    """The same package as far as apt sees it, which installs nothing."""
    return dataclasses.replace(package, files=(), links=(), scripts=())


def broken_packages(packages: Sequence[Package], patterns: Sequence[str]) -> List[Package]:
    """`packages` with those that match a pattern emptied; a pattern that matches none is an error."""

    def is_broken(package: Package) -> bool:
        return any(fnmatch.fnmatchcase(package.name, pattern) for pattern in patterns)

    if not any(is_broken(package) for package in packages):
        raise ManifestError("nothing matches %s" % ", ".join(patterns))
    return [emptied(package) if is_broken(package) else package for package in packages]
