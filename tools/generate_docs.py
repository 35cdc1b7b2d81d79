"""Write each role's README.md from its meta/argument_specs.yml: `generate_docs.py [--check]`.

A variable is documented once, in the specification that Ansible enforces. `--check` writes nothing and fails where a
README is not what would be written.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

import yaml
from common import REPOSITORY

MARKUP = (
    (re.compile(r"\b(?:C|V|O|E|RV)\(((?:[^()\\]|\\.|\([^()]*\))*)\)"), r"`\1`"),
    (re.compile(r"\b[MP]\(([^()#]+)(?:#\w+)?\)"), r"`\1`"),
    (re.compile(r"\bB\(([^()]*)\)"), r"**\1**"),
    (re.compile(r"\bI\(([^()]*)\)"), r"*\1*"),
    (re.compile(r"\bL\(([^(),]*),\s*([^()]*)\)"), r"[\1](\2)"),
    (re.compile(r"\bU\(([^()]*)\)"), r"<\1>"),
)
"""Ansible's markup (docs.ansible.com, "Ansible markup") in Markdown."""


def to_markdown(text: str) -> str:
    for pattern, replacement in MARKUP:
        text = pattern.sub(replacement, text)
    return re.sub(r"\s+", " ", text).strip()


def paragraphs(description: Any) -> list[str]:
    return [to_markdown(text) for text in ([description] if isinstance(description, str) else description or [])]


def literal(value: Any) -> str:
    """A default or a choice as one would write it in an inventory."""
    return "`%s`" % (value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False))


def kind(option: Mapping[str, Any]) -> str:
    name = option.get("type", "str")
    return "list of " + option["elements"] if name == "list" and "elements" in option else name


def describe(name: str, option: Mapping[str, Any], depth: int = 0) -> Iterable[str]:
    facts = [kind(option)]
    if option.get("required"):
        facts.append("required")
    if "default" in option and option["default"] is not None:
        facts.append("default " + literal(option["default"]))
    indent = "  " * depth
    yield "%s- `%s` (%s): %s" % (indent, name, ", ".join(facts), " ".join(paragraphs(option.get("description"))))
    if option.get("choices"):
        yield "%s  One of %s." % (indent, ", ".join(literal(choice) for choice in option["choices"]))
    for inner, inner_option in (option.get("options") or {}).items():
        yield from describe(inner, inner_option, depth + 1)


def tags_of(role: Path) -> list[str]:
    """The tags that the role's tasks carry."""
    found = set()
    for path in role.glob("tasks/*.yml"):
        for task in yaml.safe_load(path.read_text()) or []:
            tags = task.get("tags") or []
            found |= {tags} if isinstance(tags, str) else set(tags)
    return sorted(tag for tag in found if tag.startswith(role.name))


def render(role: str, spec: Mapping[str, Any], tags: Sequence[str]) -> str:
    main = spec["argument_specs"]["main"]
    lines = [
        "<!-- Written by `make docs` from meta/argument_specs.yml. Change that file. -->",
        "",
        "# gpufleet.server." + role,
        "",
        to_markdown(main["short_description"]).rstrip(".") + ".",
        "",
    ]
    description = paragraphs(main.get("description"))
    lines += ["- " + text for text in description] + [""] if description else []
    lines += ["## Use", "", "```yaml", "- hosts: gpu_servers", "  become: true", "  gather_facts: false", "  roles:",
              "    - role: gpufleet.server." + role, "```", ""]
    lines += ["Tags: %s." % ", ".join("`%s`" % tag for tag in tags), ""] if tags else []
    lines += ["## Variables", ""]
    for name, option in (main.get("options") or {}).items():
        lines += describe(name, option)
    if not main.get("options"):
        lines.append("None.")
    for entry, other in spec["argument_specs"].items():
        if entry != "main":
            lines += ["", "## Entry point `%s`" % entry, "", to_markdown(other["short_description"]).rstrip(".") + "."]
            own = [name for name in other.get("options") or {} if name not in (main.get("options") or {})]
            lines += [""] if own else []
            for name in own:
                lines += describe(name, other["options"][name])
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    stale = 0
    for path in sorted(REPOSITORY.glob("roles/*/meta/argument_specs.yml")):
        role = path.parents[1]
        text = render(role.name, yaml.safe_load(path.read_text()), tags_of(role))
        readme = role / "README.md"
        present = readme.read_text() if readme.is_file() else ""
        if text == present:
            continue
        if "--check" in arguments:
            name = str(readme.relative_to(REPOSITORY))
            print("".join(difflib.unified_diff(present.splitlines(True), text.splitlines(True), name, "make docs")))
            stale += 1
        else:
            readme.write_text(text)
            print("written: %s" % readme.relative_to(REPOSITORY))
    if stale:
        print("%d README(s) are not what `make docs` writes" % stale)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
