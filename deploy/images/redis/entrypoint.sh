#!/bin/sh
# As the official redis image: arguments that begin with a dash are redis-server's, a file of settings may come before
# them; data in /data; never as root.
set -e
case "${1:-}" in -* | '') set -- redis-server "$@" ;; esac
[ "$1" = redis-server ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
  chown redis:redis /data
  exec setpriv --reuid redis --regid redis --clear-groups "$0" "$@"
fi
shift
# The official image answers outside its container without a password as well. Redis takes a file only as the first
# argument, and the last of two settings.
case "${1:-}" in -* | '') ;; *) file=$1 && shift ;; esac
exec redis-server ${file:+"$file"} --protected-mode no "$@"
