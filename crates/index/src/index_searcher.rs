//! Searches an index and ranks the results.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crawl_weburl::safe_line;
use tantivy::schema::Field;
use tantivy::{DocAddress, Index, ReloadPolicy, Searcher, TantivyDocument};

use crate::ambiguous_minus::with_resolved_minus;
use crate::commit_snapshot::CommitSnapshotDirectory;
use crate::compound_candidates::PossibleCompoundTerms;
use crate::error::{IndexError, QueryError, guarded};
use crate::excerpt::{excerpt, joined, marked};
use crate::facets::FacetFilters;
use crate::file_check::ChecksumFileFilter;
use crate::lexicon::Lexicon;
use crate::page_prior::is_about_changes;
use crate::product_versions::is_versioned_folder;
use crate::query::Query;
use crate::query_plan::{MarkedWords, PlanningBudget, QueryPlan, QueryPlanner, RequiredQueryWords};
use crate::ranked_retrieval::{FoundPages, RankedRetrieval};
use crate::results::{Hit, IndexStats, SearchResults};
use crate::schema::{IndexFields, KIND_DUPLICATE, KIND_PAGE, check_format, schema};
use crate::scoring_statistics::ScoringStatistics;
use crate::section_selection::{section_at, sections};
use crate::stored_page_reader::{address_of, each_stored, page_at, stored};
use crate::synonyms_and_pins::SearchRules;
use crate::text_fragment_link::passage_url;
use crate::words::{Stemmer, words};
use crawl_index_entry::IndexedPage;

/// Maximum results to rank.
/// Beyond the limit: refused.
pub const MAX_RESULTS: usize = 1000;
/// Maximum bytes of an index to check completely when it is opened. In a larger index only files
/// up to `MAX_CHECKED_FILE_BYTES` are compared with their checksums.
/// Beyond the limit: only small files are checked.
const MAX_CHECKED_BYTES: u64 = 1 << 30;
const MAX_CHECKED_FILE_BYTES: u64 = 64 << 20;
/// If fewer pages than this have all words of a query, the answer says so. The results of a query
/// with two words then include pages with only one of them.
const MIN_WITH_ALL_WORDS: usize = 5;
/// Maximum languages whose stems are looked up: those with the most pages.
/// Beyond the limit: searched as typed.
const MAX_LANGUAGES: usize = 6;

/// The options of a search: the range of results, filters, and what to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Maximum number of results.
    pub limit: usize,
    /// Number of results to skip.
    pub offset: usize,
    /// Maximum number of characters of an excerpt.
    pub excerpt: usize,
    /// The current time in seconds since 1970 UTC. Expired pages are not shown.
    pub now: i64,
    /// Restricts the search to pages with these facet values.
    pub filters: FacetFilters,
    /// Whether to count the matching pages by folder, language, version and type.
    pub facets: bool,
}

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        SearchOptions {
            limit: 10,
            offset: 0,
            excerpt: 240,
            now: 0,
            filters: FacetFilters::default(),
            facets: false,
        }
    }
}

/// Searches an index. Each search sees the writer's latest commit. Can be shared by threads.
#[derive(Debug)]
pub struct IndexSearcher {
    dir: PathBuf,
    rules: SearchRules,
    view: Mutex<Arc<CommitView>>,
}

/// A view of the index as of one commit.
struct CommitView {
    stamp: CommitStamp,
    searcher: Searcher,
    statistics: ScoringStatistics,
    fields: IndexFields,
    languages: Vec<(String, u64)>,
    compound_candidates: PossibleCompoundTerms,
}

/// Identifies a commit by the file properties of `meta.json`, because each commit replaces this
/// file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CommitStamp {
    modified: SystemTime,
    bytes: u64,
    file: u64,
}

impl IndexSearcher {
    /// Opens the index in `dir`, which may have an active writer.
    ///
    /// # Errors
    /// [`IndexError`] if there is no index, it has another format or is damaged, or the disk fails.
    pub fn open(dir: &Path) -> Result<IndexSearcher, IndexError> {
        let view = guarded(dir, || CommitView::open(dir, true))?;
        Ok(IndexSearcher {
            dir: dir.to_path_buf(),
            rules: SearchRules::default(),
            view: Mutex::new(Arc::new(view)),
        })
    }

    /// Returns the index with the site owner's search rules applied to its searches.
    #[must_use]
    pub fn with_rules(self, rules: SearchRules) -> IndexSearcher {
        IndexSearcher { rules, ..self }
    }

    /// Returns the pages that match a query, best first.
    ///
    /// # Errors
    /// [`IndexError::Query`] if the query is too long or requests too many results, or
    /// another [`IndexError`] if the index is damaged.
    pub fn search(
        &self,
        query: &str,
        options: &SearchOptions,
    ) -> Result<SearchResults, IndexError> {
        let requested = options.limit.saturating_add(options.offset);
        if requested > MAX_RESULTS {
            let (asked, most) = (requested, MAX_RESULTS);
            return Err(QueryError::TooFar { asked, most }.into());
        }
        let parsed = Query::parse(query)?;
        let view = self.view();
        guarded(&self.dir, || {
            let search = SingleSearch {
                view: &view,
                rules: &self.rules,
                options,
            };
            search.run(query, parsed).map_err(IndexError::of(&self.dir))
        })
    }

    /// Returns the indexed record of a page; `None` if the index has no page with this URL, or if
    /// another page replaces it.
    ///
    /// # Errors
    /// If the index is damaged.
    pub fn page(&self, url: &str) -> Result<Option<IndexedPage>, IndexError> {
        let view = self.view();
        guarded(&self.dir, || {
            view.page(url).map_err(IndexError::of(&self.dir))
        })
    }

    /// Returns the indexed record of a page, even if another page replaces it.
    ///
    /// # Errors
    /// If the index is damaged.
    pub fn stored(&self, url: &str) -> Result<Option<IndexedPage>, IndexError> {
        let view = self.view();
        guarded(&self.dir, || {
            view.stored(url).map_err(IndexError::of(&self.dir))
        })
    }

    /// Returns `rules` with the URLs of their pins replaced by those of the pages that results
    /// show, and the URLs of the pins whose pages are not in the index. Such pins have no effect.
    ///
    /// # Errors
    /// If the index is damaged.
    pub fn resolve_pins(
        &self,
        mut rules: SearchRules,
    ) -> Result<(SearchRules, BTreeSet<String>), IndexError> {
        let view = self.view();
        let mut missing = BTreeSet::new();
        guarded(&self.dir, || {
            for url in rules.pinned_urls() {
                match view.pinned(url).map_err(IndexError::of(&self.dir))? {
                    Some(page) => *url = page.url,
                    None => {
                        missing.insert(url.clone());
                    }
                }
            }
            Ok(())
        })?;
        Ok((rules, missing))
    }

    /// Visits all pages that a search can find, in arbitrary order.
    ///
    /// # Errors
    /// The error of `visit`, or an error for a damaged index.
    pub fn each_page<E: From<IndexError>>(
        &self,
        mut visit: impl FnMut(IndexedPage) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_page_and_duplicate(|page| match page.same_as {
            None => visit(page),
            Some(_) => Ok(()),
        })
    }

    /// Visits all pages in arbitrary order, including pages that another page replaces.
    ///
    /// # Errors
    /// The error of `visit`, or an error for a damaged index.
    pub fn each_page_and_duplicate<E: From<IndexError>>(
        &self,
        visit: impl FnMut(IndexedPage) -> Result<(), E>,
    ) -> Result<(), E> {
        // Read the stored pages with read-ahead rather than through memory maps, which would keep
        // them in memory.
        let last = guarded(&self.dir, || CommitView::open_to_read_pages(&self.dir));
        let view = last.map_or_else(|_| self.view(), Arc::new);
        let (fields, searcher) = (&view.fields, &view.searcher);
        each_stored(&self.dir, fields, searcher, &|| false, visit).map(drop)
    }

    /// Returns the numbers of pages and the size of the index.
    ///
    /// # Errors
    /// If the index is damaged or the disk fails.
    pub fn stats(&self) -> Result<IndexStats, IndexError> {
        let view = self.view();
        let bytes = bytes(&self.dir)?;
        guarded(&self.dir, || {
            view.stats(bytes).map_err(IndexError::of(&self.dir))
        })
    }

    /// Returns a view of the last commit. If it can't be opened because the index is being
    /// replaced, returns a view of the previous commit.
    fn view(&self) -> Arc<CommitView> {
        let mut view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        if CommitStamp::of(&self.dir).is_some_and(|stamp| stamp != view.stamp)
            && let Ok(newer) = guarded(&self.dir, || CommitView::open(&self.dir, false))
        {
            *view = Arc::new(newer);
        }
        Arc::clone(&view)
    }
}

impl std::fmt::Debug for CommitView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommitView")
            .field("stamp", &self.stamp)
            .finish_non_exhaustive()
    }
}

impl CommitView {
    /// Opens the last commit. If `checked`, verifies the files' checksums.
    fn open(dir: &Path, checked: bool) -> Result<CommitView, IndexError> {
        check_format(dir)?;
        let stamp = CommitStamp::needed(dir)?;
        let snapshot = CommitSnapshotDirectory::open(dir)?;
        if checked {
            let files = match bytes(dir)? <= MAX_CHECKED_BYTES {
                true => ChecksumFileFilter::Whole,
                false => ChecksumFileFilter::UpTo(MAX_CHECKED_FILE_BYTES),
            };
            snapshot.check(dir, files)?;
        }
        CommitView::of(dir, stamp, snapshot)
    }

    /// Opens the last commit for reading all pages, without verifying checksums.
    fn open_to_read_pages(dir: &Path) -> Result<CommitView, IndexError> {
        check_format(dir)?;
        let stamp = CommitStamp::needed(dir)?;
        CommitView::of(
            dir,
            stamp,
            CommitSnapshotDirectory::open_to_read_pages(dir)?,
        )
    }

    fn of(
        dir: &Path,
        stamp: CommitStamp,
        snapshot: CommitSnapshotDirectory,
    ) -> Result<CommitView, IndexError> {
        let error = IndexError::of(dir);
        let index = Index::open(snapshot).map_err(&error)?;
        let (schema, fields) = schema();
        if index.schema() != schema {
            return Err(IndexError::damaged(
                dir,
                "its fields are not those of its format",
            ));
        }
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
        let reader: tantivy::IndexReader = reader.try_into().map_err(&error)?;
        let searcher = reader.searcher();
        let languages = counted(&searcher, fields.language).map_err(&error)?;
        let statistics = ScoringStatistics::new(searcher.clone(), &fields).map_err(&error)?;
        Ok(CommitView {
            stamp,
            searcher,
            statistics,
            fields,
            languages,
            compound_candidates: PossibleCompoundTerms::default(),
        })
    }

    fn page(&self, url: &str) -> tantivy::Result<Option<IndexedPage>> {
        Ok(self.stored(url)?.filter(|page| page.same_as.is_none()))
    }

    fn stored(&self, url: &str) -> tantivy::Result<Option<IndexedPage>> {
        page_at(&self.searcher, &self.fields, url)
    }

    /// Returns the page that results show for the URL of a pin: the page itself, or the page that
    /// replaces it. A slash may be missing at the end of the URL, or be one too many.
    fn pinned(&self, url: &str) -> tantivy::Result<Option<IndexedPage>> {
        let slash = match url.strip_suffix('/') {
            Some(without) => without.to_owned(),
            None => format!("{url}/"),
        };
        for url in [url, &slash] {
            let page = self.stored(url)?;
            let shown = match page.as_ref().and_then(|page| page.same_as.as_ref()) {
                Some(shown) => self.page(shown)?,
                None => page,
            };
            if shown.is_some() {
                return Ok(shown);
            }
        }
        Ok(None)
    }

    fn stats(&self, bytes: u64) -> tantivy::Result<IndexStats> {
        let kinds = counted(&self.searcher, self.fields.kind)?;
        let of = |kind: &str| {
            kinds
                .iter()
                .find(|(name, _)| name == kind)
                .map_or(0, |(_, n)| *n)
        };
        let mut fetched_at = None;
        for segment in self.searcher.segment_readers() {
            let column = segment.fast_fields().i64("fetched_at")?;
            if segment.num_docs() > 0 {
                fetched_at = fetched_at.max(Some(column.max_value()));
            }
        }
        Ok(IndexStats {
            pages: of(KIND_PAGE),
            duplicates: of(KIND_DUPLICATE),
            languages: self.languages.clone(),
            hosts: counted(&self.searcher, self.fields.host)?,
            bytes,
            fetched_at,
        })
    }
}

/// Returns a suggested query with its words spelled as in the results. The suggestion itself comes
/// from the words of the index, from which accents were removed.
fn as_written(query: &str, results: &[Hit]) -> String {
    let none = Stemmer::none();
    let texts = results.iter().flat_map(|hit| [&hit.title, &hit.excerpt]);
    let mut written: HashMap<String, String> = HashMap::new();
    for text in texts {
        for word in words(text, &none) {
            let lower = text[word.range].to_lowercase();
            written.entry(word.text).or_insert(lower);
        }
    }
    let mut suggestion = String::new();
    let mut end = 0;
    for word in words(query, &none) {
        // Skip the parts of a word that was already copied.
        if word.range.start >= end && query[word.range.clone()] == word.text {
            suggestion.push_str(&query[end..word.range.start]);
            end = word.range.end;
            suggestion.push_str(written.get(&word.text).unwrap_or(&word.text));
        }
    }
    suggestion + &query[end..]
}

/// A single search.
struct SingleSearch<'a> {
    view: &'a CommitView,
    rules: &'a SearchRules,
    options: &'a SearchOptions,
}

impl SingleSearch<'_> {
    fn run(&self, typed: &str, query: Query) -> tantivy::Result<SearchResults> {
        let query = &match query.terms.iter().any(|term| term.is_not) {
            true => with_resolved_minus(query, &self.planner(), &self.view.searcher)?,
            false => query,
        };
        let pinned = self.pinned(typed)?;
        let pinned_at = pinned.as_ref().map(|(_, at)| *at);
        let mut plan = self.plan(query, RequiredQueryWords::Most)?;
        let mut matches = self.look_up(&plan, query, pinned_at)?;
        let mut fit = RequiredQueryWords::Most;
        for looser in [RequiredQueryWords::Any, RequiredQueryWords::Apart] {
            if matches.total == 0 {
                fit = looser;
                plan = self.plan(query, fit)?;
                matches = self.look_up(&plan, query, pinned_at)?;
            }
        }
        let mut lacks_words = match fit {
            RequiredQueryWords::Most if plan.has_choice && matches.total > 0 => {
                let strict = self.plan(query, RequiredQueryWords::All)?;
                let with_all = self.look_up(&strict, query, pinned_at)?.total;
                with_all < MIN_WITH_ALL_WORDS.min(matches.total)
            }
            RequiredQueryWords::Most => false,
            _ => plan.has_choice,
        };
        if plan.is_pair && fit == RequiredQueryWords::Most && matches.total < MIN_WITH_ALL_WORDS {
            let relaxed = self.plan(query, RequiredQueryWords::Relaxed)?;
            let more = self.look_up(&relaxed, query, pinned_at)?;
            if more.total > matches.total {
                (plan, matches, lacks_words) = (relaxed, more, true);
            }
        }
        let mut results = Vec::new();
        for (score, address) in matches.best {
            let document: TantivyDocument = self.view.searcher.doc(address)?;
            if let Some(page) = stored(&self.view.fields, &document) {
                results.push(self.hit(&page, score, &plan.wanted));
            }
        }
        let is_additional = pinned.is_some() && !matches.has_pinned;
        let total = matches.total + usize::from(is_additional);
        if let Some((page, _)) = pinned.filter(|_| self.options.offset == 0) {
            let score = results.first().map_or(0.0, |hit| hit.score);
            let mut hit = self.hit(&page, score, &plan.wanted);
            hit.pinned = true;
            results.insert(0, hit);
            results.truncate(self.options.limit);
        }
        let suggestion = plan.did_you_mean.map(|words| as_written(&words, &results));
        Ok(SearchResults {
            query: typed.to_owned(),
            total,
            results,
            facets: matches.facets,
            did_you_mean: suggestion.map(|words| safe_line(&words).into_owned()),
            unknown: plan.unknown,
            lacks_words: lacks_words && total > 0,
        })
    }

    /// Returns the page pinned to the query and its address. `None` if no page is pinned, the index
    /// lacks the page, or the page has expired. Also `None` if there are filters, because the page
    /// might not match them.
    fn pinned(&self, typed: &str) -> tantivy::Result<Option<(IndexedPage, DocAddress)>> {
        let Some(url) = self.rules.pinned(typed) else {
            return Ok(None);
        };
        let is_over =
            |page: &IndexedPage| page.until.is_some_and(|until| until <= self.options.now);
        let page = self.view.pinned(url)?.filter(|page| !is_over(page));
        let Some(page) = page.filter(|_| self.options.filters.is_empty()) else {
            return Ok(None);
        };
        let address = address_of(&self.view.searcher, &self.view.fields, &page.url)?;
        Ok(address.map(|address| (page, address)))
    }

    fn plan(&self, query: &Query, fit: RequiredQueryWords) -> tantivy::Result<QueryPlan> {
        self.planner().plan(query, fit)
    }

    fn planner(&self) -> QueryPlanner<'_> {
        let CommitView {
            searcher,
            statistics,
            fields,
            languages,
            compound_candidates,
            ..
        } = self.view;
        let languages = languages.iter().take(MAX_LANGUAGES);
        let languages = languages.map(|(language, _)| language.as_str());
        let stemmers = languages
            .clone()
            .map(|language| Stemmer::of((!language.is_empty()).then_some(language)));
        QueryPlanner {
            fields,
            lexicon: Lexicon::new(
                (searcher, statistics),
                compound_candidates,
                fields,
                languages,
            ),
            stemmers: stemmers.collect(),
            pages: statistics.pages(),
            rules: self.rules,
            budget: PlanningBudget::default(),
        }
    }

    fn look_up(
        &self,
        plan: &QueryPlan,
        query: &Query,
        pinned: Option<DocAddress>,
    ) -> tantivy::Result<FoundPages> {
        let options = self.options;
        let is_of_version = query.sites.iter().any(|site| is_versioned_folder(site));
        let retrieval = RankedRetrieval {
            searcher: &self.view.searcher,
            statistics: &self.view.statistics,
            fields: &self.view.fields,
            limit: options.limit,
            offset: options.offset,
            pinned,
            now: options.now,
            filters: &options.filters,
            is_about_changes: is_about_changes(&query.text()),
            prefers_newest: !is_of_version && !options.filters.is_of_version(),
            counts_facets: options.facets,
        };
        retrieval.run(plan.lookup.box_clone())
    }

    fn hit(&self, page: &IndexedPage, score: f32, wanted: &MarkedWords) -> Hit {
        let (title, in_title) = marked(page.name(), page.language.as_deref(), wanted);
        let excerpt = excerpt(page, wanted, self.options.excerpt);
        // Section headings show part of the text, so leave them out if the page restricts excerpts.
        let may_show = page.max_snippet.is_none();
        let (sections, enters) = match may_show {
            true => sections(page, &excerpt.hits, &in_title),
            false => (Vec::new(), false),
        };
        let entered = sections.first().filter(|_| enters);
        let leads_to = entered.map_or(&page.url, |section| &section.url).clone();
        let section = may_show.then(|| section_at(page, excerpt.at)).flatten();
        let is_in_it = entered.is_none_or(|entered| {
            section
                .as_ref()
                .is_some_and(|section| section.url == entered.url)
        });
        let passage_url = is_in_it
            .then(|| passage_url(&leads_to, &page.text, &excerpt))
            .flatten();
        Hit {
            leads_to,
            passage_url,
            sections,
            url: page.url.clone(),
            title: joined(&title),
            excerpt: joined(&excerpt.parts),
            score,
            pinned: false,
            section,
            title_parts: title,
            excerpt_parts: excerpt.parts,
            language: page.language.clone(),
            modified: page.modified,
            fetched_at: page.fetched_at,
        }
    }
}

/// Returns the values of a field with the number of live pages that have them, most frequent first.
fn counted(searcher: &Searcher, field: Field) -> tantivy::Result<Vec<(String, u64)>> {
    let mut counts: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(field)?;
        let mut values = index.terms().stream()?;
        while values.advance() {
            let value = String::from_utf8_lossy(values.key()).into_owned();
            let info = values.value().clone();
            let mut pages = index
                .read_postings_from_terminfo(&info, tantivy::schema::IndexRecordOption::Basic)?;
            let alive = segment.alive_bitset();
            let mut count = 0;
            let mut page = tantivy::DocSet::doc(&pages);
            while page != tantivy::TERMINATED {
                count += u64::from(alive.is_none_or(|alive| alive.is_alive(page)));
                page = tantivy::DocSet::advance(&mut pages);
            }
            if count > 0 {
                *counts.entry(value).or_default() += count;
            }
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(counts)
}

impl CommitStamp {
    fn of(dir: &Path) -> Option<CommitStamp> {
        let meta = fs::metadata(dir.join("meta.json")).ok()?;
        Some(CommitStamp {
            modified: meta.modified().ok()?,
            bytes: meta.len(),
            file: meta.ino(),
        })
    }

    /// Returns the file properties that identify the last commit. Must be called before opening the
    /// index. If a commit follows in between, the old properties make the next search reopen the
    /// index.
    fn needed(dir: &Path) -> Result<CommitStamp, IndexError> {
        CommitStamp::of(dir).ok_or_else(|| IndexError::Missing {
            dir: dir.to_path_buf(),
        })
    }
}

/// Returns the total size of the files in a directory.
fn bytes(dir: &Path) -> Result<u64, IndexError> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir).map_err(IndexError::disk(dir))? {
        // Ignore errors, because a merge may delete the file in the meantime.
        let length = entry
            .and_then(|entry| entry.metadata())
            .map(|meta| meta.len());
        bytes += length.unwrap_or(0);
    }
    Ok(bytes)
}
