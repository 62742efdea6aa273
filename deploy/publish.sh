#!/usr/bin/env bash
# publish.sh [--dry-run] [--platforms <list>] [--bills <folder>] <registry>/<path> [<target>…]
# Builds our images with labels, writes a bill of materials of each (CycloneDX), and then pushes all of them as
# <registry>/<path>/<target>:<version of package.json>. Log in first (docker login).
#   --dry-run    prints what it would do
#   --platforms  linux/amd64,linux/arm64 where the builder of buildx can make several, otherwise that of this machine
#   --bills      the folder of the bills of materials (sbom in the root of the repository)
# Takes TOLLGATE_SOURCE_URL, the address of the repository (that of the remote `origin`), and the settings of build.sh.
# Refuses files that are not committed, and a version that the registry has.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."

die() { printf 'publish: %s\n' "$*" >&2 && exit 1; }
usage() { sed -n '2,9s/^# //p' "$here/publish.sh" >&2 && exit 2; }
dry='' platforms='' bills=sbom
while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) dry=1 && shift ;;
    --platforms) platforms=${2:?a list of platforms} && shift 2 ;;
    --bills) bills=${2:?a folder} && shift 2 ;;
    -*) usage ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || usage
prefix=${1%/} && shift
[[ $prefix =~ ^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$ ]] || die "$prefix is not a registry with a path"
[ $# -gt 0 ] || set -- gateway auth metering billing console simulator tools
run() {
  printf '+ %s\n' "$*"
  [ -n "$dry" ] || "$@"
}

[ -z "$(git status --porcelain)" ] || die "there are files that are not committed: commit or remove them"
version=$(node -p 'require("./package.json").version')
revision=$(git rev-parse HEAD)
created=$(TZ=UTC git show -s --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ HEAD)
source=${TOLLGATE_SOURCE_URL:-$(git remote get-url origin 2>/dev/null || true)}
# Without a password. git@host:path is https://host/path.
source=$(printf '%s' "$source" | sed -E 's#^(ssh://)?git@([^:/]+)[:/]#https://\2/#; s#://[^/@]*@#://#; s#\.git$##')
[ -n "$source" ] || die "TOLLGATE_SOURCE_URL must be the address of the repository, which has no remote origin"

# sed reads all lines. A reader that ends early would make buildx fail.
several='' driver=$(docker buildx inspect | sed -n 's/^Driver: *//p')
[ "$driver" = docker ] || several=1
[ -n "$platforms" ] || { [ -z "$several" ] || platforms=linux/amd64,linux/arm64; }
case $platforms in
  *,*) [ -n "$several" ] || die "this builder makes one platform: docker buildx create --use makes one for several" ;;
esac

label() { printf '%s\n' --label "org.opencontainers.image.$1=$2"; }
labels_of() {
  label title "tollgate/$1" && label source "$source" && label revision "$revision" && label version "$version"
  label created "$created" && label licenses "$(node -p 'require("./package.json").license')"
}
build() {
  local target=$1 options=()
  shift
  mapfile -t options < <(labels_of "$target")
  run env TOLLGATE_IMAGE_PREFIX="$prefix" TOLLGATE_TAG="$version" deploy/build.sh "$target" -- "${options[@]}" "$@"
}

for target in "$@"; do
  [ -n "$dry" ] || ! docker buildx imagetools inspect "$prefix/$target:$version" >/dev/null 2>&1 ||
    die "$prefix/$target:$version exists already: a published version does not change"
done
# Everything is built before anything is published. The bills are of the images for this machine.
[ -n "$dry" ] || mkdir -p "$bills"
one=()
case $platforms in '' | *,*) ;; *) one=(--platform "$platforms") ;; esac
for target in "$@"; do
  build "$target" ${one[@]+"${one[@]}"}
  printf '+ node deploy/sbom.mjs %s > %s\n' "$prefix/$target:$version" "$bills/$target.cdx.json"
  [ -n "$dry" ] || node deploy/sbom.mjs "$prefix/$target:$version" >"$bills/$target.cdx.json"
done
for target in "$@"; do
  case $platforms in
    *,*) build "$target" --platform "$platforms" --push ;;
    *) run docker push --quiet "$prefix/$target:$version" ;;
  esac
done
