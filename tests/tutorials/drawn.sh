#!/usr/bin/env bash
# drawn.sh PROGRAM: `frames --dot` prints one digraph with both branches and every node of the round; Graphviz takes it where it is installed.
set -euo pipefail
text=$("$1" --device cpu --dot)
for part in 'digraph "frames"' 'frame goes home' 'next steps' 'keep frame' 'step'; do
    grep -qF -- "$part" <<<"$text" || { echo "no $part in:"; echo "$text"; exit 1; }
done
[ "$(grep -o '{' <<<"$text" | wc -l)" -eq "$(grep -o '}' <<<"$text" | wc -l)" ]
if command -v dot >/dev/null; then dot -Tsvg <<<"$text" >/dev/null; fi
