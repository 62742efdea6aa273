#!/usr/bin/env bash
# clear.sh <folder>: ends the Docker engine whose DOCKER_DATA_ROOT is <folder>/docker (see docker.sh) with all its
# containers, and takes the memory file system <folder> away. Says nothing: the last line of a CI run is its result.
set -uo pipefail
exec >/dev/null 2>&1
scratch=$1
STOP_WAIT_S=20

# The process of that number may be somebody else by now.
if engine=$(cat "$scratch/docker.pid") && [ "$(cat "/proc/$engine/comm")" = dockerd ]; then
  timeout "$STOP_WAIT_S" docker ps --all --quiet | timeout "$STOP_WAIT_S" xargs -r docker rm --force --volumes
  timeout "$STOP_WAIT_S" docker network prune --force
  kill "$engine"
  timeout "$STOP_WAIT_S" tail --pid="$engine" -f /dev/null || kill -9 "$engine"
fi
mountpoint -q "$scratch" && umount --lazy "$scratch"
rmdir "$scratch"
