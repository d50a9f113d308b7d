#!/usr/bin/env bash
# Plays Kubernetes' own conformance specs of API machinery against the embedded server and, as the control, against a real
# kube-apiserver: each spec that passes there has to pass here.
#
#   tests/kube/conformance.sh ORANGERY [FOCUS]     ORANGERY is the binary of the host; FOCUS is a pattern of specs
#
# Needs what `build.sh` needs, kubectl and openssl. Builds the specs once (6 minutes on two idle cores), plays them in 10.
# `conformance/allowed.txt` lists the specs that may fail on the embedded server, with the reason.
set -euo pipefail

orangery=$(realpath "${1:?usage: conformance.sh ORANGERY [FOCUS]}")
focus=${2:-.}
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/local/go/bin
servers=$("$here/build.sh")
folder=$servers/conformance
mkdir -p "$folder/play"
cp "$here/conformance/specs_test.go" "$folder/"
cp "$here/conformance/play/main.go" "$folder/play/"
if [[ ! -x $folder/specs || $here/conformance/specs_test.go -nt $folder/specs ]]; then
    (
        cd "$folder"
        rm -f conformance_test.go
        # Of the modules of the servers only Kubernetes is needed.
        { sed '/^require (/,$d' "$servers/module/go.mod" | grep -v -e etcd -e helm; sed -n '/^replace (/,/^)/p' "$servers/module/go.mod"; } >go.mod
        cp "$servers/module/go.sum" .
        export CGO_ENABLED=0 GOFLAGS='-mod=mod -buildvcs=false'
        go mod tidy
        go test -c -trimpath -ldflags '-s -w' -o specs .
    ) >&2
fi
(cd "$folder" && GOFLAGS='-mod=mod -buildvcs=false' go build -o player ./play) >&2

scratch=$(mktemp -d)
pids=()
stop() {
    # All that they keep is in the scratch folder: nothing is lost.
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$scratch"
}
trap stop EXIT

# Waits for a command to succeed, for a minute at most.
await() {
    for _ in $(seq 240); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.25
    done
    echo "$* has not succeeded in a minute" >&2
    exit 1
}

# A port that is probably free.
free() { shuf -i 20000-32000 -n 1; }

# The real server, with the controllers that the specs wait for.
etcd=$(free)
peers=$(free)
port=$(free)
openssl genrsa -out "$scratch/sa.key" 2048 2>/dev/null
openssl rsa -in "$scratch/sa.key" -pubout -out "$scratch/sa.pub" 2>/dev/null
echo 'token,admin,admin,"system:masters"' >"$scratch/tokens.csv"
"$servers/etcd" --data-dir "$scratch/etcd" --unsafe-no-fsync --log-level error \
    --listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls "http://127.0.0.1:$etcd" \
    --listen-peer-urls "http://127.0.0.1:$peers" --initial-advertise-peer-urls "http://127.0.0.1:$peers" \
    --initial-cluster "default=http://127.0.0.1:$peers" >"$scratch/etcd.log" 2>&1 &
pids+=($!)
"$servers/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd" --bind-address=127.0.0.1 --advertise-address=127.0.0.1 \
    --secure-port="$port" --cert-dir="$scratch/cert" --token-auth-file="$scratch/tokens.csv" --authorization-mode=RBAC \
    --service-account-key-file="$scratch/sa.pub" --service-account-signing-key-file="$scratch/sa.key" \
    --service-account-issuer="https://127.0.0.1:$port" --service-cluster-ip-range=10.0.0.0/24 \
    --disable-admission-plugins=ServiceAccount --endpoint-reconciler-type=none >"$scratch/apiserver.log" 2>&1 &
pids+=($!)
await curl -ksf "https://127.0.0.1:$port/readyz"
cat >"$scratch/real" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:$port", certificate-authority-data: $(base64 -w0 "$scratch/cert/apiserver.crt")}}]
users: [{name: u, user: {token: token}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
YAML
"$servers/kube-controller-manager" --kubeconfig="$scratch/real" --leader-elect=false --bind-address=127.0.0.1 --secure-port=0 \
    --controllers=garbage-collector-controller,namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller \
    --root-ca-file="$scratch/cert/apiserver.crt" --service-account-private-key-file="$scratch/sa.key" >"$scratch/controllers.log" 2>&1 &
pids+=($!)

# The embedded one.
"$orangery" up --data "$scratch/data" --port 0 >"$scratch/up.log" 2>&1 &
pids+=($!)
await test -s "$scratch/data/kubeconfig"
cp "$scratch/data/kubeconfig" "$scratch/embedded"

# Some specs look for a node.
for server in real embedded; do
    export KUBECONFIG=$scratch/$server
    await kubectl get namespace default
    echo '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}, "spec": {"unschedulable": false}}' | kubectl apply -f - >/dev/null
    kubectl patch node node --subresource=status --type merge \
        -p '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}' >/dev/null
done
unset KUBECONFIG
"$folder/player" "$folder/specs" "$here/conformance/allowed.txt" "$scratch/real" "$scratch/embedded" "$focus"
