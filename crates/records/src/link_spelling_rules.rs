//! Finds the URL that a crawl fetched for a link, which may be another spelling of the link's URL.

mod clean_params;

use std::cell::RefCell;
use std::path::Path;

use crawl_traps::SpellingRulesFromRecords;
use crawl_weburl::{CanonicalUrl, SpellingStepPolicies, SpellingStepPolicy, canonicalize};

use crate::error::RecordsError;
use crate::recognize_directory::stored_settings;
use crate::row_file_reader::excluded;
use clean_params::CleanParamRules;

/// The rules with which a crawl replaced the URLs of links by other spellings: the settings of the
/// crawl, the `Clean-param` lines of the sites, and the rules that the crawl learned.
#[derive(Debug)]
pub struct LinkSpellingRules {
    naming: SpellingStepPolicies,
    /// `None` if the crawl ignored `Clean-param` lines, or has no archive.
    clean_params: Option<RefCell<CleanParamRules>>,
    learned: SpellingRulesFromRecords,
}

impl LinkSpellingRules {
    /// Reads the settings and `excluded.jsonl` of the crawl in `dir`. Malformed lines are skipped.
    pub(crate) fn read(dir: &Path) -> Result<LinkSpellingRules, RecordsError> {
        let mut learned = SpellingRulesFromRecords::default();
        let mut rows = excluded(dir)?;
        while let Some(row) = rows.next_with(b"\"duplicate\"") {
            match row {
                Ok(row) => {
                    if let (Some(rule), Ok(url)) = (&row.rule, canonicalize(None, &row.url)) {
                        learned.add(&url, rule);
                    }
                }
                Err(RecordsError::Row { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(LinkSpellingRules {
            naming: naming(dir),
            clean_params: CleanParamRules::open(dir).map(RefCell::new),
            learned,
        })
    }

    /// Returns the URL that the crawl fetched for a link to `url`. `None` if it is `url` itself.
    /// `is_known` returns whether the crawl has a row of a URL. If it has a row of `url`, the crawl
    /// fetched `url` as it is. A rule that the crawl learned applies only if the crawl has a row of
    /// the resulting URL.
    #[must_use]
    pub fn fetched_as(
        &self,
        url: &CanonicalUrl,
        is_known: impl Fn(&str) -> bool,
    ) -> Option<CanonicalUrl> {
        if is_known(url.as_str()) {
            return None;
        }
        let named = self.naming.apply(url);
        if named.as_ref().is_some_and(|named| is_known(named.as_str())) {
            return named;
        }
        let clean = |url| self.clean_params.as_ref()?.borrow_mut().clean(url);
        let named = clean(named.as_ref().unwrap_or(url)).or(named);
        let now = named.as_ref().unwrap_or(url);
        if named.is_some() && is_known(now.as_str()) {
            return named;
        }
        let learned = self.learned.same_as(&self.naming, now);
        learned.filter(|other| is_known(other.as_str())).or(named)
    }
}

/// Reads the spelling settings from the crawl's `crawl.toml`.
fn naming(dir: &Path) -> SpellingStepPolicies {
    let table = stored_settings(dir);
    let names = table.get("names");
    let when = |key: &str, usual: SpellingStepPolicy| match names
        .and_then(|names| names.get(key)?.as_str())
    {
        Some("on") => SpellingStepPolicy::On,
        Some("off") => SpellingStepPolicy::Off,
        Some("evidence") => SpellingStepPolicy::Evidence,
        _ => usual,
    };
    let usual = SpellingStepPolicies::default();
    SpellingStepPolicies {
        default_documents: when("default-documents", usual.default_documents),
        tracking: when("tracking-parameters", usual.tracking),
        session_ids: when("session-ids", usual.session_ids),
        order: when("parameter-order", usual.order),
        empty: when("empty-parameters", usual.empty),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crawl_weburl::{CanonicalUrl, canonicalize};
    use serde_json::json;

    use super::LinkSpellingRules;
    use crate::site_faults::{FaultKind, faults};
    use crate::site_report::{MAX_CLICKS, site};
    use crate::test_crawl_builder::TestCrawlBuilder;

    #[test]
    fn a_link_leads_to_the_spelling_that_the_crawl_fetched() {
        let mut crawl = TestCrawlBuilder::new();
        let robots = "User-agent: *\nClean-param: ref /list\n";
        crawl.robots("http://e.example/robots.txt", robots);
        let dir = crawl.finish();
        let duplicate = |url: &str, rule: &str| {
            let row = json!({"url": format!("http://e.example{url}"), "reason": "duplicate",
                "rule": rule, "line": null, "found_on": null});
            format!("{row}\n")
        };
        let rows = [
            duplicate(
                "/i?b=2&a=1",
                "parameter-order /i: 3 of 3 pairs of pages were the same; \
                 asked for as http://e.example/i?a=1&b=2",
            ),
            duplicate(
                "/p?sid=0a1b2c3d4e5f6a72",
                "session-id sid: 3 of 3 pairs of pages were the same; \
                 asked for as http://e.example/p?sid=0a1b2c3d4e5f6a71",
            ),
            duplicate(
                "/m",
                "mirror of http://m.example: 9 of 9 pages were the same",
            ),
        ];
        fs::write(dir.path().join("excluded.jsonl"), rows.concat()).unwrap();
        let replacement_rules = LinkSpellingRules::read(dir.path()).unwrap();
        let known = [
            "/list?p=1",
            "/i?a=3&b=4",
            "/i?b=5&a=6",
            "/i?a=6&b=5",
            "/q?sid=0a1b2c3d4e5f6a71",
            "/x",
        ];
        for (link, expected) in [
            ("/x?utm_source=mail", Some("/x")),
            // The settings and `Clean-param` lines apply to every link.
            ("/y?utm_source=mail", Some("/y")),
            ("/list?ref=1&utm_source=mail&p=1", Some("/list?p=1")),
            ("/list?ref=1&p=2", Some("/list?p=2")),
            ("/other?ref=1", None),
            ("/i?b=4&a=3", Some("/i?a=3&b=4")),
            ("/i?b=5&a=6", None),
            ("/i?b=7&a=8", None),
            ("/j?b=4&a=3", None),
            ("/q?sid=0a1b2c3d4e5f6a79", Some("/q?sid=0a1b2c3d4e5f6a71")),
        ] {
            let url = canonicalize(None, &format!("http://e.example{link}")).unwrap();
            let is_known = |url: &str| known.contains(&&url["http://e.example".len()..]);
            let replacement = replacement_rules.fetched_as(&url, is_known);
            let path = replacement.as_ref().map(CanonicalUrl::path_and_query);
            assert_eq!(path, expected, "{link}");
        }
    }

    #[test]
    fn links_under_another_spelling_count_for_faults_and_orphans() {
        let mut crawl = TestCrawlBuilder::new();
        let url = |path: &str| format!("http://e.example{path}");
        crawl.robots(&url("/robots.txt"), "User-agent: *\nClean-param: ref /\n");
        let html = json!({"charset": "UTF-8"});
        let links = "<a href='/gone?ref=7'>g</a> <a href='/clean?ref=1'>c</a> \
            <a href='/dead?b=2&amp;a=1'>d</a>";
        crawl.page_with(&url("/"), "text/html", links, &html);
        let linked = json!({"charset": "UTF-8", "depth": 1, "via": url("/")});
        crawl.page_with(&url("/clean"), "text/html", "c", &linked);
        for dead in ["/gone", "/dead?a=1&b=2"] {
            crawl.row(
                &url(dead),
                &json!({"status": 404, "via": url("/"), "depth": 1}),
            );
        }
        let sitemap = format!("<urlset><url><loc>{}</loc></url></urlset>", url("/clean"));
        crawl.page(&url("/sitemap.xml"), "application/xml", &sitemap);
        let dir = crawl.finish();
        let rule = json!({"url": url("/dead?z=1&y=1"), "reason": "duplicate", "line": null,
            "rule": "parameter-order /dead: 3 of 3 pairs of pages were the same; \
                asked for as http://e.example/dead?y=1&z=1", "found_on": null});
        fs::write(dir.path().join("excluded.jsonl"), format!("{rule}\n")).unwrap();
        let faults = faults(dir.path(), &FaultKind::ALL).unwrap().faults;
        let faults: Vec<_> = faults
            .iter()
            .map(|fault| (fault.page.as_deref(), &*fault.to, fault.kind))
            .collect();
        let page = "http://e.example/";
        assert_eq!(
            faults,
            [
                (
                    Some(page),
                    "http://e.example/dead?a=1&b=2",
                    FaultKind::Broken
                ),
                (Some(page), "http://e.example/gone", FaultKind::Broken),
            ]
        );
        let report = site(dir.path(), MAX_CLICKS).unwrap();
        assert_eq!(report.orphans, [""; 0]);
    }
}
