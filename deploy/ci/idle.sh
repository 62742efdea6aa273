#!/usr/bin/env bash
# idle.sh <command>…: runs a command in the processor time that nothing else wants. SIGTERM ends it with all its
# processes. SIGUSR1 gives it the share of any other command, if the user may do that.
# Linux shares the processors between sessions first (sched_autogroup), and between the processes of a session by their
# nice values. So the command has a session of its own, and both have the lowest share.
set -euo pipefail
setsid bash -c '
  [ ! -e /proc/self/autogroup ] || echo 19 >/proc/self/autogroup
  exec nice -n 19 "$@"
' idle "$@" &
session=$!
hurry() {
  [ ! -e "/proc/$session/autogroup" ] || echo 0 >"/proc/$session/autogroup"
  renice -n 0 -g "$session"
} >/dev/null 2>&1
trap 'kill -- "-$session"' TERM
trap 'hurry || true' USR1
# A signal ends a wait.
until wait "$session" || ! kill -0 "$session" 2>/dev/null; do :; done
wait "$session"
