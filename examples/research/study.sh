#!/bin/sh
# A study from its configuration to a plotted table. Needs crawl and python3 on the PATH.
#
#   study.sh FOLDER SEED.. [OPTION OF crawl]..
#
# Writes the plan, the crawl, its audit, the tables and a chart into FOLDER. After an interruption the
# same command resumes. It stops at the first step that fails, for example if the audit finds a breach.
set -eu
if [ $# -lt 2 ]; then
    echo "usage: study.sh FOLDER SEED.. [OPTION OF crawl].." >&2
    exit 2
fi
folder=$1
shift
here=$(dirname "$0")
mkdir -p "$folder"

# Check the configuration with these seeds before any request.
crawl config --check "$here/study.toml" "$@"
# Estimate the load on the sites from robots.txt and sitemaps. Read it before a larger crawl.
crawl plan --config "$here/study.toml" --output "$folder/crawl" "$@" > "$folder/plan.txt"
crawl --config "$here/study.toml" --output "$folder/crawl" "$@"
# Check that every gap and rule was respected.
crawl audit "$folder/crawl" > "$folder/audit.txt"
crawl export "$folder/crawl" --to csv --out "$folder/tables"
python3 "$here/plot.py" "$folder/tables" "$folder/outcomes.svg"
