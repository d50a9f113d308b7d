#!/usr/bin/env bash
# Compiles the targets of the fuzzer as far as it can be told without a nightly compiler whether they are well.
set -euo pipefail
cd "$(dirname "$0")"
exec cargo check --locked --bins "$@"
