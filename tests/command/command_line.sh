#!/usr/bin/env bash
# pinn-train as a person meets it: exit statuses, messages, files. Usage: command_line.sh PINN_TRAIN SOURCE_DIR
set -u
train=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
checks=0 failures=0

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

heat=$source/configs/heat.toml
quick=(--device cpu --set train.0.steps=60 --set equation.0.points=60 --set output.events=20 --set network.width=8)

expect 0 'Usage: ' "$train" --help
expect 0 'Usage: ' "$train" -h
for option in --help -h --usage --version "--plan --device cpu $heat"; do
    expect 1 '^pinn-train: cannot write to standard output: No space' sh -c "'$train' $option >/dev/full"
    expect 0 '^1$' sh -c "'$train' --quiet $option 2>&1 >/dev/full | wc -l" # told once
done
expect 2 '^1$' sh -c "'$train' --quiet --device cpu --set train.0.steps=0 '$heat' 2>&1 >/dev/full | wc -l; exit 2" # a failure of its own
expect 0 '^pinn-train [0-9]' "$train" --version
expect 2 'which problem' "$train"
expect 2 'unrecognized option' "$train" --epochs 3 "$heat"
expect 2 'one config at a time' "$train" "$heat" "$heat"
expect 2 'nowhere.toml.*No such file' "$train" nowhere.toml
expect 2 'is a directory' "$train" "$source/configs"
expect 2 'whole number' "$train" --seed -1 "$heat"
expect 2 '2\^63 - 1' "$train" --seed 9223372036854775808 "$heat"
cp "$heat" ...toml
expect 2 'choose one by --out' "$train" --device cpu ...toml
expect 2 'none of auto, cpu, cuda' "$train" --device tpu "$heat"
expect 2 'number of a GPU' "$train" --device cuda:x "$heat"
expect 2 'usable CUDA device' "$train" --device cuda:77 "$heat"
expect 2 'tf32.*needs a GPU' "$train" --device cpu --set precision=tf32 "$heat"
expect 2 'unknown key|no such key|trian' "$train" --device cpu --set trian.0.steps=3 "$heat"
expect 2 'one of them' "$train" --device cpu --force --resume "$heat"
expect 2 'PINN_GRAPH' env PINN_GRAPH=fast "$train" "$heat"
expect 2 'PINN_PASS' env PINN_PASS=fast "$train" "$heat"
expect 2 'PINN_PASS is "streamed".*GPU' env PINN_PASS=streamed "$train" --device cpu "$heat"
for threads in 100000 99999999999999999999 abc 0 -1 2, 2,x 2x ' '; do
    expect 2 "^OMP_NUM_THREADS is \"$threads\"; it may be a number of threads from 1 to 16384\$" env "OMP_NUM_THREADS=$threads" "$train" --plan --device cpu "$heat"
done
expect 1 '' sh -c '"$@" 2>&1 >/dev/null | grep -c libgomp | grep -v "^[01]$"' sh env OMP_NUM_THREADS=abc "$train" --device cpu "$heat" # not twice
expect 2 '^\{"status": "failed", "error": "OMP_NUM_THREADS is ' env OMP_NUM_THREADS=20000 "$train" --device cpu --json "$heat"
expect 2 'OMP_WAIT_POLICY is "fast"; it may be "active" or "passive"' env OMP_WAIT_POLICY=fast "$train" --device cpu "$heat"
for threads in '' 2,1 ' 2 , 1 '; do
    expect 0 'recorded step' env "OMP_NUM_THREADS=$threads" "$train" --plan --device cpu "$heat"
done

# tiles are a GPU's: checked everywhere, used there
expect 2 'PINN_TILES: "fast" is no choice of tiles' env PINN_TILES=fast "$train" --device cpu "$heat"
expect 2 '--set tiles=fast: "fast" is no choice of tiles' "$train" --device cpu --set tiles=fast "$heat"
expect 2 'PINN_TILES: "rows 64, warps 16" is no choice of tiles: "blocks" is missing; write "auto", ' env PINN_TILES='rows 64, warps 16' "$train" --device cpu "$heat"
expect 2 '"rows64" is no choice of tiles: "rows" is missing' "$train" --device cpu --set tiles=rows64 "$heat"
expect 0 '"layered" is for a GPU and not used on this CPU' "$train" --plan "${quick[@]}" --set tiles=layered "$heat"
cp "$heat" tune.toml
expect 2 'tuning measures the tiles of a GPU' "$train" --tune --device cpu tune.toml
expect 2 'rows 128' "$train" --device cpu --set tiles=rows "$heat"
expect 2 '--tune trains nothing' "$train" --tune --plan --device cpu tune.toml
expect 2 '--tune trains nothing' "$train" --tune --out there --device cpu tune.toml
chmod 444 tune.toml
expect 2 'tune.toml: is read-only' "$train" --tune --device cpu tune.toml
expect 0 '' cmp tune.toml "$heat"

# kernels are compiled without a GPU, by a build with CUDA
export PINN_CACHE=$work/cache
expect 2 '--compile-for trains and writes nothing' "$train" --compile-for sm_90 --plan "$heat"
if ! "$train" --compile-for sm_90 "${quick[@]}" "$heat" 2>&1 | grep -q 'has no CUDA'; then
    expect 0 'the kernels for sm_90 \(tiled pass, tiles "units [0-9, a-z]*"\) compile: all [1-9][0-9]* came from the cache$' "$train" --compile-for sm_90 "${quick[@]}" "$heat"
    expect 0 'the kernels for sm_89 \(tiled pass, tiles "units [0-9, a-z]*"\) compile: all [1-9][0-9]* were compiled now$' "$train" --compile-for sm_89 "${quick[@]}" "$heat"
    expect 0 'the kernels for sm_89 \(tiled pass, tiles "units [0-9, a-z]*"\) compile: [1-9][0-9]* of [1-9][0-9]* (was|were) compiled now, [1-9][0-9]* came from the cache$' "$train" --compile-for sm_89 "${quick[@]}" \
        --set equation.0.residual='u_t - 2*u_xx' "$heat"
    expect 0 '^the kernels for sm_90 \(streamed pass, tiles "rows 64, warps [0-9]*, blocks [12]"\) compile: ' "$train" --compile-for sm_90 "${quick[@]}" --set 'tiles=rows 64' "$heat"
    expect 0 'runs layer by layer: no tiled pass: the network has one hidden layer; no streamed pass: ' "$train" --compile-for sm_90 "${quick[@]}" --set network.depth=1 "$heat"
    expect 0 '^the kernels for sm_90 \(layered pass\) compile: ' "$train" --compile-for sm_90 "${quick[@]}" --set network.depth=1 "$heat"
    expect 2 '"nonsense" is no GPU architecture.* sm_80, .*sm_90, ' "$train" --compile-for nonsense "$heat"
    expect 2 '--set tiles: tiles of units 24.* not 96' "$train" --compile-for sm_90 --set 'tiles=units 24, splits 4, keep shared, weights all' "$heat"
    expect 2 '--set tiles: tiles of rows 999 .* 16 to 256 rows; write tiles = "auto"' "$train" --compile-for sm_90 --set 'tiles=rows 999' "$heat"
    expect 2 '^PINN_PASS is "tiled": no tiled pass: .*: unset it, or make it "auto"' env PINN_PASS=tiled "$train" --compile-for sm_90 --set network.width=256 "$heat"
    expect 2 '^PINN_PASS is "streamed": no streamed pass: it multiplies in float32: unset it' env PINN_PASS=streamed "$train" --compile-for sm_90 --set precision=float64 "$heat"
    expect 2 '--set tiles: "rows 128".*PINN_PASS asks for the tiled' env PINN_PASS=tiled "$train" --compile-for sm_90 --set 'tiles=rows 128' "$heat"
    expect 0 'kernels cannot be kept: /dev/null/.*PINN_CACHE' env PINN_CACHE=/dev/null "$train" --compile-for sm_90 "${quick[@]}" "$heat"
    expect 1 '' sh -c '"$@" 2>&1 | grep "finds .* in the cache"' sh env PINN_CACHE=/dev/null "$train" --compile-for sm_90 "$source/configs/burgers.toml" # after 2 s
fi

# a plan trains nothing and writes nothing
expect 0 'recorded step' "$train" --plan "${quick[@]}" "$heat"
expect 0 '^    inside the domain$' "$train" --plan "${quick[@]}" "$heat"
expect 0 '^    on x=min \(100 points\), x=max \(100 points\)$' "$train" --plan "${quick[@]}" "$heat"
expect 0 '^    on t=min$' "$train" --plan "${quick[@]}" "$heat"
expect 0 'channels of the field: u, u_x, u_t, u_tt - 4\*u_xx$' "$train" --plan --device cpu --set constants.c=2 "$source/configs/wave.toml"
expect 0 'channels of the field: u, u_x, u_y, lap\(u\)$' "$train" --plan --device cpu "$source/configs/poisson2d.toml"
expect 0 '^    on x=0\.25 \(1 point\), t=max \(2 points\)$' "$train" --plan "${quick[@]}" --set 'condition.0.on=["x=1/4", "t=max"]' --set condition.0.points=3 --set 'domain.x=[0, 2]' "$heat"
expect 0 'network   [0-9]+ parameters: 3 hidden layers and the last one$' "$train" --plan "${quick[@]}" "$heat"
expect 1 '' sh -c '"$@" 2>&1 | grep "phases"' sh "$train" --plan "${quick[@]}" "$heat" # there is but one
expect 1 '' sh -c '"$@" 2>&1 | grep "pinn-train: graph"' sh "$train" --plan "${quick[@]}" --set 'train=[{steps=1}, {steps=1, points={heat=4000}}]' "$heat"
huge=(--device cpu --set precision=float64 --set equation.0.points=100000 --set network.width=46000 --set network.depth=2) # over a terabyte
expect 0 'in all +[0-9]{13,} bytes \([0-9.]+ TiB\) of the [0-9]+ bytes \([0-9.]+ .iB\) there are' "$train" --plan "${huge[@]}" "$heat"
expect 0 'does not fit +the most is the partial gradients and losses, by network.width and network.depth' "$train" --plan "${huge[@]}" "$heat"
expect 2 'heat.toml: the network has [0-9]+ parameters, at most 2\^31 - 1 can be trained: network.width' "$train" --plan "${huge[@]}" --set network.width=65536 "$heat"
[ -e runs ] && { echo "FAILED: --plan wrote runs/"; failures=$((failures + 1)); }

# time is what the file names so; a coordinate called as it is otherwise worth a note, once
sed '/^time = /d' "$heat" >timeless.toml
expect 0 '^pinn-train: timeless.toml: "t" is treated as space: on = "boundary", lap and dn include it. If it is time, write time = "t" above \[domain\]$' "$train" --plan "${quick[@]}" timeless.toml
expect 1 '' sh -c '"$@" 2>&1 | grep "treated as space"' sh "$train" --plan "${quick[@]}" "$heat"
expect 1 '' sh -c '"$@" 2>&1 | grep "treated as space"' sh "$train" --plan --quiet "${quick[@]}" timeless.toml

# a run, its files, and that it is not overwritten
expect 0 '"status": "finished".*"stop_reason": "steps".*"tiles": null, "start": \{"seconds": [0-9.e-]+, .*"compiled": 0\}.*"builds": 1,' "$train" "${quick[@]}" --json "$heat"
for file in events.h5 checkpoint.h5 solution.h5 config.toml; do
    expect 0 '' test -s "runs/heat/$file"
done
expect 2 '--resume.*--force' "$train" "${quick[@]}" "$heat"
expect 0 'finished' "$train" "${quick[@]}" --json --quiet --force "$heat"
expect 2 'these keys|These keys' "$train" "${quick[@]}" --set constants.alpha=0.5 --resume "$heat"
expect 2 '^Give the same --set and --seed again, or resume from runs/heat/config.toml$' "$train" "${quick[@]}" --set constants.alpha=0.5 --resume "$heat"
expect 1 '' sh -c '"$@" 2>&1 | grep "^$"' sh "$train" "${quick[@]}" --set constants.alpha=0.5 --resume "$heat" # no empty line
expect 0 'stands at step 60; for more steps: --set train.0.steps=N, N above 60' "$train" "${quick[@]}" --resume "$heat"
cp -r runs/heat idle
expect 0 'stands at step 60, where stop.seconds ends it; --set stop.seconds=' "$train" "${quick[@]}" --set train.0.steps=61 --set stop.seconds=1e-9 --resume "$heat"
expect 0 '"losses": \{"heat": [0-9.e-]+, ' "$train" "${quick[@]}" --resume --json --quiet "$heat"
for file in events.h5 checkpoint.h5 solution.h5 config.toml; do
    expect 0 '' cmp "idle/$file" "runs/heat/$file"
done
rm runs/heat/solution.h5 # the run was killed before it
expect 0 'nothing left to do' "$train" "${quick[@]}" --resume "$heat"
expect 0 '' test -s runs/heat/solution.h5
expect 0 '' cmp idle/checkpoint.h5 runs/heat/checkpoint.h5
expect 0 '"steps": 90' "$train" "${quick[@]}" --set train.0.steps=90 --json --quiet --resume "$heat"
expect 0 '"steps": 95' "$train" "${quick[@]}" --set train.0.steps=95 --json --quiet --resume runs/heat/config.toml
# its config.toml tells what it is now, so that it goes on from there without more options
expect 0 '^steps = 95$' grep '^steps' runs/heat/config.toml
expect 0 '"steps": 95' "$train" --device cpu --json --quiet --resume runs/heat/config.toml
expect 2 'nothing to resume.*without --resume' "$train" "${quick[@]}" --resume --out never-run "$heat"
cp -r runs/heat beheaded && rm beheaded/checkpoint.h5
expect 2 'nothing to resume.*--force' "$train" "${quick[@]}" --resume --out beheaded "$heat"
# tiles that this CPU does not use stay with the run, and others may be given
expect 0 '"tiles": null' "$train" "${quick[@]}" --set 'tiles=units 5, splits 2, keep shared, weights all' --json --quiet --out tiled "$heat"
expect 0 'finished' "$train" "${quick[@]}" --set train.0.steps=90 --json --quiet --resume --out tiled "$heat"
expect 0 '' grep -q '^tiles = "units 5, splits 2, keep shared, weights all"' tiled/config.toml
expect 0 'finished' env PINN_TILES='rows 128' "$train" "${quick[@]}" --set train.0.steps=100 --json --quiet --resume --out tiled "$heat"
expect 0 '' grep -q '^tiles = "rows 128"' tiled/config.toml
expect 0 'finished' "$train" "${quick[@]}" --set train.0.steps=110 --set tiles=auto --json --quiet --resume --out tiled "$heat"
expect 0 '' grep -q '^tiles = "auto"' tiled/config.toml
# the resolved config is a config, and trains to the same loss
expect 0 'finished' "$train" --device cpu --quiet --json --out again runs/heat/config.toml

# the same bits, whenever and on however many threads
for threads in 2 1; do
    expect 0 'finished' env OMP_NUM_THREADS=$threads "$train" "${quick[@]}" --json --quiet --out threads$threads "$heat"
    [ $threads = 2 ] && sleep 1 # a time of writing would be another second's
done
expect 0 '' cmp threads2/solution.h5 threads1/solution.h5
expect 0 '' cmp threads2/config.toml threads1/config.toml

# standard output holds the JSON and nothing else; quiet is quiet
"$train" "${quick[@]}" --json --quiet --force "$heat" >json 2>noise
expect 0 '^1$' sh -c 'wc -l <json'
expect 1 '' test -s noise

# stop rules; a loss that is not finite: exit 1, the last good step's checkpoint, the place in the message
expect 0 '"stop_reason": "plateau".*"best_step": [1-9]' "$train" "${quick[@]}" --set train.0.steps=5000 --set 'stop.plateau={patience=5, min_delta=0.9}' --json --quiet --out plateau "$heat"
expect 2 'PINN_NATIVE is "bad"; it may be "0" or "1"' env PINN_NATIVE=bad "$train" "${quick[@]}" --out unknown "$heat"
expect 2 'PINN_PRODUCTS is "foo"' env PINN_PRODUCTS=foo "$train" "${quick[@]}" --out unknown "$heat"
expect 2 'patience' "$train" "${quick[@]}" --set 'stop.plateau={min_delta=0.1}' --out plateau "$heat"
expect 1 'loss of term "heat" is NaN at step 1: residual is NaN at x = 0\.[0-9]+, t = 0\.' "$train" "${quick[@]}" --set 'equation.0.residual=u_t + log(-1 - x)' --out blown "$heat"
expect 0 '' test -s blown/checkpoint.h5
expect 1 '' sh -c '"$@" 2>&1 | grep "^step "' sh "$train" "${quick[@]}" --set 'equation.0.residual=u_t + log(-1 - x)' --force --out blown "$heat" # the message tells all
expect 0 '^1$' sh -c '"$@" 2>&1 | grep -c "^step 60/60 "' sh "$train" "${quick[@]}" --out once "$heat"

# a run that ends before its first event row has measured no term
expect 0 '"steps": 1,.*"losses": \{"heat": null, ' "$train" "${quick[@]}" --set stop.seconds=1e-9 --json --quiet --out brief "$heat"

# a config.toml beside the checkpoint: no run's stays, and an edited one of the run's is kept
cp -r runs/heat noted && echo 'my notes' >noted/config.toml
expect 2 'noted/config.toml: no run wrote this file, so --resume leaves it alone' "$train" "${quick[@]}" --set train.0.steps=110 --resume --out noted "$heat"
expect 0 '^my notes$' cat noted/config.toml
cp runs/heat/config.toml noted/config.toml && echo '# mine' >>noted/config.toml
expect 0 'edited.* kept as noted/config.toml.edited' "$train" "${quick[@]}" --set train.0.steps=110 --resume --out noted "$heat"
expect 0 '^# mine$' tail -n 1 noted/config.toml.edited
expect 0 '"steps": 120' "$train" "${quick[@]}" --set train.0.steps=120 --json --quiet --resume --out noted "$heat" # as the run wrote it
expect 1 '' test -e noted/config.toml.edited.2

# no room (a limit of file sizes, in KiB, stands for a full disk; not 0: LLVM's OpenMP keeps a small file in shared memory): exit 1; the
# message begins with the file and ends with the repair
limited() { (ulimit -f "$1"; shift; exec "$@"); }
expect 1 '^cramped/[a-z.0-9]*: cannot write: .*\. Make room, then give the same command again$' limited 1 "$train" "${quick[@]}" --quiet --out cramped "$heat"
expect 1 '' test -e cramped
expect 1 '^cramped/events.h5: cannot write.*\. No checkpoint had been written yet: make room, then begin again with --force$' limited 16 "$train" "${quick[@]}" --set output.events=1 --quiet --out cramped "$heat"
expect 1 '^noted/[a-z.0-9]*: cannot write: .*[Mm]ake room, then' limited 1 "$train" "${quick[@]}" --set train.0.steps=130 --quiet --resume --out noted "$heat"
expect 1 '^noted/[a-z]*.h5: cannot write.*Safe on disk: the checkpoint of step 120.*; make room, then --resume goes on' limited 60 "$train" "${quick[@]}" --set train.0.steps=1000 --set output.events=1 --quiet --resume --out noted "$heat"
expect 0 '"steps": 1000' "$train" "${quick[@]}" --set train.0.steps=1000 --json --quiet --resume --out noted "$heat"

# a signal ends it with a checkpoint and 130; a second run may go on from there
"$train" --device cpu --set equation.0.points=200 --set output.events=10 --out signalled "$heat" 2>interrupted &
pid=$!
for _ in $(seq 100); do [ -e signalled/events.h5 ] && break; sleep 0.1; done
sleep 0.5
expect 2 'in use|another' "$train" --device cpu --quiet --out signalled --force "$heat"
kill -TERM $pid
wait $pid
expect 130 '' sh -c "exit $?"
expect 0 '' test -s signalled/checkpoint.h5
expect 0 '' grep -q 'goes on from it: with the same --set and --seed, or from signalled/config.toml$' interrupted
expect 0 '^pinn-train: stopping after the present steps; a second signal, more than a second from now, ends at once$' cat interrupted
expect 0 '^1$' sh -c 'grep "^step " interrupted | tail -n 1 | grep -cFxf - interrupted' # its last line of progress stands once
expect 0 'finished' "$train" --device cpu --quiet --json --set equation.0.points=200 --set output.events=10 --set stop.seconds=0.01 --resume --out signalled "$heat"

# a stop asked for while the program still starts, and one asked for twice at once, leave a checkpoint too
caught() { # waits until it is the program of process $1 that catches SIGTERM (signal 15), no longer this shell
    local mask
    for _ in $(seq 1000); do
        mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
        [ "$(cat "/proc/$1/comm")" != "$(cat /proc/$$/comm)" ] && [ $((0x$mask >> 14 & 1)) -eq 1 ] && break
        sleep 0.01
    done 2>/dev/null
}
for quiet in '' --quiet; do
    "$train" --device cpu $quiet --set equation.0.points=200 --force --out early "$heat" 2>answer &
    pid=$!
    caught $pid
    kill -TERM $pid; kill -TERM $pid
    wait $pid
    expect 130 '' sh -c "exit $?"
    expect 0 '' test -s early/checkpoint.h5
    [ "$quiet" ] || expect 0 '^1$' grep -c '^pinn-train: stopping after the present steps; ' answer
done
expect 1 '' test -s answer

# a long step: the stop is acknowledged before it ends, and a later signal ends it at once. SIGINT is ignored in a script's background
OMP_NUM_THREADS=1 "$train" --device cpu --set equation.0.points=20000000 --out long "$heat" 2>answer & # a step takes many seconds
pid=$!
for _ in $(seq 300); do [ -e long/events.h5 ] && break; sleep 0.1; done
sleep 0.2
kill -INT $pid
sleep 0.2
expect 1 '' grep stopping answer
kill -TERM $pid
for _ in $(seq 20); do grep -q stopping answer && break; sleep 0.05; done
expect 0 '' kill -0 $pid
expect 0 'stopping after the present steps' cat answer
sleep 1.1
kill -TERM $pid
wait $pid 2>/dev/null
expect 143 '' sh -c "exit $?"

# closed standard streams: the record is not written into, the missing JSON is an error
"$train" "${quick[@]}" --json --force --out closed "$heat" >&- 2>&- <&-
expect 1 '' sh -c "exit $?"
expect 0 "" grep -q OHDR closed/events.h5
expect 1 'standard output' sh -c "'$train' ${quick[*]} --quiet --json --force --out full '$heat' >/dev/full"
expect 0 '' "$train" "${quick[@]}" --quiet --force --out closed "$heat" >&- # it had nothing to print

# every wrong config of the corpus: exit 2, and its message
cd "$source/tests/problem" || exit 1
for config in bad/*.toml; do
    [ -f "$config" ] || continue
    expect 2 '' "$train" --device cpu --out "$work/bad" "$config"
done

echo "$((checks - failures)) passed, $failures failed"
[ "$failures" -eq 0 ]
