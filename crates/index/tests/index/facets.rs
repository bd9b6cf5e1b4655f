//! Tests of versions, and of page counts by facet: folder, language, version and type.

use std::fmt::Write as _;

use crawl_index::{FacetFilters, IndexSearcher, IndexedPage, SearchOptions, SearchResults};
use expect_test::{Expect, expect};

use crate::support::{found, indexed, page};

/// Returns three versions of a manual's pages, a page that only the oldest version has, a guide, a
/// PDF and a German page.
fn manual() -> Vec<IndexedPage> {
    let mut pages = Vec::new();
    for version in ["13", "14", "15"] {
        let at = |name: &str| format!("http://a.example/docs/{version}/{name}.html");
        let title = |name: &str| format!("Manual {version}: {name}");
        let create = "create index builds a tree over the columns of a table and sorts the rows";
        let create = format!("{create} as of manual {version} without a lock on the table");
        pages.push(page(&at("create"), &title("Create"), &create));
        // The text is identical in all versions.
        let drop = "drop index removes a tree from the catalogue of the database for good";
        pages.push(page(&at("drop"), "Manual: Drop", drop));
    }
    let hash = "hash index files were not written to the log and had to be built anew";
    pages.push(page(
        "http://a.example/docs/13/hash.html",
        "Manual 13: Hash",
        hash,
    ));
    let guide = "an index helps queries, and costs time when rows are written";
    pages.push(page("http://a.example/guide/speed.html", "Guide", guide));
    pages.push(IndexedPage {
        document_type: "pdf".to_owned(),
        ..page(
            "http://a.example/guide/index.pdf",
            "Index cards",
            "an index on paper",
        )
    });
    pages.push(IndexedPage {
        language: Some("de".to_owned()),
        ..page(
            "http://a.example/de/index.html",
            "Index",
            "der index einer tabelle",
        )
    });
    for page in &mut pages {
        if page.document_type.is_empty() {
            "html".clone_into(&mut page.document_type);
        }
    }
    pages
}

fn search_with_facets(index: &IndexSearcher, query: &str, filters: FacetFilters) -> SearchResults {
    let options = SearchOptions {
        filters,
        facets: true,
        limit: 50,
        ..SearchOptions::default()
    };
    index.search(query, &options).unwrap()
}

fn check(index: &IndexSearcher, query: &str, filters: FacetFilters, expected: Expect) {
    let answer = search_with_facets(index, query, filters);
    let facets = answer.facets.unwrap();
    let mut text = format!("{} pages\n", answer.total);
    assert_eq!(answer.total, answer.results.len());
    for (name, values) in [
        ("folder", facets.folder),
        ("language", facets.language),
        ("version", facets.version),
        ("type", facets.document_type),
    ] {
        let values = values.iter().map(|of| format!(" {}={}", of.name, of.count));
        let _ = writeln!(text, "{name}:{}", values.collect::<String>());
    }
    expected.assert_eq(&text);
}

#[test]
fn the_newest_version_represents_the_others() {
    let (_dir, index) = indexed(&manual());
    assert_eq!(found(&index, "create"), "/docs/15/create.html");
    // All three versions have the same text. The result is the newest one, not the first
    // alphabetically.
    assert_eq!(found(&index, "drop"), "/docs/15/drop.html");
    // If the newest version lacks a page, an older version is found.
    assert_eq!(found(&index, "hash"), "/docs/13/hash.html");
    assert_eq!(found(&index, "\"as of manual 14\""), "/docs/14/create.html");
}

#[test]
fn older_versions_are_found_by_filters() {
    let (_dir, index) = indexed(&manual());
    for name in ["create", "drop"] {
        assert_eq!(
            found(&index, &format!("{name} site:a.example/docs/13")),
            format!("/docs/13/{name}.html")
        );
        let of_version = FacetFilters {
            version: Some("14".to_owned()),
            ..FacetFilters::default()
        };
        let answer = search_with_facets(&index, name, of_version);
        let urls: Vec<_> = answer.results.iter().map(|hit| hit.url.as_str()).collect();
        assert_eq!(urls, [format!("http://a.example/docs/14/{name}.html")]);
        // A filter for a folder that contains all versions doesn't select a version, so the newest
        // one is found.
        assert_eq!(
            found(&index, &format!("{name} site:a.example/docs")),
            format!("/docs/15/{name}.html")
        );
    }
    assert_eq!(
        found(&index, "hash site:a.example/docs/13"),
        "/docs/13/hash.html"
    );
}

#[test]
fn a_page_names_its_newest_version() {
    let (_dir, index) = indexed(&manual());
    let page = |path: &str| {
        index
            .page(&format!("http://a.example{path}"))
            .unwrap()
            .unwrap()
    };
    let old = page("/docs/13/create.html");
    assert_eq!(
        old.newest.as_deref(),
        Some("http://a.example/docs/15/create.html")
    );
    assert_eq!(
        (old.newer_versions, old.version.as_deref()),
        (2, Some("13"))
    );
    let alone = page("/docs/13/hash.html");
    assert_eq!((alone.newest, alone.version.as_deref()), (None, Some("13")));
    let guide = page("/guide/speed.html");
    assert_eq!((guide.newest, guide.version), (None, None));
}

#[test]
fn matching_pages_are_counted_by_facet() {
    let (_dir, index) = indexed(&manual());
    let none = FacetFilters::default;
    check(
        &index,
        "index",
        none(),
        expect![[r#"
            6 pages
            folder: docs=3 guide=2 de=1
            language: English=5 German=1
            version: 15=2 14=2 13=3
            type: Web page=5 PDF=1
        "#]],
    );
    check(
        &index,
        "index",
        FacetFilters {
            folder: Some("http://A.example/docs/".to_owned()),
            ..none()
        },
        expect![[r#"
            3 pages
            folder: docs/13=3 docs/14=2 docs/15=2
            language: English=3
            version: 15=2 14=2 13=3
            type: Web page=3
        "#]],
    );
    check(
        &index,
        "index",
        FacetFilters {
            version: Some("13".to_owned()),
            language: Some("en".to_owned()),
            ..none()
        },
        expect![[r#"
            3 pages
            folder:
            language: English=3
            version: 13=3
            type: Web page=3
        "#]],
    );
    check(
        &index,
        "index",
        FacetFilters {
            document_type: Some("pdf".to_owned()),
            ..none()
        },
        expect![[r#"
            1 pages
            folder:
            language: English=1
            version:
            type: PDF=1
        "#]],
    );
    check(
        &index,
        "nowhere",
        none(),
        expect![[r#"
            0 pages
            folder:
            language:
            version:
            type:
        "#]],
    );
}

#[test]
fn a_folder_counts_the_pages_that_its_filter_finds() {
    let paths = [
        "docs",
        "docs/a",
        "docs/b",
        "docs?page=2",
        "docs/b?x=/docs",
        "docs//z",
        "docs-old",
        "blog/",
        "blog/x",
        "blog/x/1",
    ];
    let pages = paths.map(|path| {
        let text = format!("green tea {path}");
        page(&format!("http://a.example/{path}"), path, &text)
    });
    let (_dir, index) = indexed(&pages);
    let folders = |folder: Option<&str>| {
        let filters = FacetFilters {
            folder: folder.map(str::to_owned),
            ..FacetFilters::default()
        };
        let answer = search_with_facets(&index, "tea", filters);
        let folders = answer.facets.unwrap().folder.into_iter();
        let folders = folders.map(|folder| (folder.value, folder.count as usize));
        (answer.total, folders.collect::<Vec<_>>())
    };
    let folder = |name: &str, count| (format!("a.example/{name}"), count);
    let (total, all) = folders(None);
    assert_eq!(
        (total, &*all),
        (10, &[folder("docs", 6), folder("blog", 3)][..])
    );
    for (value, count) in &all {
        assert_eq!(folders(Some(value)).0, *count, "{value}");
    }
    // No value below `docs` is the folder `docs/`, because its filter would find all pages of
    // `docs`.
    let below: Vec<_> = folders(Some("a.example/docs")).1;
    assert!(
        below.iter().all(|(value, _)| !value.ends_with('/')),
        "{below:?}"
    );
    // The page `blog/` isn't in `blog/x`.
    assert_eq!(folders(Some("a.example/blog")).1, [folder("blog/x", 2)]);
}

#[test]
fn facets_are_absent_unless_requested() {
    let (_dir, index) = indexed(&manual());
    let answer = index.search("index", &SearchOptions::default()).unwrap();
    assert_eq!(answer.facets, None);
    let json = serde_json::to_value(&answer).unwrap();
    assert!(json.get("facets").is_none());
}

#[test]
fn versioned_pages_have_one_order_at_all_offsets() {
    let pages = (0..40).flat_map(|n| {
        ["v1.9", "v1.10", "main"].map(|version| {
            let words: String = (0..40).map(|word| format!("w{n}x{word} ")).collect();
            let text = format!("tea {words}of {version}");
            page(
                &format!("http://a.example/{version}/{n}"),
                &format!("Tea {n}th"),
                &text,
            )
        })
    });
    let (_dir, index) = indexed(&pages.collect::<Vec<_>>());
    let mut urls = Vec::new();
    for offset in (0..).step_by(10) {
        let options = SearchOptions {
            offset,
            ..SearchOptions::default()
        };
        let answer = index.search("tea", &options).unwrap();
        assert_eq!(answer.total, 40);
        if answer.results.is_empty() {
            break;
        }
        urls.extend(answer.results.into_iter().map(|hit| hit.url));
    }
    assert!(urls.iter().all(|url| url.contains("/v1.10/")), "{urls:?}");
    urls.sort_unstable();
    urls.dedup();
    assert_eq!(urls.len(), 40);
}

#[test]
fn a_folder_is_named_with_its_host_or_without() {
    let (_dir, index) = indexed(&[
        page("http://a.example/products/tea", "Tea", "Leaves."),
        page(
            "http://b.example/products/pots/red",
            "Red pot",
            "For leaves.",
        ),
        page("http://a.example/news", "News", "Leaves fall."),
        page("http://a.example/my%20docs/%E6%97%A5/a", "A", "Leaves."),
    ]);
    let urls = |folder: &str| {
        let filters = FacetFilters {
            folder: Some(folder.to_owned()),
            ..FacetFilters::default()
        };
        let answer = search_with_facets(&index, "leaves", filters);
        let mut urls: Vec<_> = answer.results.iter().map(|hit| hit.url.clone()).collect();
        urls.sort();
        urls.join(" ")
    };
    let both = "http://a.example/products/tea http://b.example/products/pots/red";
    for folder in ["products", "/products", "products/", "/products/"] {
        assert_eq!(urls(folder), both, "{folder}");
    }
    for folder in ["a.example/products", "http://a.example/products/"] {
        assert_eq!(urls(folder), "http://a.example/products/tea", "{folder}");
    }
    assert_eq!(urls("products/pots"), "http://b.example/products/pots/red");
    assert_eq!(urls("pots"), "");
    for folder in ["my docs", "my%20docs/日/", "A.example/my docs/日"] {
        assert_eq!(urls(folder), "http://a.example/my%20docs/%E6%97%A5/a");
    }
}
