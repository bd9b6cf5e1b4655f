#!/bin/sh
# Runs a round of the crawl and prints new faults. Run by cron, it mails them, and sends no mail if
# there are none. Works in its own folder, which must contain site.toml.
set -u
cd "$(dirname "$0")" || exit 3
crawl --config site.toml --recrawl -q 2> nightly.log || { cat nightly.log; exit 1; }
# The first night's faults become the baseline. Later nights print only new ones.
[ -e known.jsonl ] ||
    { crawl report tea-crawl --faults --write-baseline first.jsonl > /dev/null &&
        mv first.jsonl known.jsonl; } || exit 1
crawl report tea-crawl --faults --baseline known.jsonl --fail-on-faults > new-faults.txt 2>&1 ||
    cat new-faults.txt
