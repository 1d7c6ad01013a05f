#!/usr/bin/env bash
# bench.sh PROGRAM: `pinn-bench graph` on the CPU ends well and prints every row that the CPU has, each with a positive time.
set -euo pipefail
text=$("$1" graph --executors cpu --repeat 1 --seconds 0.005)
echo "$text"
for row in "replay of 11 kernels" "replay of 88 kernels" "while, 44 kernels a trip" "11 kernels, copy and host node" "build of 11 nodes" "build of 88 nodes" \
    "slope from 1 to 1000 nodes"; do
    grep -F -- "$row" <<<"$text" | grep -qE '[1-9]' || { echo "no row \"$row\""; exit 1; }
done
