//! Tests of each record, byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use crawl_archive::rows::WarcRecordLocation;
use crawl_archive::{
    ArchiveOptions, ArchiveWriter, CaptureEncoder, ReadError, RevisitProfile, WarcCompression,
    WarcReader, WarcRecord, WarcTruncation, Warcinfo, archive_file, read_place, read_record,
};
use expect_test::{Expect, expect};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::sample_captures::Sample;

/// Archives the sample and returns the records of the file: warcinfo, response, request, metadata.
fn records(sample: &Sample) -> Vec<WarcRecord> {
    let dir = tempfile::tempdir().unwrap();
    let options = ArchiveOptions {
        prefix: "www.example.org".into(),
        warcinfo: Warcinfo {
            software: "crawl/0.1.0".into(),
            operator: Some("mailto:a@example.org".into()),
            publisher: Some("Institute of Tea".into()),
            is_part_of: Some("Kettles, https://example.org/study".into()),
            user_agent: "crawl/0.1 (+mailto:a@example.org)".into(),
            from: None,
            robots: "RFC 9309, obeyed".into(),
            browser: Some("Chromium 156.0".into()),
            config_digest: Some("sha256:x".into()),
        },
        ..ArchiveOptions::default()
    };
    let mut archive = ArchiveWriter::open(dir.path(), options, &BTreeMap::new()).unwrap();
    let receipt = archive
        .append(&sample.encode(&mut CaptureEncoder::default()))
        .unwrap();
    let path = dir.path().join("archive").join(receipt.file);
    let records: Vec<WarcRecord> = WarcReader::open(&path)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    for record in &records {
        assert_eq!(record.wrong_digest(), None);
    }
    assert_eq!(records[1].offset, receipt.offset);
    assert_eq!(records[1].length, receipt.length);
    assert_eq!(read_record(&path, receipt.offset).unwrap(), records[1]);
    assert_eq!(
        records.iter().map(|record| record.length).sum::<u64>(),
        fs::metadata(&path).unwrap().len()
    );
    records
}

fn text(record: &WarcRecord) -> String {
    let mut text = String::new();
    for (name, value) in &record.fields {
        text.push_str(&format!("{name}: {value}\n"));
    }
    text.push('\n');
    for line in record.block.split_inclusive(|&byte| byte == b'\n') {
        text.push_str(&line.escape_ascii().to_string().replace("\\r\\n", "\n"));
    }
    text
}

fn check(sample: &Sample, which: usize, expect: Expect) {
    expect.assert_eq(&text(&records(sample)[which]));
}

fn check_head(sample: &Sample, expect: Expect) {
    let records = records(sample);
    let http = records[1].http().unwrap();
    let head = &records[1].block[..records[1].block.len() - http.body.len()];
    expect.assert_eq(&head.escape_ascii().to_string().replace("\\r\\n", "\n"));
}

#[test]
fn warc11_6_2_warcinfo_introduces_the_file() {
    check(
        &Sample::page(1),
        0,
        expect![[r#"
            WARC-Type: warcinfo
            WARC-Record-ID: <urn:uuid:02c36fe7-0db3-55ec-bd37-9a08754f31c8>
            WARC-Date: 2026-11-21T00:00:00.123456Z
            WARC-Filename: crawl-www.example.org-20261121000000-00000.warc.gz
            Content-Type: application/warc-fields
            WARC-Block-Digest: sha1:ZCK3DOOPFPRZXZI52BVDEKBLTWEWCX7Q
            Content-Length: 387

            software: crawl/0.1.0
            operator: mailto:a@example.org
            publisher: Institute of Tea
            isPartOf: Kettles, https://example.org/study
            http-header-user-agent: crawl/0.1 (+mailto:a@example.org)
            robots: RFC 9309, obeyed
            browser: Chromium 156.0
            config-digest: sha256:x
            format: WARC File Format 1.1
            conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/
        "#]],
    );
}

#[test]
fn warc11_6_3_response() {
    check(
        &Sample::page(1),
        1,
        expect![[r#"
        WARC-Type: response
        WARC-Record-ID: <urn:uuid:00000000-0000-0001-8000-000000000001>
        WARC-Date: 2026-11-21T00:00:00.123456Z
        WARC-Target-URI: http://www.example.org/page/1?b=1&a=2
        WARC-IP-Address: 192.0.2.7
        WARC-Protocol: http/1.1
        WARC-Payload-Digest: sha1:NMIQSVO3JLRF75OKBIRRY5M57ZROY3NU
        Content-Type: application/http;msgtype=response
        WARC-Block-Digest: sha1:7U2W2WQZ7JEP33AQGCY3DHH4SFNNKAMU
        Content-Length: 111

        HTTP/1.1 200 OK
        content-type: text/html; charset=utf-8
        content-length: 32

        <title>1</title><title>1</title>"#]],
    );
}

#[test]
fn warc11_6_5_request() {
    check(
        &Sample::page(1),
        2,
        expect![[r#"
        WARC-Type: request
        WARC-Record-ID: <urn:uuid:00000000-0000-0001-8000-000000000002>
        WARC-Date: 2026-11-21T00:00:00.123456Z
        WARC-Target-URI: http://www.example.org/page/1?b=1&a=2
        WARC-IP-Address: 192.0.2.7
        WARC-Protocol: http/1.1
        WARC-Concurrent-To: <urn:uuid:00000000-0000-0001-8000-000000000001>
        Content-Type: application/http;msgtype=request
        WARC-Block-Digest: sha1:GHO62JH6NVC3DAFM6KEJI2N5LSVMVIPK
        Content-Length: 102

        GET /page/1?b=1&a=2 HTTP/1.1
        host: www.example.org
        user-agent: crawl/0.1 (+mailto:a@example.org)

    "#]],
    );
}

#[test]
fn warc11_6_6_metadata() {
    check(
        &Sample::page(1),
        3,
        expect![[r#"
        WARC-Type: metadata
        WARC-Record-ID: <urn:uuid:00000000-0000-0001-8000-000000000003>
        WARC-Date: 2026-11-21T00:00:00.123456Z
        WARC-Target-URI: http://www.example.org/page/1?b=1&a=2
        WARC-Concurrent-To: <urn:uuid:00000000-0000-0001-8000-000000000001>
        Content-Type: application/warc-fields
        WARC-Block-Digest: sha1:MXFHUZSW3RQ33JR4KKXI5LUFSPKSPC6V
        Content-Length: 102

        via: http://www.example.org/
        depth: 2
        redirects: 0
        fetchTimeMs: 42
        charset: UTF-8
        purpose: page
    "#]],
    );
}

#[test]
fn warc11_6_7_2_identical_payload() {
    let sample = Sample::page(1).with(|s| s.revisit = Some(RevisitProfile::IdenticalPayload));
    check(
        &sample,
        1,
        expect![[r#"
        WARC-Type: revisit
        WARC-Record-ID: <urn:uuid:00000000-0000-0001-8000-000000000001>
        WARC-Date: 2026-11-21T00:00:00.123456Z
        WARC-Target-URI: http://www.example.org/page/1?b=1&a=2
        WARC-IP-Address: 192.0.2.7
        WARC-Protocol: http/1.1
        WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest
        WARC-Refers-To-Target-URI: http://www.example.org/original
        WARC-Refers-To-Date: 2026-11-19T23:59:59.123456Z
        WARC-Truncated: length
        WARC-Payload-Digest: sha1:NMIQSVO3JLRF75OKBIRRY5M57ZROY3NU
        Content-Type: application/http;msgtype=response
        WARC-Block-Digest: sha1:YQPISGAE5RDYVIQFJZTR6C3WMHEZLEJT
        Content-Length: 79

        HTTP/1.1 200 OK
        content-type: text/html; charset=utf-8
        content-length: 32

    "#]],
    );
}

#[test]
fn warc11_6_7_3_server_not_modified() {
    let sample = Sample::new(1, "http://e.example/", &[("etag", b"\"x\"")], b"").with(|s| {
        s.status = 304;
        s.revisit = Some(RevisitProfile::NotModified);
    });
    // The record must not contain the header of the 304, because pywb would then reply with an
    // empty 304.
    check(
        &sample,
        1,
        expect![[r#"
            WARC-Type: revisit
            WARC-Record-ID: <urn:uuid:00000000-0000-0001-8000-000000000001>
            WARC-Date: 2026-11-21T00:00:00.123456Z
            WARC-Target-URI: http://e.example/
            WARC-IP-Address: 192.0.2.7
            WARC-Protocol: http/1.1
            WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified
            WARC-Refers-To-Target-URI: http://www.example.org/original
            WARC-Refers-To-Date: 2026-11-19T23:59:59.123456Z
            Content-Type: application/http;msgtype=response
            WARC-Block-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ
            Content-Length: 0

        "#]],
    );
    check(
        &sample,
        3,
        expect![[r#"
            WARC-Type: metadata
            WARC-Record-ID: <urn:uuid:00000000-0000-0001-8000-000000000003>
            WARC-Date: 2026-11-21T00:00:00.123456Z
            WARC-Target-URI: http://e.example/
            WARC-Concurrent-To: <urn:uuid:00000000-0000-0001-8000-000000000001>
            Content-Type: application/warc-fields
            WARC-Block-Digest: sha1:3LKVL3QGVJD2AM7WWNGL2O3QF6YYTFGE
            Content-Length: 171

            via: http://www.example.org/
            depth: 2
            redirects: 0
            fetchTimeMs: 42
            charset: UTF-8
            purpose: page
            http-status-line: HTTP/1.1 304 Not Modified
            http-header: etag: \"x\"
        "#]],
    );
}

#[test]
fn http2_over_tls_is_written_as_http11_with_its_protocols() {
    let sample = Sample::new(1, "https://e.example:8443/x?y", &[], b"body").with(|s| {
        s.protocol = http::Version::HTTP_2;
        s.tls = true;
        s.address = Some("2001:db8::1".parse().unwrap());
    });
    check(
        &sample,
        1,
        expect![[r#"
        WARC-Type: response
        WARC-Record-ID: <urn:uuid:00000000-0000-0001-8000-000000000001>
        WARC-Date: 2026-11-21T00:00:00.123456Z
        WARC-Target-URI: https://e.example:8443/x?y
        WARC-IP-Address: 2001:db8::1
        WARC-Protocol: h2
        WARC-Protocol: tls/1.3
        WARC-Payload-Digest: sha1:AIED6RLZ4CFGCJBFYDA2C7XEPLOXQO4U
        Content-Type: application/http;msgtype=response
        WARC-Block-Digest: sha1:6ILXMTK2ROCCNMIUK6VKT7IJJCZ7U25S
        Content-Length: 42

        HTTP/1.1 200 OK
        Content-Length: 4

        body"#]],
    );
    check(
        &sample,
        2,
        expect![[r#"
        WARC-Type: request
        WARC-Record-ID: <urn:uuid:00000000-0000-0001-8000-000000000002>
        WARC-Date: 2026-11-21T00:00:00.123456Z
        WARC-Target-URI: https://e.example:8443/x?y
        WARC-IP-Address: 2001:db8::1
        WARC-Protocol: h2
        WARC-Protocol: tls/1.3
        WARC-Concurrent-To: <urn:uuid:00000000-0000-0001-8000-000000000001>
        Content-Type: application/http;msgtype=request
        WARC-Block-Digest: sha1:AAQ4NU6ILFTCTBCM3SPKTITPWV23B5AP
        Content-Length: 90

        GET /x?y HTTP/1.1
        host: e.example:8443
        user-agent: crawl/0.1 (+mailto:a@example.org)

    "#]],
    );
}

#[test]
fn chunked_bodies_are_normalised() {
    let headers: [(&str, &[u8]); 3] = [
        ("transfer-encoding", b"chunked"),
        ("content-encoding", b"gzip"),
        ("set-cookie", b"a=1"),
    ];
    let sample = Sample::new(1, "http://e.example/", &headers, b"12345").with(|s| {
        s.headers.append("set-cookie", "b=2".parse().unwrap());
    });
    check_head(
        &sample,
        expect![[r#"
        HTTP/1.1 200 OK
        X-Archive-Orig-Transfer-Encoding: chunked
        content-encoding: gzip
        set-cookie: a=1
        set-cookie: b=2
        Content-Length: 5

    "#]],
    );
}

#[test]
fn a_wrong_length_is_corrected_and_kept() {
    let sample = |lengths: &[&str], body: &[u8]| {
        Sample::new(1, "http://e.example/", &[], body).with(|s| {
            for length in lengths {
                s.headers.append("content-length", length.parse().unwrap());
            }
        })
    };
    let truncated =
        sample(&["900"], b"12345").with(|s| s.truncated = Some(WarcTruncation::Disconnect));
    check(
        &truncated,
        1,
        expect![[r#"
        WARC-Type: response
        WARC-Record-ID: <urn:uuid:00000000-0000-0001-8000-000000000001>
        WARC-Date: 2026-11-21T00:00:00.123456Z
        WARC-Target-URI: http://e.example/
        WARC-IP-Address: 192.0.2.7
        WARC-Protocol: http/1.1
        WARC-Truncated: disconnect
        WARC-Payload-Digest: sha1:RSZCG7IGPHFIRW3EMTVMMDNJMNCVCOLE
        Content-Type: application/http;msgtype=response
        WARC-Block-Digest: sha1:FXZ5OEMW2P2FLAV3W2CPL6ENGLWT7B6I
        Content-Length: 79

        HTTP/1.1 200 OK
        X-Archive-Orig-Content-Length: 900
        Content-Length: 5

        12345"#]],
    );
    check_head(
        &sample(&["5", "5"], b"12345"),
        expect![[r#"
        HTTP/1.1 200 OK
        content-length: 5
        X-Archive-Orig-Content-Length: 5

    "#]],
    );
    check_head(
        &sample(&["5, 5"], b"12345"),
        expect![[r#"
        HTTP/1.1 200 OK
        X-Archive-Orig-Content-Length: 5, 5
        Content-Length: 5

    "#]],
    );
    check_head(
        &sample(&[], b""),
        expect![[r#"
        HTTP/1.1 200 OK
        Content-Length: 0

    "#]],
    );
    let not_modified = sample(&["900"], b"").with(|s| s.status = 304);
    check_head(
        &not_modified,
        expect![[r#"
        HTTP/1.1 304 Not Modified
        X-Archive-Orig-Content-Length: 900

    "#]],
    );
}

#[test]
fn a_truncated_body_is_not_a_revisit() {
    let sample = Sample::page(1).with(|s| {
        s.truncated = Some(WarcTruncation::Length);
        s.revisit = Some(RevisitProfile::IdenticalPayload);
    });
    let records = records(&sample);
    assert_eq!(records[1].kind(), "response");
    assert_eq!(records[1].field("WARC-Truncated"), Some("length"));
}

#[test]
fn rfc9110_5_5_no_value_ends_its_line() {
    let headers: [(&str, &[u8]); 2] = [("x-odd", b"a\xff\xe9\tb"), ("x-empty", b"")];
    let sample = Sample::new(1, "http://e.example/", &headers, b"").with(|s| {
        s.status = 299;
        s.reason = Some(b"Very\r\n\r\nodd\0\xe9");
        s.request.push(("x\r\ny".into(), "1\r\n\r\n2".into()));
    });
    check_head(
        &sample,
        expect![[r#"
        HTTP/1.1 299 Very    odd \xe9
        x-odd: a\xff\xe9\tb
        x-empty: 
        Content-Length: 0

    "#]],
    );
    check(
        &sample,
        2,
        expect![[r#"
        WARC-Type: request
        WARC-Record-ID: <urn:uuid:00000000-0000-0001-8000-000000000002>
        WARC-Date: 2026-11-21T00:00:00.123456Z
        WARC-Target-URI: http://e.example/
        WARC-IP-Address: 192.0.2.7
        WARC-Protocol: http/1.1
        WARC-Concurrent-To: <urn:uuid:00000000-0000-0001-8000-000000000001>
        Content-Type: application/http;msgtype=request
        WARC-Block-Digest: sha1:KELXJGCCMOHENFCIRXCNI7DTPFI7BN6Y
        Content-Length: 96

        GET / HTTP/1.1
        host: e.example
        user-agent: crawl/0.1 (+mailto:a@example.org)
        x  y: 1    2

    "#]],
    );
}

#[test]
fn the_same_captures_give_the_same_bytes() {
    let mut used = CaptureEncoder::default();
    for number in 0..20 {
        let sample = Sample::page(number);
        assert_eq!(
            sample.encode(&mut used),
            sample.encode(&mut CaptureEncoder::default())
        );
    }
}

#[test]
fn a_record_that_is_too_long_is_reported_and_skipped() {
    check_too_long(WarcCompression::Gzip);
    check_too_long(WarcCompression::Zstd);
    check_too_long(WarcCompression::Plain);
}

fn check_too_long(compression: WarcCompression) {
    let dir = tempfile::tempdir().unwrap();
    let options = ArchiveOptions {
        compression,
        ..ArchiveOptions::default()
    };
    let mut archive = ArchiveWriter::open(dir.path(), options, &BTreeMap::new()).unwrap();
    let mut encoder = CaptureEncoder::new(compression);
    // A record that is far longer than its row states is refused, and not decompressed to its end.
    let long = Sample::new(1, "http://e.example/", &[], &[b' '; 3 << 20]);
    let long = archive.append(&long.encode(&mut encoder)).unwrap();
    let next = archive
        .append(&Sample::page(2).encode(&mut encoder))
        .unwrap();
    let read = |offset, bytes| {
        let file = long.file.clone();
        read_place(dir.path(), &WarcRecordLocation { file, offset }, bytes)
    };
    assert_eq!(
        read(long.offset, 3 << 20).unwrap().block.len(),
        (3 << 20) + 44
    );
    match read(long.offset, 1 << 20) {
        Err(ReadError::TooLong { bytes, max, .. }) => {
            assert_eq!((bytes, max), ((3 << 20) + 44, 2 << 20));
        }
        found => panic!("{found:?}"),
    }
    assert_eq!(read(next.offset, 1 << 20).unwrap().kind(), "response");

    // A header that never ends is read only up to a limit.
    let path = dir.path().join("archive").join(&long.file);
    let mut header = b"WARC/1.1\r\nContent-Length: 1\r\nX: ".to_vec();
    header.resize(3 << 20, b'x');
    let header = match compression {
        WarcCompression::Gzip => {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(&header).unwrap();
            gzip.finish().unwrap()
        }
        WarcCompression::Zstd => zstd::encode_all(&header[..], 1).unwrap(),
        WarcCompression::Plain => header,
    };
    fs::write(&path, header).unwrap();
    let message = read_record(&path, 0).unwrap_err().to_string();
    assert!(message.ends_with("its fields do not end"), "{message}");
}

#[test]
fn a_name_in_a_row_never_leads_out_of_the_archive() {
    let dir = Path::new("dir");
    let good = archive_file(dir, "crawl-e-00000.warc.gz").unwrap();
    assert_eq!(good, dir.join("archive/crawl-e-00000.warc.gz"));
    let bad = [
        "",
        ".",
        "..",
        "../x",
        "/etc/passwd",
        "a/b",
        "a/",
        "./a",
        "a\\b",
        "a\0",
    ];
    for name in bad {
        let place = WarcRecordLocation {
            file: name.to_owned(),
            offset: 0,
        };
        let result = read_place(dir, &place, 0);
        assert!(
            matches!(result, Err(ReadError::ForeignName { .. })),
            "{name}: {result:?}"
        );
    }
}

fn check_damage(compression: WarcCompression) {
    let dir = tempfile::tempdir().unwrap();
    let options = ArchiveOptions {
        compression,
        ..ArchiveOptions::default()
    };
    let mut archive = ArchiveWriter::open(dir.path(), options, &BTreeMap::new()).unwrap();
    let encoded = Sample::page(1).encode(&mut CaptureEncoder::new(compression));
    let receipt = archive.append(&encoded).unwrap();
    assert!(receipt.file.ends_with(compression.suffix()));
    let path = dir.path().join("archive").join(receipt.file);
    let whole = fs::read(&path).unwrap();
    let damage = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let mut faults = Vec::new();
        for record in WarcReader::open(&path).unwrap() {
            faults.extend(match record {
                Ok(record) => record.wrong_digest().map(|_| ("digest", record.offset)),
                Err(ReadError::Torn { offset, .. }) => Some(("torn", offset)),
                Err(ReadError::Malformed { offset, .. }) => Some(("malformed", offset)),
                Err(error) => panic!("{error}"),
            });
        }
        faults
    };
    let at = receipt.offset as usize;
    assert_eq!(damage(&whole), []);
    assert_eq!(damage(&whole[..at + 30]), [("torn", receipt.offset)]);
    let mut flipped = whole.clone();
    flipped[at + receipt.length as usize - 6] ^= 1;
    let fault = match compression {
        WarcCompression::Plain => "digest",
        _ => "torn",
    };
    assert_eq!(damage(&flipped), [(fault, receipt.offset)]);
    assert_eq!(damage(b"plain text"), [("torn", 0)]);
    assert_eq!(damage(b"WAKE\r\n"), [("malformed", 0)]);
    let mut whole_records = 0;
    for cut in 0..whole.len() {
        match damage(&whole[..cut])[..] {
            [] => whole_records += 1,
            [("torn", _)] => {}
            ref faults => panic!("{cut}: {faults:?}"),
        }
    }
    assert_eq!(whole_records, 4, "nothing, and one to three records");
}

#[test]
fn damage_is_an_error_that_names_the_place() {
    check_damage(WarcCompression::Gzip);
    check_damage(WarcCompression::Zstd);
    check_damage(WarcCompression::Plain);
}
