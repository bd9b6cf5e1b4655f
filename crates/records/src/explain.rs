//! Why one URL was, was not, or is not yet fetched.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;

use crawl_archive::Timestamp;
use crawl_archive::rows::{ExcludedRow, PageRow, RequestRow};
use crawl_frontier::{
    Exclusion, FjallFrontier, Frontier as _, FrontierError, Known, KnownState, OpenError, Options,
    Visit,
};
use crawl_weburl::CanonicalUrl;
use serde::Serialize;

use crate::error::RecordsError;
use crate::rows::{excluded, pages, requests};

/// Requests that are kept of those that were made for the URL, the latest.
const KEPT_REQUESTS: usize = 20;

/// What the records and the stored state say of one URL.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The URL in canonical form.
    pub url: String,
    /// `fetched`, `failed`, `excluded`, `deferred`, `pending` or `unknown`.
    pub state: &'static str,
    /// Its row in `pages.jsonl`, of the last round where it has several.
    pub page: Option<PageRow>,
    /// Its rows in `pages.jsonl`.
    pub visits: u64,
    /// From when on it is visited again by `--recrawl`, RFC 3339; or `each round`.
    pub due: Option<String>,
    /// Its row in `excluded.jsonl`, where it has one and no page.
    pub excluded: Option<ExcludedRow>,
    /// The latest requests that were sent for it.
    pub requests: Vec<RequestRow>,
    /// How many requests were sent for it.
    pub requests_sent: u64,
    /// The last request for its origin's robots.txt.
    pub robots_request: Option<RequestRow>,
    /// Why it was put aside or is not asked for, by the stored state: reason, rule, line.
    pub exclusion: Option<(String, Option<String>, Option<u32>)>,
    /// The number of the next try, where it is pending.
    pub next_attempt: Option<u32>,
    /// Links followed from a seed to it.
    pub depth: Option<u32>,
    /// The page that it was found on.
    pub via: Option<String>,
    /// Whether the stored state could be read.
    pub state_read: StateRead,
    /// Lines of row files that may speak of it and could not be read.
    pub unreadable_lines: u64,
}

/// Whether the stored state could be read; without it the rows speak alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StateRead {
    /// It was read.
    Read,
    /// The crawl is running.
    InUse,
    /// There is none.
    Absent,
    /// It can't be read; why.
    Broken(String),
}

/// Gathers what is known of `url` in the crawl that lies in `dir`. Reads the row files from
/// end to end; opens the state only if no other process has it open. Opening it may cut off
/// what a killed run left half written, as the next run would.
///
/// # Errors
/// [`RecordsError::NoCrawl`] where `dir` holds neither rows nor state, and errors of the
/// file system. A state that can't be read is no error: [`Explanation::state_read`] tells.
pub fn explain(dir: &Path, url: &CanonicalUrl) -> Result<Explanation, RecordsError> {
    if !dir.join("crawl.toml").is_file() && !dir.join("pages.jsonl").is_file() {
        return Err(RecordsError::NoCrawl {
            dir: dir.to_owned(),
        });
    }
    let mut found = Explanation::nothing(url);
    // As the URL stands in a row, quotes included, so that no longer URL is meant.
    let needle = serde_json::to_vec(url.as_str()).unwrap_or_default();
    let mut rows = pages(dir)?;
    while let Some(row) = rows.next_with(&needle) {
        // A row that mentions the URL otherwise is not about it.
        let row = found.sound(row);
        if let Some(row) = row.filter(|row| row.url == url.as_str()) {
            found.visits += 1;
            found.page = Some(row);
        }
    }
    let mut rows = excluded(dir)?;
    while let Some(row) = rows.next_with(&needle) {
        let row = found.sound(row);
        found.excluded = row.filter(|row| row.url == url.as_str()).or(found.excluded);
    }
    found.read_requests(dir, url, &needle)?;
    match known(dir, url) {
        Ok((known, visit)) => {
            found.state_read = StateRead::Read;
            found.take_state(known, visit);
        }
        Err(why) => found.state_read = why,
    }
    found.judge();
    Ok(found)
}

/// What the state has of a URL, and of its last visit.
type Stored = (Option<Known>, Option<Visit>);

fn known(dir: &Path, url: &CanonicalUrl) -> Result<Stored, StateRead> {
    let state = dir.join("state");
    // Opening an empty directory would begin a frontier there.
    let entries = state.read_dir().ok().and_then(|mut entries| entries.next());
    if entries.is_none() {
        return Err(StateRead::Absent);
    }
    let frontier = FjallFrontier::open(&state, &Options::default()).map_err(|why| match why {
        OpenError::InUse { .. } => StateRead::InUse,
        why => StateRead::Broken(why.to_string()),
    })?;
    let broken = |why: FrontierError| StateRead::Broken(why.to_string());
    Ok((
        frontier.known(url).map_err(broken)?,
        frontier.visit(url).map_err(broken)?,
    ))
}

impl Explanation {
    fn nothing(url: &CanonicalUrl) -> Explanation {
        Explanation {
            url: url.to_string(),
            state: "unknown",
            page: None,
            visits: 0,
            due: None,
            excluded: None,
            requests: Vec::new(),
            requests_sent: 0,
            robots_request: None,
            exclusion: None,
            next_attempt: None,
            depth: None,
            via: None,
            state_read: StateRead::Absent,
            unreadable_lines: 0,
        }
    }

    /// The row, or nothing where the line is none.
    fn sound<T>(&mut self, row: Result<T, RecordsError>) -> Option<T> {
        self.unreadable_lines += u64::from(row.is_err());
        row.ok()
    }

    fn read_requests(
        &mut self,
        dir: &Path,
        url: &CanonicalUrl,
        needle: &[u8],
    ) -> Result<(), RecordsError> {
        let mut latest = VecDeque::with_capacity(KEPT_REQUESTS);
        let mut rows = requests(dir)?;
        while let Some(row) = rows.next_with(needle) {
            let row = self.sound(row);
            let Some(row) = row.filter(|row| row.url == url.as_str()) else {
                continue;
            };
            self.requests_sent += 1;
            if latest.len() == KEPT_REQUESTS {
                latest.pop_front();
            }
            latest.push_back(row);
        }
        self.requests = latest.into();
        let robots = url.origin().robots_url();
        let needle = serde_json::to_vec(robots.as_str()).unwrap_or_default();
        let mut rows = requests(dir)?;
        while let Some(row) = rows.next_with(&needle) {
            let row = row.ok().filter(|row| row.url == robots.as_str());
            self.robots_request = row.or(self.robots_request.take());
        }
        Ok(())
    }

    fn take_state(&mut self, known: Option<Known>, visit: Option<Visit>) {
        let Some(known) = known else {
            return;
        };
        let waits = matches!(
            known.state,
            KnownState::Pending { .. } | KnownState::Leased { .. }
        );
        self.due = visit.filter(|_| !waits).map(|visit| match visit.due {
            0 => "each round".to_owned(),
            due => Timestamp::from_micros(u64::from(due) * 1_000_000).rfc3339_millis(),
        });
        self.depth = Some(known.depth);
        self.via = known.via.map(|via| via.to_string());
        let exclusion = |exclusion: Exclusion| {
            Some((exclusion.reason.to_string(), exclusion.rule, exclusion.line))
        };
        match known.state {
            KnownState::Pending { attempt } | KnownState::Leased { attempt } => {
                self.state = "pending";
                self.next_attempt = Some(attempt);
            }
            KnownState::Deferred(why) => {
                self.state = "deferred";
                self.exclusion = exclusion(why);
            }
            KnownState::Excluded(why) => {
                self.state = "excluded";
                self.exclusion = exclusion(why);
            }
            KnownState::Fetched { .. } => self.state = "fetched",
            KnownState::Failed { .. } => self.state = "failed",
        }
    }

    /// Fills in from the rows what the state did not say.
    fn judge(&mut self) {
        if let Some(page) = &self.page {
            self.depth = self.depth.or(Some(page.depth));
            self.via = self.via.take().or_else(|| page.via.clone());
            if self.state == "unknown" {
                self.state = match page.status {
                    Some(_) => "fetched",
                    None => "failed",
                };
            }
        }
        if let Some(row) = &self.excluded {
            self.via = self.via.take().or_else(|| row.found_on.clone());
            if self.state == "unknown" {
                self.state = "excluded";
            }
        }
    }
}

/// Lines for a person.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.url)?;
        match self.state {
            "fetched" => writeln!(f, "was fetched")?,
            "failed" => writeln!(f, "failed: no answer could be had")?,
            "excluded" => writeln!(f, "is not asked for")?,
            "deferred" => writeln!(f, "was put aside, and is fetched if it is met another way")?,
            "pending" => writeln!(f, "waits for its turn")?,
            _ => writeln!(
                f,
                "is not known: it was no seed, and no page that was read names it"
            )?,
        }
        if let Some(page) = &self.page {
            match (page.status, &page.error) {
                (Some(status), _) => writeln!(
                    f,
                    "  answer: {status}, {} octets, {}",
                    page.bytes, page.fetched_at
                )?,
                (None, Some(error)) => writeln!(f, "  error: {error}")?,
                (None, None) => {}
            }
            if let Some(change) = &page.change {
                writeln!(f, "  round {}: {change}", page.round)?;
            }
            if let Some(indexed) = &page.indexed {
                writeln!(f, "  index: {indexed}")?;
            }
            if let Some(robots) = &page.robots {
                rule(
                    f,
                    &format!("robots.txt: {}", robots.verdict),
                    &robots.rule,
                    robots.line,
                )?;
            }
            for said in page.usage.iter().flat_map(|usage| &usage.said) {
                let what = format!("usage: {} in {}", said.vocabulary, said.channel);
                rule(f, &what, &Some(said.raw.clone()), said.line)?;
            }
            if let Some(warc) = &page.warc {
                writeln!(f, "  archived: {} at {}", warc.file, warc.offset)?;
            }
            if let Some(words) = &page.withheld {
                writeln!(f, "  body not archived, by `{words}`")?;
            }
        }
        if let Some((reason, text, line)) = &self.exclusion {
            rule(f, &format!("reason: {reason}"), text, *line)?;
        } else if let Some(row) = self.excluded.as_ref().filter(|_| self.state == "excluded") {
            rule(f, &format!("reason: {}", row.reason), &row.rule, row.line)?;
        }
        if let Some(attempt) = self.next_attempt.filter(|attempt| *attempt > 1) {
            writeln!(f, "  tries so far: {}", attempt - 1)?;
        }
        if let Some(via) = &self.via {
            writeln!(f, "  found on: {via}")?;
        }
        if let Some(depth) = self.depth {
            writeln!(f, "  depth: {depth}")?;
        }
        if self.visits > 1 {
            writeln!(f, "  visits: {}", self.visits)?;
        }
        if let Some(due) = &self.due {
            writeln!(f, "  visited again by --recrawl: {due}")?;
        }
        writeln!(f, "  requests sent for it: {}", self.requests_sent)?;
        for request in &self.requests {
            writeln!(f, "    {}", request_line(request))?;
        }
        if let Some(robots) = &self.robots_request {
            writeln!(f, "  last request for robots.txt: {}", request_line(robots))?;
        }
        if self.unreadable_lines > 0 {
            let lines = self.unreadable_lines;
            writeln!(f, "  lines of row files that can't be read: {lines}")?;
        }
        match &self.state_read {
            StateRead::Read => Ok(()),
            StateRead::InUse => writeln!(f, "  the crawl is running; only its rows were read"),
            StateRead::Absent => writeln!(f, "  there is no stored state; only rows were read"),
            StateRead::Broken(why) => writeln!(f, "  the stored state can't be read: {why}"),
        }
    }
}

fn rule(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    rule: &Option<String>,
    line: Option<u32>,
) -> fmt::Result {
    write!(f, "  {what}")?;
    if let Some(rule) = rule {
        write!(f, ", by `{rule}`")?;
    }
    if let Some(line) = line {
        write!(f, " on line {line}")?;
    }
    writeln!(f)
}

fn request_line(request: &RequestRow) -> String {
    let at = Timestamp::from_micros(request.start.saturating_mul(1000));
    let came = match (request.status, &request.failure) {
        (Some(status), _) => status.to_string(),
        (None, Some(failure)) => failure.clone(),
        (None, None) => "no answer".to_owned(),
    };
    format!("{} {} ({came})", at.rfc3339_millis(), request.purpose)
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests {
    use std::fs;
    use std::io::{Seek as _, SeekFrom, Write as _};

    use crawl_archive::MAX_LINE_BYTES;
    use crawl_frontier::{
        Admission, Exclusion, FjallFrontier, Frontier as _, Options, Reason, Standing,
    };
    use crawl_weburl::canonicalize;
    use expect_test::{Expect, expect};
    use tempfile::TempDir;

    use super::explain;

    fn crawl() -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write("crawl.toml", "seed = [\"http://e.example/\"]\n");
        write(
            "pages.jsonl",
            concat!(
                r#"{"url":"http://e.example/","status":200,"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":3,"content_type":null,"digest":null,"depth":0,"via":null,"title":null,"robots":{"verdict":"allowed","line":3,"rule":"Allow: /"},"warc":{"file":"a.warc.gz","offset":7},"error":null}"#,
                "\n",
                r#"{"url":"http://e.example/gone","status":null,"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":0,"content_type":null,"digest":null,"depth":1,"via":"http://e.example/","title":null,"robots":null,"warc":null,"error":"timeout"}"#,
                "\n",
            ),
        );
        write(
            "excluded.jsonl",
            concat!(
                r#"{"url":"http://e.example/p","reason":"robots","rule":"Disallow: /p","line":2,"found_on":"http://e.example/"}"#,
                "\n",
            ),
        );
        write(
            "requests.jsonl",
            concat!(
                r#"{"url":"http://e.example/robots.txt","host":"e.example","address":null,"purpose":"robots","start":1795219199123,"end":1795219199223,"status":200,"failure":null,"gap_asked":0,"why":"first","wait_asked":null}"#,
                "\n",
                r#"{"url":"http://e.example/","host":"e.example","address":null,"purpose":"page","start":1795219201000,"end":1795219201100,"status":200,"failure":null,"gap_asked":1000,"why":"delay","wait_asked":null}"#,
                "\n",
            ),
        );
        dir
    }

    fn check(dir: &TempDir, url: &str, expect: Expect) {
        let url = canonicalize(None, url).unwrap();
        expect.assert_eq(&explain(dir.path(), &url).unwrap().to_string());
    }

    #[test]
    fn ours_a_line_without_end_hides_nothing_and_is_told() {
        let dir = crawl();
        let path = dir.path().join("pages.jsonl");
        let rows = fs::read(&path).unwrap();
        // A hole of as many zeros as a power cut likes to leave.
        let mut file = fs::File::create(&path).unwrap();
        file.seek(SeekFrom::Start(3 * MAX_LINE_BYTES as u64))
            .unwrap();
        file.write_all(b"\n").unwrap();
        file.write_all(&rows).unwrap();
        let url = canonicalize(None, "http://e.example/").unwrap();
        let found = explain(dir.path(), &url).unwrap();
        assert_eq!((found.state, found.unreadable_lines), ("fetched", 1));
        let said = found.to_string();
        assert!(
            said.contains("lines of row files that can't be read: 1\n"),
            "{said}"
        );
    }

    #[test]
    fn rows_alone() {
        let dir = crawl();
        check(
            &dir,
            "http://e.example/",
            expect![[r#"
            http://e.example/
            was fetched
              answer: 200, 3 octets, 2026-11-20T23:59:59.123Z
              robots.txt: allowed, by `Allow: /` on line 3
              archived: a.warc.gz at 7
              depth: 0
              requests sent for it: 1
                2026-11-21T00:00:01.000Z page (200)
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              there is no stored state; only rows were read
        "#]],
        );
        check(
            &dir,
            "http://e.example/gone",
            expect![[r#"
            http://e.example/gone
            failed: no answer could be had
              error: timeout
              found on: http://e.example/
              depth: 1
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              there is no stored state; only rows were read
        "#]],
        );
        check(
            &dir,
            "http://e.example/p",
            expect![[r#"
            http://e.example/p
            is not asked for
              reason: robots, by `Disallow: /p` on line 2
              found on: http://e.example/
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              there is no stored state; only rows were read
        "#]],
        );
        check(
            &dir,
            "http://e.example/never",
            expect![[r#"
            http://e.example/never
            is not known: it was no seed, and no page that was read names it
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              there is no stored state; only rows were read
        "#]],
        );
    }

    #[test]
    fn stored_state_tells_what_is_pending_and_put_aside() {
        let dir = crawl();
        let state = dir.path().join("state");
        let url = |raw: &str| canonicalize(None, raw).unwrap();
        let frontier = FjallFrontier::open(&state, &Options::default()).unwrap();
        let mut transaction = frontier.begin().unwrap();
        transaction
            .admit(Admission::link(
                url("http://e.example/waits"),
                1,
                url("http://e.example/"),
            ))
            .unwrap();
        let mut deep = Admission::link(url("http://e.example/deep"), 9, url("http://e.example/"));
        deep.standing = Standing::Deferred(Exclusion {
            rule: Some("max-depth 3".to_owned()),
            ..Exclusion::of(Reason::Depth)
        });
        transaction.admit(deep).unwrap();
        transaction.commit().unwrap();
        check(
            &dir,
            "http://e.example/waits",
            expect![[r#"
            http://e.example/waits
            is not known: it was no seed, and no page that was read names it
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
              the crawl is running; only its rows were read
        "#]],
        );
        drop(frontier);
        check(
            &dir,
            "http://e.example/waits",
            expect![[r#"
            http://e.example/waits
            waits for its turn
              found on: http://e.example/
              depth: 1
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
        "#]],
        );
        check(
            &dir,
            "http://e.example/deep",
            expect![[r#"
            http://e.example/deep
            was put aside, and is fetched if it is met another way
              reason: depth, by `max-depth 3`
              found on: http://e.example/
              depth: 9
              requests sent for it: 0
              last request for robots.txt: 2026-11-20T23:59:59.123Z robots (200)
        "#]],
        );
    }
}
