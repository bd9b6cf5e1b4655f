//! A crawl directory with an index of the pages defined here.

use std::fs;
use std::path::{Path, PathBuf};

use crawl_index::{Heading, IndexWriter, IndexedPage};
use tempfile::TempDir;

/// Pages in the index of [`Site::new`].
pub(crate) const PAGES: usize = 35;

/// A directory as a crawl leaves it, removed when the test ends.
#[derive(Debug)]
pub(crate) struct Site(TempDir);

impl Site {
    /// Creates a site with a few pages at `origin`, with records and an index.
    pub(crate) fn new(origin: &str) -> Site {
        let site = Site::without_index(origin);
        site.index(origin);
        site
    }

    pub(crate) fn without_index(origin: &str) -> Site {
        let site = Site::empty();
        site.write("crawl.toml", &format!("seed = [\"{origin}/\"]\n"));
        let rows = [row(origin, "/", 200), row(origin, "/gone", 404)];
        site.write("pages.jsonl", &(rows.join("\n") + "\n"));
        site.write("requests.jsonl", "");
        let excluded = format!(
            r#"{{"url":"{origin}/<x>","reason":"robots","rule":"Disallow: /<x>","line":2,"found_on":null}}"#
        );
        site.write("excluded.jsonl", &(excluded + "\n"));
        site
    }

    /// Creates a directory for a crawl to start in.
    pub(crate) fn empty() -> Site {
        Site(tempfile::Builder::new().prefix("serve").tempdir().unwrap())
    }

    /// Adds a PDF and two pages of a handbook to the index. Each of the two pages has two versions.
    pub(crate) fn index_versions(&self, origin: &str) {
        let mut writer = IndexWriter::open(&self.file("index")).unwrap();
        for version in ["v1.9", "v1.10"] {
            for name in ["compass", "rudder"] {
                let text =
                    format!("The {name} of {version} keeps a boat on its way in any weather");
                writer
                    .put(&IndexedPage {
                        url: format!("{origin}/handbook/{version}/{name}"),
                        title: format!("Handbook: {name}"),
                        text,
                        language: Some("en".to_owned()),
                        document_type: "html".to_owned(),
                        ..IndexedPage::default()
                    })
                    .unwrap();
            }
        }
        writer
            .put(&IndexedPage {
                url: format!("{origin}/files/boat.pdf"),
                title: "A boat on paper".to_owned(),
                text: "How to fold a boat".to_owned(),
                document_type: "pdf".to_owned(),
                ..IndexedPage::default()
            })
            .unwrap();
        writer.reconcile("versions", 0).unwrap();
        writer.close().unwrap();
    }

    /// Adds an index to the directory.
    pub(crate) fn index(&self, origin: &str) {
        let mut writer = IndexWriter::open(&self.file("index")).unwrap();
        for page in pages(origin) {
            writer.put(&page).unwrap();
        }
        writer.reconcile("all", 0).unwrap();
        writer.close().unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).unwrap();
    }
}

fn row(origin: &str, path: &str, status: u16) -> String {
    format!(
        r#"{{"url":"{origin}{path}","status":{status},"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":3000,"content_type":"text/html","digest":null,"depth":0,"via":null,"title":null,"robots":null,"warc":null,"error":null}}"#
    )
}

/// Returns the pages of the index: two chapters, a hostile page, one that allows no excerpt, an
/// expired one, and a manual of thirty pages.
fn pages(origin: &str) -> Vec<IndexedPage> {
    let page = |path: &str, title: &str, text: &str| IndexedPage {
        url: format!("{origin}{path}"),
        title: title.to_owned(),
        text: text.to_owned(),
        fetched_at: 1_795_218_000,
        language: Some("en".to_owned()),
        ..IndexedPage::default()
    };
    let section = "If robots.txt can't be fetched, no page is requested.";
    let mut rules = page(
        "/rules",
        "How rules are read",
        &format!("The crawler reads robots.txt before any page.\n{section}"),
    );
    rules.headings.push(Heading {
        level: 2,
        text: "Unreachable rules".to_owned(),
        id: Some("unreachable".to_owned()),
        at: rules.text.len() - section.len(),
    });
    rules.modified = Some(1_790_000_000);
    let german = IndexedPage {
        language: Some("de".to_owned()),
        ..page(
            "/de/einf%C3%BChrung",
            "Einführung in die Höflichkeit",
            "Ein höflicher Roboter fragt langsam und wartet gern.",
        )
    };
    let hostile = page(
        "/hostile?a=1&b=<2>",
        "<script>alert('hostile')</script> & \"more\"",
        "A hostile page says <img src=x onerror=alert(1)> and hopes that nobody escapes it.",
    );
    let silent = IndexedPage {
        max_snippet: Some(0),
        ..page(
            "/silent",
            "A secret garden",
            "Nobody may quote this sentence.",
        )
    };
    let over = IndexedPage {
        until: Some(1_000_000_000),
        ..page(
            "/over",
            "An offer that is over",
            "It was unavailable long ago.",
        )
    };
    let manual = (1..=30).map(|number| {
        page(
            &format!("/manual/{number}"),
            &format!("Manual, chapter {number}"),
            &format!("Chapter {number} of the manual tells of lantern number {number}."),
        )
    });
    let mut pages: Vec<_> = [rules, german, hostile, silent, over]
        .into_iter()
        .chain(manual)
        .collect();
    for page in &mut pages {
        "html".clone_into(&mut page.document_type);
    }
    pages
}
