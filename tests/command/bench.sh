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
    expect 0 "^  $source/configs/heat.toml +cpu +float32 +$number +$number %  $node\$" echo "$nodes" # the whole path
done
expect 0 "^# .*heat.toml .*$number %  the network pass: 1 node, $number % of the product peak\$" echo "$nodes"
expect 0 '^# .*heat.toml .*%  of the step beside its nodes$' echo "$nodes"
expect 1 '' grep -E '[^ ] *#' <(echo "$nodes") # it stands at the beginning of a line only
for column in config on 'us a step' median enqueue products pointwise bytes 'of peak' pass device; do
    expect 0 "^# .*$column" "$bench" "${heat[@]}"
done
expect 2 'which configs' "$bench"
expect 2 'graph, eager, cpu' "$bench" --executors gpu "${heat[@]}"
only() { [ "$("$@" 2>&1 </dev/null)" = "$expected" ]; }
expected='nowhere.toml: No such file or directory' expect 0 '' only "$bench" --executors cpu nowhere.toml
expect 2 '^nowhere.toml: ' "$bench" --executors cpu,cpu nowhere.toml
# an executor named twice is timed once
expect 0 '^1$' sh -c "'$bench' ${heat[*]} --executors cpu,cpu | grep -c ' cpu '"
expect 0 '^1$' sh -c "'$bench' graph --executors cpu,cpu -r 1 --seconds 0.001 | grep -c '^replay of 11 kernels  '"
expect 0 '^1$' sh -c "'$bench' scaling -e cpu,cpu,cpu -r 1 --seconds 0.001 --axes order --longest 0.000001 | grep -c '^base '"
expect 2 '^foo: No such file or directory$' "$bench" foo
expect 2 'scaling, graph and products' "$bench" foo
# a file that fails does not keep the others from their rows, which have their head then
expect 2 "heat.toml +cpu +float32 +$number" "$bench" nowhere.toml "${heat[@]}"
expect 0 '^# config' sh -c "'$bench' nowhere.toml ${heat[*]} 2>/dev/null | head -n 1"
# the command word comes first, and may be an option's value
for command in scaling graph products; do
    expect 2 "the command word comes first: pinn-bench $command " "$bench" -e cpu -a points $command
    expect 2 "the command word comes first: pinn-bench $command " "$bench" --executors=cpu $command
    expect 2 "'more': no arguments are expected" "$bench" $command more
    expect 0 "^  pinn-bench $command  " "$bench" --help
done
[ -e /dev/nvidiactl ] || expect 2 'no usable GPU' "$bench" -e graph "${heat[@]:2}"
expect 2 '^pinn-bench: OMP_NUM_THREADS is "abc"; it may be' env OMP_NUM_THREADS=abc "$bench" "${heat[@]}"
for of in "" scaling graph products; do
    expect 0 'Usage: pinn-bench' "$bench" $of -h
    expect 1 '^pinn-bench: cannot write to standard output: ' sh -c "'$bench' $of --help >/dev/full"
done
for of in "" scaling graph; do
    expect 0 'Any of graph, eager, cpu, timed in the order' "$bench" $of --help
done
expect 2 'width.*from 1' "$bench" "${heat[@]}" --set network.width=0
expect 2 '^[^ ]*heat.toml, cpu: precision = "tf32" needs a GPU' "$bench" "${heat[@]}" --set precision=tf32
expect 2 '^[^ ]*heat.toml, cpu: --set network.width=0: ' "$bench" "${heat[@]}" --set network.width=0
expect 0 '^0$' sh -c "'$bench' ${heat[*]} --set precision=tf32 2>/dev/null | wc -c"
# what is written goes to TMPDIR, and nothing stays there, not even after an interrupt
temporary=$(mktemp -d) || exit 1
trap 'rm -rf "$temporary"' EXIT
export TMPDIR=$temporary
# equal steps are compared, whatever else would end the run or let it go on
expect 0 ' 20 steps: .*ratio [0-9]' "$bench" --events "${heat[@]}"
for rule in step=5 loss=1e9 gradient_norm=1e9 relative_l2=1e9 seconds=1e-9 'plateau={patience=1, min_delta=0.9}'; do
    expect 0 ' 2000 steps: .*ratio [0-9]' "$bench" --events "${heat[@]}" --steps 2000 --set "stop.$rule"
done
{ cat "$source/configs/heat.toml"; printf '[[train]]\nsteps = 1000000000\npoints = { heat = 3 }\n'; } >"$temporary/phases.toml"
expect 0 ' 20 steps: .*ratio [0-9]' timeout 60 "$bench" --events "${heat[@]::${#heat[@]}-1}" "$temporary/phases.toml"
rm "$temporary/phases.toml"
expect 1 'cannot make a directory' env TMPDIR=/dev/null "$bench" --events "${heat[@]}"
for signal in TERM INT HUP QUIT; do # a shell's background commands ignore some
    env --default-signal "$bench" --events "${heat[@]}" --steps 5000 --set output.events=1 >/dev/null 2>&1 &
    pid=$!
    while kill -0 $pid && ! [ -e "$temporary"/pinn-bench-*/events.h5 ]; do sleep 0.05; done 2>/dev/null
    kill -$signal $pid
    wait $pid
    expect 130 '' sh -c "exit $?"
    expect 0 '^0$' sh -c 'ls -A "$TMPDIR" | wc -l'
done

# numbers and lists of every bench, looked at before anything is measured
for of in "" scaling graph products; do
    for repeats in 0 -1 102 4294967297 99999999999999999999 1x ""; do
        expect 2 '--repeat .*: a whole number from 1 to 101 is needed' "$bench" $of -r "$repeats" "$source/configs/heat.toml"
    done
    [ "$of" = products ] && continue
    for executors in "" cpu, ,cpu gpu cpu,cpu2; do
        expect 2 '--executors .*: a list of graph, eager, cpu is needed' "$bench" $of -e "$executors"
    done
    [ -e /dev/nvidiactl ] || expect 2 'no usable GPU' "$bench" $of -e cpu,graph
done
[ -e /dev/nvidiactl ] || expect 2 'no usable GPU' "$bench" products
expect 2 '--steps 4294967296: .* to 4294967295' "$bench" -n 4294967296 "$source/configs/heat.toml"
expect 2 '--steps 0' "$bench" -n 0 "$source/configs/heat.toml"
expect 2 '--rows 18446744073709552128' "$bench" products --rows 18446744073709552128
expect 2 '--rows 100: a multiple of 512' "$bench" products --rows 100
for seconds in 0 -1 nan 61 1s ""; do
    expect 2 '--seconds' "$bench" graph --seconds "$seconds"
    expect 2 '--seconds' "$bench" scaling --seconds "$seconds"
done
expect 1 'standard output' sh -c "'$bench' graph -e cpu -r 1 --seconds 0.001 >/dev/full"
expect 1 'standard output' sh -c "'$bench' ${heat[*]} >/dev/full"

# scaling: a row a size, with a ratio of 1 at the reference, and none for sizes that would take too long
quick=(scaling --executors cpu --repeat 1 --seconds 0.001)
sizes='[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+'
scaling=$("$bench" "${quick[@]}" --axes order --longest 60 2>&1) || { echo "FAILED: scaling over orders: $scaling"; failures=$((failures + 1)); }
expect 0 "^base +$sizes +cpu +float32 +tiled +$number +$number +- +$number +$number +$number %\$" echo "$scaling"
expect 0 "^order +10000 +64 +4 +2 +2 +4 +cpu +float32 +tiled +$number +$number +1\.000 +$number +$number +$number %\$" echo "$scaling"
expect 0 '^4$' grep -c '^order ' <(echo "$scaling")
scaling=$("$bench" "${quick[@]}" --axes points,dimension,depth --longest 0.000001 --set precision=float64 --set network.activation=sin \
    --set equation.0.resample=always --set network.fourier.features=8 --set train.0.steps=5 --set seed=1 2>&1) ||
    { echo "FAILED: scaling with other values: $scaling"; failures=$((failures + 1)); }
expect 0 '^base +10000 +64 +4 +2 +2 .* float64 ' echo "$scaling"
expect 0 '^points +10000000 .*skipped: a step would take about .* s, more than --longest 1e-06$' echo "$scaling"
expect 0 '^dimension +10000 +64 +4 +2 +100 +102 .*skipped' echo "$scaling"
expect 2 'points, width, depth, order, dimension' "$bench" scaling --axes length
expect 2 '--longest' "$bench" scaling --longest -1
expect 2 'base case: .*precision' "$bench" "${quick[@]}" --set precision=float16
expect 2 'base case: .*nonsense' "$bench" "${quick[@]}" --set nonsense=3
# rows are of the cases they tell: no --set changes these
for set in network.width=7 'network.depth = 2' 'network={width=7}' equation.0.points=5 equation.00.points=5 condition.0.points=5 \
    train.0.points.inside=5 'train=[{steps=1}]' 'equation.0={points=5}' equation.0.residual=u 'condition=[]' domain.y=[0,1] 'fields={v={}}' time=t; do
    expect 2 "scaling: --set [^:]*: scaling chooses ${set%%[.= ]*}[.a-z0-9]* itself: .* file: pinn-bench --set" "$bench" "${quick[@]}" --set "$set"
done
expect 2 'chooses network.width itself: --axes width' "$bench" scaling --set network.width=7 -a width,depth
expect 2 '^cpu, base case: precision = "tf32"' "$bench" "${quick[@]}" --set precision=tf32
expect 0 '^0$' sh -c "'$bench' ${quick[*]} --set precision=tf32 2>/dev/null | wc -c"
timeout -s INT 1 "$bench" scaling --executors cpu >/dev/null 2>&1
expect 0 '^0$' sh -c 'ls -A "$TMPDIR" | wc -l'
expect 1 'standard output' sh -c "'$bench' ${quick[*]} --axes depth --longest 0.000001 >/dev/full"

echo "$((checks - failures)) passed, $failures failed"
[ "$failures" -eq 0 ]
