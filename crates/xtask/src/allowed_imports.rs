//! The tables of allowed dependencies between crates and between modules. `docs/architecture.md`
//! gives the reasons.

/// For each package, the crates it may depend on directly, except in tests.
pub(crate) const SEES: [(&str, &[&str]); 31] = [
    // The browser needs no fetcher, because the caller of `crawl-browser` answers the requests that
    // pages make.
    ("crawl-browser", &[]),
    ("crawl-coding", &[]),
    ("crawl-dates", &[]),
    ("crawl-documents", &[]),
    ("crawl-identity", &[]),
    ("crawl-weburl", &[]),
    ("crawl-policy", &["crawl-dates"]),
    ("crawl-scope", &["crawl-weburl"]),
    ("crawl-traps", &["crawl-weburl"]),
    ("crawl-extractor", &["crawl-weburl", "crawl-dates"]),
    ("crawl-fields", &["crawl-dates"]),
    ("crawl-sample", &["crawl-weburl"]),
    ("crawl-scheduler", &["crawl-weburl"]),
    ("crawl-frontier", &["crawl-weburl"]),
    ("crawl-shared-frontier", &["crawl-weburl", "crawl-frontier"]),
    // Uses the scheduler's permits to send requests, and reads robots.txt with the policy crate.
    (
        "crawl-fetcher",
        &[
            "crawl-weburl",
            "crawl-coding",
            "crawl-identity",
            "crawl-policy",
            "crawl-scheduler",
        ],
    ),
    ("crawl-archive", &["crawl-weburl"]),
    ("crawl-index-entry", &[]),
    (
        "crawl-index",
        &[
            "crawl-weburl",
            "crawl-policy",
            "crawl-extractor",
            "crawl-archive",
            "crawl-index-entry",
        ],
    ),
    (
        "crawl-engine",
        &[
            "crawl-weburl",
            "crawl-coding",
            "crawl-dates",
            "crawl-documents",
            "crawl-policy",
            "crawl-scope",
            "crawl-traps",
            "crawl-extractor",
            "crawl-fields",
            "crawl-sample",
            "crawl-scheduler",
            "crawl-frontier",
            "crawl-fetcher",
            "crawl-archive",
            "crawl-index-entry",
            "crawl-index",
        ],
    ),
    // Reads recorded crawls and never fetches.
    (
        "crawl-records",
        &[
            "crawl-weburl",
            "crawl-coding",
            "crawl-identity",
            "crawl-policy",
            "crawl-traps",
            "crawl-extractor",
            "crawl-fields",
            "crawl-sample",
            "crawl-frontier",
            "crawl-archive",
        ],
    ),
    (
        "crawl-tables",
        &[
            "crawl-weburl",
            "crawl-fields",
            "crawl-archive",
            "crawl-records",
        ],
    ),
    // Extracts the text of pages from the archive, so it needs the extractor.
    (
        "crawl-wacz",
        &[
            "crawl-weburl",
            "crawl-extractor",
            "crawl-archive",
            "crawl-records",
        ],
    ),
    // Rewrites the references of archived pages, so it needs the extractor.
    (
        "crawl-mirror",
        &[
            "crawl-weburl",
            "crawl-extractor",
            "crawl-archive",
            "crawl-records",
        ],
    ),
    (
        "crawl-bundle",
        &[
            "crawl-weburl",
            "crawl-archive",
            "crawl-records",
            "crawl-tables",
        ],
    ),
    (
        "crawl-gather",
        &[
            "crawl-weburl",
            "crawl-archive",
            "crawl-frontier",
            "crawl-records",
        ],
    ),
    // Reads documents (in a separate process), so it needs `crawl-documents`.
    (
        "crawl",
        &[
            "crawl-coding",
            "crawl-conformance",
            "crawl-weburl",
            "crawl-documents",
            "crawl-identity",
            "crawl-policy",
            "crawl-scope",
            "crawl-extractor",
            "crawl-fields",
            "crawl-sample",
            "crawl-scheduler",
            "crawl-frontier",
            // `crawl frontier` works on a shared frontier without running a crawl.
            "crawl-shared-frontier",
            "crawl-fetcher",
            "crawl-archive",
            "crawl-index",
            "crawl-engine",
            "crawl-browser",
            "crawl-records",
            "crawl-tables",
            "crawl-wacz",
            "crawl-mirror",
            "crawl-bundle",
            "crawl-gather",
        ],
    ),
    ("crawl-testweb", &[]),
    // Judges any crawler, so it uses only the test web and no crate of our crawler.
    ("crawl-conformance", &["crawl-testweb"]),
    // Simulates the scheduler, checks finished crawls after kills, and measures the search and
    // other parts of the crawler without a crawl.
    (
        "crawl-trials",
        &[
            "xtask",
            "crawl-testweb",
            "crawl-coding",
            "crawl-scheduler",
            "crawl-weburl",
            "crawl-archive",
            "crawl-extractor",
            "crawl-frontier",
            "crawl-index",
            "crawl-policy",
        ],
    ),
    // xtask is built before all other crates, so it depends on none of them.
    ("xtask", &[]),
];

/// Programs that are never shipped, and may therefore depend on any package.
pub(crate) const TOOLS: [&str; 2] = ["crawl-trials", "xtask"];

/// The crate that the tests of every crate may use. The crate itself depends on no other crate of
/// the workspace, not even in its own tests.
pub(crate) const FOR_TESTS: &str = "crawl-testweb";

/// Pairs of a crate and another crate that its tests may also use. The engine's tests need
/// `crawl-records` to read the records of finished crawls.
pub(crate) const FOR_TESTS_OF: [(&str, &str); 1] = [("crawl-engine", "crawl-records")];

/// Crates that do no I/O, read no clock and start no task.
pub(crate) const PURE: [&str; 12] = [
    "crawl-coding",
    "crawl-dates",
    "crawl-documents",
    "crawl-identity",
    "crawl-weburl",
    "crawl-policy",
    "crawl-scope",
    "crawl-traps",
    "crawl-extractor",
    "crawl-fields",
    "crawl-sample",
    "crawl-scheduler",
];

/// Pairs of lists of crates. No crate of the first list may depend on a package of the second list,
/// directly or through other packages.
pub(crate) const NEVER: [(&[&str], &[&str]); 5] = [
    (
        &PURE,
        &[
            "tokio", "mio", "hyper", "reqwest", "rustls", "socket2", "fjall", "moka",
        ],
    ),
    // Crates that store data use no network and no async runtime.
    (
        &[
            "crawl-frontier",
            "crawl-archive",
            "crawl-index-entry",
            "crawl-index",
            "crawl-records",
            "crawl-tables",
            "crawl-wacz",
            "crawl-mirror",
            "crawl-bundle",
        ],
        &["tokio", "mio", "hyper", "reqwest", "rustls", "socket2"],
    ),
    // A frontier (what to fetch) and the scheduler (when to fetch) are independent of each other.
    // The engine combines them.
    (
        &["crawl-frontier", "crawl-shared-frontier"],
        &["crawl-scheduler"],
    ),
    (
        &["crawl-scheduler", "crawl-fetcher"],
        &["crawl-frontier", "crawl-shared-frontier"],
    ),
    // Only the binary has a user interface.
    (
        &[
            "crawl-browser",
            "crawl-coding",
            "crawl-dates",
            "crawl-documents",
            "crawl-identity",
            "crawl-weburl",
            "crawl-policy",
            "crawl-scope",
            "crawl-traps",
            "crawl-extractor",
            "crawl-fields",
            "crawl-sample",
            "crawl-scheduler",
            "crawl-frontier",
            "crawl-shared-frontier",
            "crawl-fetcher",
            "crawl-archive",
            "crawl-index-entry",
            "crawl-index",
            "crawl-engine",
            "crawl-records",
            "crawl-tables",
            "crawl-wacz",
            "crawl-mirror",
            "crawl-bundle",
            "crawl-testweb",
            "crawl-conformance",
        ],
        &["clap", "terminal_size", "tracing-subscriber", "anyhow"],
    ),
];

/// Pairs of a package and a crate. Outside of tests, only the crates paired with a package, and
/// `TOOLS`, may name it in their manifests, so that the package stays replaceable.
pub(crate) const OWNED: [(&str, &str); 35] = [
    ("axum", "crawl"),
    ("clap", "crawl"),
    ("cookie_store", "crawl-fetcher"),
    ("cssparser", "crawl-fields"),
    ("ego-tree", "crawl-fields"),
    ("fjall", "crawl-frontier"),
    // Limits the request rates of clients of `crawl serve`.
    ("governor", "crawl"),
    ("governor", "crawl-scheduler"),
    ("hickory-resolver", "crawl-fetcher"),
    ("html5ever", "crawl-extractor"),
    // Parses pages into the tree from which fields are selected.
    ("html5ever", "crawl-fields"),
    ("maud", "crawl"),
    ("maud", "crawl-conformance"),
    // Generates `report.html`, which is a file of the crawl directory.
    ("maud", "crawl-records"),
    ("moka", "crawl-fetcher"),
    ("parquet", "crawl-tables"),
    ("pdf-extract", "crawl-documents"),
    ("psl", "crawl-weburl"),
    ("pulldown-cmark", "crawl-documents"),
    ("reqwest", "crawl-fetcher"),
    ("rustls", "crawl-fetcher"),
    // Encrypts connections to the PostgreSQL server.
    ("rustls", "crawl-shared-frontier"),
    ("rustls-native-certs", "crawl-shared-frontier"),
    ("scraper", "crawl-fields"),
    ("selectors", "crawl-fields"),
    ("tantivy", "crawl-index"),
    ("tokio-postgres", "crawl-shared-frontier"),
    ("tokio-postgres-rustls", "crawl-shared-frontier"),
    ("tower-http", "crawl"),
    // Resolves the references of pages against their base without canonicalizing them.
    ("url", "crawl-fields"),
    // Parses the URLs that the robots.txt library judges, so that users of the library need no
    // other crate of this workspace.
    ("url", "crawl-policy"),
    ("url", "crawl-weburl"),
    ("web_atoms", "crawl-extractor"),
    // Unpacks DOCX files, which are ZIP files.
    ("zip", "crawl-documents"),
    ("zip", "crawl-wacz"),
];

/// A top-level module of a crate, and the modules that it may import.
pub(crate) type AllowedImportsRow = (&'static str, &'static [&'static str]);

/// For each top-level module of a crate, the modules it may import. Rows name only modules in
/// earlier rows, so the table has no cycles.
pub(crate) const MODULES: [(&str, &[AllowedImportsRow]); 2] = [
    (
        "engine",
        &[
            ("frontier_meta_keys", &[]),
            ("runtime_waker", &[]),
            ("time_conversions", &[]),
            ("content_type", &[]),
            ("content_filter", &["content_type"]),
            ("priority", &[]),
            ("secret_redaction", &[]),
            ("usage_preferences", &[]),
            ("crawl_totals", &[]),
            ("run_counters", &[]),
            ("excluded_jsonl_rows", &["priority"]),
            ("free_space", &[]),
            ("document_conversion", &[]),
            ("login", &["content_type"]),
            ("render", &["content_type"]),
            (
                "config",
                &["document_conversion", "login", "render", "time_conversions"],
            ),
            ("control", &["config", "run_counters", "free_space"]),
            ("error", &["control"]),
            ("tombstones", &["error"]),
            ("summary", &["run_counters", "crawl_totals"]),
            ("seed_and_sitemap_admissions", &["priority"]),
            ("sampling", &["config", "error", "frontier_meta_keys"]),
            ("scope_seeds", &["config", "error", "frontier_meta_keys"]),
            ("shared_trap_detector", &["config", "priority"]),
            (
                "revisit",
                &[
                    "config",
                    "error",
                    "excluded_jsonl_rows",
                    "frontier_meta_keys",
                    "sampling",
                    "scope_seeds",
                    "seed_and_sitemap_admissions",
                    "time_conversions",
                    "tombstones",
                    "crawl_totals",
                ],
            ),
            (
                "messages",
                &[
                    "control",
                    "run_counters",
                    "error",
                    "login",
                    "priority",
                    "render",
                    "revisit",
                    "summary",
                    "time_conversions",
                    "crawl_totals",
                ],
            ),
            (
                "state",
                &[
                    "config",
                    "control",
                    "error",
                    "excluded_jsonl_rows",
                    "messages",
                    "frontier_meta_keys",
                    "revisit",
                    "sampling",
                    "scope_seeds",
                    "summary",
                    "tombstones",
                    "crawl_totals",
                ],
            ),
            ("field_extraction", &["error", "state"]),
            (
                "trace_events",
                &["config", "messages", "secret_redaction", "time_conversions"],
            ),
            ("worker_coordination_thread", &["config", "messages"]),
            (
                "index",
                &[
                    "config",
                    "content_type",
                    "document_conversion",
                    "error",
                    "frontier_meta_keys",
                    "secret_redaction",
                    "state",
                    "summary",
                ],
            ),
            (
                "forget",
                &[
                    "error",
                    "index",
                    "frontier_meta_keys",
                    "revisit",
                    "sampling",
                    "scope_seeds",
                    "state",
                    "tombstones",
                ],
            ),
            // Only `replay` and `driver` may import the modules `crawl_loop`, `page_reading`
            // and `write` together.
            (
                "crawl_loop",
                &[
                    "seed_and_sitemap_admissions",
                    "config",
                    "content_filter",
                    "control",
                    "run_counters",
                    "error",
                    "login",
                    "messages",
                    "frontier_meta_keys",
                    "priority",
                    "render",
                    "revisit",
                    "sampling",
                    "secret_redaction",
                    "shared_trap_detector",
                    "summary",
                    "time_conversions",
                    "crawl_totals",
                    "trace_events",
                    "usage_preferences",
                ],
            ),
            (
                "page_reading",
                &[
                    "config",
                    "content_filter",
                    "content_type",
                    "document_conversion",
                    "field_extraction",
                    "index",
                    "messages",
                    "priority",
                    "revisit",
                    "secret_redaction",
                    "shared_trap_detector",
                    "state",
                    "time_conversions",
                    "trace_events",
                    "usage_preferences",
                ],
            ),
            (
                "write",
                &[
                    "seed_and_sitemap_admissions",
                    "config",
                    "control",
                    "run_counters",
                    "error",
                    "excluded_jsonl_rows",
                    "index",
                    "frontier_meta_keys",
                    "messages",
                    "priority",
                    "revisit",
                    "sampling",
                    "scope_seeds",
                    "shared_trap_detector",
                    "state",
                    "summary",
                    "time_conversions",
                    "tombstones",
                    "crawl_totals",
                    "trace_events",
                ],
            ),
            // The replay is a second driver of the crawl loop, without a fetcher.
            (
                "replay",
                &[
                    "config",
                    "content_filter",
                    "control",
                    "crawl_loop",
                    "error",
                    "messages",
                    "frontier_meta_keys",
                    "page_reading",
                    "render",
                    "revisit",
                    "shared_trap_detector",
                    "state",
                    "summary",
                    "trace_events",
                    "write",
                ],
            ),
            (
                "driver",
                &[
                    "config",
                    "content_filter",
                    "control",
                    "crawl_loop",
                    "error",
                    "free_space",
                    "index",
                    "messages",
                    "frontier_meta_keys",
                    "page_reading",
                    "render",
                    "revisit",
                    "runtime_waker",
                    "shared_trap_detector",
                    "worker_coordination_thread",
                    "state",
                    "summary",
                    "time_conversions",
                    "trace_events",
                    "write",
                ],
            ),
        ],
    ),
    (
        "crawl",
        &[
            ("library", &[]),
            ("error", &[]),
            ("clock", &["error"]),
            ("explanation", &["clock", "error"]),
            ("input_file_reader", &["error"]),
            ("output_file", &["error"]),
            ("values", &[]),
            // Starts other programs without our secrets.
            ("child_process_without_secrets", &[]),
            ("rendering", &["error", "values"]),
            (
                "shared_frontier",
                &["child_process_without_secrets", "error"],
            ),
            ("rendering_disabled", &["error", "values"]),
            ("shared_frontier_disabled", &["error"]),
            // Reads private keys and signs requests.
            (
                "identity",
                &[
                    "child_process_without_secrets",
                    "clock",
                    "error",
                    "input_file_reader",
                ],
            ),
            (
                "settings",
                &[
                    "child_process_without_secrets",
                    "error",
                    "identity",
                    "input_file_reader",
                    "output_file",
                    "rendering",
                    "shared_frontier",
                    "values",
                ],
            ),
            ("terminal", &["clock", "error", "settings", "values"]),
            ("search_index_opener", &["error", "terminal"]),
            // Any client of the control socket may use `control`, so it must not depend on the
            // command line or the terminal.
            ("control", &["error", "settings", "values"]),
            (
                "cli",
                &[
                    "control", "error", "identity", "settings", "terminal", "values",
                ],
            ),
            (
                "serve",
                &[
                    "child_process_without_secrets",
                    "cli",
                    "control",
                    "error",
                    "search_index_opener",
                    "values",
                ],
            ),
            // `mcp` only reads, so it needs no access to `control`.
            (
                "mcp",
                &[
                    "cli",
                    "clock",
                    "error",
                    "explanation",
                    "search_index_opener",
                ],
            ),
            // Serves metrics of a crawl over HTTP, with the connection limits of `serve`.
            ("metrics", &["error", "serve"]),
            ("metrics_disabled", &["error"]),
            (
                "run",
                &[
                    "clock",
                    "control",
                    "error",
                    "metrics",
                    "rendering",
                    "settings",
                    "terminal",
                    "values",
                ],
            ),
            (
                "commands",
                &[
                    "child_process_without_secrets",
                    "cli",
                    "clock",
                    "control",
                    "error",
                    "explanation",
                    "identity",
                    "input_file_reader",
                    "run",
                    "search_index_opener",
                    "output_file",
                    "settings",
                    "shared_frontier",
                    "terminal",
                    "values",
                ],
            ),
        ],
    ),
];
