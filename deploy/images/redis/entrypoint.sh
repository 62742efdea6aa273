#!/bin/sh
# As the official redis image: arguments that begin with a dash are redis-server's; data in /data; never as root.
set -e
case "${1:-}" in -* | '') set -- redis-server "$@" ;; esac
[ "$(id -u)" != 0 ] || [ "$1" != redis-server ] || {
  chown redis:redis /data
  exec setpriv --reuid redis --regid redis --clear-groups "$0" "$@"
}
# Settings first, the caller's arguments last, so that these win. Without a password the official image answers outside its container as well.
[ "$1" != redis-server ] || {
  shift
  set -- redis-server --dir /data --protected-mode no "$@"
}
exec "$@"
