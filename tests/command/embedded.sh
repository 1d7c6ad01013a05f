#!/usr/bin/env bash
# The first program of docs/graph.md, built as another project's with the graph layer taken in by add_subdirectory: what the page says works.
# embedded.sh SOURCE_FOLDER C_COMPILER CXX_COMPILER
set -euo pipefail
source=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

block() { awk -v mark='```'"$1" '$0 == mark { on = 1; next } /^```/ { if (on) exit } on' "$source/docs/graph.md"; }
block c > "$folder/halve.c"
block cmake > "$folder/CMakeLists.txt"
ln -s "$source" "$folder/pinn"
CC=$2 CXX=$3 cmake -S "$folder" -B "$folder/build" -DPINN_CUDA=OFF -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" > "$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
cmake --build "$folder/build" > "$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
[ "$("$folder/build/halve")" = "x[0] = 1" ] || { echo "the program of docs/graph.md printed something else"; exit 1; }
[ ! -e "$folder/build/bin" ] && [ ! -e "$folder/build/pinn/pinn-train" ] || { echo "more was built than the graph layer"; exit 1; }
