#!/usr/bin/env bash
# Makes the images of local.env from Debian packages, Maven artifacts and the npm package `node`, for machines that
# cannot pull images. Does nothing if they were made from the current files. Safe to repeat and to run twice at once.
# Needs Debian, root, a Docker engine with buildx (../ci/docker.sh), and npm ci.
set -euo pipefail
cd "$(dirname "$0")"
. ./debian.sh

IMAGES="redis postgres kafka node haproxy"
NPM_VERSION=11.21.2
NODE=../../node_modules/node/bin

say() { printf 'images: %s (%ss)\n' "$*" "$SECONDS" >&2; }
# content <file or folder>…: a hash of the sources of an image. Every image has it as a label.
content() {
  { cat bootstrap.sh debian.sh $(find "$@" -type f | sort); "$NODE/node" --version; } | sha256sum | cut -c1-16
}
# current <image> <file or folder>…: whether the image was made from these sources.
current() {
  local label
  label=$(docker image inspect -f '{{index .Config.Labels "tollgate.content"}}' "tollgate-local/$1" 2>/dev/null) || true
  [ "$label" = "$(content "${@:2}")" ]
}
all_current() {
  local name
  for name in $IMAGES; do current "$name" build-local.sh "$name" || return 1; done
}

[ -x "$NODE/node" ] || { say "Node is not installed: run npm ci"; exit 1; }
all_current && exit 0
exec 9>"${TMPDIR:-/tmp}/tollgate-images.lock"
flock 9
all_current && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# apt downloads as an unprivileged user, who must be able to enter the folder.
chmod 755 "$work"

need() { command -v "$1" >/dev/null || { say "installing Debian's $2"; apt_install "$2"; }; }

bootstrap() {
  current base bootstrap.sh && current services bootstrap.sh && return
  local name
  say "bootstrapping Debian"
  bash bootstrap.sh "$work" >"$work/bootstrap.log" 2>&1 || { tail -n 30 "$work/bootstrap.log" >&2; return 1; }
  for name in base services; do
    docker import --change "LABEL tollgate.content=$(content bootstrap.sh)" \
      "$work/$name.tar" "tollgate-local/$name" >/dev/null
    rm "$work/$name.tar"
  done
}

# download <image>: makes the build context of an image from its folder and downloads.
download() {
  local context="$work/$1"
  cp -r "$1" "$context"
  case "$1" in
    kafka)
      mvn -q -B -f kafka/pom.xml dependency:copy-dependencies -DoutputDirectory="$context/libs" >"$work/mvn.log" 2>&1 ||
        { cat "$work/mvn.log" >&2; return 1; }
      ;;
    node)
      npm pack --silent --pack-destination "$work" "npm@$NPM_VERSION" >/dev/null
      mkdir "$context/npm"
      tar -xzf "$work/npm-$NPM_VERSION.tgz" --strip-components=1 -C "$context/npm"
      cp "$NODE/node" "$context/node"
      ;;
    haproxy)
      # Downloads only the packages that the base lacks. Its list of packages says which, so the base must exist.
      wait "$bootstrapped"
      docker run --rm tollgate-local/base cat /var/lib/dpkg/status >"$work/status"
      trixie_apt "$work/apt" update -qq
      trixie_apt "$work/apt" -o Dir::State::status="$work/status" \
        install -qq -y --download-only --no-install-recommends haproxy >/dev/null
      mkdir "$context/packages"
      cp "$work"/apt/archives/*.deb "$context/packages"
      ;;
  esac
}

build() {
  say "building tollgate-local/$1"
  docker buildx build --load --progress=quiet --label "tollgate.content=$(content build-local.sh "$1")" \
    -t "tollgate-local/$1" "$work/$1" >/dev/null
}

need mmdebstrap mmdebstrap
need mvn maven
stale=()
for name in $IMAGES; do current "$name" build-local.sh "$name" || stale+=("$name"); done
bootstrap &
bootstrapped=$!
for name in "${stale[@]}"; do download "$name"; done
wait "$bootstrapped"
for name in "${stale[@]}"; do build "$name"; done
# Removes the replaced images. The images of running containers stay.
docker image prune --force --filter label=tollgate.content >/dev/null
say "made ${stale[*]}"
