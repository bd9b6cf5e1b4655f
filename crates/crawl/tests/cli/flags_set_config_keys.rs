//! Every flag sets its key.

use std::collections::BTreeSet;

use crate::harness::setup;

/// Flags with values, and the resulting lines of the effective configuration.
const FLAGS: &[(&[&str], &str)] = &[
    (&["--contact", "a@e.example"], "contact = \"a@e.example\""),
    (&["--agent", "our-bot"], "agent = \"our-bot\""),
    (&["--kind", "general"], "kind = \"general\""),
    (&["--operator-name", "Jo Doe"], "operator-name = \"Jo Doe\""),
    (
        &["--institution", "An Institute"],
        "institution = \"An Institute\"",
    ),
    (&["--study", "How pages age"], "study = \"How pages age\""),
    (
        &["--study-page", "https://e.example/study"],
        "study-page = \"https://e.example/study\"",
    ),
    (
        &["--signature", "when-challenged"],
        "signature = \"when-challenged\"",
    ),
    (
        &["--signature-agent", "https://b.example"],
        "signature-agent = \"https://b.example\"",
    ),
    (
        &["--signature-key", "bot.key"],
        "signature-key = \"bot.key\"",
    ),
    (&["--scope", "domain"], "scope = \"domain\""),
    (&["--scope", "prefix"], "scope = \"prefix\""),
    (&["--scope=any"], "scope = \"any\""),
    (
        &["--include", "a", "--include", "b"],
        "include = [\"a\", \"b\"]",
    ),
    (
        &[
            "--surt",
            "org,example,",
            "--surt",
            "http://(org,example,)/a",
        ],
        "surt = [\"org,example,\", \"http://(org,example,)/a\"]",
    ),
    (&["--host", "b.example"], "host = [\"b.example\"]"),
    (
        &["--exclude-host", "c.example", "--exclude-host", "192.0.2.7"],
        "exclude-host = [\"c.example\", \"192.0.2.7\"]",
    ),
    (&["--exclude", r"\.pdf$"], r"exclude = ['\.pdf$']"),
    (&["--hops-off-scope", "2"], "hops-off-scope = 2"),
    (
        &["--off-scope-method", "head"],
        "off-scope-method = \"head\"",
    ),
    (
        &["--content-type", "text/html", "--content-type", "Image/*"],
        "content-type = [\"text/html\", \"image/*\"]",
    ),
    (&["--min-size", "1kB"], "min-size = \"1kB\""),
    (&["--max-size", "2MiB"], "max-size = \"2MiB\""),
    (
        &["--language", "de", "--language", "fr-CA"],
        "language = [\"de\", \"fr-CA\"]",
    ),
    (&["--max-depth", "3"], "max-depth = 3"),
    (&["--max-depth", "unlimited"], "max-depth = \"unlimited\""),
    (&["--max-pages", "1000"], "max-pages = 1000"),
    (&["--max-pages-per-host", "10"], "max-pages-per-host = 10"),
    (
        &["--max-bytes-per-host", "1MB"],
        "max-bytes-per-host = \"1MB\"",
    ),
    (&["--max-server-time", "2h"], "max-server-time = \"2h\""),
    (
        &["--max-server-time-per-host", "1m"],
        "max-server-time-per-host = \"1m\"",
    ),
    (&["--max-time-per-host", "1d"], "max-time-per-host = \"1d\""),
    (&["--jitter", "0.01"], "jitter = 0.01"),
    (&["--max-retry-after", "1h"], "max-retry-after = \"1h\""),
    (
        &["--quiet-hours", "22:00-06:00"],
        "quiet-hours = [\"22:00-06:00\"]",
    ),
    (&["--max-time", "1h30m"], "max-time = \"1h30m\""),
    (&["--max-bytes", "5GB"], "max-bytes = \"5GB\""),
    (&["--max-redirects", "2"], "max-redirects = 2"),
    (&["--max-sitemap-urls", "1000"], "max-sitemap-urls = 1000"),
    (&["--sitemaps", "off"], "sitemaps = \"off\""),
    (&["--feeds", "off"], "feeds = \"off\""),
    (&["--forms"], "forms = \"on\""),
    (&["--resources"], "resources = \"all\""),
    (&["--resources=own"], "resources = \"own\""),
    (&["--resources", "own"], "resources = \"own\""),
    (&["--render", "off"], "render = \"off\""),
    (&["--render-tabs", "3"], "render-tabs = 3"),
    (&["--render-time", "5s"], "render-time = \"5s\""),
    (&["--render-timeout", "1m"], "render-timeout = \"1m\""),
    (&["--render-memory", "1GiB"], "render-memory = \"1GiB\""),
    (&["--render-resources", "all"], "render-resources = \"all\""),
    (&["--render-post"], "render-post = \"on\""),
    (&["--screenshots"], "screenshots = \"on\""),
    (&["--render-max-requests", "9"], "render-max-requests = 9"),
    (&["--render-max-bytes", "1MB"], "render-max-bytes = \"1MB\""),
    (&["--render-max-hosts", "2"], "render-max-hosts = 2"),
    (
        &["--browser", "/opt/chromium"],
        "browser = \"/opt/chromium\"",
    ),
    (&["--browser-sandbox", "off"], "browser-sandbox = \"off\""),
    (&["--sample", "200"], "sample = 200"),
    (&["--sample-by", "crawl"], "sample-by = \"crawl\""),
    (&["--sample-by", "host"], "sample-by = \"host\""),
    (&["--sample-by", "depth"], "sample-by = \"depth\""),
    (&["--sample-by", "path"], "sample-by = \"path\""),
    (&["--sample-seed", "wave 2"], "sample-seed = \"wave 2\""),
    (&["--walk", "500"], "walk = 500"),
    (&["--walkers", "9"], "walkers = 9"),
    (&["--walk-restart", "0.2"], "walk-restart = 0.2"),
    (&["--frame-depth", "0"], "frame-depth = 0"),
    (&["--add-seed"], "add-seed = \"on\""),
    (&["--index"], "index = \"on\""),
    (&["--links"], "links = \"on\""),
    (&["--fail-on-partial"], "fail-on-partial = \"on\""),
    (&["--recrawl", "off"], "recrawl = \"off\""),
    (&["-q", "off"], "quiet = \"off\""),
    (&["-vq", "on"], "quiet = \"on\""),
    (&["--allow-private", "true"], "allow-private = \"on\""),
    (&["--delay", "2500ms"], "delay = \"2s500ms\""),
    (&["--delay-factor", "0.5"], "delay-factor = 0.5"),
    (&["--per-host", "3"], "per-host = 3"),
    (&["--per-address", "4"], "per-address = 4"),
    (&["--address-delay", "1s"], "address-delay = \"1s\""),
    (&["--address-rate", "2.5"], "address-rate = 2.5"),
    (&["--per-site", "6"], "per-site = 6"),
    (&["--site-delay", "100ms"], "site-delay = \"100ms\""),
    (&["--max-rate", "2.5"], "max-rate = 2.5"),
    (&["--concurrency", "64"], "concurrency = 64"),
    (&["--look-ups", "9"], "look-ups = 9"),
    (&["--hosts-in-memory", "10"], "hosts-in-memory = 10"),
    (&["--wait-unreachable", "1d"], "wait-unreachable = \"1d\""),
    (&["--own-site"], "own-site = \"on\""),
    (&["--own-site=off"], "own-site = \"off\""),
    (&["--robots", "koster1994"], "robots = \"koster1994\""),
    (&["--robots", "extended1997"], "robots = \"extended1997\""),
    (&["--robots", "strictest"], "robots = \"strictest\""),
    (&["--robots", "rfc9309"], "robots = \"rfc9309\""),
    (&["--purpose", "search"], "purpose = \"search\""),
    (&["--purpose", "ai-input"], "purpose = \"ai-input\""),
    (&["--purpose", "train-ai"], "purpose = \"train-ai\""),
    (&["--purpose", "archive"], "purpose = \"archive\""),
    (&["--purpose", "unstated"], "purpose = \"unstated\""),
    (
        &["--robots-forbidden", "deny"],
        "robots-forbidden = \"deny\"",
    ),
    (&["--robots-max-age", "1h"], "robots-max-age = \"1h\""),
    (&["--robots-retry", "10s"], "robots-retry = \"10s\""),
    (&["--robots-retry-most", "1h"], "robots-retry-most = \"1h\""),
    (&["--robots-last-good", "7d"], "robots-last-good = \"7d\""),
    (&["--traps", "off"], "traps = \"off\""),
    (&["--skip-actions"], "skip-actions = \"on\""),
    (&["--skip-actions=off"], "skip-actions = \"off\""),
    (
        &["--tracking-parameters", "off"],
        "tracking-parameters = \"off\"",
    ),
    (
        &["--tracking-parameters", "evidence"],
        "tracking-parameters = \"evidence\"",
    ),
    (
        &["--tracking-parameters", "on"],
        "tracking-parameters = \"on\"",
    ),
    (
        &["--default-documents", "off"],
        "default-documents = \"off\"",
    ),
    (
        &["--default-documents", "evidence"],
        "default-documents = \"evidence\"",
    ),
    (&["--default-documents", "on"], "default-documents = \"on\""),
    (&["--session-ids", "off"], "session-ids = \"off\""),
    (&["--session-ids", "evidence"], "session-ids = \"evidence\""),
    (&["--session-ids", "on"], "session-ids = \"on\""),
    (&["--parameter-order", "off"], "parameter-order = \"off\""),
    (
        &["--parameter-order", "evidence"],
        "parameter-order = \"evidence\"",
    ),
    (&["--parameter-order", "on"], "parameter-order = \"on\""),
    (&["--empty-parameters", "off"], "empty-parameters = \"off\""),
    (
        &["--empty-parameters", "evidence"],
        "empty-parameters = \"evidence\"",
    ),
    (&["--empty-parameters", "on"], "empty-parameters = \"on\""),
    (&["--clean-params", "off"], "clean-params = \"off\""),
    (&["--recrawl"], "recrawl = \"on\""),
    (&["--recrawl=off"], "recrawl = \"off\""),
    (&["--every", "1d"], "every = \"1d\""),
    (&["--every", "never"], "every = \"never\""),
    (&["--revisit-least", "1h"], "revisit-least = \"1h\""),
    (&["--revisit-most", "7d"], "revisit-most = \"7d\""),
    (
        &["--frontier", "postgres://db.example/c"],
        "frontier = [\"postgres://db.example/c\"]",
    ),
    // Two connection strings name two server groups.
    (
        &[
            "--frontier",
            "postgres://a.example/c",
            "--frontier",
            "postgres://b.example/c",
        ],
        "frontier = [\"postgres://a.example/c\", \"postgres://b.example/c\"]",
    ),
    (&["--crawl", "press"], "crawl = \"press\""),
    (&["--worker", "w1"], "worker = \"w1\""),
    (&["--frontier-lease", "20s"], "frontier-lease = \"20s\""),
    (&["--timeout", "30s"], "timeout = \"30s\""),
    (&["--connect-timeout", "3s"], "connect-timeout = \"3s\""),
    (
        &["--first-byte-timeout", "9s"],
        "first-byte-timeout = \"9s\"",
    ),
    (&["--idle-timeout", "8s"], "idle-timeout = \"8s\""),
    (&["--keep-alive", "1m"], "keep-alive = \"1m\""),
    (&["--max-kept-connections", "9"], "max-kept-connections = 9"),
    (&["--max-body", "512KiB"], "max-body = \"512KiB\""),
    (&["--body-memory", "1GiB"], "body-memory = \"1GiB\""),
    (
        &[
            "--name-server",
            "127.0.0.1:5353",
            "--name-server",
            "[::1]:53",
        ],
        "name-server = [\"127.0.0.1:5353\", \"::1\"]",
    ),
    (&["--name-server-rate", "20"], "name-server-rate = 20.0"),
    (&["--cookies", "cookies.txt"], "cookies = \"cookies.txt\""),
    (&["--ca-file", "ca.pem"], "ca-file = [\"ca.pem\"]"),
    (&["--retries", "0"], "retries = 0"),
    (
        &["--proxy", "socks5h://127.0.0.1:9050"],
        "proxy = \"socks5h://127.0.0.1:9050\"",
    ),
    (
        &["--resolve", "e.example:80:127.0.0.1"],
        "resolve = [\"e.example:80:127.0.0.1\"]",
    ),
    (&["--referer"], "referer = \"on\""),
    (&["--allow-private"], "allow-private = \"on\""),
    (&["--output", "there"], "output = \"there\""),
    (&["--warc", "off"], "warc = \"off\""),
    (
        &["--warc-compression", "zstd"],
        "warc-compression = \"zstd\"",
    ),
    (&["--index", "on"], "index = \"on\""),
    (&["--links", "on"], "links = \"on\""),
    (&["--commit-within", "250ms"], "commit-within = \"250ms\""),
    (&["--progress", "auto"], "progress = \"auto\""),
    (&["--progress", "bar"], "progress = \"bar\""),
    (&["--progress", "plain"], "progress = \"plain\""),
    (&["--progress", "json"], "progress = \"json\""),
    (&["--progress", "off"], "progress = \"off\""),
    (&["-q"], "quiet = \"on\""),
    (&["-v"], "verbose = 1"),
    (&["-vv"], "verbose = 2"),
    (&["--log", "crawl.log"], "log = \"crawl.log\""),
    (
        &["--metrics", "localhost:9464"],
        "metrics = \"127.0.0.1:9464\"",
    ),
    (&["--min-free", "5GiB"], "min-free = \"5GiB\""),
    (&["--index-types", "pdf,html"], "index-types = \"html,pdf\""),
    (&["--document-timeout", "7s"], "document-timeout = \"7s\""),
    (
        &["--document-memory", "300MiB"],
        "document-memory = \"300MiB\"",
    ),
    (&["--document-text", "2MiB"], "document-text = \"2MiB\""),
    (&["--log-format", "text"], "log-format = \"text\""),
    (&["--log-format", "json"], "log-format = \"json\""),
    (&["--log-max-size", "1MiB"], "log-max-size = \"1MiB\""),
    (&["--log-keep", "3"], "log-keep = 3"),
    (&["--fail-on-error"], "fail-on-error = \"on\""),
    (
        &["--seed", "http://b.example/"],
        "seed = [\"http://b.example/\"]",
    ),
];

/// Flags of different keys are tried together, so that the program starts a few times rather than a
/// hundred.
#[test]
fn each_flag_reaches_its_key() {
    let (_dir, cmd) = setup("flags");
    let mut untried = FLAGS.to_vec();
    while !untried.is_empty() {
        let mut keys = BTreeSet::new();
        let (tried, others): (Vec<_>, Vec<_>) = untried.into_iter().partition(|(_, line)| {
            let key = line.split(" = ").next().unwrap_or_default();
            // --quiet and --verbose exclude each other, so count them as one key, which keeps them
            // in separate runs.
            keys.insert(if key == "quiet" { "verbose" } else { key })
        });
        let mut args = vec!["config", "--effective"];
        args.extend(tried.iter().flat_map(|(flags, _)| *flags));
        if !keys.contains("seed") {
            args.extend(["--seed", "http://a.example/"]);
        }
        let printed = cmd.run(&args).ok();
        for (flags, line) in tried {
            assert!(
                printed.lines().any(|printed| printed == line),
                "{flags:?}: {printed}"
            );
        }
        untried = others;
    }
}

#[test]
fn every_key_is_tried() {
    let (_dir, cmd) = setup("untried");
    let key = |line: &str| line.split_once(" = ").map(|(key, _)| key.to_owned());
    let tried: BTreeSet<_> = FLAGS.iter().filter_map(|(_, line)| key(line)).collect();
    let listed = cmd.run(&["config"]).ok();
    // Seed lists set the key `seed`, so `seed-file` and `seed-sitemap` don't have to be tried.
    let listed = listed.replace("seed-file = []\n", "");
    let listed = listed.replace("seed-sitemap = []\n", "");
    let listed = listed.lines().filter(|line| !line.starts_with('#'));
    let listed: BTreeSet<_> = listed.filter_map(key).collect();
    assert_eq!(tried, listed);
}
