#!/usr/bin/env bash
# Installs the Python packages of the tests (*.python.test.ts) into .python, each set into an environment of its own.
# Does nothing if they are there already. Needs Python 3.11 or newer with venv (Debian: apt-get install python3-venv).
set -euo pipefail
cd "$(dirname "$0")/../.."
wanted=$(cat tools/python/*.txt | sha256sum)
if [ "$(cat .python/installed 2>/dev/null)" = "$wanted" ]; then exit; fi
rm -rf .python
python3 -m venv .python/uv
.python/uv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes \
  -r tools/python/uv.txt
for set in tools litellm; do
  python3 -m venv --without-pip ".python/$set"
  .python/uv/bin/uv pip install --quiet --python ".python/$set/bin/python" --only-binary :all: --require-hashes \
    -r "tools/python/$set.txt"
done
# Last, so that a broken installation begins again.
printf '%s' "$wanted" >.python/installed
