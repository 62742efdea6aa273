#!/usr/bin/env bash
# idle.sh <command>…: runs a command in the processor time that nothing else wants. SIGTERM ends it with all its
# processes. Linux shares the processors between sessions first (sched_autogroup), and between the processes of a
# session by their nice values. So the command has a session of its own, and both have the lowest share.
set -euo pipefail
setsid bash -c '
  [ ! -e /proc/self/autogroup ] || echo 19 >/proc/self/autogroup
  exec nice -n 19 "$@"
' idle "$@" &
session=$!
trap 'kill -- "-$session"' TERM
wait "$session"
