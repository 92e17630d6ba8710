"""Writes a manual page per command: make_manuals.py COMMAND FOLDER, from the table that `COMMAND options` prints."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

STATUSES = """.TP
.B 0
ok
.TP
.B 1
a check or comparison failed
.TP
.B 2
usage or bad input
.TP
.B 3
the simulated cluster failed: deadlock, time-out, NPU out of memory
.TP
.B 4
internal error
"""


def escaped(text: str) -> str:
    """Text as roff takes it."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    # A word that is longer than a line may be broken behind a comma, a bar or a slash.
    text = re.sub(r"\S{50,}", lambda word: re.sub(r"([,|;/=])", r"\1\\:", word[0]), text)
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def option_lines(option: Dict[str, Any]) -> List[str]:
    """A tagged paragraph."""
    names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in option["names"])
    value = option["accepted"] if option["accepted"] and not option["value"] else option["value"]
    told = f" \\fI{escaped(value)}\\fR" if value and not option["argument"] else ""
    help = option["help"] or ""
    lines = [".TP", names + told, escaped(help if help.endswith((".", ")")) or not help else help + ".")]
    if option["accepted"] and option["value"]:
        lines.append(escaped(f"Accepted: {option['accepted']}."))
    if option["default"]:
        lines.append(escaped(f"Default: {option['default']}."))
    return lines


def footer_lines(footer: str) -> List[str]:
    """The paragraphs that help ends with: text, and examples as they are typed. Exit statuses have a section anyway."""
    lines = []
    for paragraph in re.split(r"\n(?=Examples?:)|\n\n", footer.strip()):
        title, _, rest = paragraph.partition("\n")
        if title.startswith("Exit status:"):
            continue
        if re.match("Examples?:", title):
            lines += [".SH EXAMPLES", ".nf", escaped(re.sub(r"(?m)^  ", "", rest)), ".fi"]
        elif paragraph:
            lines += [".SH NOTES", escaped(paragraph)]
    return lines


def page(words: List[str], command: Dict[str, Any], version: str) -> str:
    """The manual of one command."""
    name = "-".join(words)
    # Lines are neither stretched nor hyphenated.
    lines = [f'.TH {name.upper()} 1 "" "hcclsim {version}" "User commands"', ".ad l", ".nh", ".SH NAME", f"{escaped(name)} \\- {escaped(command['help'])}"]
    arguments = [option for option in command["options"] if option["argument"]]
    shown = " ".join(f"\\fI{escaped(option['names'][0])}\\fR" for option in arguments)
    lines += [".SH SYNOPSIS", f".B {escaped(' '.join(words))}"]
    lines.append(f"[\\fIOPTION\\fR...] {shown}" if command["options"] else "\\fICOMMAND\\fR" if command["commands"] else "")
    if arguments:
        lines.append(".SH ARGUMENTS")
        for option in arguments:
            lines += option_lines(option)
    groups: Dict[str, List[Dict[str, Any]]] = {}
    for option in command["options"]:
        if not option["argument"]:
            groups.setdefault(option["group"], []).append(option)
    for group, options in groups.items():
        lines.append(f".SH {escaped(group.upper())}")
        for option in options:
            lines += option_lines(option)
    if command["commands"]:
        lines.append(".SH COMMANDS")
        for one in command["commands"]:
            lines += [".TP", f".B {escaped(one['name'])}", escaped(one["help"])]
    lines += footer_lines(command["footer"])
    lines += [".SH EXIT STATUS", STATUSES.rstrip()]
    above = [f".BR {escaped('-'.join(words[:-1]))} (1)"] if len(words) > 1 else []
    below = [f".BR {escaped(name + '-' + one['name'])} (1)" for one in command["commands"]]
    if above or below:
        lines += [".SH SEE ALSO", *above, *below]
    return "\n".join(lines) + "\n"


def write(folder: Path, words: List[str], command: Dict[str, Any], version: str) -> None:
    """This command's page, and those of its sub-commands."""
    (folder / f"{'-'.join(words)}.1").write_text(page(words, command, version), encoding="utf-8")
    for one in command["commands"]:
        write(folder, [*words, one["name"]], one, version)


def main() -> None:
    program, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    told = subprocess.run([program, "options"], check=True, capture_output=True, text=True).stdout
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    write(folder, ["hcclsim"], json.loads(told), version)


if __name__ == "__main__":
    main()
