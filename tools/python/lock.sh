#!/usr/bin/env bash
# Writes the locked requirements, with hashes, from the *.in files. Needs the `uv` that install.sh installs.
set -euo pipefail
cd "$(dirname "$0")"
for set in uv tools litellm; do
  ../../.python/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --custom-compile-command tools/python/lock.sh "$set.in" --output-file "$set.txt"
done
