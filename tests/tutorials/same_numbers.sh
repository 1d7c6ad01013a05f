#!/usr/bin/env bash
# same_numbers.sh PROGRAM DEVICE: the program runs on the device and prints there what it prints on the CPU, but for the "# " lines.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
"$1" --device "$2" >"$folder/there" || status=$?
cat "$folder/there"
[ "$status" -eq 0 ] || exit "$status"
"$1" --device cpu >"$folder/cpu"
# Numbers at all: a program that printed nothing would equal itself.
[ "$(grep -c '^[^#]*[0-9]' "$folder/cpu")" -ge 4 ]
diff <(grep -v '^#' "$folder/cpu") <(grep -v '^#' "$folder/there")
