#!/usr/bin/env bash
# cluster.sh up <file> | restart-kubelet | down. "up" makes a Kubernetes cluster of one node from the package
# registries, with the images of this project on it, and writes to <file> the variables with which the trials find it.
# "restart-kubelet" is for the trial of that name, and "down" ends the cluster. TOLLGATE_CLUSTER_TOOLS
# (../shared/tools/kubernetes) has the scripts that make the cluster: build-all.sh, up.sh, down.sh. Needs root, a Docker
# engine with our images, control groups of version 1, Go 1.26 and kubectl. "up" exits with 3, and says why, if this
# machine cannot run the cluster.
set -euo pipefail
cd "$(dirname "$0")/../.."
. deploy/images/debian.sh

# Where Go's own installer puts it.
PATH="$PATH:/usr/local/go/bin"
TOOLS=${TOLLGATE_CLUSTER_TOOLS:-../shared/tools/kubernetes}
export K8S_HOME=${K8S_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/k8s-node}
# The state of the cluster and the volumes of its stores are in memory: see .ci/run.
MEMORY=("$K8S_HOME/run" /var/lib/tollgate-trial)
MEMORY_MIN_GIB=12
KUBELET_STOP_WAIT_S=60
OURS=(gateway auth metering billing console simulator tools)
STORES=(postgres redis kafka)
# Definitions of the kinds that operators add. Their Go modules contain them.
DEFINITIONS=(
  sigs.k8s.io/gateway-api@v1.3.0/config/crd/standard
  github.com/kedacore/keda/v2@v2.17.0/config/crd/bases
  github.com/prometheus-operator/prometheus-operator@v0.83.0/example/prometheus-operator-crd
)

say() { printf 'cluster: %s\n' "$*" >&2; }
cannot() { say "$*" && exit 3; }

requirements() {
  [ -x "$TOOLS/up.sh" ] || cannot "there are no scripts in $TOOLS"
  [ -d /sys/fs/cgroup/cpuset ] || cannot "this machine has no control groups of version 1"
  local command packages=() package
  for command in kubectl containerd ctr runc openssl; do
    command -v "$command" >/dev/null || cannot "there is no $command"
  done
  [[ $(go env GOVERSION 2>/dev/null) =~ ^go1\.(2[6-9]|[3-9][0-9]) ]] || cannot "there is no Go 1.26"
  for package in gcc:gcc jq:jq bc:bc ip:iproute2 nft:nftables; do
    command -v "${package%%:*}" >/dev/null || packages+=("${package##*:}")
  done
  [ "${#packages[@]}" -eq 0 ] || apt_install "${packages[@]}"
}

in_memory() {
  [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge "$MEMORY_MIN_GIB" ] || return 0
  local folder
  for folder in "${MEMORY[@]}"; do
    mkdir -p "$folder"
    mount -t tmpfs -o size=6g,mode=755 tollgate-cluster "$folder" ||
      say "a memory file system cannot be mounted, so $folder is on the disk"
  done
}

define_kinds() {
  local module path folder
  for path in "${DEFINITIONS[@]}"; do
    module=$(sed -E 's/(@v[0-9.]+).*/\1/' <<<"$path")
    folder=$(cd / && go mod download -json "$module" | jq -er .Dir)/${path#"$module"/}
    kubectl apply --server-side -f "$folder" >/dev/null
  done
}

up() {
  requirements
  # What a killed run has left.
  down
  say "building it"
  bash "$TOOLS/build-all.sh" >&2 || cannot "it cannot be built here"
  export KUBECONFIG=$K8S_HOME/pki/admin.conf PATH="$K8S_HOME/bin:$PATH"
  in_memory
  say "starting it"
  # The autoscaler looks more often than by default, so that its trials end soon.
  KCM_FLAGS=--horizontal-pod-autoscaler-sync-period=5s bash "$TOOLS/up.sh" >&2 || cannot "it does not start here"
  define_kinds
  say "copying the images"
  docker save "${OURS[@]/#/tollgate/}" "${STORES[@]/#/tollgate-local/}" |
    ctr -a "$K8S_HOME/run/containerd.sock" -n k8s.io images import - >/dev/null
  printf 'export %s=%q\n' TOLLGATE_CLUSTER_TRIALS true KUBECONFIG "$KUBECONFIG" PATH "$PATH" K8S_HOME "$K8S_HOME" \
    TOLLGATE_CLUSTER_TOOLS "$(cd "$TOOLS" && pwd)" \
    TOLLGATE_KUBELET_RESTART "$(printf '%q restart-kubelet' "$PWD/deploy/ci/cluster.sh")" >"$1"
}

restart_kubelet() {
  local id deadline=$((SECONDS + KUBELET_STOP_WAIT_S))
  id=$(cat "$K8S_HOME/run/pid/kubelet")
  kill "$id"
  # An ended process may stay listed for a while, but it has no program any more.
  while readlink -q "/proc/$id/exe" >/dev/null; do
    [ "$SECONDS" -lt "$deadline" ] || { say "the kubelet has not ended" && exit 1; }
    sleep 0.1
  done
  bash "$TOOLS/up.sh" >&2
  [ "$(cat "$K8S_HOME/run/pid/kubelet")" != "$id" ]
}

down() {
  [ -x "$TOOLS/down.sh" ] || return 0
  # It cannot remove the folder itself while that is in memory.
  bash "$TOOLS/down.sh" >/dev/null 2>&1 || true
  local folder
  for folder in "${MEMORY[@]}"; do
    if mountpoint -q "$folder"; then umount --lazy "$folder"; fi
    rm -rf "$folder"
  done
}

case "${1:-}" in
  up) up "$2" ;;
  restart-kubelet) restart_kubelet ;;
  down) down ;;
  *) say "usage: cluster.sh up <file> | restart-kubelet | down" && exit 2 ;;
esac
