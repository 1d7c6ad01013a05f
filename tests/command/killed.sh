#!/usr/bin/env bash
# kill -9 at random moments of a run: the record reads as a SWMR reader, the checkpoint is whole, --resume goes on.
# Usage: killed.sh PINN_TRAIN CHECK_RUN SOURCE_DIR [KILLS]
set -u
train=$(realpath "$1") check=$(realpath "$2") source=$(realpath "$3") kills=${4:-12}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
options=(--device cpu --quiet --set equation.0.points=60 --set network.width=8 --set output.events=2 --set output.checkpoint=2
         --set train.0.steps=100000000 --set stop.relative_l2=1e-12 --out run "$source/configs/heat.toml")
"$train" "${options[@]}" --set stop.step=2 || exit 1
passed=0 failed=0
for ((i = 0; i < kills; i++)); do
    "$train" "${options[@]}" --resume 2>error &
    pid=$!
    sleep "$(awk -v r=$RANDOM 'BEGIN { printf "%.3f", 0.02 + 0.4 * r / 32767 }')"
    if ! kill -9 $pid 2>/dev/null; then
        echo "FAILED: the run ended by itself: $(cat error)"
        failed=$((failed + 1))
        continue
    fi
    wait $pid 2>/dev/null
    if "$check" run; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
