//! Finds the links in a tree by a table of strings and regular expressions. Shares no code with the
//! extractor, so that it doesn't have the same bugs.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use html5ever_of_rcdom::tendril::TendrilSink;
use html5ever_of_rcdom::{ParseOpts, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use regex::Regex;

use crate::Found;

/// Pairs of an HTML element and an attribute that contains one URL.
const PLAIN: &[(&str, &str)] = &[
    ("area", "href"),
    ("audio", "src"),
    ("bgsound", "src"),
    ("blockquote", "cite"),
    ("body", "background"),
    ("del", "cite"),
    ("embed", "src"),
    ("frame", "longdesc"),
    ("frame", "src"),
    ("iframe", "longdesc"),
    ("img", "longdesc"),
    ("img", "lowsrc"),
    ("img", "src"),
    ("ins", "cite"),
    ("link", "href"),
    ("q", "cite"),
    ("script", "src"),
    ("source", "src"),
    ("table", "background"),
    ("tbody", "background"),
    ("td", "background"),
    ("tfoot", "background"),
    ("th", "background"),
    ("thead", "background"),
    ("tr", "background"),
    ("track", "src"),
    ("video", "poster"),
    ("video", "src"),
];

/// Attributes with the URL of a page. The URL is kept even if it is empty or refers to the same
/// page.
const PAGES: &[(&str, &str)] = &[("a", "href"), ("area", "href")];

/// Returns the links in the tree that a parser without scripts builds from `html`.
pub(crate) fn of_tree(html: &str) -> BTreeSet<Found> {
    let mut options = ParseOpts::default();
    options.tree_builder.scripting_enabled = false;
    let dom = parse_document(RcDom::default(), options).one(html);
    let mut links = BTreeSet::new();
    // The nodes to visit, each with whether the form around it has the method GET. `None` outside
    // of forms.
    let mut pending: Vec<(Handle, Option<bool>)> = vec![(dom.document.clone(), None)];
    while let Some((node, form)) = pending.pop() {
        let mut form = form;
        if let NodeData::Element {
            name,
            attrs,
            template_contents,
            ..
        } = &node.data
        {
            // Links in a template count, because a script may insert the template. A form around
            // the template doesn't apply to them.
            let template = template_contents.borrow();
            pending.extend(template.iter().map(|template| (template.clone(), None)));
            let element = Element {
                space: &name.ns,
                name: &name.local,
                attributes: attrs
                    .borrow()
                    .iter()
                    .map(|attribute| {
                        let prefix = attribute.name.prefix.as_deref();
                        let prefix = prefix.map(|prefix| format!("{prefix}:"));
                        let name = prefix.unwrap_or_default() + &attribute.name.local;
                        (name.to_ascii_lowercase(), attribute.value.to_string())
                    })
                    .collect(),
                text: text_of(&node),
            };
            if element.is("form") {
                form = Some(element.sent_by_get("method").unwrap_or(true));
            }
            element.links(form, &mut links);
        }
        pending.extend(
            node.children
                .borrow()
                .iter()
                .map(|child| (child.clone(), form)),
        );
    }
    links
}

/// Returns the text that is directly in a node, without the text of elements in the node.
fn text_of(node: &Handle) -> String {
    let children = node.children.borrow();
    let texts = children.iter().filter_map(|child| match &child.data {
        NodeData::Text { contents } => Some(contents.borrow().to_string()),
        _ => None,
    });
    texts.collect()
}

struct Element<'a> {
    space: &'a str,
    name: &'a str,
    attributes: Vec<(String, String)>,
    text: String,
}

impl Element<'_> {
    fn links(&self, form: Option<bool>, found: &mut BTreeSet<Found>) {
        let mut add = |element: &str, attribute: &str, url: &str| {
            let url = url.trim_matches([' ', '\t', '\n', '\r', '\x0c']);
            let names = (element.to_owned(), attribute.to_owned());
            if PAGES.contains(&(element, attribute)) || is_elsewhere(element, attribute, url) {
                found.insert((names.0, names.1, url.to_owned()));
            }
        };
        if let Some(style) = self.get("style") {
            css(style, false, &mut |_, url| add("*", "style", url));
        }
        if self.name == "style" && self.space != "http://www.w3.org/1998/Math/MathML" {
            let is_css = self
                .get("type")
                .is_none_or(|kind| matches!(kind, "" | "text/css"));
            if is_css {
                css(&self.text, true, &mut |how, url| {
                    add("style", how, url);
                });
            }
        }
        match self.space {
            "http://www.w3.org/1999/xhtml" => self.html(form, &mut add),
            "http://www.w3.org/2000/svg" => self.svg(&mut add),
            _ => {
                for name in ["href", "xlink:href"] {
                    if let Some(url) = self.get(name) {
                        add("math", name, url);
                    }
                }
            }
        }
    }

    fn html(&self, form: Option<bool>, add: &mut impl FnMut(&str, &str, &str)) {
        for (name, value) in &self.attributes {
            if PLAIN.contains(&(self.name, name)) || (self.name, name.as_str()) == ("a", "href") {
                add(self.name, name, value);
            }
            let set = [
                ("img", "srcset"),
                ("source", "srcset"),
                ("link", "imagesrcset"),
            ];
            if set.contains(&(self.name, name)) {
                for candidate in SRCSET.captures_iter(value) {
                    add(self.name, name, &candidate[1]);
                }
            }
        }
        let get = |name| self.get(name).unwrap_or_default();
        match self.name {
            "iframe" if self.get("srcdoc").is_none() => add("iframe", "src", get("src")),
            "object" => add("object", "data", get("data")),
            "form" if form == Some(true) => add("form", "action", get("action")),
            "input" if get("type").eq_ignore_ascii_case("image") => add("input", "src", get("src")),
            "meta" if get("http-equiv").eq_ignore_ascii_case("refresh") => {
                if let Some(target) = REFRESH.captures(get("content")) {
                    add("meta", "content", &target[1]);
                }
            }
            _ => {}
        }
        let by_get = self.sent_by_get("formmethod").or(form).unwrap_or(false);
        if matches!(self.name, "input" | "button") && by_get {
            add(self.name, "formaction", get("formaction"));
        }
    }

    fn svg(&self, add: &mut impl FnMut(&str, &str, &str)) {
        let name = self.name.to_ascii_lowercase();
        if matches!(name.as_str(), "image" | "use" | "feimage" | "script") {
            for attribute in ["href", "xlink:href"] {
                add(&name, attribute, self.get(attribute).unwrap_or_default());
            }
        }
        let of_a = ["href", "xlink:href"]
            .into_iter()
            .find(|name| self.get(name).is_some());
        if let (Some(attribute), "a") = (of_a, self.name) {
            add("a", attribute, self.get(attribute).unwrap_or_default());
        }
    }

    fn is(&self, name: &str) -> bool {
        self.space == "http://www.w3.org/1999/xhtml" && self.name == name
    }

    fn get(&self, name: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        attributes
            .find(|(attribute, _)| attribute == name)
            .map(|(_, value)| value.as_str())
    }

    fn sent_by_get(&self, attribute: &str) -> Option<bool> {
        let method = self.get(attribute)?.to_ascii_lowercase();
        Some(!matches!(method.as_str(), "post" | "dialog"))
    }
}

/// Returns whether a link is kept. Drops empty URLs, descriptions in a `longdesc`, and URLs of
/// resources within the page itself, such as `data:` URLs.
fn is_elsewhere(element: &str, attribute: &str, url: &str) -> bool {
    let pages = [
        ("frame", "src"),
        ("iframe", "src"),
        ("meta", "content"),
        ("form", "action"),
        ("link", "href"),
        ("a", "xlink:href"),
    ];
    let is_page = pages.contains(&(element, attribute))
        || matches!(attribute, "cite" | "longdesc" | "formaction")
        || element == "math";
    if attribute == "longdesc" && !LONGDESC.is_match(url) {
        return false;
    }
    !url.is_empty() && (is_page || !WITHIN.is_match(url))
}

static WITHIN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^(?i)(#|data:|blob:|about:|javascript:)").unwrap());
static LONGDESC: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?i)(https?:|/|\./|\.\./|#|\?)|^\S*([/?#]|\w\.\w)\S*$").unwrap()
});
static SRCSET: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[\s,]*(\S*[^\s,])(?:,|\s+[^,]*,?|$)").unwrap());
static REFRESH: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"^\s*\d+\s*[;,]\s*(?i:url\s*=\s*)?["']?([^"']+)"#).unwrap());
static CSS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?i)(@import\s+|\b)(?:url\(\s*(?:"([^"]*)"|'([^']*)'|([^\s"')]*))\s*\)|"([^"\n]*)"|'([^'\n]*)')"#)
        .unwrap()
});
static COMMENT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?s)/\*.*?(\*/|$)").unwrap());

/// Passes each URL in CSS to `add`, with the rule or property that contains the URL.
fn css(text: &str, is_sheet: bool, add: &mut impl FnMut(&str, &str)) {
    for captures in CSS.captures_iter(&COMMENT.replace_all(text, " ")) {
        let group = |number| captures.get(number).map(|group| group.as_str());
        let url = group(2).or(group(3)).or(group(4));
        let is_import = is_sheet && captures[1].starts_with('@');
        match (url, group(5).or(group(6))) {
            (Some(url), _) if is_import => add("@import", url),
            (Some(url), _) => add("url", url),
            (None, Some(url)) if is_import => add("@import", url),
            _ => {}
        }
    }
}
