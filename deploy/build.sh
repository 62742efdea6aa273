#!/usr/bin/env bash
# build.sh [<target>…] [-- <option of docker buildx build>…]: makes the images $TOLLGATE_IMAGE_PREFIX/<target>
# (tollgate) with the tag $TOLLGATE_TAG (latest), by default all of the Dockerfile. With TOLLGATE_IMAGES=local it uses
# the local base image, and makes that if it is missing. NODE_EXTRA_CA_CERTS, if set, is trusted while packages are
# downloaded.
set -euo pipefail
cd "$(dirname "$0")"

images=official
if [ "${TOLLGATE_IMAGES:-}" = local ]; then
  images=local
  ./images/build-local.sh
fi
base=${TOLLGATE_NODE_IMAGE:-$(sed -n 's/^TOLLGATE_NODE_IMAGE=//p' "images/$images.env")}
secrets=()
[ ! -s "${NODE_EXTRA_CA_CERTS:-}" ] || secrets=(--secret "id=ca,src=$NODE_EXTRA_CA_CERTS")
targets=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do targets+=("$1") && shift; done
[ $# -eq 0 ] || shift
[ "${#targets[@]}" -gt 0 ] || targets=(gateway auth metering billing console simulator tools)
# An image that goes to a registry directly is not kept here.
case " $* " in *" --push "*) ;; *) set -- --load "$@" ;; esac

# One after the other, because the first makes the layers that all share, and the others only copy from them.
for target in "${targets[@]}"; do
  docker buildx build --progress=quiet -f Dockerfile --target "$target" \
    -t "${TOLLGATE_IMAGE_PREFIX:-tollgate}/$target:${TOLLGATE_TAG:-latest}" --build-arg "NODE_IMAGE=$base" \
    ${secrets[@]+"${secrets[@]}"} "$@" .. >/dev/null
done
