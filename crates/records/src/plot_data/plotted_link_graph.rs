//! Links between hosts, or between folders if there is only one host.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Deserialize;

use super::sound;
use crate::error::RecordsError;
use crate::host_reports::origin_of;
use crate::report::CrawlReport;
use crate::row_file_reader::{RowFileReader, links};

/// Maximum number of hosts or folders in the sketch of links, the largest first.
/// Beyond the limit: not drawn.
pub(crate) const MAX_NODES: usize = 12;
/// Maximum number of links to read for the sketch; a crawl may have a thousand per page.
/// Beyond the limit: not read; the sketch says so.
pub(crate) const MAX_LINKS: u64 = 200_000;
/// Maximum number of folders whose pages are counted separately.
const MAX_FOLDERS: usize = 1000;

/// The source of the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LinkDataSource {
    /// `links.jsonl`: all links.
    Links,
    /// Column `via` of `pages.jsonl`: the link through which each page was first discovered.
    #[default]
    Via,
}

/// Numbers of links between a few nodes (hosts or folders).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlottedLinkGraph {
    pub(crate) source: LinkDataSource,
    /// Whether nodes are hosts. If false, nodes are folders of one host.
    pub(crate) of_hosts: bool,
    /// Hosts or folders, with their number of pages.
    pub(crate) nodes: Vec<(String, u64)>,
    /// Number of links by source and target, which are indexes in `nodes`. Links from a node to
    /// itself are included.
    pub(crate) links: BTreeMap<(usize, usize), u64>,
    /// Number of links whose source or target isn't a node.
    pub(crate) elsewhere: u64,
    /// Number of links that were read.
    pub(crate) read: u64,
    /// Whether there are more links than were read.
    pub(crate) is_cut: bool,
}

/// The columns of a page row that show how the page was discovered.
#[derive(Deserialize)]
struct FoundBy {
    url: String,
    via: Option<String>,
}

/// Number of pages by the first folder of their path.
#[derive(Debug, Default)]
pub(super) struct FolderPageCounts(BTreeMap<String, u64>);

impl FolderPageCounts {
    pub(super) fn add(&mut self, url: &str) {
        let folder = folder(url);
        if let Some(pages) = self.0.get_mut(folder) {
            *pages += 1;
        } else if self.0.len() < MAX_FOLDERS {
            self.0.insert(folder.to_owned(), 1);
        }
    }
}

/// Returns the first folder of a URL's path, with a trailing slash; `/` if there is none.
fn folder(url: &str) -> &str {
    let path = url.get(origin_of(url).len()..).unwrap_or_default();
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let end = path.get(1..).and_then(|rest| rest.find('/'));
    match end {
        Some(end) => &path[..end + 2],
        None => "/",
    }
}

/// Counts the links between the hosts with the most requests, or between folders if there is only
/// one host. `origins` maps an origin to the index of its host in [`CrawlReport::hosts_asked`].
pub(super) fn read(
    dir: &Path,
    report: &CrawlReport,
    origins: HashMap<String, usize>,
    folders: FolderPageCounts,
) -> Result<PlottedLinkGraph, RecordsError> {
    let (asked, _) = report.hosts_asked();
    let of_hosts = asked.len() > 1;
    let mut nodes: Vec<(String, u64)> = match of_hosts {
        true => {
            let nodes = asked.iter().map(|host| (host.host.clone(), host.pages));
            nodes.take(MAX_NODES).collect()
        }
        false => folders.0.into_iter().collect(),
    };
    if !of_hosts {
        nodes.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        nodes.truncate(MAX_NODES);
    }
    let places: HashMap<String, usize> = nodes
        .iter()
        .enumerate()
        .map(|(at, (name, _))| (name.clone(), at))
        .collect();
    let place = |url: &str| {
        let host = *origins.get(origin_of(url))?;
        match of_hosts {
            true => Some(host).filter(|host| *host < nodes.len()),
            false => places.get(folder(url)).copied(),
        }
    };
    let mut sketch = PlottedLinkGraph {
        of_hosts,
        ..PlottedLinkGraph::default()
    };
    for row in links(dir)? {
        if let Some(row) = sound(row)? {
            sketch.source = LinkDataSource::Links;
            if !sketch.add(place(&row.from), place(&row.to)) {
                break;
            }
        }
    }
    if sketch.source == LinkDataSource::Via {
        for row in RowFileReader::<FoundBy>::open(dir, "pages.jsonl")? {
            if let Some(row) = sound(row)?
                && let Some(via) = &row.via
                && !sketch.add(place(via), place(&row.url))
            {
                break;
            }
        }
    }
    sketch.nodes = nodes;
    Ok(sketch)
}

impl PlottedLinkGraph {
    /// Counts a link. `from` and `to` are indexes in `nodes`; `None` if the page belongs to no
    /// node. Returns false once the maximum number of links has been read.
    fn add(&mut self, from: Option<usize>, to: Option<usize>) -> bool {
        if self.read == MAX_LINKS {
            self.is_cut = true;
            return false;
        }
        self.read += 1;
        match (from, to) {
            (Some(from), Some(to)) => *self.links.entry((from, to)).or_default() += 1,
            _ => self.elsewhere += 1,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::folder;

    #[test]
    fn a_page_belongs_to_the_first_folder_of_its_path() {
        let check = |url: &str, expected: &str| assert_eq!(folder(url), expected, "{url}");
        check("http://e.example/", "/");
        check("http://e.example/a.html", "/");
        check("http://e.example/a/", "/a/");
        check("http://e.example/a/b/c.html", "/a/");
        check("http://e.example/a?b/c", "/");
        check("http://e.example/%C3%A4/b", "/%C3%A4/");
        check("http://e.example//b", "//");
        check("data:x", "/");
        check("", "/");
    }
}
