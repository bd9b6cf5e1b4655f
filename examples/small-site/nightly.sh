#!/bin/sh
# A round of the crawl, and the faults that are new, on stdout: whoever runs this by cron gets them
# by mail, and no mail where there are none. It runs in the folder of site.toml.
set -u
cd "$(dirname "$0")" || exit 3
crawl --config site.toml --recrawl -q 2> nightly.log || { cat nightly.log; exit 1; }
# What is wrong today is known; from tomorrow on only new faults are told.
[ -e known.jsonl ] || crawl report tea-crawl --faults --format jsonl > known.jsonl || exit 1
crawl report tea-crawl --faults --baseline known.jsonl --fail-on-faults > new-faults.txt 2>&1 ||
    cat new-faults.txt
