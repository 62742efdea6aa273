#!/usr/bin/env bash
# A Docker engine with buildx and compose on a bare Debian machine. Nothing to do where they answer; safe to repeat and
# to run twice at once. Needs root where something is missing. DOCKER_HOST, when set, names somebody's engine: it is
# then checked, never started. DOCKER_DATA_ROOT, when set, is where an engine that is started here keeps its images and
# containers, and beside it what it knows of itself: what a killed engine left on this machine is not taken up.
set -euo pipefail
cd "$(dirname "$0")"
. ../images/debian.sh

START_WAIT_S=60
LOG="${TMPDIR:-/tmp}/tollgate-dockerd.log"

say() { printf 'docker: %s\n' "$*" >&2; }
answers() { timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

install_engine() {
  say "installing Debian's docker.io"
  # The client is a package of its own from trixie on.
  apt_install docker.io $(apt-cache pkgnames docker-cli | grep -x docker-cli || true)
}

start_engine() {
  say "starting dockerd, log in $LOG"
  # A session of its own, and no pipe of ours: it outlives this script and whoever waits for our output.
  setsid nohup dockerd ${DOCKER_DATA_ROOT:+--data-root "$DOCKER_DATA_ROOT" --exec-root "$DOCKER_DATA_ROOT.run" --pidfile "$DOCKER_DATA_ROOT.pid"} \
    </dev/null >>"$LOG" 2>&1 9>&- &
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

# buildx and compose v2 came with trixie. Their two binaries run on older systems as well, so there they are taken out
# of trixie's packages.
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
say "engine $(docker version --format '{{.Server.Version}}'), $(docker buildx version | cut -d' ' -f2), compose $(docker compose version --short)"
