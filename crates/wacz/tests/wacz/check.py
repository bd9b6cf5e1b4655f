"""Checks a WACZ file with other programs, and by its specification.

Arguments: the file, and an empty folder to unpack it into.
"""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import zipfile

import frictionless
from warcio import ArchiveIterator


def run(program, *args, may_fail=False):
    """Runs a program of this environment, which must succeed. Returns its output."""
    program = os.path.join(os.path.dirname(sys.executable), program)
    ran = subprocess.run([program, *args], capture_output=True, text=True)
    assert ran.returncode == 0 or may_fail, f"{program}: {ran.stdout}{ran.stderr}"
    return ran.stdout


wacz, folder = sys.argv[1:]
folder = os.path.join(folder, "unpacked")
with zipfile.ZipFile(wacz) as file:
    assert file.testzip() is None
    stored = {entry.filename for entry in file.infolist() if entry.compress_type == zipfile.ZIP_STORED}
    names = file.namelist()
    file.extractall(folder)
warcs = [name for name in names if name.startswith("archive/")]
assert stored == {*warcs, "indexes/index.cdx.gz"}, stored


def read(name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


# `wacz validate` checks the digests and the data package, frictionless only the data package.
assert "the passed WACZ is valid" in run("wacz", "validate", "-f", wacz)
report = frictionless.validate(os.path.join(folder, "datapackage.json"))
assert report.valid, report.to_summary()
package = json.loads(read("datapackage.json"))
listed = {resource["path"]: resource for resource in package["resources"]}
assert set(listed) == set(names) - {"datapackage.json", "datapackage-digest.json"}
for name, resource in listed.items():
    assert resource["bytes"] == len(read(name))
    assert resource["hash"] == "sha256:" + hashlib.sha256(read(name)).hexdigest()

# Another program creates the same index, and each block begins at its stated offset.
paths = [os.path.join(folder, name) for name in warcs]
run("warcio", "check", *paths)
for path in paths:
    # fastwarc hashes the bytes of a revisit, but its payload digest is that of the record it refers to.
    with open(path, "rb") as file:
        elsewhere = {
            record.rec_headers["WARC-Record-ID"]
            for record in ArchiveIterator(file)
            if record.rec_type == "revisit"
        }
    output = run("fastwarc", "check", "-q", "-p", "-o", "-", path, may_fail=bool(elsewhere))
    assert ": OK, " in output, output
    for line in output.splitlines():
        is_revisit = any(line.startswith(id) for id in elsewhere)
        assert "FAIL" not in line or (is_revisit and line.endswith(": OK, PAYLOAD_FAIL")), line
theirs = run("cdxj-indexer", "--sort", *paths)
ours = gzip.decompress(read("indexes/index.cdx.gz")).decode()
assert ours == theirs, [pair for pair in zip(ours.splitlines(), theirs.splitlines()) if pair[0] != pair[1]][:3]
blocks = read("indexes/index.idx").decode().splitlines()
assert blocks[0].startswith("!meta 0 "), blocks[0]
index = read("indexes/index.cdx.gz")
text = ""
for block in blocks[1:]:
    key, time, place = block.split(" ", 2)
    place = json.loads(place)
    member = index[place["offset"] : place["offset"] + place["length"]]
    assert place["digest"] == "sha256:" + hashlib.sha256(member).hexdigest()
    lines = gzip.decompress(member).decode()
    assert lines.startswith(f"{key} {time} "), block
    text += lines
assert text == ours

# Every page of the lists is in the index.
urls = {json.loads(line.split(" ", 2)[2])["url"] for line in ours.splitlines()}
pages = 0
for name in ["pages/pages.jsonl", "pages/extraPages.jsonl"]:
    head, *lines = read(name).decode().splitlines()
    assert json.loads(head)["format"] == "json-pages-1.0"
    for line in map(json.loads, lines):
        assert line["url"] in urls and line["ts"] and "text" in line, line
        pages += 1
assert pages > 0
print(pages, "pages,", len(ours.splitlines()), "captures,", len(warcs), "files")
