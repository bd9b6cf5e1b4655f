"""Checks a bundle with the validators of its formats.

Arguments: the bundle, a published copy of the JSON-LD context of RO-Crate 1.2, and a folder for a
cache. Nothing is fetched: the bundle's own copy of the context is put into the validator's cache.
Prints a line for each validator that accepts the bundle.
"""

import io
import json
import pathlib
import subprocess
import sys

import requests
import requests_cache
import urllib3

CONTEXT = "https://w3id.org/ro/crate/1.2/context"

bundle, published, cache = (pathlib.Path(argument) for argument in sys.argv[1:])
data = bundle / "data"
context = data / "ro-crate-context.json"
programs = pathlib.Path(sys.executable).parent


class ContextFile(requests.adapters.HTTPAdapter):
    """Answers each request with the context."""

    def send(self, request, **_):
        answer = urllib3.HTTPResponse(
            body=io.BytesIO(context.read_bytes()),
            headers={"Content-Type": "application/ld+json"},
            status=200,
            preload_content=False,
            request_url=request.url,
        )
        return self.build_response(request, answer)


def fill_cache():
    session = requests_cache.CachedSession(str(cache), backend="sqlite")
    session.mount("https://w3id.org/", ContextFile())
    session.get(CONTEXT, headers={"Accept": "application/ld+json, application/json"})


def check(name, *command):
    ran = subprocess.run(
        [str(programs / command[0]), *map(str, command[1:])], capture_output=True, text=True
    )
    if ran.returncode != 0:
        sys.exit(f"{name}: {ran.stdout}\n{ran.stderr}")
    print(name, flush=True)


if context.read_bytes() != published.read_bytes():
    sys.exit(f"{context} is not the published context {published}")
if json.loads((data / "ro-crate-metadata.json").read_text())["@context"] != CONTEXT:
    sys.exit("ro-crate-metadata.json refers to another context")
fill_cache()
# The profile of runs was written for RO-Crate 1.1, and would require that version, so check only its
# own rules. Recommended entries (ORCID, ROR, a license) are missing, because the test has none.
for profile, more in [("ro-crate-1.2", []), ("process-run-crate-0.5", ["--disable-profile-inheritance"])]:
    check(
        profile, "rocrate-validator", "-y", "validate", "--offline", "--cache-path", cache,
        "--no-paging", "--verbose", "--requirement-severity", "required", *more,
        "--profile-identifier", profile, data,
    )
check("croissant", "mlcroissant", "validate", "--jsonld", data / "croissant.json")
check("citation", "cffconvert", "--validate", "--infile", data / "CITATION.cff")
check("bagit", "python", programs / "bagit.py", "--validate", bundle)
