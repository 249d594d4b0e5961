#!/bin/sh
# Resolve the extras `test` and `lab` in an empty environment and write requirements.lock.
# The local version label (torch's "+cpu") goes: it names a build, not a release.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
grep '^torch==' requirements.lock > "$work/constraints.txt"
"$work/venv/bin/pip" install --quiet --constraint "$work/constraints.txt" setuptools wheel ".[test,lab]"
{
  grep '^#' requirements.lock
  "$work/venv/bin/pip" freeze --all | grep -viE '^(pip|fairpg[-_]lite)( |=)' | sed 's/+cpu$//'
} > "$work/requirements.lock"
mv "$work/requirements.lock" requirements.lock
