//! Search results. `page/results.js` creates the same elements from the same answer, and the
//! browser tests compare the two.

use crawl_index::{Hit, MarkedTextPart, ResultSection, SearchResults};
use crawl_records::grouped;
use crawl_weburl::safe_line;
use maud::{Markup, html};

use super::facets::narrowing;
use super::result_page_urls::{link, place};
use super::times::day;
use crate::serve::search_request::{MAX_RANKED, SearchRequest};

/// Renders the part of the page with the results.
pub(super) fn results(request: &SearchRequest, answer: &SearchResults) -> Markup {
    html! {
        @if let Some(meant) = &answer.did_you_mean {
            p.meant {
                "No results for “" (safe_line(&request.query)) "”. Showing results for "
                a href=(link(meant, &request.filters, 1)) { (meant) } "."
            }
        }
        @if let Some(left_out) = answer.left_out() {
            p.meant { (left_out) }
        }
        @if let Some(facets) = &answer.facets {
            (narrowing(request, facets))
        }
        @if answer.results.is_empty() {
            (nothing())
        } @else {
            ol.hits start=(request.offset + 1) {
                @for hit in &answer.results { (item(hit)) }
            }
            (pages(request, answer.total))
        }
    }
}

/// Returns the number of results in words.
pub(super) fn status(request: &SearchRequest, answer: &SearchResults) -> String {
    let query = safe_line(answer.did_you_mean.as_ref().unwrap_or(&request.query));
    let (first, last) = (request.offset + 1, request.offset + answer.results.len());
    match answer.total {
        0 => format!("No results for “{query}”"),
        _ if answer.results.is_empty() => format!("No more results for “{query}”"),
        1 => format!("1 result for “{query}”"),
        total if last >= total && first == 1 => {
            format!("{} results for “{query}”", grouped(total as u64))
        }
        total => format!(
            "Results {} to {} of {} for “{query}”",
            grouped(first as u64),
            grouped(last as u64),
            grouped(total as u64)
        ),
    }
}

fn nothing() -> Markup {
    html! {
        div.nothing {
            p { "Try fewer or different words, or check the spelling." }
            (tips())
        }
    }
}

/// Explains the query syntax.
pub(super) fn tips() -> Markup {
    html! {
        ul.tips {
            li { code { "\"exact words\"" } " finds the exact phrase" }
            li { code { "-word" } " excludes pages with this word" }
            li { code { "title:word" } " searches only titles" }
            li { code { "site:host" } " searches only one host" }
        }
    }
}

fn item(hit: &Hit) -> Markup {
    let language = hit.language.as_deref().filter(|name| is_language(name));
    html! {
        li.hit {
            p.where { bdi { (place(&hit.url)) } }
            h2.title lang=[language] dir="auto" {
                @if is_web(&hit.leads_to) {
                    a href=(hit.passage_url.as_ref().unwrap_or(&hit.leads_to)) { (marked(&hit.title_parts)) }
                } @else {
                    (marked(&hit.title_parts))
                }
            }
            @if !hit.excerpt_parts.is_empty() {
                p.excerpt lang=[language] dir="auto" { (marked(&hit.excerpt_parts)) }
            }
            @if let Some(sections) = sections(hit, language) { (sections) }
            @if let Some((machine, person)) = hit.modified.and_then(day) {
                p.more { time datetime=(machine) { (person) } }
            }
        }
    }
}

/// Renders links to the sections of a page that contain the most words of the query. `None` if no
/// section can be linked to.
fn sections(hit: &Hit, language: Option<&str>) -> Option<Markup> {
    let is_shown = |section: &&ResultSection| is_web(&section.url) && !section.heading.is_empty();
    let shown: Vec<_> = hit.sections.iter().filter(is_shown).collect();
    (!shown.is_empty()).then(|| {
        html! {
            ul.sections lang=[language] dir="auto" {
                @for section in shown {
                    li { a.section href=(section.url) { (section.name()) } }
                }
            }
        }
    })
}

fn marked(parts: &[MarkedTextPart]) -> Markup {
    html! {
        @for part in parts {
            @if part.is_match { mark { (part.text) } } @else { (part.text) }
        }
    }
}

fn pages(request: &SearchRequest, total: usize) -> Markup {
    let limit = request.limit.max(1);
    let page = request.offset / limit + 1;
    let last = total.min(MAX_RANKED).div_ceil(limit);
    if last < 2 {
        return html! {};
    }
    let to = |page| link(&request.query, &request.filters, page);
    html! {
        nav.pages aria-label="Pages of results" {
            @if page > 1 { a rel="prev" href=(to(page - 1)) { "Previous" } }
            span { "Page " (grouped(page as u64)) " of " (grouped(last as u64)) }
            @if page < last { a rel="next" href=(to(page + 1)) { "Next" } }
        }
    }
}

/// Returns whether a URL may become a link, unlike `javascript:alert(1)`.
fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

fn is_language(name: &str) -> bool {
    (2..=3).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use crawl_index::{Hit, MarkedTextPart, ResultSection, SearchResults};
    use expect_test::{Expect, expect};

    use super::{results, status};
    use crate::serve::search_request::SearchRequest;

    fn hit() -> Hit {
        Hit {
            url: "http://e.example/a/<b>".to_owned(),
            title_parts: vec![
                MarkedTextPart {
                    text: "<script>".to_owned(),
                    is_match: false,
                },
                MarkedTextPart {
                    text: "a&b".to_owned(),
                    is_match: true,
                },
            ],
            excerpt_parts: vec![MarkedTextPart {
                text: "\"x\"".to_owned(),
                is_match: false,
            }],
            leads_to: "http://e.example/a/<b>".to_owned(),
            sections: vec![ResultSection {
                heading: "H".to_owned(),
                parents: vec!["<i>".to_owned()],
                url: "http://e.example/a#h".to_owned(),
            }],
            language: Some("de".to_owned()),
            modified: Some(0),
            ..Hit::default()
        }
    }

    fn request() -> SearchRequest {
        SearchRequest {
            query: "a&b \"c\"".to_owned(),
            limit: 10,
            offset: 10,
            ..SearchRequest::default()
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "an expectation is used once")]
    fn check(answer: &SearchResults, expect: Expect) {
        let markup = results(&request(), answer).into_string();
        let markup = markup.replace("><", ">\n<");
        expect.assert_eq(&format!("{}\n{markup}\n", status(&request(), answer)));
    }

    #[test]
    fn text_from_pages_is_escaped() {
        let answer = SearchResults {
            total: 31,
            results: vec![hit()],
            ..SearchResults::default()
        };
        check(
            &answer,
            expect![[r#"
                Results 11 to 11 of 31 for “a&b "c"”
                <ol class="hits" start="11">
                <li class="hit">
                <p class="where">
                <bdi>e.example › a › &lt;b&gt;</bdi>
                </p>
                <h2 class="title" lang="de" dir="auto">
                <a href="http://e.example/a/&lt;b&gt;">&lt;script&gt;<mark>a&amp;b</mark>
                </a>
                </h2>
                <p class="excerpt" lang="de" dir="auto">&quot;x&quot;</p>
                <ul class="sections" lang="de" dir="auto">
                <li>
                <a class="section" href="http://e.example/a#h">H · &lt;i&gt;</a>
                </li>
                </ul>
                <p class="more">
                <time datetime="1970-01-01">1 Jan 1970</time>
                </p>
                </li>
                </ol>
                <nav class="pages" aria-label="Pages of results">
                <a rel="prev" href="/?q=a%26b%20%22c%22">Previous</a>
                <span>Page 2 of 4</span>
                <a rel="next" href="/?q=a%26b%20%22c%22&amp;page=3">Next</a>
                </nav>
            "#]],
        );
    }

    #[test]
    fn no_results_and_did_you_mean() {
        check(
            &SearchResults::default(),
            expect![[r#"
            No results for “a&b "c"”
            <div class="nothing">
            <p>Try fewer or different words, or check the spelling.</p>
            <ul class="tips">
            <li>
            <code>&quot;exact words&quot;</code> finds the exact phrase</li>
            <li>
            <code>-word</code> excludes pages with this word</li>
            <li>
            <code>title:word</code> searches only titles</li>
            <li>
            <code>site:host</code> searches only one host</li>
            </ul>
            </div>
        "#]],
        );
        let answer = SearchResults {
            total: 1,
            results: vec![Hit {
                url: "javascript:alert(1)".to_owned(),
                leads_to: "javascript:alert(1)".to_owned(),
                language: Some("\"><b".to_owned()),
                ..Hit::default()
            }],
            did_you_mean: Some("<i>".to_owned()),
            ..SearchResults::default()
        };
        check(
            &answer,
            expect![[r#"
            1 result for “<i>”
            <p class="meant">No results for “a&amp;b &quot;c&quot;”. Showing results for <a href="/?q=%3Ci%3E">&lt;i&gt;</a>.</p>
            <ol class="hits" start="11">
            <li class="hit">
            <p class="where">
            <bdi>javascript:alert(1)</bdi>
            </p>
            <h2 class="title" dir="auto">
            </h2>
            </li>
            </ol>
        "#]],
        );
    }
}
