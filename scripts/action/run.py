#!/usr/bin/env python3
"""Runs the `run:` steps of action.yml, or of the first job of a workflow that uses the action, as GitHub does.

    scripts/action/run.py action OUTPUTS [NAME=VALUE…]            runs the action with these inputs, and writes its outputs to a file
    scripts/action/run.py workflow FILE [NAME=VALUE…]             runs a job; the values are further inputs of each use of the action

A line of OUTPUTS is NAME=VALUE. Steps that use another action are skipped. A workflow in a page is its first block `yaml`. Exit codes: 0
done, 1 a step failed, 2 the file is wrong: an unknown input, an expression that this script does not know, or an expression in the
text of a shell.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
TOKEN = re.compile(r"\s*(?:(==|!=|&&|\|\||!|\(|\))|'([^']*)'|((?:[\w-]+)(?:\.[\w-]+)*)(\(\))?)")


class Wrong(Exception):
    """The action or the workflow is wrong."""


def value(text, known):
    """Returns the value of an expression without operators."""
    if text not in known:
        if re.fullmatch(r"steps\.[\w-]+\.outputs\.[\w-]+", text):
            return ""
        raise Wrong(f"unknown expression: {text}")
    return known[text]


def condition(text, known, has_failed):
    """Returns whether a step with this condition runs."""
    text = EXPRESSION.sub(r"\1", str(text))
    words, at, asks_status = [], 0, False
    while at < len(text.rstrip()):
        match = TOKEN.match(text, at)
        if not match:
            raise Wrong(f"unknown condition: {text}")
        operator, literal, name, call = match.groups()
        if call:
            words.append(str({"always": True, "failure": has_failed, "success": not has_failed}[name]))
            asks_status = True
        elif operator:
            words.append({"&&": " and ", "||": " or ", "!": " not "}.get(operator, operator))
        else:
            words.append(repr(literal if literal is not None else value(name, known)))
        at = match.end()
    # The words are literals and operators alone.
    return bool(eval("".join(words))) and (asks_status or not has_failed)


def filled(text, known):
    """Returns a text with its expressions replaced."""
    return EXPRESSION.sub(lambda match: value(match[1], known), str(text))


def read_outputs(path):
    """Returns the outputs that a step wrote."""
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def run_shell(step, known, environment, folder):
    """Runs a step, and returns its outputs and whether it succeeded."""
    if "${{" in step["run"]:
        raise Wrong(f"an expression in the text of a shell: {step['run']}")
    if step.get("shell", "bash") != "bash":
        raise Wrong(f"unknown shell: {step['shell']}")
    script, outputs = folder / "script.sh", folder / "outputs"
    script.write_text(step["run"])
    outputs.write_text("")
    given = {name: filled(text, known) for name, text in step.get("env", {}).items()}
    given |= {"GITHUB_OUTPUT": str(outputs), "GITHUB_ENV": str(folder / "environment"), "GITHUB_PATH": str(folder / "path")}
    done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", script], env=environment | given, check=False)
    return read_outputs(outputs), done.returncode == 0


def run_steps(steps, known, environment, use):
    """Runs steps in order, and returns whether all succeeded. Adds their outputs to `known`."""
    has_failed = False
    for step in steps:
        if not condition(step.get("if", "success()"), known, has_failed):
            continue
        print(f"── {step.get('name', step.get('uses'))}", flush=True)
        if "uses" in step:
            outputs, is_done = use(step, known)
        else:
            with tempfile.TemporaryDirectory() as folder:
                outputs, is_done = run_shell(step, known, environment, Path(folder))
        known |= {f"steps.{step.get('id')}.outputs.{name}": text for name, text in outputs.items()}
        has_failed = has_failed or not is_done
    return not has_failed


def run_action(inputs):
    """Runs the action, and returns its outputs and whether it succeeded."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    unknown = sorted(inputs.keys() - action["inputs"].keys())
    if unknown:
        raise Wrong(f"unknown input: {unknown[0]}")
    known = {f"inputs.{name}": str(inputs.get(name, of["default"])) for name, of in action["inputs"].items()}
    environment = dict(os.environ) | {"GITHUB_ACTION_PATH": str(ROOT)}
    is_done = run_steps(action["runs"]["steps"], known, environment, lambda step, known: ({}, True))
    return {name: filled(of["value"], known) for name, of in action["outputs"].items()}, is_done


def run_workflow(path, more):
    """Runs the first job of a workflow, and returns whether it succeeded."""
    text = path.read_text()
    if path.suffix == ".md":
        text = re.search(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]
    job = next(iter(yaml.safe_load(text)["jobs"].values()))

    def use(step, known):
        if not re.match(r"\./$|imbrex/imbrex@", step["uses"]):
            return {}, True
        return run_action({name: filled(text, known) for name, text in step.get("with", {}).items()} | more)

    return run_steps(job["steps"], {}, dict(os.environ), use)


def main(words):
    """Runs the command line `words` and returns the exit code."""
    if len(words) < 2 or words[0] not in ("action", "workflow") or not all("=" in word for word in words[2:]):
        print(__doc__, file=sys.stderr)
        return 2
    given = dict(word.split("=", 1) for word in words[2:])
    try:
        if words[0] == "workflow":
            return 0 if run_workflow(Path(words[1]), given) else 1
        outputs, is_done = run_action(given)
    except Wrong as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    Path(words[1]).write_text("".join(f"{name}={text}\n" for name, text in outputs.items()))
    return 0 if is_done else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
