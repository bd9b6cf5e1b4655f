//! The records that a replay takes its answers from: the requests of a crawl with their times, and
//! the index of its archive. The answers themselves stay on disk.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crawl_archive::rows::{CommitCountsBeforeRequest, PageRow, RequestRow, WarcRecordLocation};
use crawl_archive::{
    CaptureLogReader, MAX_BODY_BYTES, ReadError, RowReader, Timestamp, WarcRecord, dom_at,
    read_place,
};
use crawl_fetcher::FailureKind;
use crawl_scheduler::Tick;
use crawl_weburl::CanonicalUrl;
use serde::de::DeserializeOwned;

use crate::error::EngineError;

/// The requests of a crawl, and the positions of their answers in its archive. Takes about 60 bytes
/// of memory per request, and another 60 per page.
#[derive(Debug)]
pub struct RecordedCrawl {
    dir: PathBuf,
    /// All requests, sorted by URL and then by when they ended.
    requests: Vec<RecordedRequest>,
    /// The positions of all archived answers, sorted by URL and then by time in seconds.
    captures: Vec<CapturePlace>,
    /// The rendered pages, sorted by URL and then by the time when they were fetched.
    doms: Vec<RecordedRendering>,
    /// The pages that the crawl's content filter did not keep, by the hash of the URL and the time
    /// when they were fetched, in milliseconds.
    unwanted: HashSet<(u64, u64)>,
    files: Vec<Arc<str>>,
    hosts: HashMap<String, RecordedHost>,
    /// The times when the requests were sent, in milliseconds, sorted.
    starts: Vec<u64>,
    /// The index of each page in the order of commits. The key is the hash of the page's URL.
    commit_places: HashMap<u64, usize>,
    /// For each page request, how much the crawl had committed when it chose the page. Empty for a
    /// crawl by an older version of the program, which did not write this to rows.
    levels: Vec<CommitCountsBeforeRequest>,
    /// How many times the replay has sent each request. The key is the hash of the URL.
    asked: HashMap<u64, usize>,
    /// The sum and number of the response times of all requests.
    all: ResponseTimes,
}

/// A request that the recorded crawl sent. `url` is a 64-bit hash. Times are in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedRequest {
    url: u64,
    /// The request's index among all recorded requests, in the order in which they ended.
    pub(super) place: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) status: Option<u16>,
    pub(super) failure: Option<FailureKind>,
    pub(super) wait_asked: Option<u64>,
    pub(super) challenged: bool,
    pub(super) is_post: bool,
    pub(super) is_head: bool,
}

#[derive(Clone, Copy, Debug)]
struct CapturePlace {
    url: u64,
    /// When the request was sent, in seconds.
    second: u64,
    file: u32,
    offset: u64,
}

/// A page that was rendered. `url` is a 64-bit hash.
#[derive(Debug)]
pub(super) struct RecordedRendering {
    url: u64,
    /// When the page was fetched, in milliseconds.
    fetched: u64,
    /// The digest of the serialized DOM.
    pub(super) digest: Box<str>,
    /// How long the page's scripts ran, in milliseconds of the page's own clock.
    pub(super) page_ms: u64,
    /// The DOM's position in the archive, and its size in bytes. `None` if the DOM is not
    /// archived.
    place: Option<(WarcRecordLocation, u64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct RecordedHost {
    address: Option<IpAddr>,
    times: ResponseTimes,
}

#[derive(Clone, Copy, Debug, Default)]
struct ResponseTimes {
    requests: u64,
    millis: u64,
}

impl ResponseTimes {
    fn add(&mut self, millis: u64) {
        self.requests += 1;
        self.millis += millis;
    }

    fn mean(self) -> Option<u64> {
        self.millis.checked_div(self.requests)
    }
}

/// The recorded request that answers a request of the replay.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedRequestMatch {
    pub(super) request: RecordedRequest,
    /// Whether the recorded request is used for the first time. False if all recorded requests for
    /// this URL are used up, so that the last one is used again.
    pub(super) is_next: bool,
}

impl RecordedRequest {
    /// Converts a row. `place` is the request's index among all recorded requests, in the order in
    /// which they ended.
    pub(super) fn of(row: &RequestRow, place: u32) -> RecordedRequest {
        let failure = row.failure.as_deref().map(FailureKind::named);
        RecordedRequest {
            url: key(&row.url),
            place,
            start: row.start,
            end: row.end,
            status: row.status,
            failure: failure.map(|kind| kind.unwrap_or(FailureKind::NotArchived)),
            wait_asked: row.wait_asked,
            challenged: row.challenged,
            is_post: row.method.as_deref() == Some("POST"),
            is_head: row.purpose == "check",
        }
    }
}

impl RecordedRendering {
    fn of(row: &PageRow) -> Option<RecordedRendering> {
        let render = row.render.as_ref()?;
        Some(RecordedRendering {
            url: key(&row.url),
            fetched: row.fetched_at.as_millis(),
            digest: render.dom_digest.as_deref()?.into(),
            page_ms: render.page_ms.unwrap_or_default(),
            place: row.dom(),
        })
    }
}

impl RecordedCrawl {
    /// Reads the requests of the crawl in `dir`, and finds their answers in its archive.
    ///
    /// # Errors
    /// [`EngineError::NothingToReplay`] if the crawl has no archive or sent no request, or an I/O
    /// error.
    pub fn open(dir: &Path) -> Result<RecordedCrawl, EngineError> {
        let nothing = || EngineError::NothingToReplay {
            dir: dir.to_owned(),
        };
        let log = CaptureLogReader::open(dir).map_err(EngineError::disk(dir))?;
        let mut log = log.ok_or_else(nothing)?;
        let mut crawl = RecordedCrawl {
            dir: dir.to_owned(),
            requests: Vec::new(),
            captures: Vec::new(),
            doms: Vec::new(),
            unwanted: HashSet::new(),
            files: Vec::new(),
            hosts: HashMap::new(),
            starts: Vec::new(),
            commit_places: HashMap::new(),
            levels: Vec::new(),
            asked: HashMap::new(),
            all: ResponseTimes::default(),
        };
        let mut files = HashMap::new();
        while let Some(line) = log.next_capture().map_err(EngineError::disk(dir))? {
            let Some((url, time)) = line.url_and_time() else {
                continue;
            };
            let file = *files.entry(line.file).or_insert_with_key(|file| {
                crawl.files.push(Arc::clone(file));
                crawl.files.len() - 1
            });
            crawl.captures.push(CapturePlace {
                url: key(&url),
                second: time.as_millis() / 1000,
                file: u32::try_from(file).unwrap_or(u32::MAX),
                offset: line.offset,
            });
        }
        each_row(dir, "requests.jsonl", |row: &RequestRow| crawl.add(row))?;
        each_row(dir, "pages.jsonl", |row: &PageRow| {
            let place = crawl.commit_places.len();
            crawl.commit_places.entry(key(&row.url)).or_insert(place);
            crawl.doms.extend(RecordedRendering::of(row));
            if row.unwanted.is_some() && row.withheld.is_none() {
                let fetched = row.fetched_at.as_millis();
                crawl.unwanted.insert((key(&row.url), fetched));
            }
        })?;
        if crawl.requests.is_empty() {
            return Err(nothing());
        }
        // A stable sort keeps the order of requests for the same URL.
        crawl.requests.sort_by_key(|request| request.url);
        let place = |capture: &CapturePlace| (capture.url, capture.second);
        crawl.captures.sort_by_key(place);
        crawl.doms.sort_by_key(|dom| (dom.url, dom.fetched));
        crawl.starts.sort_unstable();
        crawl.levels.sort_unstable();
        Ok(crawl)
    }

    fn add(&mut self, row: &RequestRow) {
        let took = row.end.saturating_sub(row.start);
        self.all.add(took);
        let host = self.hosts.entry(row.host.clone()).or_default();
        host.times.add(took);
        let address = row.address.as_deref().map(str::parse);
        host.address = address.and_then(Result::ok).or(host.address);
        self.starts.push(row.start);
        self.levels.extend(row.after);
        let place = u32::try_from(self.requests.len()).unwrap_or(u32::MAX);
        self.requests.push(RecordedRequest::of(row, place));
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns when the first request of the crawl was sent.
    #[must_use]
    pub fn began(&self) -> Timestamp {
        let first = self.starts.first().copied().unwrap_or_default();
        Timestamp::from_micros(first.saturating_mul(1000))
    }

    pub(super) fn request_count(&self) -> usize {
        self.requests.len()
    }

    /// Returns when the requests of the crawl were sent, in order.
    pub(super) fn starts(&self) -> impl Iterator<Item = Tick> + use<> {
        self.starts.clone().into_iter().map(tick)
    }

    /// Returns the address that the last recorded request to a host was sent to.
    pub(super) fn address(&self, host: &str) -> Option<IpAddr> {
        self.hosts.get(host)?.address
    }

    /// Returns the mean response time of a host in milliseconds, or of all hosts if this host got
    /// no request.
    pub(super) fn usual_time(&self, host: &str) -> u64 {
        let of_host = self.hosts.get(host).and_then(|host| host.times.mean());
        of_host.or_else(|| self.all.mean()).unwrap_or_default()
    }

    /// Takes the next recorded request for a URL. If all were taken, returns the last one again.
    /// `None` if the crawl never requested the URL.
    pub(super) fn next_request(&mut self, url: &str) -> Option<RecordedRequestMatch> {
        let url = key(url);
        let of_url = self.requests_of(url);
        let count = of_url.len();
        let requested = self.asked.entry(url).or_default();
        let place = *requested;
        *requested += 1;
        let request = self.requests[of_url].get(place.min(count.checked_sub(1)?))?;
        Some(RecordedRequestMatch {
            request: *request,
            is_next: place < count,
        })
    }

    fn requests_of(&self, url: u64) -> Range<usize> {
        let first = self.requests.partition_point(|request| request.url < url);
        let after = self.requests.partition_point(|request| request.url <= url);
        first..after
    }

    /// Returns the archived answer to the request sent at `start`, in milliseconds.
    pub(super) fn record_of(&self, url: &str, start: u64) -> Option<WarcRecord> {
        self.record(url, start / 1000, |date| date.as_millis() == start)
    }

    /// Returns whether the answer to this HEAD request had to be confirmed with GET. `has_record`
    /// is whether the archive has an answer from the time of the HEAD request.
    ///
    /// An answer to HEAD that had to be confirmed is not archived. So if the archive has an answer
    /// from that time, there are two possibilities:
    ///
    /// - If the next request was a GET sent at the same time, the archived answer is the answer to
    ///   the GET.
    /// - If the next request was a GET sent at another time, that GET was a later visit.
    pub(super) fn was_confirmed(&self, head: &RecordedRequest, has_record: bool) -> bool {
        let of_url = &self.requests[self.requests_of(head.url)];
        let next = of_url.iter().find(|other| other.place > head.place);
        next.is_some_and(|next| !next.is_head && (!has_record || next.start == head.start))
    }

    /// Returns the first archived answer among the requests for `url` that ended after `request`.
    pub(super) fn later_record_of(
        &self,
        url: &str,
        request: &RecordedRequest,
    ) -> Option<WarcRecord> {
        let of_url = &self.requests[self.requests_of(request.url)];
        let later = of_url.iter().filter(|other| other.place > request.place);
        later
            .filter(|other| other.status.is_some())
            .find_map(|other| self.record_of(url, other.start))
    }

    /// Returns whether the crawl's content filter is why the archive lacks the body of the answer to
    /// the request sent at `start`, in milliseconds.
    pub(super) fn is_unwanted(&self, url: &str, start: u64) -> bool {
        self.unwanted.contains(&(key(url), start))
    }

    /// Returns whether the recorded crawl rendered pages.
    pub(super) fn has_rendered_pages(&self) -> bool {
        !self.doms.is_empty()
    }

    /// Returns the rendered page that was fetched at this time.
    pub(super) fn dom(&self, url: &CanonicalUrl, fetched: Tick) -> Option<&RecordedRendering> {
        let mut doms = self.doms_of(url).iter();
        doms.find(|dom| dom.fetched == fetched.as_millis())
    }

    /// Returns the rendered page that was last fetched from a URL.
    pub(super) fn last_dom(&self, url: &CanonicalUrl) -> Option<&RecordedRendering> {
        self.doms_of(url).last()
    }

    fn doms_of(&self, url: &CanonicalUrl) -> &[RecordedRendering] {
        let url = key(url.as_str());
        let first = self.doms.partition_point(|dom| dom.url < url);
        let after = self.doms.partition_point(|dom| dom.url <= url);
        &self.doms[first..after]
    }

    /// Reads the DOM of a page from the archive.
    pub(super) fn read_dom(&self, url: &CanonicalUrl, dom: &RecordedRendering) -> Option<String> {
        let (place, bytes) = dom.place.as_ref()?;
        let dom = dom_at(&self.dir, url.as_str(), place, *bytes)?;
        String::from_utf8(dom).ok()
    }

    /// Returns the time of the first request for a URL that got an answer other than a server error
    /// or 429, in milliseconds.
    pub(super) fn first_answer(&self, url: &str) -> Option<u64> {
        let mut requests = self.requests[self.requests_of(key(url))].iter();
        let is_final = |request: &&RecordedRequest| {
            request
                .status
                .is_some_and(|status| status < 500 && status != 429)
        };
        requests
            .find(|request| is_final(request) && !request.is_post)
            .map(|request| request.start)
    }

    /// Returns the record that a revisit record refers to.
    pub(super) fn original(&self, revisit: &WarcRecord) -> Option<WarcRecord> {
        let url = revisit.field("WARC-Refers-To-Target-URI")?;
        let date = Timestamp::parse(revisit.field("WARC-Refers-To-Date")?)?;
        self.record(url, date.as_millis() / 1000, |found| found == date)
    }

    /// Returns the first readable record of `url` whose time satisfies `is_it`. Skips incomplete
    /// records, which a killed crawl may leave.
    fn record(
        &self,
        url: &str,
        second: u64,
        is_it: impl Fn(Timestamp) -> bool,
    ) -> Option<WarcRecord> {
        let places = &self.captures[self.places(key(url), second)];
        places.iter().find_map(|place| {
            let place = WarcRecordLocation {
                file: self.files.get(place.file as usize)?.to_string(),
                offset: place.offset,
            };
            let record = read_place(&self.dir, &place, MAX_BODY_BYTES).ok()?;
            (record.url() == Some(url) && record.date().is_some_and(&is_it)).then_some(record)
        })
    }

    fn places(&self, url: u64, second: u64) -> Range<usize> {
        let sought = (url, second);
        let place = |capture: &CapturePlace| (capture.url, capture.second);
        let first = self
            .captures
            .partition_point(|capture| place(capture) < sought);
        let after = self
            .captures
            .partition_point(|capture| place(capture) <= sought);
        first..after
    }

    /// Removes and returns `levels`: for each page request, how much the crawl had committed when
    /// it chose the page.
    pub(super) fn take_levels(&mut self) -> Vec<CommitCountsBeforeRequest> {
        std::mem::take(&mut self.levels)
    }

    /// Removes and returns `commit_places`: for each page, by the hash of its URL, its index in the
    /// order of commits.
    pub(super) fn take_commit_places(&mut self) -> HashMap<u64, usize> {
        std::mem::take(&mut self.commit_places)
    }
}

/// Passes each row of a file to `take`. Skips lines that can't be parsed as a row.
fn each_row<T: DeserializeOwned>(
    dir: &Path,
    file: &str,
    mut take: impl FnMut(&T),
) -> Result<(), EngineError> {
    for row in RowReader::<T>::open_if_any(&dir.join(file))? {
        match row {
            Ok(row) => take(&row),
            Err(ReadError::Row { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Converts a time in a row, in milliseconds.
pub(super) fn tick(millis: u64) -> Tick {
    Tick::from_micros(millis.saturating_mul(1000))
}

/// Returns the hash of a URL. In a crawl of ten million URLs, the chance that two have the same
/// hash is one in three hundred thousand.
pub(super) fn key(url: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.hash(&mut hasher);
    hasher.finish()
}
