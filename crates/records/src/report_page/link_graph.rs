//! Draws the link graph: nodes on a circle, and arrows between them.

use std::f64::consts::TAU;

use crawl_weburl::safe_line;
use maud::{Markup, html};

use crate::number_format::{counted, grouped};
use crate::plot_data::{LinkDataSource, PlottedLinkGraph};

use super::svg_plots::{PlotFigure, WIDTH, part, unit};

const HEIGHT: f64 = 290.0;
const CENTRE: (f64, f64) = (WIDTH / 2.0, HEIGHT / 2.0);
/// Radius of the circle of nodes, to the centres of the nodes, in view box units.
const RADIUS: f64 = 115.0;
/// The radii of the smallest and the largest node, in view box units.
const NODE: (f64, f64) = (9.0, 20.0);

/// Draws the links between hosts or folders. Returns `None` if there are no such links.
pub(super) fn sketch(links: &PlottedLinkGraph) -> Option<Markup> {
    if links.nodes.len() < 2 {
        return None;
    }
    let (ends, title) = match links.of_hosts {
        true => ("hosts", "Links between hosts"),
        false => ("folders", "Links between folders"),
    };
    let between: u64 = links
        .links
        .iter()
        .filter(|((from, to), _)| from != to)
        .map(|(_, count)| count)
        .sum();
    if between == 0 {
        return None;
    }
    let within: u64 = links.links.values().sum::<u64>() - between;
    let source = match (links.source, links.is_cut) {
        (LinkDataSource::Links, false) => "all links".to_owned(),
        (LinkDataSource::Links, true) => format!("the first {} links", grouped(links.read)),
        (LinkDataSource::Via, false) => "the first link to each page".to_owned(),
        (LinkDataSource::Via, true) => format!(
            "the first link to each of the first {} pages",
            grouped(links.read)
        ),
    };
    let words = format!(
        "Of {source}: {} between {} {ends}, {} within one, and {} to or from elsewhere.",
        grouped(between),
        links.nodes.len(),
        grouped(within),
        grouped(links.elsewhere),
    );
    Some(html! {
        div class="plots" {
            (PlotFigure {
                id: "links",
                title,
                words: &words,
                height: HEIGHT,
                drawing: drawing(links),
                legend: &[],
                table: table(links),
            }.draw())
            div class="card" {
                h3 { "The " (ends) " in the sketch" }
                ol {
                    @for (name, pages) in &links.nodes {
                        li { (safe_line(name)) " (" (counted(*pages, "page", "pages")) ")" }
                    }
                }
            }
        }
    })
}

fn drawing(links: &PlottedLinkGraph) -> Markup {
    let most_pages = links
        .nodes
        .iter()
        .map(|(_, pages)| *pages)
        .max()
        .unwrap_or(0);
    let nodes: Vec<NodeCircle> = links
        .nodes
        .iter()
        .enumerate()
        .map(|(at, (_, pages))| {
            let angle = TAU * at as f64 / links.nodes.len() as f64 - TAU / 4.0;
            NodeCircle {
                x: CENTRE.0 + RADIUS * angle.cos(),
                y: CENTRE.1 + RADIUS * angle.sin(),
                radius: NODE.0 + (NODE.1 - NODE.0) * part(*pages, most_pages, 1.0).sqrt(),
            }
        })
        .collect();
    let edges = links.links.iter().filter(|((from, to), _)| from != to);
    let most_links = edges.clone().map(|(_, count)| *count).max().unwrap_or(0);
    html! {
        defs {
            marker id="arrow" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="7" markerHeight="7"
                markerUnits="userSpaceOnUse" orient="auto" { path d="M0 0 L6 3 L0 6 Z" {} }
        }
        @for ((from, to), count) in edges {
            path class="edge" marker-end="url(#arrow)" d=(arc(&nodes[*from], &nodes[*to]))
                stroke-width=(unit(0.7 + 3.5 * (part(*count, most_links, 1.0)).sqrt())) {}
        }
        @for (at, node) in nodes.iter().enumerate() {
            circle class="node" cx=(unit(node.x)) cy=(unit(node.y)) r=(unit(node.radius)) {}
            text class="middle" x=(unit(node.x)) y=(unit(node.y + 3.5)) { (at + 1) }
        }
    }
}

struct NodeCircle {
    x: f64,
    y: f64,
    radius: f64,
}

/// Returns the path of a line from the rim of one node to the rim of another. The line is curved,
/// so that it doesn't cover the line of the links in the other direction.
fn arc(from: &NodeCircle, to: &NodeCircle) -> String {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let bend = (
        f64::midpoint(from.x, to.x) + dy * 0.18,
        f64::midpoint(from.y, to.y) - dx * 0.18,
    );
    let rim = |node: &NodeCircle, gap: f64| {
        let (x, y) = (bend.0 - node.x, bend.1 - node.y);
        let length = x.hypot(y).max(1.0);
        let out = (node.radius + gap) / length;
        (node.x + x * out, node.y + y * out)
    };
    let (start, end) = (rim(from, 0.0), rim(to, 1.5));
    format!(
        "M{} {} Q{} {} {} {}",
        unit(start.0),
        unit(start.1),
        unit(bend.0),
        unit(bend.1),
        unit(end.0),
        unit(end.1)
    )
}

fn table(links: &PlottedLinkGraph) -> Markup {
    let name = |at: &usize| links.nodes.get(*at).map_or("", |(name, _)| name.as_str());
    html! {
        thead { tr { th scope="col" { "from" } th scope="col" { "to" } th scope="col" { "links" } } }
        tbody {
            @for ((from, to), count) in &links.links {
                tr { td { (safe_line(name(from))) } td { (safe_line(name(to))) } td.n { (grouped(*count)) } }
            }
            tr { td colspan="2" { "to or from elsewhere" } td.n { (grouped(links.elsewhere)) } }
        }
        tfoot { tr { th scope="row" colspan="2" { "all" } td.n { (grouped(links.read)) } } }
    }
}
