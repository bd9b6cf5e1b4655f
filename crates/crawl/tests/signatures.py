"""Verifies the signed requests of a WARC file with PyPI's http-message-signatures.

Arguments: the WARC file, and a JSON Web Key Set with the public keys. Prints the number of requests
with a valid signature, and fails on the first invalid one.
"""

import base64
import datetime
import json
import sys
from types import SimpleNamespace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from fastwarc.warc import ArchiveIterator, WarcRecordType
from http_message_signatures import HTTPMessageVerifier, algorithms
from http_message_signatures.resolvers import HTTPSignatureKeyResolver

warc, keys = sys.argv[1:]
with open(keys, encoding="utf-8") as file:
    jwks = {key["kid"]: key for key in json.load(file)["keys"]}


class Resolver(HTTPSignatureKeyResolver):
    def resolve_public_key(self, key_id):
        x = jwks[key_id]["x"]
        return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(x + "=" * (-len(x) % 4)))

    def resolve_private_key(self, key_id):
        raise NotImplementedError


class Verifier(HTTPMessageVerifier):
    # The test must not depend on the speed of the machine.
    max_clock_skew = datetime.timedelta(days=1)


verifier = Verifier(signature_algorithm=algorithms.ED25519, key_resolver=Resolver())
verified = 0
with open(warc, "rb") as stream:
    for record in ArchiveIterator(stream, record_types=WarcRecordType.request, parse_http=True):
        message = SimpleNamespace(
            method=record.http_headers.status_line.split(" ")[0],
            url=record.headers["WARC-Target-URI"],
            headers=dict(record.http_headers.astuples()),
        )
        results = verifier.verify(message, expect_tag="web-bot-auth")
        covered = list(results[0].covered_components)
        assert len(covered) >= 2, covered
        verified += 1
print(verified)
