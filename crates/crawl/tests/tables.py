"""Reads the tables of a crawl with DuckDB, pyarrow and polars, and compares them with its report. Then
reads its link graph with networkx, and compares it with the tables.

usage: tables.py REPORT PARQUET CSV GRAPH

REPORT is the crawl's report.json, the others are folders that `crawl export` wrote. The
crawl's directory is named CC-MAIN-2018-05, as in the example queries of Common Crawl.
"""

import csv
import json
import sys
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path

import duckdb
import networkx
import polars
import pyarrow.parquet

# The query in count-by-tld-page-host-domain.sql of Common Crawl's repository cc-index-table.
BY_TLD = """
SELECT COUNT(*) AS n_pages, url_host_tld AS tld, COUNT(DISTINCT url_host_name) AS n_hosts,
       COUNT(DISTINCT url_host_registered_domain) AS n_domains
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
GROUP BY url_host_tld ORDER BY n_pages DESC;
"""
# The query in count-fetch-status.sql of the same repository.
BY_STATUS = """
SELECT COUNT(*) AS count, fetch_status FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'crawldiagnostics'
GROUP BY fetch_status ORDER BY count DESC;
"""

TABLES = ["pages", "links", "hosts", "requests", "excluded", "robots"]


def equal(found, expected, what):
    if found != expected:
        sys.exit(f"{what}: found {found!r}, expected {expected!r}")


def as_text(cell):
    """Returns a cell as in CSV. csv.reader doesn't distinguish an empty text from a missing value."""
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.strftime("%Y-%m-%dT%H:%M:%S.") + f"{cell.microsecond // 1000:03}Z"
    if isinstance(cell, bytes):
        return cell.hex()
    return str(cell)


def check_with_duckdb(folder, report):
    """Compares sums over the tables with those in the report."""
    base = duckdb.connect()
    for table in TABLES:
        base.execute(f"CREATE VIEW {table} AS SELECT * FROM '{folder}/{table}.parquet'")

    def counts(query):
        return dict(base.sql(query).fetchall())

    pages = report["pages"]
    outcomes = counts("SELECT outcome, count(*) FROM pages GROUP BY 1")
    equal(outcomes, pages["by_outcome"], "pages by outcome")
    statuses = counts("SELECT fetch_status, count(*) FROM pages WHERE fetch_status > 0 GROUP BY 1")
    equal({str(key): n for key, n in statuses.items()}, pages["by_status"], "pages by status")
    [(rows, total)] = base.sql("SELECT count(*), sum(bytes) FROM pages").fetchall()
    equal((rows, total), (pages["total"], pages["bytes"]), "pages and bytes")
    reasons = counts("SELECT reason, count(*) FROM excluded GROUP BY 1")
    equal(reasons, report["excluded"]["by_reason"], "excluded by reason")
    purposes = counts("SELECT purpose, count(*) FROM requests GROUP BY 1")
    equal(purposes, report["requests"]["by_purpose"], "requests by purpose")
    for column in ["pages", "bytes", "excluded", "requests", "failed"]:
        expected = {host["host"]: host[column] for host in report["hosts"]}
        equal(counts(f"SELECT host, {column} FROM hosts"), expected, f"{column} by host")
    expected = {host["host"]: host["coverage"] for host in report["hosts"]}
    equal(counts("SELECT host, coverage FROM hosts"), expected, "coverage by host")
    missing = {host["host"]: sum(of["urls"] for of in host["missing"]) for host in report["hosts"]}
    equal(counts("SELECT host, coalesce(missing, 0) FROM hosts"), missing, "missing by host")
    reasons = counts("SELECT host, missing_by FROM hosts WHERE coverage IS NOT NULL")
    reasons = {host: json.loads(missing) for host, missing in reasons.items()}
    expected = {host["host"]: host["missing"] for host in report["hosts"] if host["coverage"]}
    equal(reasons, expected, "reasons of what is missing by host")
    requests = counts("SELECT host, count(*) FROM requests GROUP BY 1")
    expected = {host["host"]: host["requests"] for host in report["hosts"] if host["requests"]}
    equal(requests, expected, "requests by host")
    robots = counts("SELECT origin, state FROM robots")
    origins = [origin for host in report["hosts"] for origin in host["robots"].items()]
    equal(robots, {origin: last["state"] for origin, last in origins}, "robots by origin")
    lengths = "SELECT count(*) FROM pages WHERE warc_filename IS NOT NULL AND "
    [(without,)] = base.sql(lengths + "coalesce(warc_record_length, 0) <= 0").fetchall()
    equal(without, 0, "records without a length")

    base.execute("CREATE SCHEMA ccindex")
    base.execute("CREATE VIEW ccindex.ccindex AS SELECT * FROM pages")
    [(n_pages, tld, n_hosts, n_domains)] = base.sql(BY_TLD).fetchall()
    equal((n_pages, tld), (pages["by_status"]["200"], "org"), "Common Crawl's query by TLD")
    equal((n_hosts, n_domains), (len(expected), 1), "hosts and domains of that query")
    others = {str(status): n for n, status in base.sql(BY_STATUS).fetchall()}
    expected = {status: n for status, n in pages["by_status"].items() if status != "200"}
    equal(others, expected, "Common Crawl's query by status")


def without_nulls(cells):
    return {name: cell for name, cell in cells.items() if cell is not None}


def check_with_networkx(folder, parquet):
    """Compares nodes, edges and their attributes with the tables."""
    pages = pyarrow.parquet.read_table(f"{parquet}/pages.parquet").to_pylist()
    links = pyarrow.parquet.read_table(f"{parquet}/links.parquet").to_pylist()
    graph = networkx.read_graphml(f"{folder}/pages.graphml", force_multigraph=True)
    equal(graph.is_directed(), True, "a directed graph")
    nodes = {}
    for link in links:
        nodes[link["from_url"]] = {"url": link["from_url"], "host": link["from_host"]}
        nodes[link["to_url"]] = {"url": link["to_url"], "host": link["to_host"]}
    for page in pages:
        of_page = {"url": page["url"], "status": page["fetch_status"], "depth": page["depth"]}
        nodes[page["url"]] = without_nulls(of_page | {"host": page["host"]})
    equal(dict(graph.nodes(data=True)), nodes, "nodes")
    edges = Counter(
        (link["from_url"], link["to_url"], link["rel"], link["text"]) for link in links
    )
    found = Counter(
        (source, target, attributes.get("rel"), attributes.get("text"))
        for source, target, attributes in graph.edges(data=True)
    )
    equal(found, edges, "edges")
    weights = Counter((link["from_host"], link["to_host"]) for link in links)
    hosts = networkx.read_weighted_edgelist(
        f"{folder}/hosts.csv", comments="Source", delimiter=",", create_using=networkx.DiGraph
    )
    found = {(source, target): n for source, target, n in hosts.edges(data="weight")}
    equal(found, dict(weights), "links by hosts")
    print("nodes", len(nodes))
    print("hosts", len(weights))


def main(report, parquet, as_csv, graph):
    report = json.loads(Path(report).read_text())
    check_with_duckdb(parquet, report)
    for table in TABLES:
        path = f"{parquet}/{table}.parquet"
        arrow = pyarrow.parquet.read_table(path)
        rows = [[as_text(cell) for cell in row.values()] for row in arrow.to_pylist()]
        with open(f"{as_csv}/{table}.csv", newline="", encoding="utf-8") as file:
            header, *in_csv = csv.reader(file, strict=True)
        equal(header, arrow.column_names, f"the header of {table}.csv")
        equal(sorted(in_csv), sorted(rows), f"the rows of {table}.csv")
        frame = polars.read_parquet(path)
        equal(frame.columns, arrow.column_names, f"columns of {table} with polars")
        in_polars = [[as_text(cell) for cell in row] for row in frame.iter_rows()]
        equal(in_polars, rows, f"rows of {table} with polars")
        print(table, len(rows))
    pages = polars.read_parquet(f"{parquet}/pages.parquet")
    by_outcome = Counter(pages["outcome"].to_list())
    equal(dict(by_outcome), report["pages"]["by_outcome"], "pages by outcome, with polars")
    bytes_of = defaultdict(int)
    for row in pyarrow.parquet.read_table(f"{parquet}/pages.parquet").to_pylist():
        bytes_of[row["host"]] += row["bytes"]
    expected = {host["host"]: host["bytes"] for host in report["hosts"] if host["pages"]}
    equal(dict(bytes_of), expected, "bytes by host, with pyarrow")
    check_with_networkx(graph, parquet)


main(*sys.argv[1:])
