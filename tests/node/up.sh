#!/usr/bin/env bash
# Starts a Kubernetes cluster of one node that runs pods: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, containerd and
# kubelet, as tests/node/build.sh has them. Needs root, and what that script names. Only one can run at a time: pods lie in the control
# group `kubepods`.
#
#   RUN=FOLDER tests/node/up.sh [ARCHIVE.tar…]      imports these images, and prints the path of the kubeconfig
#   RUN=FOLDER tests/node/down.sh                   ends it, with all pods, mounts and rules
#
# Nothing is asked of a registry: an image of a pod has to be one of the archives, or local/busybox:1, and to have a tag that is not
# `latest`. Pods have no names (DNS) and reach no address of a service but that of `kubernetes`. The folder's path has to be short.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); K=$("$here/../kube/build.sh" --folder); B=$("$here/build.sh" --folder); R=${RUN:?a folder for the cluster}
PORT=${PORT:-6543}; EP=${EP:-2479}; NET=${NET:-10.244.0}; SERVICE=${SERVICE:-10.96.0}; BRIDGE=${BRIDGE:-kube0}; NODE=${NODE:-node}
CNI=${CNI:-/usr/lib/cni}; ADDRESS=$NET.1; mkdir -p "$R"/{pids,logs,pki,cni,containerd,kubelet,images}; R=$(cd "$R" && pwd); cd "$R"
start=$(date +%s%N); say() { printf '%5d ms  %s\n' $((($(date +%s%N) - start) / 1000000)) "$*" >&2; }
run() { name=$1; shift; setsid "$@" > "logs/$name.log" 2>&1 < /dev/null & echo $! > "pids/$name"; }
wait_for() { for _ in $(seq 400); do "$@" > /dev/null 2>&1 && return; sleep 0.15; done; echo "gave up: $*; see $R/logs" >&2; exit 1; }
k() { kubectl --kubeconfig "$R/admin.kubeconfig" "$@"; }
ctr() { command ctr --address "$R/containerd/containerd.sock" --namespace k8s.io "$@"; }

# Keys: one authority for everything.
if [ ! -f pki/ca.crt ]; then
  openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=node-ca -keyout pki/ca.key -out pki/ca.crt -addext keyUsage=critical,keyCertSign,digitalSignature 2> /dev/null
  openssl genrsa -out pki/sa.key 2048 2> /dev/null; openssl rsa -in pki/sa.key -pubout -out pki/sa.pub 2> /dev/null
fi
cert() { # name, subject, alternative names
  [ ! -f "pki/$1.crt" ] || return 0
  openssl req -newkey rsa:2048 -nodes -subj "$2" -keyout "pki/$1.key" -out "pki/$1.csr" 2> /dev/null
  openssl x509 -req -days 3650 -in "pki/$1.csr" -CA pki/ca.crt -CAkey pki/ca.key -CAcreateserial -out "pki/$1.crt" -extfile \
    <(echo "keyUsage=digitalSignature,keyEncipherment"; echo "extendedKeyUsage=clientAuth,serverAuth"; [ -z "${3:-}" ] || echo "subjectAltName=$3") 2> /dev/null
}
cert apiserver /CN=kube-apiserver "IP:127.0.0.1,IP:$ADDRESS,IP:$SERVICE.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
cert kubelet "/O=system:nodes/CN=system:node:$NODE" "IP:$ADDRESS,DNS:$NODE"
cert admin /O=system:masters/CN=admin
cert kcm /CN=system:kube-controller-manager
cert scheduler /CN=system:kube-scheduler
for u in admin kcm scheduler kubelet; do cat > $u.kubeconfig <<K
{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
 clusters: [{name: c, cluster: {server: "https://$ADDRESS:$PORT", certificate-authority-data: $(base64 -w0 pki/ca.crt)}}],
 users: [{name: u, user: {client-certificate-data: $(base64 -w0 pki/$u.crt), client-key-data: $(base64 -w0 pki/$u.key)}}]}
K
done

# Network: a bridge, whose address is the node's, with the pods behind it. One rule leads the address of the service `kubernetes` to the
# API server, in place of kube-proxy; other services lead nowhere, and there is no DNS. One rule lets pods reach what is beyond the node.
ip link show "$BRIDGE" > /dev/null 2>&1 || ip link add "$BRIDGE" type bridge
ip addr replace "$ADDRESS/24" dev "$BRIDGE"; ip link set "$BRIDGE" up
[ -f ip_forward ] || cat /proc/sys/net/ipv4/ip_forward > ip_forward; echo 1 > /proc/sys/net/ipv4/ip_forward
cat > rules <<K
PREROUTING -d $SERVICE.1/32 -p tcp --dport 443 -j DNAT --to-destination $ADDRESS:$PORT
OUTPUT -d $SERVICE.1/32 -p tcp --dport 443 -j DNAT --to-destination $ADDRESS:$PORT
POSTROUTING -s $NET.0/24 ! -d $NET.0/24 -j MASQUERADE
K
while read -r rule; do iptables -t nat -C $rule 2> /dev/null || iptables -t nat -A $rule; done < rules
echo "$BRIDGE" > bridge
cat > cni/10-bridge.conflist <<K
{"cniVersion": "0.4.0", "name": "node", "plugins": [{"type": "bridge", "bridge": "$BRIDGE", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "$R/ipam", "ranges": [[{"subnet": "$NET.0/24", "rangeStart": "$NET.10", "gateway": "$ADDRESS"}]],
           "routes": [{"dst": "0.0.0.0/0"}]}}]}
K

run etcd "$K/etcd" --data-dir "$R/etcd" --listen-client-urls "http://127.0.0.1:$EP" --advertise-client-urls "http://127.0.0.1:$EP" \
  --listen-peer-urls "http://127.0.0.1:$((EP+1))" --initial-advertise-peer-urls "http://127.0.0.1:$((EP+1))" \
  --initial-cluster "default=http://127.0.0.1:$((EP+1))" --log-level warn --unsafe-no-fsync
run apiserver "$K/kube-apiserver" --etcd-servers="http://127.0.0.1:$EP" --bind-address=0.0.0.0 --advertise-address="$ADDRESS" --secure-port="$PORT" \
  --client-ca-file=pki/ca.crt --tls-cert-file=pki/apiserver.crt --tls-private-key-file=pki/apiserver.key --authorization-mode=Node,RBAC \
  --enable-admission-plugins=NodeRestriction --kubelet-client-certificate=pki/admin.crt --kubelet-client-key=pki/admin.key \
  --kubelet-certificate-authority=pki/ca.crt --kubelet-preferred-address-types=InternalIP \
  --service-account-key-file=pki/sa.pub --service-account-signing-key-file=pki/sa.key --service-account-issuer=https://kubernetes.default.svc \
  --service-cluster-ip-range="$SERVICE.0/24" --allow-privileged=true ${APISERVER_ARGS:-}

# restrict_oom_score_adj: where root lacks CAP_SYS_RESOURCE, no container could start at the -998 of a pod's pause.
cat > containerd/config.toml <<K
version = 2
root = "$R/containerd/root"
state = "$R/containerd/state"
[grpc]
  address = "$R/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$R/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "local/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$CNI"
    conf_dir = "$R/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
K
run containerd "${CONTAINERD:-containerd}" --config containerd/config.toml
wait_for ctr version; say containerd

# Images: one of a static busybox for tests, the same as the pause of every pod, and those of IMAGES.
if [ ! -f images/busybox.tar ]; then
  root=$(mktemp -d); mkdir -p "$root"/{bin,etc,tmp}; chmod 1777 "$root/tmp"; cp "${BUSYBOX:-/bin/busybox}" "$root/bin/busybox"
  for c in $("$root/bin/busybox" --list); do [ "$c" = busybox ] || ln -s busybox "$root/bin/$c"; done
  "$here/image.sh" local/busybox:1 "$root" images/busybox.tar '{"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]}'
  "$here/image.sh" local/pause:1 "$root" images/pause.tar '{"Entrypoint": ["/bin/sleep", "2147483647"], "User": "65535"}'; rm -rf "$root"
fi
for i in images/busybox.tar images/pause.tar "$@"; do ctr images import "$i" > /dev/null; done; say images

wait_for k get --raw /readyz; say kube-apiserver
run kcm "$K/kube-controller-manager" --kubeconfig=kcm.kubeconfig --leader-elect=false --secure-port=0 --use-service-account-credentials=true \
  --service-account-private-key-file=pki/sa.key --root-ca-file=pki/ca.crt
run scheduler "$B/kube-scheduler" --kubeconfig=scheduler.kubeconfig --leader-elect=false --secure-port=0
# Nothing is evicted or collected for want of room: the disk is not this cluster's alone. failCgroupV1 lets it start on either hierarchy.
cat > kubelet/config.yaml <<K
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
failSwapOn: false
address: $ADDRESS
port: ${KUBELET_PORT:-10250}
healthzPort: 0
containerRuntimeEndpoint: unix://$R/containerd/containerd.sock
tlsCertFile: $R/pki/kubelet.crt
tlsPrivateKeyFile: $R/pki/kubelet.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $R/pki/ca.crt}}
authorization: {mode: AlwaysAllow}
podLogsDir: $R/kubelet/pod-logs
volumePluginDir: $R/kubelet/plugins-exec
evictionHard: {memory.available: 100Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%, imagefs.inodesFree: 0%}
imageGCHighThresholdPercent: 100
clusterDNS: [$ADDRESS]
resolvConf: ""
maxPods: 100
makeIPTablesUtilChains: false
K
run kubelet "$B/kubelet" --config kubelet/config.yaml --kubeconfig kubelet.kubeconfig --root-dir "$R/kubelet" --node-ip "$ADDRESS" --hostname-override "$NODE"
wait_for k get node "$NODE"; wait_for k wait --for=condition=Ready "node/$NODE" --timeout=60s; say "node"
untainted() { [ -z "$(k get node "$NODE" -o jsonpath='{.spec.taints}')" ]; }; wait_for untainted
wait_for k get serviceaccount default; wait_for k get configmap kube-root-ca.crt; say ready; echo "$R/admin.kubeconfig"
