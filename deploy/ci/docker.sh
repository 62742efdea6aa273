#!/usr/bin/env bash
# Installs and starts a Docker engine with buildx and compose on a bare Debian machine. Does nothing if they answer.
# Safe to repeat and to run twice at once. Needs root if something is missing.
# DOCKER_HOST, if set, names another engine, which is checked but never started. DOCKER_DATA_ROOT, if set, is the folder
# for the images and containers of an engine that is started here. Its state is beside that folder, so that it does not
# use the state of a killed engine.
set -euo pipefail
cd "$(dirname "$0")"
. ../images/debian.sh

START_WAIT_S=60
LOG="${TMPDIR:-/tmp}/tollgate-dockerd.log"

say() { printf 'docker: %s\n' "$*" >&2; }
answers() { timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

install_engine() {
  say "installing Debian's docker.io"
  # From trixie on, the client is a separate package.
  apt_install docker.io $(apt-cache pkgnames docker-cli | grep -x docker-cli || true)
}

start_engine() {
  say "starting dockerd, log in $LOG"
  local root=${DOCKER_DATA_ROOT:-} folders=()
  [ -z "$root" ] || folders=(--data-root "$root" --exec-root "$root.run" --pidfile "$root.pid")
  # In its own session and without our pipes, because it outlives this script and the reader of its output.
  setsid nohup dockerd ${folders[@]+"${folders[@]}"} </dev/null >>"$LOG" 2>&1 9>&- &
  local deadline=$((SECONDS + START_WAIT_S))
  until answers; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      tail -n 20 "$LOG" >&2
      say "no answer within ${START_WAIT_S} s: see $LOG"
      return 1
    fi
    sleep 0.2
  done
}

# Debian has buildx and compose v2 since trixie. Their binaries also run on older systems, so there they are taken from
# trixie's packages.
install_plugins() {
  local plugins="${DOCKER_CONFIG:-$HOME/.docker}/cli-plugins" scratch
  scratch=$(mktemp -d)
  say "taking buildx and compose from Debian trixie"
  (
    cd "$scratch"
    trixie_apt "$scratch" update -qq
    trixie_apt "$scratch" download -qq docker-buildx docker-compose
    for package in *.deb; do dpkg-deb -x "$package" root; done
    mkdir -p "$plugins"
    install -m 755 root/usr/libexec/docker/cli-plugins/docker-* "$plugins"
  )
  rm -rf "$scratch"
}

exec 9>"${TMPDIR:-/tmp}/tollgate-docker.lock"
flock 9

if ! answers; then
  if [ -n "${DOCKER_HOST:-}" ]; then
    say "no engine answers at DOCKER_HOST=$DOCKER_HOST"
    exit 1
  fi
  command -v dockerd >/dev/null && command -v docker >/dev/null || install_engine
  start_engine
fi
docker buildx version >/dev/null 2>&1 && docker compose version >/dev/null 2>&1 || install_plugins
engine=$(docker version --format '{{.Server.Version}}')
say "engine $engine, $(docker buildx version | cut -d' ' -f2), compose $(docker compose version --short)"
