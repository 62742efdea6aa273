#!/usr/bin/env bash
# clear.sh <folder>: ends the Docker engine whose DOCKER_DATA_ROOT is <folder>/docker (see docker.sh) with all its
# containers, and unmounts the memory file system <folder>. Prints nothing, because the last line of a CI run must be
# its result.
set -uo pipefail
exec >/dev/null 2>&1
scratch=$1
STOP_WAIT_S=20

# Another process may have this id by now.
if engine=$(cat "$scratch/docker.pid") && [ "$(cat "/proc/$engine/comm")" = dockerd ]; then
  timeout "$STOP_WAIT_S" docker ps --all --quiet | timeout "$STOP_WAIT_S" xargs -r docker rm --force --volumes
  timeout "$STOP_WAIT_S" docker network prune --force
  kill "$engine"
  timeout "$STOP_WAIT_S" tail --pid="$engine" -f /dev/null || kill -9 "$engine"
fi
mountpoint -q "$scratch" && umount --lazy "$scratch"
rmdir "$scratch"
