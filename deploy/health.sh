#!/usr/bin/env bash
# The HEALTHCHECK of a container. Succeeds if http://127.0.0.1:$1$2 answers 200. Uses only bash, because the image has
# no curl, and starting Node every few seconds in every container would cost more than the service itself.
exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&3
read -r -t 5 _ status _ <&3
[ "$status" = 200 ] || { cat <&3 >&2; exit 1; }
