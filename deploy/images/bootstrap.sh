#!/usr/bin/env bash
# bootstrap.sh <folder>: makes two root file systems of Debian trixie. base.tar has the packages that Node needs, and
# services.tar also PostgreSQL, Redis and a JRE. One run of mmdebstrap makes both. Needs root, and takes about a minute.
set -euo pipefail
self=$(realpath "$0")
. "$(dirname "$self")/debian.sh"

# mmdebstrap calls these two functions as hooks, with the current root file system.
save_base() {
  local out=$1 root=$2
  tar --numeric-owner --one-file-system \
    --exclude='./dev/*' --exclude='./var/lib/apt/lists/*' --exclude='./var/cache/apt/*' \
    -C "$root" -cf "$out/base.tar" .
}

add_services() {
  local root=$1
  # The package must not make a cluster, because the entrypoint makes one.
  mkdir -p "$root/etc/postgresql-common"
  echo 'create_main_cluster = false' >"$root/etc/postgresql-common/createcluster.conf"
  APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get install -qq -y --no-install-recommends -o DPkg::Chroot-Directory="$root" \
    postgresql redis-server openjdk-21-jre-headless
}

case "$1" in
  save_base | add_services) "$@" ;;
  *)
    out=$(realpath "$1")
    # Documentation and translations are left out. The folders of man pages must exist, because alternatives of the JRE
    # link into them.
    mmdebstrap --variant=essential --include=ca-certificates,libstdc++6 --dpkgopt=force-unsafe-io \
      --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
      --customize-hook="bash '$self' save_base '$out' \"\$1\"" --customize-hook="bash '$self' add_services \"\$1\"" \
      trixie "$out/services.tar" "$(debian_mirror)"
    ;;
esac
