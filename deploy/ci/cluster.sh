#!/usr/bin/env bash
# cluster.sh up <file> | down. "up" makes a Kubernetes cluster of one node from the package registries, with the images
# of this project on it, and writes to <file> the variables with which the trials find it. "down" ends it.
# TOLLGATE_CLUSTER_TOOLS (../shared/tools/kubernetes) has the scripts that make the cluster: build-all.sh, up.sh, down.sh.
# Needs root, a Docker engine with our images, Go 1.26 and kubectl. Exits with 3, and says why, if the scripts, Go or
# kubectl are missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
. deploy/images/debian.sh

# Where Go's own installer puts it.
PATH="$PATH:/usr/local/go/bin"
TOOLS=${TOLLGATE_CLUSTER_TOOLS:-../shared/tools/kubernetes}
export K8S_HOME=${K8S_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/k8s-node}
# The state of the cluster and the volumes of its stores are in memory: see .ci/run.
MEMORY=("$K8S_HOME/run" /var/lib/tollgate-trial)
OURS=(gateway auth metering billing console simulator tools)
STORES=(postgres redis kafka)
# Definitions of the kinds that operators add. Their Go modules contain them.
DEFINITIONS=(
  sigs.k8s.io/gateway-api@v1.3.0/config/crd/standard
  github.com/kedacore/keda/v2@v2.17.0/config/crd/bases
  github.com/prometheus-operator/prometheus-operator@v0.83.0/example/prometheus-operator-crd
)

say() { printf 'cluster: %s\n' "$*" >&2; }
missing() { say "$*" && exit 3; }

requirements() {
  [ -x "$TOOLS/up.sh" ] || missing "there are no scripts in $TOOLS"
  command -v go >/dev/null || missing "there is no Go"
  command -v kubectl >/dev/null || missing "there is no kubectl"
  local packages=() package
  for package in gcc:gcc jq:jq bc:bc ip:iproute2 nft:nftables iptables:iptables; do
    command -v "${package%%:*}" >/dev/null || packages+=("${package##*:}")
  done
  [ "${#packages[@]}" -eq 0 ] || apt_install "${packages[@]}"
}

in_memory() {
  [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 12 ] || return 0
  local folder
  for folder in "${MEMORY[@]}"; do
    mkdir -p "$folder"
    mountpoint -q "$folder" || mount -t tmpfs -o size=6g,mode=755 tollgate-cluster "$folder"
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
  say "building it"
  bash "$TOOLS/build-all.sh" >&2
  export KUBECONFIG=$K8S_HOME/pki/admin.conf PATH="$K8S_HOME/bin:$PATH"
  in_memory
  say "starting it"
  # The autoscaler looks more often than by default, so that its trials end soon.
  KCM_FLAGS=--horizontal-pod-autoscaler-sync-period=5s bash "$TOOLS/up.sh" >&2
  define_kinds
  say "copying the images"
  docker save "${OURS[@]/#/tollgate/}" "${STORES[@]/#/tollgate-local/}" |
    ctr -a "$K8S_HOME/run/containerd.sock" -n k8s.io images import - >/dev/null
  local tools
  tools=$(cd "$TOOLS" && pwd)
  printf 'export %s=%q\n' TOLLGATE_CLUSTER_TRIALS true KUBECONFIG "$KUBECONFIG" PATH "$PATH" TOLLGATE_KUBELET_RESTART \
    "kill \$(cat $K8S_HOME/run/pid/kubelet); sleep 2; bash $tools/up.sh" >"$1"
}

down() {
  local folder
  # It cannot remove the folder in memory itself.
  [ ! -x "$TOOLS/down.sh" ] || bash "$TOOLS/down.sh" || true
  for folder in "${MEMORY[@]}"; do
    mountpoint -q "$folder" && umount --lazy "$folder"
  done
}

case "${1:-}" in
  up) up "$2" ;;
  down) down ;;
  *) say "usage: cluster.sh up <file> | down" && exit 2 ;;
esac
