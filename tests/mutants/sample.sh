#!/usr/bin/env bash
# Draws a sample of the mutants that cargo-mutants lists, and builds all that compile behind switches in one build.
#
#   tests/mutants/sample.sh PLAN SEED COUNT [--conditions] FILE…
#
# FILE is a glob as of `cargo mutants --file`. It runs in a clone that has no changes, since it writes into the sources:
# `git checkout host` takes the switches out again. Then
#
#   tests/mutants/target/debug/mutants reach REACHED --suite host/apply --suite host/apply:carry_out
#   tests/mutants/target/debug/mutants play PLAN REACHED TABLE --count 60
#
# finds out which tests reach which switches, and plays each mutant with those that reach it. A plan that is there already is
# added to, so that several samples are of one build. TESTS is what is built, if not all.
set -euo pipefail
cd "$(dirname "$0")/../.."

plan=$1 seed=$2 count=$3
shift 3
conditions=()
[[ $1 != --conditions ]] || { conditions=(--conditions); shift; }
files=()
for file; do files+=(--file "$file"); done
list=$(mktemp) messages=$(mktemp)
trap 'rm -f "$list" "$messages"' EXIT

mutants() { tests/mutants/target/debug/mutants "$@"; }

cargo build --manifest-path tests/mutants/Cargo.toml
cargo mutants --workspace --list --json "${files[@]}" >"$list"
mutants draw "$list" --seed "$seed" --count "$count" --plan "$plan" "${conditions[@]}"
read -ra tests <<<"${TESTS:-}"
while true; do
    mutants switch "$plan"
    if cargo test --workspace --no-run --message-format json "${tests[@]}" >"$messages" 2>"$plan.log"; then break; fi
    mutants refused "$plan" "$messages"
done
