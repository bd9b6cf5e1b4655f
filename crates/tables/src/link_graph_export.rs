//! Exports the link graph of a crawl: pages and links as GraphML, and links between hosts as CSV.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crawl_archive::replace_file;
use crawl_archive::rows::{LinkRow, PageRow};
use crawl_records::{CrawlSettings, RoundRowFilter, RoundSelection, links, pages};
use serde::{Deserialize, Serialize};

use crate::csv_file_writer::push_text;
use crate::export::{ReadRowCounts, TablesError, each_line, each_row, unwritable};
use crate::spilled_map::SpilledMap;
use crate::url_parts::host_key;

/// The beginning of a GraphML file, up to the first node. Each key has the name of its attribute as
/// id.
const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="url" for="node" attr.name="url" attr.type="string"/>
<key id="status" for="node" attr.name="status" attr.type="int"/>
<key id="depth" for="node" attr.name="depth" attr.type="long"/>
<key id="host" for="node" attr.name="host" attr.type="string"/>
<key id="rel" for="edge" attr.name="rel" attr.type="string"/>
<key id="text" for="edge" attr.name="text" attr.type="string"/>
<graph edgedefault="directed">
"#;
const TAIL: &str = "</graph>\n</graphml>\n";

/// The header of `hosts.csv`. Gephi recognises these column names as an edge list.
const HOSTS_HEAD: &str = "Source,Target,Weight\r\n";

/// The counts of an exported link graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenGraph {
    /// Number of nodes: pages, and URLs that appear only as link targets.
    pub nodes: u64,
    /// Number of nodes that are pages.
    pub pages: u64,
    /// Number of edges, one for each selected row of `links.jsonl`.
    pub edges: u64,
    /// Number of pairs of hosts in `hosts.csv`.
    pub host_pairs: u64,
    /// Number of links that are not in `hosts.csv`, because the source or the target is a URL
    /// without a host.
    pub without_host: u64,
    /// Number of characters that were replaced by U+FFFD, because XML 1.0 forbids them.
    pub replaced: u64,
    /// How many rows of `pages.jsonl` were read.
    pub page_rows: ReadRowCounts,
    /// How many rows of `links.jsonl` were read.
    pub link_rows: ReadRowCounts,
}

/// The last visit of a page, as attributes of its node.
#[derive(Serialize, Deserialize)]
struct LastPageVisit {
    status: Option<u16>,
    depth: u32,
}

/// Writes the link graph of the crawl in `dir` for the selected `rounds` into the empty folder
/// `out`, as `pages.graphml` and `hosts.csv`. Memory is bounded except for 32 bytes per row of
/// `pages.jsonl` if the crawl has several rounds. Temporary files for sorting are written to `out`
/// and removed.
///
/// # Errors
/// [`TablesError::NoLinks`] if the crawl has no `links.jsonl`, and the errors of [`crate::export`].
pub fn export_graph(
    dir: &Path,
    out: &Path,
    rounds: RoundSelection,
) -> Result<WrittenGraph, TablesError> {
    CrawlSettings::read(dir)?;
    if !dir.join("links.jsonl").exists() {
        return Err(TablesError::NoLinks {
            dir: dir.to_owned(),
        });
    }
    let view = RoundRowFilter::read(dir, rounds)?;
    let mut graph = WrittenGraph::default();
    let in_out = |source| unwritable(out, source);
    // Add the targets of links as nodes too, because every edge in GraphML connects two nodes.
    let mut nodes = SpilledMap::new(
        out,
        "nodes",
        |earlier: &mut Option<LastPageVisit>, later| {
            *earlier = later.or(earlier.take());
        },
    );
    let mut hosts = SpilledMap::new(out, "hosts", |earlier: &mut u64, later| *earlier += later);
    graph.page_rows = each_line(pages(dir)?, |line, row: PageRow| {
        if !view.holds_page(line, &row) {
            return Ok(());
        }
        let PageRow { status, depth, .. } = row;
        nodes
            .add(&row.url, Some(LastPageVisit { status, depth }))
            .map_err(in_out)
    })?;
    graph.link_rows = each_row(links(dir)?, |row: LinkRow| {
        if !view.holds_link(&row) {
            return Ok(());
        }
        nodes.add(&row.from, None).map_err(in_out)?;
        nodes.add(&row.to, None).map_err(in_out)?;
        let (Some(from), Some(to)) = (host_key(&row.from), host_key(&row.to)) else {
            graph.without_host += 1;
            return Ok(());
        };
        // Separate the hosts by a space, which no host contains.
        hosts.add(&format!("{from} {to}"), 1).map_err(in_out)
    })?;
    write_pages((dir, &view), &out.join("pages.graphml"), nodes, &mut graph)?;
    let path = out.join("hosts.csv");
    graph.host_pairs = write_hosts(&path, hosts).map_err(|source| unwritable(&path, source))?;
    Ok(graph)
}

fn write_pages(
    (dir, view): (&Path, &RoundRowFilter),
    path: &Path,
    nodes: SpilledMap<Option<LastPageVisit>>,
    graph: &mut WrittenGraph,
) -> Result<(), TablesError> {
    let in_file = |source| unwritable(path, source);
    let mut xml = XmlFile::begin(path).map_err(in_file)?;
    let written = nodes.each(|url, visit| {
        graph.nodes += 1;
        graph.pages += u64::from(visit.is_some());
        xml.node(url, visit)
    });
    written.map_err(in_file)?;
    // If the crawl is running, links may have been added since the nodes were collected. Read only
    // the links whose nodes were collected.
    let mut rows_left = graph.link_rows.rows;
    each_row(links(dir)?, |row: LinkRow| {
        if rows_left == 0 || !view.holds_link(&row) {
            rows_left = rows_left.saturating_sub(1);
            return Ok(());
        }
        rows_left -= 1;
        graph.edges += 1;
        xml.edge(&row).map_err(in_file)
    })?;
    graph.replaced = xml.finish().map_err(in_file)?;
    Ok(())
}

/// Writes `hosts.csv` and returns the number of host pairs.
fn write_hosts(path: &Path, hosts: SpilledMap<u64>) -> io::Result<u64> {
    let mut out = BufWriter::new(replace_file(path)?);
    out.write_all(HOSTS_HEAD.as_bytes())?;
    let mut pairs = 0;
    let mut line = String::new();
    hosts.each(|pair, links| {
        pairs += 1;
        let (from, to) = pair.split_once(' ').unwrap_or((pair, ""));
        line.clear();
        push_text(from, &mut line);
        line.push(',');
        push_text(to, &mut line);
        write!(out, "{line},{links}\r\n")
    })?;
    out.flush()?;
    out.get_ref().sync_all()?;
    Ok(pairs)
}

/// A GraphML file that is being written.
struct XmlFile {
    out: BufWriter<File>,
    element: String,
    replaced: u64,
}

impl XmlFile {
    fn begin(path: &Path) -> io::Result<XmlFile> {
        let mut out = BufWriter::new(replace_file(path)?);
        out.write_all(HEAD.as_bytes())?;
        Ok(XmlFile {
            out,
            element: String::new(),
            replaced: 0,
        })
    }

    fn node(&mut self, url: &str, visit: Option<LastPageVisit>) -> io::Result<()> {
        self.push("<node id=\"", url, "\">");
        self.data("url", url);
        if let Some(LastPageVisit { status, depth }) = visit {
            if let Some(status) = status {
                self.data("status", &status.to_string());
            }
            self.data("depth", &depth.to_string());
        }
        if let Some(host) = host_key(url) {
            self.data("host", &host);
        }
        self.close("</node>\n")
    }

    fn edge(&mut self, link: &LinkRow) -> io::Result<()> {
        self.push("<edge source=\"", &link.from, "\"");
        self.push(" target=\"", &link.to, "\">");
        if let Some(rel) = &link.rel {
            self.data("rel", rel);
        }
        if let Some(text) = &link.text {
            self.data("text", text);
        }
        self.close("</edge>\n")
    }

    fn data(&mut self, key: &str, text: &str) {
        self.push("<data key=\"", key, "\">");
        self.push("", text, "</data>");
    }

    fn push(&mut self, before: &str, text: &str, after: &str) {
        self.element.push_str(before);
        self.replaced += push_escaped(text, &mut self.element);
        self.element.push_str(after);
    }

    fn close(&mut self, tag: &str) -> io::Result<()> {
        self.element.push_str(tag);
        self.out.write_all(self.element.as_bytes())?;
        self.element.clear();
        Ok(())
    }

    /// Syncs the file to disk and returns how many characters were replaced.
    fn finish(mut self) -> io::Result<u64> {
        self.out.write_all(TAIL.as_bytes())?;
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        Ok(self.replaced)
    }
}

/// Escapes a text for XML 1.0 elements and attributes. Characters that XML forbids, even as
/// references, are replaced by U+FFFD. Returns the number of replaced characters.
fn push_escaped(text: &str, out: &mut String) -> u64 {
    let mut replaced = 0;
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Escape tabs and line breaks, because XML parsers turn them into spaces in attributes.
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => {
                out.push(char::REPLACEMENT_CHARACTER);
                replaced += 1;
            }
            _ => out.push(character),
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use std::fs;

    use expect_test::expect;

    use super::{RoundSelection, WrittenGraph, export_graph, push_escaped};
    use crate::export::ReadRowCounts;

    fn page(url: &str, status: &str, depth: u32) -> String {
        format!(
            r#"{{"url":"{url}","status":{status},"fetched_at":"2026-11-20T23:59:59.123Z","ms":12,"bytes":3,"content_type":null,"digest":null,"depth":{depth},"via":null,"title":null,"robots":null,"warc":null,"error":null}}"#
        )
    }

    #[test]
    fn nodes_are_pages_and_link_targets_and_each_row_is_an_edge() {
        let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let pages = [
            page("http://b.example/", "200", 0),
            page("http://b.example/a?x&y", "null", 1),
            page("http://b.example/", "304", 0),
            r#"{"no":"row"}"#.to_owned(),
        ];
        fs::write(dir.path().join("pages.jsonl"), pages.join("\n") + "\n").unwrap();
        let links = [
            r#"{"from":"http://b.example/","to":"http://b.example/a?x&y","rel":"nofollow","text":"<a>\r\n\u0001 \"b\""}"#,
            r#"{"from":"http://b.example/","to":"http://a,c.example/","rel":null,"text":""}"#,
            r#"{"from":"http://b.example/","to":"http://a,c.example/","rel":null,"text":null}"#,
            r#"{"from":"http://b.example/","to":"no url","rel":null,"text":null}"#,
            r#"{"from":"torn"#,
        ];
        fs::write(dir.path().join("links.jsonl"), links.join("\n")).unwrap();
        let written = export_graph(dir.path(), out.path(), RoundSelection::Last).unwrap();
        let expected = WrittenGraph {
            nodes: 4,
            pages: 2,
            edges: 4,
            host_pairs: 2,
            without_host: 1,
            replaced: 1,
            page_rows: ReadRowCounts {
                rows: 3,
                bad_lines: 1,
                is_torn: false,
            },
            link_rows: ReadRowCounts {
                rows: 4,
                bad_lines: 0,
                is_torn: true,
            },
        };
        assert_eq!(written, expected);
        let graphml = fs::read_to_string(out.path().join("pages.graphml")).unwrap();
        expect![[r#"
            <?xml version="1.0" encoding="UTF-8"?>
            <graphml xmlns="http://graphml.graphdrawing.org/xmlns">
            <key id="url" for="node" attr.name="url" attr.type="string"/>
            <key id="status" for="node" attr.name="status" attr.type="int"/>
            <key id="depth" for="node" attr.name="depth" attr.type="long"/>
            <key id="host" for="node" attr.name="host" attr.type="string"/>
            <key id="rel" for="edge" attr.name="rel" attr.type="string"/>
            <key id="text" for="edge" attr.name="text" attr.type="string"/>
            <graph edgedefault="directed">
            <node id="http://a,c.example/"><data key="url">http://a,c.example/</data><data key="host">a,c.example</data></node>
            <node id="http://b.example/"><data key="url">http://b.example/</data><data key="status">304</data><data key="depth">0</data><data key="host">b.example</data></node>
            <node id="http://b.example/a?x&amp;y"><data key="url">http://b.example/a?x&amp;y</data><data key="depth">1</data><data key="host">b.example</data></node>
            <node id="no url"><data key="url">no url</data></node>
            <edge source="http://b.example/" target="http://b.example/a?x&amp;y"><data key="rel">nofollow</data><data key="text">&lt;a&gt;&#13;&#10;� &quot;b&quot;</data></edge>
            <edge source="http://b.example/" target="http://a,c.example/"><data key="text"></data></edge>
            <edge source="http://b.example/" target="http://a,c.example/"></edge>
            <edge source="http://b.example/" target="no url"></edge>
            </graph>
            </graphml>
        "#]].assert_eq(&graphml);
        let hosts = fs::read_to_string(out.path().join("hosts.csv")).unwrap();
        assert_eq!(
            hosts,
            "Source,Target,Weight\r\nb.example,\"a,c.example\",2\r\nb.example,b.example,1\r\n"
        );
        // Only the two results remain; the temporary files were removed.
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 2);
    }

    #[test]
    fn xml_2_2_forbidden_characters_are_replaced_and_counted() {
        let check = |text, expected, replaced| {
            let mut out = String::new();
            assert_eq!(push_escaped(text, &mut out), replaced);
            assert_eq!(out, expected);
        };
        check(
            "a\0b\u{1f}\u{fffe}\u{ffff}",
            "a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}",
            4,
        );
        check("\t\n\r", "&#9;&#10;&#13;", 0);
        check(
            "\u{7f}\u{85}\u{fffd}\u{10ffff}é",
            "\u{7f}\u{85}\u{fffd}\u{10ffff}é",
            0,
        );
        check(
            "<a href=\"?x&y\">",
            "&lt;a href=&quot;?x&amp;y&quot;&gt;",
            0,
        );
    }
}
