# The first pod is written to, all others replicate it. Each keeps what it has in its claim.
set -e
set -- --dir /data --appendonly yes --appendfsync always --protected-mode no --daemonize no
if [ "$(hostname)" != redis-0 ]; then
  # By its name: its address is another one after it was replaced.
  set -- "$@" --replicaof redis-0.redis 6379
fi
exec redis-server "$@"
