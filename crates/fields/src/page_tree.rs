//! Parses a page into a tree of bounded size and depth.

use std::borrow::Cow;
use std::cell::{Cell, Ref};

use ego_tree::iter::Edge;
use html5ever::driver::{ParseOpts, parse_document};
use html5ever::interface::ElementFlags;
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tree_builder::{NodeOrText, QuirksMode, TreeBuilderOpts, TreeSink};
use html5ever::{Attribute, QualName};
use scraper::node::Node;
use scraper::{ElementRef, Html, HtmlTreeSink};

/// Maximum bytes of a page that are parsed into a tree.
/// Beyond the limit: the rest is not parsed, and the row has `cut: bytes`.
const MAX_TREE_BYTES: usize = 16 << 20;

/// Maximum nodes of a page's tree. A node takes about 200 bytes of memory.
/// Beyond the limit: the rest of the page is not parsed, and the row has `cut: nodes`.
const MAX_NODES: usize = 500_000;

/// Maximum open elements within each other. Browsers have the same limit. It also bounds the time,
/// since the parser searches the open elements at each tag.
/// Beyond the limit: the rest of the page is not parsed, and the row has `cut: depth`.
const MAX_DEPTH: usize = 512;

/// Number of bytes to parse between two checks of the limits. A tag has at least three bytes, so a
/// limit is exceeded by at most a third of this number.
const CHUNK_BYTES: usize = 1024;

/// The parsed tree of a page.
pub(crate) struct PageTree {
    pub(crate) html: Html,
    /// The limit that ended parsing early. `None` if the whole page was parsed.
    pub(crate) cut: Option<&'static str>,
}

impl PageTree {
    /// Parses a page up to the limits.
    pub(crate) fn parse(text: &str) -> PageTree {
        let sink = BoundedSink {
            tree: HtmlTreeSink::new(Html::new_document()),
            nodes: Cell::new(0),
            depth: Cell::new(0),
        };
        // No scripts are run, so parse the content of NOSCRIPT as elements.
        let options = ParseOpts {
            tree_builder: TreeBuilderOpts {
                scripting_enabled: false,
                ..TreeBuilderOpts::default()
            },
            ..ParseOpts::default()
        };
        let mut parser = parse_document(sink, options);
        let mut cut = (text.len() > MAX_TREE_BYTES).then_some("bytes");
        let mut rest = &text[..text.floor_char_boundary(MAX_TREE_BYTES)];
        while !rest.is_empty() {
            let at = match rest.floor_char_boundary(CHUNK_BYTES) {
                0 => rest.len(),
                at => at,
            };
            let (chunk, behind) = rest.split_at(at);
            parser.process(StrTendril::from_slice(chunk));
            if let Some(limit) = parser.tokenizer.sink.sink.limit() {
                cut = Some(limit);
                break;
            }
            rest = behind;
        }
        PageTree {
            html: parser.finish(),
            cut,
        }
    }

    /// Returns the root element. html5ever always creates one, so the result is never `None`.
    pub(crate) fn root(&self) -> Option<ElementRef<'_>> {
        self.html.tree.root().children().find_map(ElementRef::wrap)
    }
}

/// Builds a tree, counting its nodes and tracking its depth.
struct BoundedSink {
    tree: HtmlTreeSink,
    nodes: Cell<usize>,
    /// The depth of the deepest node so far.
    depth: Cell<usize>,
}

impl BoundedSink {
    fn limit(&self) -> Option<&'static str> {
        match (self.nodes.get(), self.depth.get()) {
            (MAX_NODES.., _) => Some("nodes"),
            (_, MAX_DEPTH..) => Some("depth"),
            _ => None,
        }
    }

    fn count(&self) {
        self.nodes.set(self.nodes.get() + 1);
    }

    /// Records the depth of a new child of `parent`. Takes time in proportion to the depth, which
    /// [`MAX_DEPTH`] bounds.
    fn count_depth(&self, parent: &<HtmlTreeSink as TreeSink>::Handle) {
        let tree = self.tree.0.borrow();
        let depth = tree.tree.get(*parent).map(|node| node.ancestors().count());
        self.depth.set(self.depth.get().max(depth.unwrap_or(0) + 1));
    }
}

impl TreeSink for BoundedSink {
    type Output = Html;
    type Handle = <HtmlTreeSink as TreeSink>::Handle;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Html {
        self.tree.finish()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Self::Handle {
        self.tree.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Self::Handle) -> Self::ElemName<'a> {
        self.tree.elem_name(target)
    }

    fn create_element(
        &self,
        name: QualName,
        attrs: Vec<Attribute>,
        flags: ElementFlags,
    ) -> Self::Handle {
        self.count();
        self.tree.create_element(name, attrs, flags)
    }

    fn create_comment(&self, text: StrTendril) -> Self::Handle {
        self.count();
        self.tree.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Self::Handle {
        self.count();
        self.tree.create_pi(target, data)
    }

    fn append(&self, parent: &Self::Handle, child: NodeOrText<Self::Handle>) {
        match &child {
            NodeOrText::AppendNode(_) => self.count_depth(parent),
            NodeOrText::AppendText(_) => self.count(),
        }
        self.tree.append(parent, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Self::Handle,
        prev_element: &Self::Handle,
        child: NodeOrText<Self::Handle>,
    ) {
        self.count();
        self.tree
            .append_based_on_parent_node(element, prev_element, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.tree.append_doctype_to_document(name, public, system);
    }

    fn get_template_contents(&self, target: &Self::Handle) -> Self::Handle {
        self.tree.get_template_contents(target)
    }

    fn same_node(&self, x: &Self::Handle, y: &Self::Handle) -> bool {
        x == y
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.tree.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &Self::Handle, new: NodeOrText<Self::Handle>) {
        self.count();
        self.tree.append_before_sibling(sibling, new);
    }

    fn add_attrs_if_missing(&self, target: &Self::Handle, attrs: Vec<Attribute>) {
        self.tree.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &Self::Handle) {
        self.tree.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Self::Handle, new_parent: &Self::Handle) {
        self.tree.reparent_children(node, new_parent);
    }

    // Returning false keeps the content of templates in place instead of in shadow roots.
    fn allow_declarative_shadow_roots(&self, _: &Self::Handle) -> bool {
        false
    }
}

/// Formats the tree of a page as indented lines, one for each element (with its attributes), text
/// (in quotes), comment and doctype. If parsing ended early, the last line names the limit. `None`
/// in a build without the feature `tree`.
#[must_use]
pub fn tree_listing(text: &str) -> Option<String> {
    let tree = PageTree::parse(text);
    let mut listing = String::new();
    let mut depth = 0_usize;
    for edge in tree.html.tree.root().traverse() {
        match edge {
            Edge::Open(node) => {
                let line: Option<String> = match node.value() {
                    Node::Element(element) => Some(element_line(element)),
                    Node::Text(text) if !text.trim().is_empty() => {
                        let words: Vec<&str> = text.split_whitespace().collect();
                        Some(format!("{:?}", words.join(" ")))
                    }
                    Node::Comment(comment) => Some(format!("<!-- {:?} -->", comment.trim())),
                    Node::Doctype(doctype) => Some(format!("<!doctype {}>", doctype.name())),
                    _ => None,
                };
                if let Some(line) = line {
                    listing.push_str(&"  ".repeat(depth.saturating_sub(1)));
                    listing.push_str(&line);
                    listing.push('\n');
                }
                depth += 1;
            }
            Edge::Close(_) => depth -= 1,
        }
    }
    if let Some(limit) = tree.cut {
        listing.push_str(&format!("(cut here: {limit})\n"));
    }
    Some(listing)
}

fn element_line(element: &scraper::node::Element) -> String {
    let attributes = element
        .attrs()
        .map(|(name, value)| format!(" {name}={value:?}"));
    format!("<{}{}>", element.name(), attributes.collect::<String>())
}
