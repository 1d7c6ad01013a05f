#!/usr/bin/env bash
# pinn-bench as a person meets it, on the CPU: rows, shares, what is left out, exit statuses. Usage: bench.sh PINN_BENCH SOURCE_DIR
set -u
bench=$(realpath "$1") source=$(realpath "$2")
checks=0 failures=0
number='[0-9][0-9.e+]*'

# expect STATUS PATTERN COMMAND...: exit status and a pattern (grep -E) in what it printed, standard output and error together
expect() {
    local status=$1 pattern=$2 output got
    shift 2
    output=$("$@" 2>&1 </dev/null)
    got=$?
    checks=$((checks + 1))
    if [ "$got" -ne "$status" ] || ! grep -qE -- "$pattern" <<<"$output"; then
        failures=$((failures + 1))
        printf 'FAILED: %s\n  exit %s, expected %s; expected to match: %s\n%s\n' "$*" "$got" "$status" "$pattern" "$output"
    fi
}

# steps, and the shares of their nodes
heat=(--executors cpu --repeat 1 --steps 20 --set equation.0.points=100 --set network.width=8 "$source/configs/heat.toml")
expect 0 "heat.toml +cpu +float32 +$number +$number +- " "$bench" "${heat[@]}"
nodes=$("$bench" --nodes "${heat[@]}" 2>&1) || { echo "FAILED: --nodes: $nodes"; failures=$((failures + 1)); }
for node in sample 'network pass, tiled' reduce adam; do
    expect 0 "[^ ]+ +cpu +float32 +$number +$number %  $node\$" echo "$nodes"
done
expect 0 "$number %  # the network pass: 1 node, $number % of the product peak\$" echo "$nodes"
expect 0 '%  # of the step beside its nodes$' echo "$nodes"
expect 2 'which configs' "$bench"
expect 2 'graph, eager, cpu' "$bench" --executors gpu "${heat[@]}"
expect 1 'nowhere.toml' "$bench" --executors cpu nowhere.toml

# scaling: a row a size, with a ratio of 1 at the reference, and none for sizes that would take too long
quick=(scaling --executors cpu --repeat 1 --seconds 0.001 --set equation.0.points=200 --set network.width=8) # rows tell the sizes asked for
sizes='[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+'
scaling=$("$bench" "${quick[@]}" --axes order --longest 60 2>&1) || { echo "FAILED: scaling over orders: $scaling"; failures=$((failures + 1)); }
expect 0 "^base +$sizes +cpu +float32 +tiled +$number +$number +- +$number +$number +$number %\$" echo "$scaling"
expect 0 "^order +10000 +64 +4 +2 +2 +4 +cpu +float32 +tiled +$number +$number +1\.000 +$number +$number +$number %\$" echo "$scaling"
expect 0 '^4$' grep -c '^order ' <(echo "$scaling")
expect 0 '^points +10000000 .*skipped: a step would take about .* s, more than --longest 1e-06$' "$bench" "${quick[@]}" --axes points --longest 0.000001
expect 0 '^dimension +10000 +64 +4 +2 +100 +102 .*skipped' "$bench" "${quick[@]}" --axes dimension --longest 0.000001
expect 0 'float64' "$bench" "${quick[@]}" --axes depth --longest 0.000001 --set precision=float64
expect 2 'points, width, depth, order, dimension' "$bench" scaling --axes length
expect 2 '--longest' "$bench" scaling --longest -1
expect 2 'no arguments' "$bench" scaling more
expect 1 'base case: .*precision' "$bench" "${quick[@]}" --set precision=float16

echo "$((checks - failures)) passed, $failures failed"
[ "$failures" -eq 0 ]
