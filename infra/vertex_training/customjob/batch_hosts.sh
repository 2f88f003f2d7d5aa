set -eu
hosts="${BATCH_HOSTS_FILE:?Batch gave no file of hosts}"
self="$(hostname -f 2>/dev/null || hostname)"
awk -v self="$self" -v short="$(hostname)" -v task="$BATCH_TASK_INDEX" '
  NF { host[n++] = $1 }
  END {
    rank = task
    for (i = 0; i < n; i++) if (host[i] == self || host[i] == short) rank = i
    for (i = 1; i < n; i++) rest = rest (i > 1 ? "," : "") "\"" host[i] ":2222\""
    first = "[\"" host[0] ":2222\"]"
    index_ = rank > 0 ? rank - 1 : 0
    end = ",\"environment\":\"cloud\",\"task\":{\"type\":\""
    pool = rank > 0 ? "workerpool1" : "workerpool0"
    role = rank > 0 ? "worker" : "chief"
    tail = "\",\"index\":" index_ "}}"
    print "CLUSTER_SPEC={\"cluster\":{\"workerpool0\":" first \
      ",\"workerpool1\":[" rest "]}" end pool tail
    print "TF_CONFIG={\"cluster\":{\"chief\":" first \
      ",\"worker\":[" rest "]}" end role tail
    print "MASTER_ADDR=" host[0]
    print "MASTER_PORT=2222"
    print "RANK=" rank
    print "WORLD_SIZE=" n
  }' "$hosts" > "${TMPDIR:-/tmp}/vertex-training.env"
