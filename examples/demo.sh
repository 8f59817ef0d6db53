#!/bin/sh
# What `make demo` shows: the first argument is the momentseek command, the second a folder for the sample library.
set -eu
cd "$(dirname "$0")/.."
momentseek=$1
folder=$2

show() {
    printf '\n$ momentseek'
    for word in "$@"; do
        case $word in *[][{}\>\ ]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n\n'
    "$momentseek" "$@"
}

echo "1. How good is a search? The worked example of the TVR-Ranking paper (figure 2): gains 2, 4, 2 of an ideal 4, 2, 2."
show evaluate examples/figure-2/predictions.json --truth examples/figure-2/truth.json -m 'NDCG@3[IoU>=0.3]'
printf '\n2. Two systems compared on a graded benchmark: is one really better?\n'
show compare examples/kitchen/careful.jsonl examples/kitchen/hasty.jsonl --truth examples/kitchen/truth.jsonl \
    -m 'NDCG@10[IoU>={0.5,0.7}]' -m AxIoU@5
printf '\n3. A search: short films, made here from photographs, added to a library and asked about; one speaks, one has a slide.\n'
show demo --into "$folder"
printf '\n4. Why a moment was found: its rank in each stream, and the curve over the film with the span marked.\n'
show search --library "$folder/library" 'a rocket "lift-off"' --explain
