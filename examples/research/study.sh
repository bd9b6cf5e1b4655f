#!/bin/sh
# A study from its configuration to a plotted table. Needs crawl and python3 on the PATH.
#
#   study.sh FOLDER SEED.. [OPTION OF crawl]..
#
# FOLDER gets the plan, the crawl, its audit, the tables and a chart. After an interruption the same
# command goes on. It stops at the first step that fails: a breach that the audit finds is one.
set -eu
if [ $# -lt 2 ]; then
    echo "usage: study.sh FOLDER SEED.. [OPTION OF crawl].." >&2
    exit 2
fi
folder=$1
shift
here=$(dirname "$0")
mkdir -p "$folder"

# Before anybody is asked for anything: is the configuration right, with these seeds?
crawl config --check "$here/study.toml" "$@"
# The burden on the sites, from robots.txt and sitemaps alone: read it before a larger crawl.
crawl plan --config "$here/study.toml" --output "$folder/crawl" "$@" > "$folder/plan.txt"
crawl --config "$here/study.toml" --output "$folder/crawl" "$@"
# Were each gap and each rule kept?
crawl audit "$folder/crawl" > "$folder/audit.txt"
crawl export "$folder/crawl" --to csv --out "$folder/tables"
python3 "$here/plot.py" "$folder/tables" "$folder/outcomes.svg"
