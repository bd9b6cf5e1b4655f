//! Facets count the pages that match a query by folder, language, version and document type.
//! Filters select pages by these values.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use tantivy::query::{BooleanQuery, Query as Lookup, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet as _, Searcher, TERMINATED, Term};

use crate::product_versions::{is_versioned_folder, newer_label_first};
use crate::query::{folder_of_any_host, site_name};
use crate::schema::IndexFields;
use crawl_index_entry::{IndexedPage, url_key};

/// Maximum number of values that a facet returns.
const MAX_VALUES: usize = 20;
/// Maximum number of nested folders that are counted for a page, without the host.
const MAX_FOLDERS: usize = 5;

const FOLDER: &str = "folder:";
const LANGUAGE: &str = "language:";
const VERSION: &str = "version:";
const TYPE: &str = "type:";

/// The number of matching pages for each value of each facet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FacetCounts {
    /// Counts by host or folder (such as `example.org/docs`). With a filter, the values are the
    /// subfolders of the filter's folder. Without a filter, they are the subfolders of the deepest
    /// folder that contains all matching pages. If the filter is a path without a host and several
    /// hosts have this path, the values are the folders with this path.
    pub folder: Vec<FacetCount>,
    /// Counts by language (ISO 639 code).
    pub language: Vec<FacetCount>,
    /// Counts by version, newest first. Includes older versions that the results don't show.
    pub version: Vec<FacetCount>,
    /// Counts by document type: `html`, `pdf`, `docx`, `markdown` or `text`.
    #[serde(rename = "type")]
    pub document_type: Vec<FacetCount>,
}

/// A value of a facet, with the number of matching pages that have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FacetCount {
    /// The value as a filter accepts it.
    pub value: String,
    /// The value as shown to users.
    pub name: String,
    /// The number of pages with the value.
    pub count: u64,
}

/// The facet values that a page must have to match. `None` accepts any value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FacetFilters {
    /// A host, a folder with its subfolders in the form that `site:` accepts, or a folder of any
    /// host (`products` or `/products/`).
    pub folder: Option<String>,
    /// A language (ISO 639).
    pub language: Option<String>,
    /// A version, as it appears in URLs.
    pub version: Option<String>,
    /// A document type.
    pub document_type: Option<String>,
}

impl FacetFilters {
    /// Returns true if there are no filters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == FacetFilters::default()
    }

    /// Returns a query for each filter. A page must match all queries.
    pub(crate) fn look_ups(&self, fields: &IndexFields) -> Vec<Box<dyn Lookup>> {
        let exact = |field, value: &str| {
            let term = Term::from_field_text(field, value);
            Box::new(TermQuery::new(term, IndexRecordOption::Basic)) as Box<dyn Lookup>
        };
        let of_folder = self.folder.as_deref().map(|folder| {
            let host_or_folder = exact(fields.site, &site_name(folder));
            let of_any_host = exact(fields.site, &folder_of_any_host(folder));
            Box::new(BooleanQuery::union(vec![host_or_folder, of_any_host])) as Box<dyn Lookup>
        });
        let values = [
            (LANGUAGE, &self.language),
            (VERSION, &self.version),
            (TYPE, &self.document_type),
        ];
        let values = values.into_iter().filter_map(|(facet, value)| {
            let value = value.as_deref()?;
            Some(exact(fields.facet, &format!("{facet}{value}")))
        });
        of_folder.into_iter().chain(values).collect()
    }

    /// Returns true if a filter requires one version of the pages.
    pub(crate) fn is_of_version(&self) -> bool {
        let path = self.folder.as_deref().map(folder_of_any_host);
        self.version.is_some() || path.is_some_and(|path| is_versioned_folder(&format!("-{path}")))
    }
}

/// Returns the facet values of a page, as stored in the index.
pub(crate) fn facet_values(page: &IndexedPage) -> Vec<String> {
    let host = page.host().to_lowercase();
    let path = page.path().split('?').next().unwrap_or_default();
    let ends = path.match_indices('/').skip(1).take(MAX_FOLDERS);
    let folders = ends.map(|(at, _)| format!("{FOLDER}{host}{}", &path[..at]));
    let mut values: Vec<String> = folders.collect();
    values.push(format!("{FOLDER}{host}"));
    let properties = [
        (LANGUAGE, page.language.as_deref()),
        (VERSION, page.version.as_deref()),
        (TYPE, Some(page.document_type.as_str())),
    ];
    let properties = properties.into_iter().filter_map(|(facet, value)| {
        let value = value.filter(|value| !value.is_empty())?;
        Some(format!("{facet}{value}"))
    });
    values.extend(properties);
    values
}

/// Identifies a page that has several versions and ranks its version. The lowest byte is the number
/// of newer versions. The upper bytes are the same for all versions of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProductVersionKey(pub(crate) u64);

impl ProductVersionKey {
    pub(crate) fn of(page: &IndexedPage) -> Option<ProductVersionKey> {
        let newest = page.newest.as_deref()?;
        let newer = u64::from(page.newer_versions.min(0xFF));
        Some(ProductVersionKey(url_key(newest) & !0xFF | newer))
    }

    /// Returns the bytes that are the same for all versions of a page.
    pub(crate) fn shared(self) -> u64 {
        self.0 & !0xFF
    }

    pub(crate) fn newer(self) -> u64 {
        self.0 & 0xFF
    }
}

/// The number of pages with each facet value.
pub(crate) struct FacetCountMap<'s> {
    searcher: &'s Searcher,
    fields: &'s IndexFields,
    pages: &'s [(f32, DocAddress)],
    /// The counts by facet value. The keys have a prefix, such as `language:`. The count of the
    /// folder `example.org/docs` doesn't include the page at `example.org/docs` itself: see
    /// [`FacetCountMap::in_folder`].
    counts: HashMap<String, u64>,
}

impl<'s> FacetCountMap<'s> {
    pub(crate) fn of(
        searcher: &'s Searcher,
        fields: &'s IndexFields,
        pages: &'s [(f32, DocAddress)],
    ) -> tantivy::Result<Self> {
        let mut by_segment: HashMap<u32, HashMap<u64, u64>> = HashMap::new();
        let mut columns = HashMap::new();
        for (_, address) in pages {
            let segment = address.segment_ord;
            if let std::collections::hash_map::Entry::Vacant(entry) = columns.entry(segment) {
                let reader = searcher.segment_reader(segment);
                entry.insert(reader.fast_fields().str("facet")?);
            }
            let Some(Some(column)) = columns.get(&segment) else {
                continue;
            };
            let counts = by_segment.entry(segment).or_default();
            for value in column.term_ords(address.doc_id) {
                *counts.entry(value).or_default() += 1;
            }
        }
        let mut all = HashMap::new();
        for (segment, counts) in by_segment {
            let Some(Some(column)) = columns.get(&segment) else {
                continue;
            };
            for (number, count) in counts {
                let mut value = String::new();
                if column.ord_to_str(number, &mut value)? {
                    *all.entry(value).or_default() += count;
                }
            }
        }
        Ok(FacetCountMap {
            searcher,
            fields,
            pages,
            counts: all,
        })
    }

    /// Returns the number of pages in a folder (`example.org/docs`), including the page at
    /// `example.org/docs` itself with any query, as the filter for the folder finds them.
    fn in_folder(&self, folder: &str) -> tantivy::Result<u64> {
        let below = self.counts.get(&format!("{FOLDER}{folder}")).copied();
        let own = self.own_pages(folder)?;
        if own.is_empty() {
            return Ok(below.unwrap_or(0));
        }
        let matching = self.pages.iter().filter(|(_, page)| own.contains(page));
        Ok(below.unwrap_or(0) + matching.count() as u64)
    }

    /// Returns the pages of the index whose path is this folder.
    fn own_pages(&self, folder: &str) -> tantivy::Result<HashSet<DocAddress>> {
        let mut pages = HashSet::new();
        if !folder.contains('/') {
            return Ok(pages);
        }
        for (segment, reader) in (0..).zip(self.searcher.segment_readers()) {
            let urls = reader.inverted_index(self.fields.url)?;
            for scheme in ["http", "https"] {
                let url = format!("{scheme}://{folder}");
                // URLs with a query start with `url` and a question mark. `@` follows the question
                // mark in ASCII, so it ends the range.
                let (query, end) = (format!("{url}?"), format!("{url}@"));
                let exact = urls.terms().range().ge(&url).le(&url);
                let with_query = urls.terms().range().ge(query).lt(end);
                for range in [exact, with_query] {
                    let mut terms = range.into_stream()?;
                    while terms.advance() {
                        let term = terms.value();
                        let mut postings =
                            urls.read_postings_from_terminfo(term, IndexRecordOption::Basic)?;
                        while postings.doc() != TERMINATED {
                            pages.insert(DocAddress::new(segment, postings.doc()));
                            postings.advance();
                        }
                    }
                }
            }
        }
        Ok(pages)
    }

    /// Returns the values of the facet with the prefix `facet`, with their counts, the most
    /// frequent first.
    fn values(&self, facet: &str) -> Vec<(String, u64)> {
        let values = self.counts.iter().filter_map(|(value, count)| {
            let value = value.strip_prefix(facet)?;
            Some((value.to_owned(), *count))
        });
        let mut values: Vec<_> = values.collect();
        values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        values
    }
}

impl FacetCounts {
    /// Returns the facets of a search. `all` counts all matching pages. `shown` doesn't count older
    /// versions, which only appear in the results if a filter selects their version.
    ///
    /// # Errors
    /// If the index is damaged.
    pub(crate) fn of(
        all: &FacetCountMap<'_>,
        shown: &FacetCountMap<'_>,
        filters: &FacetFilters,
    ) -> tantivy::Result<FacetCounts> {
        let listed = |values: Vec<(String, u64)>, name: fn(&str) -> String| {
            let values = values.into_iter().filter(|(_, count)| *count > 0);
            let values = values.map(|(value, count)| FacetCount {
                name: name(&value),
                value,
                count,
            });
            values.take(MAX_VALUES).collect()
        };
        let mut versions = all.values(VERSION);
        versions.sort_by(|a, b| newer_label_first(&a.0, &b.0));
        let mut folder: Vec<FacetCount> = listed(folders(all, shown, filters)?, str::to_owned);
        name_without_shared_host(&mut folder);
        Ok(FacetCounts {
            folder,
            language: listed(shown.values(LANGUAGE), language_name),
            version: listed(versions, str::to_owned),
            document_type: listed(shown.values(TYPE), type_name),
        })
    }
}

/// Returns the subfolders of the folder in the filter, with page counts. Descends while all pages
/// are in a single subfolder.
fn folders(
    all: &FacetCountMap<'_>,
    shown: &FacetCountMap<'_>,
    filters: &FacetFilters,
) -> tantivy::Result<Vec<(String, u64)>> {
    let values = all.values(FOLDER);
    let pages = values.iter().filter(|(value, _)| !value.contains('/'));
    let mut here = filters.folder.as_deref().map(site_name);
    if let Some(folder) = &filters.folder
        && all.in_folder(&site_name(folder))? == 0
    {
        let path = folder_of_any_host(folder);
        let has_path = |value: &str| value.find('/').is_some_and(|at| value[at..] == path);
        let mut on_hosts = values.clone();
        on_hosts.retain(|(value, _)| has_path(value));
        match on_hosts.as_slice() {
            [] => {}
            [(only, _)] => here = Some(only.clone()),
            _ => return in_folders(on_hosts, |folder| all.in_folder(folder)),
        }
    }
    let in_it: u64 = match &here {
        Some(folder) => all.in_folder(folder)?,
        None => pages.map(|(_, count)| count).sum(),
    };
    loop {
        let parent = |value: &str| value.rsplit_once('/').map(|(parent, _)| parent.to_owned());
        let mut within = values.iter().filter(|(value, _)| parent(value) == here);
        match (within.next(), within.next()) {
            (Some((only, _)), None) if all.in_folder(only)? == in_it => {
                here = Some(only.clone());
            }
            (None, _) => return Ok(Vec::new()),
            _ => break,
        }
    }
    let parent = |value: &str| value.rsplit_once('/').map(|(parent, _)| parent.to_owned());
    let counted = |folder: &str| match is_versioned_folder(folder) {
        true => all,
        false => shown,
    };
    let within = values.iter().filter(|(value, _)| {
        let is_shown = counted(value)
            .counts
            .contains_key(&format!("{FOLDER}{value}"));
        parent(value) == here && is_shown
    });
    in_folders(within.cloned().collect(), |folder| {
        counted(folder).in_folder(folder)
    })
}

/// Counts the pages in the first [`MAX_VALUES`] of `folders`, the most frequent first.
fn in_folders(
    mut folders: Vec<(String, u64)>,
    pages_in: impl Fn(&str) -> tantivy::Result<u64>,
) -> tantivy::Result<Vec<(String, u64)>> {
    // Leave out paths that end with two slashes, because no filter selects only their pages.
    folders.retain(|(folder, _)| !folder.ends_with('/'));
    folders.truncate(MAX_VALUES);
    for (folder, count) in &mut folders {
        *count = pages_in(folder)?;
    }
    folders.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(folders)
}

/// Removes the host from the names of folders if all folders are on the same host.
fn name_without_shared_host(folders: &mut [FacetCount]) {
    let host = |folder: &FacetCount| {
        folder
            .value
            .split('/')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let Some(shared) = folders.first().map(host) else {
        return;
    };
    if folders.iter().any(|folder| host(folder) != shared) {
        return;
    }
    for folder in folders {
        if let Some((_, path)) = folder.value.split_once('/') {
            folder.name = path.to_owned();
        }
    }
}

fn type_name(value: &str) -> String {
    let name = match value {
        "html" => "Web page",
        "pdf" => "PDF",
        "docx" => "Word (DOCX)",
        "markdown" => "Markdown",
        "text" => "Text",
        _ => value,
    };
    name.to_owned()
}

/// Returns the English name of a language. If the language is not in the list, returns its ISO 639
/// code.
fn language_name(code: &str) -> String {
    let language = LANGUAGES.iter().find(|(language, _)| *language == code);
    language.map_or(code, |(_, name)| name).to_owned()
}

/// Languages that are common on web pages: the ISO 639 code and English name of each.
const LANGUAGES: [(&str, &str); 52] = [
    ("ar", "Arabic"),
    ("bg", "Bulgarian"),
    ("bn", "Bengali"),
    ("ca", "Catalan"),
    ("cs", "Czech"),
    ("da", "Danish"),
    ("de", "German"),
    ("el", "Greek"),
    ("en", "English"),
    ("es", "Spanish"),
    ("et", "Estonian"),
    ("eu", "Basque"),
    ("fa", "Persian"),
    ("fi", "Finnish"),
    ("fr", "French"),
    ("ga", "Irish"),
    ("gl", "Galician"),
    ("he", "Hebrew"),
    ("hi", "Hindi"),
    ("hr", "Croatian"),
    ("hu", "Hungarian"),
    ("hy", "Armenian"),
    ("id", "Indonesian"),
    ("is", "Icelandic"),
    ("it", "Italian"),
    ("ja", "Japanese"),
    ("ka", "Georgian"),
    ("km", "Khmer"),
    ("ko", "Korean"),
    ("lo", "Lao"),
    ("lt", "Lithuanian"),
    ("lv", "Latvian"),
    ("mk", "Macedonian"),
    ("my", "Burmese"),
    ("nb", "Norwegian"),
    ("nl", "Dutch"),
    ("nn", "Norwegian Nynorsk"),
    ("no", "Norwegian"),
    ("pl", "Polish"),
    ("pt", "Portuguese"),
    ("ro", "Romanian"),
    ("ru", "Russian"),
    ("sk", "Slovak"),
    ("sl", "Slovenian"),
    ("sr", "Serbian"),
    ("sv", "Swedish"),
    ("ta", "Tamil"),
    ("th", "Thai"),
    ("tr", "Turkish"),
    ("uk", "Ukrainian"),
    ("vi", "Vietnamese"),
    ("zh", "Chinese"),
];
