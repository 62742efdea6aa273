#!/bin/sh
# install-dependencies.sh <out> <--workspace=…>…: the production dependencies of these workspaces, where Node looks for them: beside the root, or beside a workspace
# whose version differs. Optional ones are embedded PostgreSQL's binaries, which only the standalone form runs.
set -eu
out=$1
shift
npm ci --ignore-scripts --omit=dev --omit=optional --loglevel=error "$@"
# What only compilers and debuggers read is a third of it.
find . -type f \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.map' \) -path '*/node_modules/*' -delete
mkdir -p "$out"
find . -name node_modules -prune -exec cp -a --parents {} "$out" \;
