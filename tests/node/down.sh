#!/usr/bin/env bash
# Ends what up.sh has started, by its process ids, with all pods, mounts, rules and the bridge. Keeps keys, images and logs; WIPE=1
# removes those, too.      RUN=FOLDER as for up.sh
R=$(cd "${RUN:?the folder of up.sh}" && pwd) || exit 0; cd "$R" || exit 1
gone() { ! [ -e "/proc/$1/exe" ]; } # true of zombies too
stop() { p=$(cat "pids/$1" 2> /dev/null) || return; kill "$p" 2> /dev/null; for _ in $(seq 100); do gone "$p" && break; sleep 0.05; done
  gone "$p" || kill -9 "$p"; rm -f "pids/$1"; }
ctr() { command ctr --address "$R/containerd/containerd.sock" --namespace k8s.io "$@"; }
for p in kubelet scheduler kcm; do stop $p; done
# Pods: their processes (with which the shims end), then the network namespaces.
spaces=$(for c in $(ctr containers list -q 2> /dev/null); do ctr containers info "$c" | jq -r '.Spec.linux.namespaces[] | select(.type == "network") | .path // empty'; done | sort -u)
for t in $(ctr tasks list -q 2> /dev/null); do ctr tasks rm -f "$t" > /dev/null 2>&1; done
for n in $spaces; do case $n in */netns/cni-*) umount "$n" 2> /dev/null; rm -f "$n";; esac; done
kill -9 "$(cat pids/apiserver 2> /dev/null)" 2> /dev/null # It would wait for its watchers.
for p in containerd apiserver etcd; do stop $p; done
grep -oE " $R/[^ ]+" /proc/mounts | sort -r | while read -r m; do umount -l "$m"; done
[ -f rules ] && while read -r rule; do iptables -t nat -D $rule 2> /dev/null; done < rules
[ -f bridge ] && ip link del "$(cat bridge)" 2> /dev/null
[ -f ip_forward ] && cat ip_forward > /proc/sys/net/ipv4/ip_forward
for g in /sys/fs/cgroup/kubepods /sys/fs/cgroup/*/kubepods; do [ -d "$g" ] && find "$g" -depth -type d -exec rmdir {} + 2> /dev/null; done
rm -rf etcd containerd kubelet ipam cni rules bridge ip_forward pids
[ "${WIPE:-}" = 1 ] && rm -rf "$R"; true
