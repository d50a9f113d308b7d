#!/usr/bin/env bash
# Packs a binary that needs libraries, with these and with its components compiled, into an image as that of a release is: for tests
# of a binary that release/build has not made. XDG_CACHE_HOME has what it has compiled already.
# usage: pack.sh BINARY NAME:TAG ARCHIVE.tar
set -euo pipefail
binary=$1 name=$2 out=$3
if [[ ! -x $binary ]]; then
    echo "there is no program $binary: name the binary that is to be packed" >&2
    exit 1
fi
libraries=$(ldd "$binary" 2>/dev/null | grep -oE '/[^ ]+' || true)
if [[ -z $libraries ]]; then
    echo "$binary needs no libraries, and pack.sh packs one that does: name one that cargo build has made, or pack this one with release/build" >&2
    exit 1
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 0755 "$root"
mkdir -p "$root"/{cache/orangery,etc/ssl/certs,tmp}
chmod 1777 "$root/tmp"
strip -o "$root/orangery" "$binary"
chmod 0755 "$root/orangery"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs"
while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done <<<"$libraries"
"$binary" plugin compile | while read -r _ file; do
    cp "$file" "$file.sha256" "$root/cache/orangery"
done
chmod -R u=rwX,go=rX "$root/cache"
"$(dirname "$0")/image.sh" "$name" "$root" "$out" '{
    "Entrypoint": ["/orangery"], "User": "65532:65532",
    "Env": ["SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", "XDG_CACHE_HOME=/cache"]
}'
