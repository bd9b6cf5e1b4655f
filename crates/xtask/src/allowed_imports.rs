//! Which crate may see what: the table that `docs/architecture.md` explains.

/// For each package, the crates that it may depend on directly, tests aside.
pub(crate) const SEES: [(&str, &[&str]); 26] = [
    ("crawl-coding", &[]),
    ("crawl-dates", &[]),
    ("crawl-documents", &[]),
    ("crawl-weburl", &[]),
    ("crawl-policy", &["crawl-dates"]),
    ("crawl-scope", &["crawl-weburl"]),
    ("crawl-traps", &["crawl-weburl"]),
    ("crawl-extractor", &["crawl-weburl", "crawl-dates"]),
    ("crawl-sample", &["crawl-weburl"]),
    ("crawl-scheduler", &["crawl-weburl"]),
    ("crawl-frontier", &["crawl-weburl"]),
    ("crawl-shared-frontier", &["crawl-weburl", "crawl-frontier"]),
    // It spends the scheduler's permits and reads robots.txt by policy's rules.
    (
        "crawl-fetcher",
        &[
            "crawl-weburl",
            "crawl-coding",
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
            "crawl-sample",
            "crawl-scheduler",
            "crawl-frontier",
            "crawl-fetcher",
            "crawl-archive",
            "crawl-index-entry",
            "crawl-index",
        ],
    ),
    // It reads what others wrote, and never fetches.
    (
        "crawl-records",
        &[
            "crawl-weburl",
            "crawl-coding",
            "crawl-policy",
            "crawl-extractor",
            "crawl-sample",
            "crawl-frontier",
            "crawl-archive",
        ],
    ),
    (
        "crawl-tables",
        &["crawl-weburl", "crawl-archive", "crawl-records"],
    ),
    // The texts of pages are read from the archive once more.
    (
        "crawl-wacz",
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
        &["crawl-weburl", "crawl-archive", "crawl-records"],
    ),
    // It is the program that reads them in a process of its own.
    (
        "crawl",
        &[
            "crawl-coding",
            "crawl-weburl",
            "crawl-documents",
            "crawl-policy",
            "crawl-scope",
            "crawl-extractor",
            "crawl-sample",
            "crawl-scheduler",
            "crawl-frontier",
            // `crawl frontier` speaks to it without a crawl.
            "crawl-shared-frontier",
            "crawl-fetcher",
            "crawl-archive",
            "crawl-index",
            "crawl-engine",
            "crawl-records",
            "crawl-tables",
            "crawl-wacz",
            "crawl-bundle",
            "crawl-gather",
        ],
    ),
    ("crawl-testweb", &[]),
    // Its simulator drives the scheduler; its kill test reads what crawls leave; its
    // benchmarks of search and of the parts of a crawl do their work without one.
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
    // It has to be there before anything else is built.
    ("xtask", &[]),
];

/// Programs that ship nowhere: they may name any package.
pub(crate) const TOOLS: [&str; 2] = ["crawl-trials", "xtask"];

/// Crates that tests of any crate may use; `testweb` itself uses no crate even there.
pub(crate) const FOR_TESTS: &str = "crawl-testweb";

/// Crates that the tests of one crate may use as well: the engine's read back what a crawl leaves.
pub(crate) const FOR_TESTS_OF: [(&str, &str); 1] = [("crawl-engine", "crawl-records")];

/// Crates that do no I/O, read no clock and start no task.
pub(crate) const PURE: [&str; 10] = [
    "crawl-coding",
    "crawl-dates",
    "crawl-documents",
    "crawl-weburl",
    "crawl-policy",
    "crawl-scope",
    "crawl-traps",
    "crawl-extractor",
    "crawl-sample",
    "crawl-scheduler",
];

/// Pairs that must not meet by any chain of dependencies: these crates, and these packages.
pub(crate) const NEVER: [(&[&str], &[&str]); 5] = [
    (
        &PURE,
        &[
            "tokio", "mio", "hyper", "reqwest", "rustls", "socket2", "fjall", "moka",
        ],
    ),
    // Storage knows no network and no runtime.
    (
        &[
            "crawl-frontier",
            "crawl-archive",
            "crawl-index-entry",
            "crawl-index",
            "crawl-records",
            "crawl-tables",
            "crawl-wacz",
            "crawl-bundle",
        ],
        &["tokio", "mio", "hyper", "reqwest", "rustls", "socket2"],
    ),
    // What and when meet in the engine only.
    (
        &["crawl-frontier", "crawl-shared-frontier"],
        &["crawl-scheduler"],
    ),
    (
        &["crawl-scheduler", "crawl-fetcher"],
        &["crawl-frontier", "crawl-shared-frontier"],
    ),
    // Only the binary speaks to people.
    (
        &[
            "crawl-coding",
            "crawl-dates",
            "crawl-documents",
            "crawl-weburl",
            "crawl-policy",
            "crawl-scope",
            "crawl-traps",
            "crawl-extractor",
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
            "crawl-bundle",
            "crawl-testweb",
        ],
        &["clap", "indicatif", "tracing-subscriber", "anyhow"],
    ),
];

/// Packages that these crates alone may name in their manifests, so that they can be replaced
/// there. `TOOLS` are exempt.
pub(crate) const OWNED: [(&str, &str); 28] = [
    ("axum", "crawl"),
    ("clap", "crawl"),
    ("fjall", "crawl-frontier"),
    // Rates of the clients of `crawl serve`.
    ("governor", "crawl"),
    ("governor", "crawl-scheduler"),
    ("hickory-resolver", "crawl-fetcher"),
    ("html5ever", "crawl-extractor"),
    ("indicatif", "crawl"),
    ("maud", "crawl"),
    // `report.html`, which is a file of the crawl's directory.
    ("maud", "crawl-records"),
    ("moka", "crawl-fetcher"),
    ("parquet", "crawl-tables"),
    ("pdf-extract", "crawl-documents"),
    ("psl", "crawl-weburl"),
    ("pulldown-cmark", "crawl-documents"),
    ("reqwest", "crawl-fetcher"),
    ("rustls", "crawl-fetcher"),
    // Connections to its engine.
    ("rustls", "crawl-shared-frontier"),
    ("rustls-native-certs", "crawl-shared-frontier"),
    ("tantivy", "crawl-index"),
    ("tokio-postgres", "crawl-shared-frontier"),
    ("tokio-postgres-rustls", "crawl-shared-frontier"),
    ("tower-http", "crawl"),
    // The URLs of whoever uses its robots.txt library, who needs no other crate of ours.
    ("url", "crawl-policy"),
    ("url", "crawl-weburl"),
    ("web_atoms", "crawl-extractor"),
    // A DOCX is a ZIP file.
    ("zip", "crawl-documents"),
    ("zip", "crawl-wacz"),
];

/// A module at the top of a crate, and the modules that it may import.
pub(crate) type ModuleRow = (&'static str, &'static [&'static str]);

/// For each module at the top of a crate, the modules that it may import. Rows name only what
/// stands above them, so there is no circle.
pub(crate) const MODULES: [(&str, &[ModuleRow]); 2] = [
    (
        "engine",
        &[
            ("meta_keys", &[]),
            ("runtime_waker", &[]),
            ("time", &[]),
            ("content_filter", &[]),
            ("priority", &[]),
            ("secrets", &[]),
            ("usage", &[]),
            ("totals", &[]),
            ("counters", &[]),
            ("excluded_rows", &[]),
            ("free_space", &[]),
            ("document_reader", &[]),
            ("config", &["document_reader", "time"]),
            ("control", &["config", "counters", "free_space"]),
            ("error", &["control"]),
            ("tombstones", &["error"]),
            ("summary", &["totals"]),
            ("admissions", &["priority"]),
            ("sampling", &["config", "error", "meta_keys"]),
            ("scope_seeds", &["config", "error", "meta_keys"]),
            ("shared_traps", &["config", "priority"]),
            (
                "revisit",
                &["config", "error", "meta_keys", "time", "totals"],
            ),
            (
                "messages",
                &[
                    "control", "counters", "error", "priority", "revisit", "summary", "time",
                    "totals",
                ],
            ),
            (
                "state",
                &[
                    "config",
                    "control",
                    "error",
                    "excluded_rows",
                    "meta_keys",
                    "revisit",
                    "sampling",
                    "scope_seeds",
                    "tombstones",
                    "totals",
                ],
            ),
            ("trace_events", &["config", "messages", "secrets", "time"]),
            ("sharing", &["config", "messages"]),
            (
                "index",
                &[
                    "config",
                    "document_reader",
                    "error",
                    "meta_keys",
                    "secrets",
                    "state",
                    "summary",
                ],
            ),
            (
                "forget",
                &[
                    "error",
                    "index",
                    "meta_keys",
                    "revisit",
                    "sampling",
                    "scope_seeds",
                    "state",
                    "tombstones",
                ],
            ),
            // These three meet in the driver alone.
            (
                "crawl_loop",
                &[
                    "admissions",
                    "config",
                    "control",
                    "counters",
                    "error",
                    "messages",
                    "meta_keys",
                    "priority",
                    "revisit",
                    "sampling",
                    "secrets",
                    "shared_traps",
                    "summary",
                    "time",
                    "totals",
                    "trace_events",
                    "usage",
                ],
            ),
            (
                "read",
                &[
                    "config",
                    "content_filter",
                    "document_reader",
                    "index",
                    "messages",
                    "priority",
                    "revisit",
                    "secrets",
                    "shared_traps",
                    "state",
                    "time",
                    "trace_events",
                    "usage",
                ],
            ),
            (
                "write",
                &[
                    "admissions",
                    "config",
                    "control",
                    "counters",
                    "error",
                    "excluded_rows",
                    "index",
                    "meta_keys",
                    "messages",
                    "priority",
                    "revisit",
                    "sampling",
                    "scope_seeds",
                    "shared_traps",
                    "state",
                    "summary",
                    "time",
                    "tombstones",
                    "totals",
                    "trace_events",
                ],
            ),
            // A second driver, without a fetcher.
            (
                "replay",
                &[
                    "config",
                    "content_filter",
                    "control",
                    "crawl_loop",
                    "error",
                    "messages",
                    "meta_keys",
                    "read",
                    "revisit",
                    "shared_traps",
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
                    "meta_keys",
                    "messages",
                    "read",
                    "revisit",
                    "runtime_waker",
                    "shared_traps",
                    "sharing",
                    "state",
                    "summary",
                    "time",
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
            ("search_index", &["error"]),
            ("input", &["error"]),
            ("values", &[]),
            ("shared_frontier", &["error"]),
            ("shared_frontier_left_out", &["error"]),
            ("settings", &["error", "input", "shared_frontier", "values"]),
            ("terminal", &["clock", "error", "settings", "values"]),
            // It speaks to whoever runs a crawl, and to any client: no command, no terminal.
            ("control", &["error", "settings", "values"]),
            ("cli", &["control", "error", "settings", "terminal"]),
            (
                "serve",
                &["cli", "control", "error", "search_index", "values"],
            ),
            // It reads, and steers nothing.
            ("mcp", &["cli", "clock", "error", "search_index"]),
            // The numbers of a crawl over HTTP, with the bounds that `serve` puts on connections.
            ("metrics", &["error", "serve"]),
            ("metrics_left_out", &["error"]),
            (
                "run",
                &[
                    "clock", "control", "error", "metrics", "settings", "terminal", "values",
                ],
            ),
            (
                "commands",
                &[
                    "cli",
                    "clock",
                    "control",
                    "error",
                    "input",
                    "run",
                    "search_index",
                    "settings",
                    "shared_frontier",
                    "terminal",
                ],
            ),
        ],
    ),
];
