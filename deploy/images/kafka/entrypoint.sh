#!/bin/bash
# Takes the settings of the official apache/kafka image: CLUSTER_ID, and the broker's as KAFKA_… (`_` is a dot,
# `__` an underscore, `___` a dash). Uses KRaft. All settings come from the environment.
set -euo pipefail
[ "$#" = 0 ] || exec "$@"
properties=/tmp/server.properties
: >"$properties"
while IFS='=' read -r -d '' name value; do
  case "$name" in
    KAFKA_HEAP_OPTS | KAFKA_OPTS) continue ;;
    KAFKA_*) ;;
    *) continue ;;
  esac
  key="${name#KAFKA_}"
  key="${key//___/-}" key="${key//__/%}" key="${key//_/.}" key="${key//%/_}"
  printf '%s=%s\n' "${key,,}" "$value" >>"$properties"
done < <(env -0)
# The class data archive of the image saves both processes two thirds of their start. It needs the same class path, so
# the files are in a fixed order.
classpath=$(printf '%s:' /opt/kafka/libs/*.jar)
java=(
  java -XX:SharedArchiveFile=/opt/kafka/kafka.jsa -Xlog:disable -Xlog:all=error:stderr -Djava.awt.headless=true
  -cp "$classpath"
)
[ -e /opt/kafka/kafka.jsa ] || unset 'java[1]'
# A data directory is formatted once. Formatting takes half of the processor time of a start, so the image has the files
# for the usual cluster and node.
data=$KAFKA_LOG_DIRS cluster=${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw} formatted=/opt/kafka/formatted
if [ ! -e "${data%%,*}/meta.properties" ]; then
  if [ -d "$data" ] && grep -qsx "cluster.id=$cluster" "$formatted/meta.properties" &&
    grep -qx "node.id=${KAFKA_NODE_ID:-}" "$formatted/meta.properties"; then
    cp "$formatted"/* "$data"
  else
    "${java[@]}" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC kafka.tools.StorageTool format --ignore-formatted \
      --cluster-id "$cluster" --config "$properties" >/dev/null
  fi
fi
exec "${java[@]}" ${KAFKA_HEAP_OPTS:--Xms256m -Xmx1g} ${KAFKA_OPTS:-} kafka.Kafka "$properties"
