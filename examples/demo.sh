#!/bin/sh
# What `make demo` shows: the first argument is the momentseek command.
set -eu
cd "$(dirname "$0")/.."
momentseek=$1

show() {
    printf '\n$ momentseek'
    for word in "$@"; do
        case $word in *[][{}\>]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n\n'
    "$momentseek" "$@"
}

echo "1. The worked example of the TVR-Ranking paper (figure 2): gains 2, 4, 2 against an ideal of 4, 2, 2."
show evaluate examples/figure-2/predictions.json --truth examples/figure-2/truth.json -m 'NDCG@3[IoU>=0.3]'
printf '\n2. A graded benchmark of 27 queries over kitchen videos, with intervals.\n'
show evaluate examples/kitchen/careful.jsonl --truth examples/kitchen/truth.jsonl -m 'NDCG@{5,10}[IoU>={0.5,0.7}]' --ci
printf '\n3. Two systems compared: is one really better?\n'
show compare examples/kitchen/careful.jsonl examples/kitchen/hasty.jsonl --truth examples/kitchen/truth.jsonl \
    -m 'NDCG@10[IoU>={0.5,0.7}]' -m AxIoU@5
printf '\n4. What the measures themselves can and cannot see.\n'
show diagnose examples/kitchen/careful.jsonl examples/kitchen/hasty.jsonl --truth examples/kitchen/truth.jsonl \
    --only ties -m 'R@1[IoU>={0.5,0.7}]' -m AxIoU@1
