//! `crawl identity`, signed crawls, and the verification of their requests.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use crawl_identity::{AcceptSignature, SignableMessage, SigningKeySet, signature_fields};
use crawl_testweb::{HttpAnswer, LinkMix, ReplySequence, TestWeb};
use serde_json::Value;

use crate::harness::{Cmd, Dir, Ran, setup};

const URL: &str = "https://bot.example/keys.json";
const QUICK: [&str; 6] = [
    "--delay",
    "10ms",
    "--delay-factor",
    "0",
    "--progress",
    "off",
];
const WHO: [&str; 4] = ["--signature-key", "bot.key", "--signature-agent", URL];

/// Fails unless the run succeeded. Returns its output.
fn fine(ran: Ran) -> String {
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    ran.stdout
}

/// Creates a key and publishes it in `www`. Returns the private part of the key.
fn create_key(dir: &Dir, cmd: &Cmd) -> String {
    fine(cmd.run(&["identity", "new", "--signature-key", "bot.key"]));
    let publish = ["identity", "directory", "--out", "www"];
    fine(cmd.run(&[&publish[..], &WHO].concat()));
    let key: Value = serde_json::from_str(&dir.read("bot.key")).unwrap();
    key["keys"][0]["d"].as_str().unwrap().to_owned()
}

fn crawl(cmd: &Cmd, seed: &str, output: &str, when: &str) -> String {
    let own = [
        "--seed",
        seed,
        "--output",
        output,
        "--signature",
        when,
        "-vv",
    ];
    let ran = cmd.run(&[&own[..], &QUICK, &WHO].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stderr
}

/// Returns the archive of a crawl.
fn warc(dir: &Dir, output: &str) -> String {
    let mut names = fs::read_dir(dir.file(&format!("{output}/archive"))).unwrap();
    let name = names.find_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.ends_with(".warc.gz").then_some(name)
    });
    format!("{output}/archive/{}", name.unwrap())
}

fn site() -> TestWeb {
    let web = TestWeb::builder()
        .hosts(1)
        .pages(4)
        .mix(LinkMix::plain())
        .start();
    web.script(
        0,
        "/",
        HttpAnswer::html("<a href=/moved>a</a> <a href=/page>b</a>"),
    );
    web.script(0, "/moved", HttpAnswer::redirect(301, "/there"));
    web.script(0, "/there", HttpAnswer::html("there"));
    web.script(0, "/page", HttpAnswer::html("page"));
    web
}

#[test]
fn a_new_key_touches_no_other_file_and_follows_links() {
    let (dir, cmd) = setup("identity-beside");
    dir.write("bot.key.new", "mine");
    let new = ["identity", "new", "--signature-key", "bot.key"];
    fine(cmd.run(&new));
    assert_eq!(dir.read("bot.key.new"), "mine");
    std::os::unix::fs::symlink("bot.key", dir.file("link.key")).unwrap();
    let later = [
        "identity",
        "new",
        "--signature-key",
        "link.key",
        "--start-in",
        "2d",
    ];
    fine(cmd.run(&later));
    let keys: Value = serde_json::from_str(&dir.read("bot.key")).unwrap();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2);
    let link = fs::symlink_metadata(dir.file("link.key")).unwrap();
    assert!(link.is_symlink());
    let mode = fs::metadata(dir.file("bot.key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_key_is_readable_by_its_owner_alone_and_a_later_one_is_added() {
    let (dir, cmd) = setup("identity-new");
    let printed = fine(cmd.run(&["identity", "new", "--signature-key", "bot.key"]));
    let mode = fs::metadata(dir.file("bot.key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = cmd.run(&["identity", "new", "--signature-key", "bot.key"]);
    assert_eq!(again.code, 2);
    assert!(
        again.stderr.contains("the key file `bot.key` exists"),
        "{}",
        again.stderr
    );
    let later = [
        "identity",
        "new",
        "--signature-key",
        "bot.key",
        "--start-in",
        "2d",
    ];
    let second = fine(cmd.run(&later));
    let keys: Value = serde_json::from_str(&dir.read("bot.key")).unwrap();
    assert_eq!(keys["keys"][0]["kid"], printed.trim());
    assert_eq!(keys["keys"][1]["kid"], second.trim());
    assert!(keys["keys"][1]["nbf"].is_u64());

    let publish = [
        "identity",
        "directory",
        "--out",
        "www",
        "--contact",
        "bot@e.example",
    ];
    fine(cmd.run(&[&publish[..], &WHO].concat()));
    let published: Value = serde_json::from_str(&dir.read("www/keys.json")).unwrap();
    assert_eq!(published["keys"].as_array().unwrap().len(), 2);
    assert!(published["keys"][0].get("d").is_none());
    let card: Value = serde_json::from_str(&dir.read("www/signature-agent-card.json")).unwrap();
    assert_eq!(
        card["client_id"],
        "https://bot.example/signature-agent-card.json"
    );
    assert_eq!(card["jwks_uri"], URL);
}

#[test]
fn every_request_of_a_signed_crawl_verifies_and_no_record_has_the_key() {
    let (dir, cmd) = setup("identity-always");
    let secret = create_key(&dir, &cmd);
    let web = site();
    let log = crawl(&cmd, &web.url(0, "/"), "c", "always");
    let rows = dir.rows("c/requests.jsonl");
    assert!(
        rows.len() >= 5 && rows.iter().all(|row| row["signed"] == true),
        "{rows:?}"
    );

    // The crawl's own settings name the keys.
    let audit = cmd.run(&["audit", "c", "--json"]);
    let audit_of: Value = serde_json::from_str(&audit.stdout).unwrap();
    assert_eq!(audit.code, 0, "{}", audit.stdout);
    assert_eq!(audit_of["signed"], rows.len());
    assert_eq!(audit_of["checked"]["signatures"], rows.len());
    assert_eq!(audit_of["undecided"], serde_json::json!({}));

    let keys = format!("{URL}=www/keys.json");
    let warc = warc(&dir, "c");
    let verified = cmd.run(&["identity", "verify", &warc, "--keys", &keys]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    let valid = format!("valid      {}\n", rows.len());
    assert!(verified.stdout.contains(&valid), "{}", verified.stdout);
    // Without the keys, signatures count as neither valid nor invalid.
    let unknown = cmd.run(&["identity", "verify", &warc]);
    assert_eq!(unknown.code, 1, "{}", unknown.stdout);
    let words = format!("invalid    0\nunknown    {}\n", rows.len());
    assert!(unknown.stdout.contains(&words), "{}", unknown.stdout);

    let ran = cmd.run(&["replay", "c", "--output", "r"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for text in [
        log,
        dir.read("c/crawl.toml"),
        dir.read("c/requests.jsonl"),
        verified.stdout,
    ] {
        assert!(!text.contains(&secret));
    }
}

#[test]
fn a_host_that_demands_signatures_gets_them_also_for_robots_txt() {
    let (dir, cmd) = setup("identity-challenged");
    create_key(&dir, &cmd);
    let web = site();
    let accept = "sig1=(\"@authority\");tag=\"web-bot-auth\"";
    let challenge = HttpAnswer::of(403).header("Accept-Signature", accept);
    let rules = HttpAnswer::text("User-agent: *\nDisallow: /page\n");
    web.script(
        0,
        "/robots.txt",
        ReplySequence::always(challenge).then(rules),
    );
    crawl(&cmd, &web.url(0, "/"), "c", "when-challenged");
    let rows = dir.rows("c/requests.jsonl");
    let signed: Vec<_> = rows.iter().map(|row| row["signed"] == true).collect();
    assert!(!signed[0]);
    assert!(
        signed.len() > 2 && signed[1..].iter().all(|signed| *signed),
        "{rows:?}"
    );
    assert_eq!(rows[0]["challenged"], true);
    assert_eq!(rows[1]["purpose"], "hop");
    // The crawl respects the robots.txt that it fetched with the signed request.
    assert!(
        rows.iter()
            .all(|row| !row["url"].as_str().unwrap().ends_with("/page"))
    );
    let audit = cmd.run(&["audit", "c"]);
    assert_eq!(audit.code, 0, "{}", audit.stdout);
    let ran = cmd.run(&["replay", "c", "--output", "r"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

/// Returns the fields that sign a request to `host`.
fn signed(
    keys: &SigningKeySet,
    host: &str,
    created: u64,
    nonce: &str,
) -> [(&'static str, String); 3] {
    let request = SignableMessage {
        authority: host.to_owned(),
        ..SignableMessage::default()
    };
    let (key, asked) = (keys.at(created).unwrap(), AcceptSignature::default());
    signature_fields(key, URL, &request, &asked, created, nonce.as_bytes()).unwrap()
}

/// Returns a line of a JSON log: a request to `host`, signed at `created` and received at `at`.
fn logged(keys: &SigningKeySet, host: &str, created: u64, at: u64, nonce: &str) -> String {
    let fields = signed(keys, host, created, nonce);
    let headers: serde_json::Map<String, Value> = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let line = serde_json::json!({"ts": at, "host": host, "uri": "/p", "headers": headers});
    format!("{line}\n")
}

#[test]
fn verify_distinguishes_replays_and_signatures_for_others_from_forgeries() {
    let (dir, cmd) = setup("identity-verify");
    create_key(&dir, &cmd);
    let keys = SigningKeySet::parse(&dir.read("bot.key")).unwrap();
    let mut strangers = SigningKeySet::default();
    strangers.add([9; 32], None);
    let own = |created, at, nonce| logged(&keys, "e.example", created, at, nonce);
    let log = [
        own(1000, 1010, "a"),
        own(1000, 1010, "b"),
        own(1000, 1020, "a"),
        own(1000, 1066, "c"),
        own(1000, 994, "d"),
        logged(&keys, "evil.example", 1000, 1000, "e"),
        logged(&strangers, "e.example", 1000, 1000, "f"),
        own(1000, 1000, "g").replace("sig1=:", "sig1=:AAAA"),
        "{\"ts\":1000,\"host\":\"e.example\",\"headers\":{\"Accept\":\"*/*\"}}\n".to_owned(),
    ];
    dir.write("access.jsonl", &log.concat());
    let directory = format!("{URL}=www/keys.json");
    let verify = ["identity", "verify", "access.jsonl", "--keys", &directory];
    let ran = cmd.run(&[&verify[..], &["--host", "E.example"]].concat());
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    let counts = "invalid    5\n           1 expired\n           1 future\n           \
                  1 other-host\n           1 replay\n           1 wrong\nunknown    1\n";
    for words in [
        "requests   9\nunsigned   1\nvalid      2\n",
        counts,
        "invalid    evil.example/p: it was made for another host, `evil.example`\n",
        "invalid    e.example/p: it is a replay: its nonce was used before\n",
        "invalid    e.example/p: it had expired 6 s before the request\n",
        "invalid    e.example/p: it is 6 s younger than the request\n",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    // Without the names of the hosts, the output reports that they weren't checked.
    let unchecked = cmd.run(&verify);
    assert!(
        unchecked.stdout.contains("hosts      not checked"),
        "{}",
        unchecked.stdout
    );
    let strict = [
        "--host",
        "e.example",
        "--max-lifetime",
        "59s",
        "--clock-tolerance",
        "6s",
    ];
    let ran = cmd.run(&[&verify[..], &strict, &["--json"]].concat());
    let reasons = ran.stdout.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["reason"].clone(), line["outcome"].clone())
    });
    let reasons: Vec<_> = reasons.collect();
    assert_eq!(reasons[3], ("lifetime".into(), "invalid".into()));
    assert_eq!(reasons[6], ("unknown-key".into(), "unknown".into()));
}

#[test]
fn verify_reads_compressed_logs_and_the_combined_format() {
    let (dir, cmd) = setup("identity-logs");
    create_key(&dir, &cmd);
    let keys = SigningKeySet::parse(&dir.read("bot.key")).unwrap();
    let directory = format!("{URL}=www/keys.json");
    let json = logged(&keys, "e.example", 1_700_000_000, 1_700_000_000, "a");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(json.as_bytes()).unwrap();
    fs::write(dir.file("access.1.gz"), gzip.finish().unwrap()).unwrap();
    let fields = signed(&keys, "e.example", 1_700_000_000, "b");
    let [agent, input, signature] = fields.map(|(_, value)| value.replace('"', "\\x22"));
    dir.write(
        "access.log",
        &format!(
            "192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] \"GET /p HTTP/1.1\" 200 5 \"-\" \"bot\" \
             \"e.example\" \"{agent}\" \"{input}\" \"{signature}\"\n"
        ),
    );
    for log in ["access.1.gz", "access.log"] {
        let verify = ["identity", "verify", log, "--keys", &directory];
        let ran = cmd.run(&[&verify[..], &["--host", "e.example"]].concat());
        assert_eq!(ran.code, 0, "{log}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("valid      1\n"), "{}", ran.stdout);
    }
    dir.write(
        "plain.log",
        "192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] \"GET / HTTP/1.1\" 200 5\n",
    );
    let ran = cmd.run(&["identity", "verify", "plain.log"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr
            .contains("no line that is a request with its header fields"),
        "{}",
        ran.stderr
    );
}

/// nginx 1.22 wrote these logs, in the formats of docs/identity.md, while a crawl with
/// `signature = "always"` visited it.
#[test]
fn verify_reads_the_logs_that_nginx_writes() {
    const JSON: &str = include_str!("logs/nginx-json.log");
    const TEXT: &str = include_str!("logs/nginx-text.log");
    let (dir, cmd) = setup("identity-nginx");
    dir.write("keys.json", include_str!("logs/keys.json"));
    let keys = "https://bot.example.org/.well-known/http-message-signatures-directory=keys.json";
    let verify = |log: &str| {
        dir.write("access.log", log);
        let verify = ["identity", "verify", "access.log", "--keys", keys];
        cmd.run(&[&verify[..], &["--host", "127.0.0.1:18923"]].concat())
    };
    for log in [JSON, TEXT] {
        let ran = verify(log);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("valid      3\n"), "{}", ran.stdout);
        let forged = verify(&log.replacen("created=1795889151", "created=1795889152", 1));
        assert_eq!(forged.code, 4, "{}{}", forged.stdout, forged.stderr);
        assert!(
            forged.stdout.contains("invalid    1\n"),
            "{}",
            forged.stdout
        );
    }
    let docs = include_str!("../../../../docs/identity.md");
    let line: Value = serde_json::from_str(JSON.lines().next().unwrap()).unwrap();
    for name in line.as_object().unwrap().keys() {
        let member = format!("\"{name}\":\"${name}\"");
        assert!(docs.contains(&member), "{member}");
    }
}

/// A WARC file has the URL of each request, so a signature for another host is detected without
/// `--host`.
#[test]
fn verify_compares_the_host_of_an_archived_request_with_its_url() {
    let (dir, cmd) = setup("identity-warc-host");
    create_key(&dir, &cmd);
    let keys = SigningKeySet::parse(&dir.read("bot.key")).unwrap();
    let fields = signed(&keys, "evil.example", 1_700_000_000, "a");
    let fields = fields.map(|(name, value)| format!("{name}: {value}\r\n"));
    let http = format!(
        "GET / HTTP/1.1\r\nHost: evil.example\r\n{}\r\n",
        fields.concat()
    );
    let record = format!(
        "WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: <urn:uuid:1>\r\n\
         WARC-Date: 2023-11-14T22:13:20Z\r\nWARC-Target-URI: https://e.example/\r\n\
         Content-Type: application/http;msgtype=request\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
        http.len()
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(record.as_bytes()).unwrap();
    let directory = format!("{URL}=www/keys.json");
    for (name, bytes) in [
        ("a.warc.gz", gzip.finish().unwrap()),
        (
            "a.warc.zst",
            zstd::encode_all(record.as_bytes(), 1).unwrap(),
        ),
        ("a.warc", record.into_bytes()),
    ] {
        fs::write(dir.file(name), bytes).unwrap();
        let ran = cmd.run(&["identity", "verify", name, "--keys", &directory]);
        assert_eq!(ran.code, 4, "{name}: {}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stdout
                .contains("it was made for another host, `evil.example`"),
            "{name}: {}",
            ran.stdout
        );
    }
}

/// A server chooses the label, the components and the nonce of the signature.
#[test]
fn a_requested_signature_has_the_label_components_and_nonce_of_the_server() {
    let (dir, cmd) = setup("identity-requested");
    create_key(&dir, &cmd);
    let web = site();
    let accept = "mine=(\"@method\" \"@path\" \"user-agent\");created;expires;nonce=\"n-1\"\
                  ;tag=\"web-bot-auth\"";
    let challenge = HttpAnswer::of(403).header("Accept-Signature", accept);
    web.script(
        0,
        "/page",
        ReplySequence::always(challenge).then(HttpAnswer::html("page")),
    );
    let unmet = "a=(\"cookie\");tag=\"web-bot-auth\"";
    web.script(
        0,
        "/there",
        HttpAnswer::of(403).header("Accept-Signature", unmet),
    );
    crawl(&cmd, &web.url(0, "/"), "c", "always");
    let rows = dir.rows("c/requests.jsonl");
    let of_page = |path: &str| -> Vec<Value> {
        let ends = |row: &&Value| row["url"].as_str().unwrap().ends_with(path);
        rows.iter().filter(ends).cloned().collect()
    };
    let pages = of_page("/page");
    assert_eq!(pages.len(), 2, "{rows:?}");
    assert_eq!(
        (&pages[0]["challenged"], &pages[1]["status"]),
        (&true.into(), &200.into())
    );
    let there = of_page("/there");
    assert_eq!(there.len(), 1, "{rows:?}");
    assert_eq!(
        there[0]["unmet_signature"],
        "it covers `\"cookie\"`, which the request doesn't have"
    );
    let warc = dir.file(&warc(&dir, "c"));
    let mut archive = Vec::new();
    let file = fs::File::open(warc).unwrap();
    let mut unpacked = flate2::read::MultiGzDecoder::new(file);
    unpacked.read_to_end(&mut archive).unwrap();
    let archive = String::from_utf8_lossy(&archive);
    let covered = "mine=(\"@method\" \"@path\" \"user-agent\" \"@authority\" \
                   \"signature-agent\";key=\"mine\")";
    assert!(archive.contains(covered), "{archive}");
    assert_eq!(archive.matches(";nonce=\"n-1\";").count(), 1);
    let audit = cmd.run(&["audit", "c"]);
    assert_eq!(audit.code, 0, "{}", audit.stdout);
    assert!(audit.stdout.contains("unmet      1 "), "{}", audit.stdout);
    let ran = cmd.run(&["replay", "c", "--output", "r"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_crawl_with_a_key_that_others_may_read_does_not_start() {
    let (dir, cmd) = setup("identity-mode");
    let secret = create_key(&dir, &cmd);
    fs::set_permissions(dir.file("bot.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let own = ["--seed", "http://127.0.0.1:1/", "--signature", "always"];
    let ran = cmd.run(&[&own[..], &WHO].concat());
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr
            .contains("its mode is 644, so other users may read it"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("hint: run `chmod 600 bot.key`"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains(&secret));
}

#[test]
fn the_keys_may_be_in_the_environment() {
    let (dir, mut cmd) = setup("identity-environment");
    create_key(&dir, &cmd);
    let web = site();
    let own = [
        "--output",
        "c",
        "--signature",
        "always",
        "--signature-agent",
        URL,
    ];
    let seed = web.url(0, "/");
    let args = [&["--seed", &seed][..], &own, &QUICK].concat();
    let missing = cmd.run(&args);
    assert_eq!(missing.code, 2);
    assert!(
        missing.stderr.contains("CRAWL_SIGNATURE_KEY: it isn't set"),
        "{}",
        missing.stderr
    );
    cmd.env("CRAWL_SIGNATURE_KEY", &dir.read("bot.key"));
    let ran = cmd.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        dir.rows("c/requests.jsonl")
            .iter()
            .all(|row| row["signed"] == true)
    );
}

#[test]
fn check_reports_keys_that_can_not_be_fetched() {
    let (dir, cmd) = setup("identity-check");
    create_key(&dir, &cmd);
    let agent = ["--signature-agent", "https://127.0.0.1:1/keys.json"];
    let ran = cmd.run(
        &[
            &["identity", "check", "--signature-key", "bot.key"][..],
            &agent,
        ]
        .concat(),
    );
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let words = "https://127.0.0.1:1/keys.json: verifiers can't use these keys\n  fetch: it can't be fetched";
    assert!(ran.stdout.starts_with(words), "{}", ran.stdout);
}

#[test]
fn the_page_of_the_crawler_needs_a_contact() {
    let (dir, cmd) = setup("identity-page");
    let ran = cmd.run(&["identity", "page", "--out", "bot.html"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("the page needs --contact"),
        "{}",
        ran.stderr
    );
    let contact = [
        "--contact",
        "https://bot.example/bot.html",
        "--agent",
        "tea-bot",
    ];
    fine(cmd.run(&[&["identity", "page", "--out", "bot.html"][..], &contact].concat()));
    assert!(
        dir.read("bot.html")
            .contains("User-agent: tea-bot\nDisallow: /\n")
    );
}

#[test]
fn the_owner_of_a_host_gets_every_request_to_it_signed() {
    let (dir, cmd) = setup("identity-conduct");
    create_key(&dir, &cmd);
    let web = site();
    web.script(
        0,
        "/robots.txt",
        HttpAnswer::text("User-agent: *\nAllow: /page\nDisallow: /moved\n"),
    );
    crawl(&cmd, &web.url(0, "/"), "c", "always");
    let address = web.url(0, "/").replace("http://", "");
    let host = address.trim_end_matches('/');
    let audit = cmd.run(&["audit", "c", "--host", host, "--html", "host.html"]);
    assert_eq!(audit.code, 0, "{}{}", audit.stdout, audit.stderr);
    let html = dir.read("host.html");
    for row in dir.rows("c/requests.jsonl") {
        assert!(html.contains(row["url"].as_str().unwrap()), "{row}");
    }
    for part in [
        "ms, 10 required",
        "line 2: <code>Allow: /page</code>",
        "   3  Disallow: /moved",
        "1 known URL was not requested",
        "copy of ",
        "No breach of a rule was found",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let keys = format!("{URL}=www/keys.json");
    let verified = cmd.run(&["identity", "verify", "host.html", "--keys", &keys]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    assert!(
        verified.stdout.contains("and unchanged"),
        "{}",
        verified.stdout
    );
    dir.write("host.html", &html.replace("10 required", "9 required"));
    let changed = cmd.run(&["identity", "verify", "host.html", "--keys", &keys]);
    assert_eq!(changed.code, 4);
    assert!(
        changed
            .stdout
            .contains("it was changed after it was signed"),
        "{}",
        changed.stdout
    );
    // Without the key, the page is not signed, and states this.
    fs::rename(dir.file("bot.key"), dir.file("kept.key")).unwrap();
    let unsigned = cmd.run(&["audit", "c", "--host", host, "--html", "host.html"]);
    assert_eq!(unsigned.code, 0, "{}{}", unsigned.stdout, unsigned.stderr);
    let words = "`host.html` isn't signed: can't use the key file `bot.key`";
    assert!(unsigned.stderr.contains(words), "{}", unsigned.stderr);
    let html = dir.read("host.html");
    assert!(html.contains("This page is not signed"), "{html}");
    // A key that signed no request of the crawl must not sign the page about it.
    fine(cmd.run(&["identity", "new", "--signature-key", "bot.key"]));
    let stranger = cmd.run(&["audit", "c", "--host", host, "--html", "other.html"]);
    assert_eq!(stranger.code, 2, "{}{}", stranger.stdout, stranger.stderr);
    let words = "the keys of the crawl's settings didn't sign this crawl";
    assert!(stranger.stderr.contains(words), "{}", stranger.stderr);
    assert!(!dir.file("other.html").exists());
    fs::rename(dir.file("kept.key"), dir.file("bot.key")).unwrap();
    let other = cmd.run(&["audit", "c", "--host", "b.example", "--html", "b.html"]);
    assert_eq!(other.code, 2);
    assert!(
        other.stderr.contains("b.example got no request"),
        "{}",
        other.stderr
    );
}

/// `CRAWL_PYTHON_BIN` is the folder of programs of a Python environment with the packages of
/// `crates/xtask/requirements.txt`.
#[test]
#[ignore = "needs Python: cargo xtask test sets it up"]
fn signed_requests_verify_with_http_message_signatures() {
    let (dir, cmd) = setup("identity-python");
    create_key(&dir, &cmd);
    let web = site();
    crawl(&cmd, &web.url(0, "/"), "c", "always");
    let python = PathBuf::from(std::env::var_os("CRAWL_PYTHON_BIN").unwrap());
    let verified = Command::new(python.join("python"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/signatures.py"))
        .args([dir.file(&warc(&dir, "c")), dir.file("www/keys.json")])
        .output()
        .unwrap();
    let count = format!("{}\n", dir.rows("c/requests.jsonl").len());
    let errors = String::from_utf8_lossy(&verified.stderr);
    assert_eq!(String::from_utf8_lossy(&verified.stdout), count, "{errors}");
}
