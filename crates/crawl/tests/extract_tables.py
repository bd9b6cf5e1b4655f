"""Reads the Parquet tables of a crawl's extraction rules with pyarrow, and compares each value and type
with extracts.jsonl.

usage: extract_tables.py CRAWL TABLES

CRAWL is the crawl's directory, TABLES the folder that `crawl export --to parquet` wrote.
"""

import json
import sys
from datetime import date
from pathlib import Path

import pyarrow
import pyarrow.parquet

TYPES = {
    "text": pyarrow.string(),
    "url": pyarrow.string(),
    "number": pyarrow.float64(),
    "date": pyarrow.date32(),
    "bool": pyarrow.bool_(),
}


def converted(kind, value):
    if value is None:
        return None
    if kind == "date":
        return date.fromisoformat(value)
    return float(value) if kind == "number" else value


def split(fields, prefix=()):
    """Returns the columns of a table with their types, and the lists of groups in it."""
    columns, lists = {}, {}
    for name, field in fields.items():
        field = field if isinstance(field, dict) else {}
        path = (*prefix, name)
        if "fields" not in field:
            columns[path] = (field.get("type", "text"), field.get("all", False))
        elif field.get("all"):
            lists[path] = field["fields"]
        else:
            inner = split(field["fields"], path)
            columns |= inner[0]
            lists |= inner[1]
    return columns, lists


def at(found, path):
    for name in path:
        found = found.get(name) if found is not None else None
    return found


def expected(name, fields, objects, has_items=False):
    """Yields the name of each table, its columns with their types, and its rows."""
    columns, lists = split(fields)
    types = {"page_url": pyarrow.string(), "page_round": pyarrow.int32()}
    if has_items:
        types["item"] = pyarrow.int32()
    for path, (kind, is_list) in columns.items():
        types[".".join(path)] = pyarrow.list_(TYPES[kind]) if is_list else TYPES[kind]
    rows = []
    for url, round, item, found in objects:
        row = {"page_url": url, "page_round": round} | ({"item": item} if has_items else {})
        for path, (kind, is_list) in columns.items():
            value = at(found, path)
            if is_list and value is not None:
                value = [converted(kind, one) for one in value]
            row[".".join(path)] = value if is_list else converted(kind, value)
        rows.append(row)
    yield name, types, rows
    for path, inner in lists.items():
        items = []
        for url, round, _, found in objects:
            start = 1 + sum(one[0] == url for one in items)
            for item, object in enumerate(at(found, path) or [], start):
                items.append((url, round, item, object))
        yield from expected(f"{name}.{'.'.join(path)}", inner, items, True)


def main(crawl, tables):
    rules = json.loads((crawl / "extract-rules.json").read_text())
    rows = [json.loads(line) for line in (crawl / "extracts.jsonl").read_text().splitlines()]
    for rule in rules:
        objects = [(row["url"], row["round"], 0, row["fields"]) for row in rows
                   if row["rule"] == rule["name"]]
        for name, types, wanted in expected(rule["name"], rule["fields"], objects):
            table = pyarrow.parquet.read_table(tables / f"{name}.parquet")
            found = {field.name: field.type for field in table.schema}
            if found != types:
                sys.exit(f"{name}: has the types {found}, expected {types}")
            if table.to_pylist() != wanted:
                sys.exit(f"{name}: has the rows {table.to_pylist()}, expected {wanted}")
            print(name, table.num_rows)


main(Path(sys.argv[1]), Path(sys.argv[2]))
