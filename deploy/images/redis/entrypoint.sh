#!/bin/sh
# Works like the official redis image: arguments that begin with a dash go to redis-server, and a file of
# settings may come before them. The data is in /data. Never runs as root.
set -e
case "${1:-}" in -* | '') set -- redis-server "$@" ;; esac
[ "$1" = redis-server ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
  chown redis:redis /data
  exec setpriv --reuid redis --regid redis --clear-groups "$0" "$@"
fi
shift
# Like the official image, it also accepts connections from other hosts without a password. Redis accepts a file only as
# the first argument, and the last value of a setting counts.
case "${1:-}" in -* | '') ;; *) file=$1 && shift ;; esac
exec redis-server ${file:+"$file"} --protected-mode no "$@"
