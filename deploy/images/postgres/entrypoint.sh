#!/bin/bash
# Takes the settings of the official postgres image: POSTGRES_USER, POSTGRES_PASSWORD (or POSTGRES_PASSWORD_FILE),
# POSTGRES_DB and PGDATA. The arguments go to postgres (-c name=value).
set -euo pipefail
case "${1:-}" in -* | '') set -- postgres "$@" ;; esac
if [ "$1" = postgres ]; then
  export PGDATA="${PGDATA:-/var/lib/postgresql/data}"
  if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" /var/run/postgresql
    chown -R postgres:postgres "$PGDATA" /var/run/postgresql
    exec setpriv --reuid postgres --regid postgres --clear-groups "$0" "$@"
  fi
  if [ ! -s "$PGDATA/PG_VERSION" ]; then
    [ -z "${POSTGRES_PASSWORD_FILE:-}" ] || POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    : "${POSTGRES_PASSWORD:?must be set for a new data directory}"
    user="${POSTGRES_USER:-postgres}" database="${POSTGRES_DB:-${POSTGRES_USER:-postgres}}"
    initdb --username="$user" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") --auth-local=trust \
      --auth-host=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 >/dev/null
    printf 'host all all all scram-sha-256\n' >>"$PGDATA/pg_hba.conf"
    [ "$database" = postgres ] || printf 'CREATE DATABASE "%s"\n' "$database" | postgres --single -j postgres >/dev/null
  fi
  shift
  set -- postgres -c listen_addresses='*' "$@"
fi
exec "$@"
