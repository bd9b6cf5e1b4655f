//! Renders the page about a crawler for the owners of visited sites. The crawler's `User-Agent`
//! header contains the address of this page.
//!
//! The page has every item that the IETF draft on crawler best practices names: who crawls and how
//! to reach them, the user agent, the purpose, what becomes of the data, how to slow down and
//! exclude the crawler, how to test a robots.txt, caching, and the addresses.

use crawl_weburl::safe_line;
use maud::{Markup, html};

use crate::self_contained_report_page::{link, page};

/// The facts that the page about a crawler shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrawlerDescription {
    /// The product token that groups of a robots.txt name, such as `tea-bot`.
    pub agent: String,
    /// The value of the `User-Agent` header.
    pub user_agent: String,
    /// The person or organisation that runs the crawler.
    pub operator: Option<String>,
    /// The institution of the operator.
    pub institution: Option<String>,
    /// The purpose of the crawl, in a sentence.
    pub study: Option<String>,
    /// A page about the study.
    pub study_page: Option<String>,
    /// The contact: a mail address or a URL.
    pub contact: String,
    /// The purpose of the crawl, as a category that sites can refuse, such as `search` or
    /// `train-ai`.
    pub purpose: Option<String>,
    /// Whether copies of pages are kept.
    pub archives: bool,
    /// Whether cookies of some sites are sent back.
    pub keeps_cookies: bool,
    /// Whether the crawler logs in to some sites, as their owners allow.
    pub logs_in: bool,
    /// Whether pages are visited again.
    pub revisits: bool,
    /// The minimum pause between requests to a host, as text such as `1s`.
    pub delay: String,
    /// Maximum requests to a host at the same time.
    pub per_host: u32,
    /// How long a copy of robots.txt is used before it is fetched again, as text such as `1d`.
    pub robots_max_age: String,
    /// How long the last copy of a robots.txt is used while the robots.txt is unreachable, as text
    /// such as `30d`. `None` if it isn't used.
    pub robots_last_good: Option<String>,
    /// Whether a robots.txt that is refused with 401 or 403 forbids the whole site.
    pub closed_by_refusal: bool,
    /// Whether every request is signed. If false, only requests to sites that demand a signature
    /// are signed.
    pub always_signs: bool,
    /// The URL of the crawler's public keys, if it signs requests.
    pub key_url: Option<String>,
    /// The URL of the list of addresses that requests come from.
    pub ip_ranges: Option<String>,
}

impl CrawlerDescription {
    /// Renders the page as self-contained HTML.
    #[must_use]
    pub fn to_html(&self) -> String {
        let body = html! {
            p.sums {
                (self.agent) " is a web crawler"
                @if let Some(operator) = &self.operator { " of " (safe_line(operator)) }
                @if let Some(institution) = &self.institution { ", " (safe_line(institution)) }
                ". It obeys robots.txt and fetches slowly."
            }
            h2 { "Who and why" }
            (self.who())
            h2 { "What is kept" }
            (self.kept())
            h2 { "How to exclude it" }
            (self.exclusion())
            h2 { "How to slow it down" }
            (self.pace())
            h2 { "How to recognize it" }
            (self.recognition())
            h2 { "Erasure and questions" }
            p {
                "Write to " (self.contact()) ". Name the site or the pages. On request, pages or a whole "
                "host are erased from everything that the crawl has stored, and are not fetched again. "
                "You also get the list of all requests to your host, with their times, the robots.txt "
                "that was in force, and what was kept."
            }
        };
        let title = format!("About the crawler {}", self.agent);
        let description = "Who runs this crawler, why, and how to slow it down or exclude it.";
        let html = page(&title, description, &body);
        match &self.ip_ranges {
            Some(url) => {
                let link = html! { link rel="client-ranges" href=(safe_line(url)); };
                html.replacen("</head>", &format!("{}</head>", link.into_string()), 1)
            }
            None => html,
        }
    }

    fn contact(&self) -> Markup {
        match self.contact.contains("://") {
            true => link(&self.contact),
            false => {
                html! { a href=(format!("mailto:{}", self.contact)) { (safe_line(&self.contact)) } }
            }
        }
    }

    fn who(&self) -> Markup {
        html! {
            p {
                @match &self.study {
                    Some(study) => { (safe_line(study)) }
                    None => { "The pages are used for " (self.purpose_words()) "." }
                }
                @if let Some(url) = &self.study_page { " More: " (link(url)) "." }
            }
            p { "Contact: " (self.contact()) }
        }
    }

    fn purpose_words(&self) -> &str {
        match self.purpose.as_deref() {
            Some("search") => "a search index",
            Some("ai-input") => "answers of a language model",
            Some("train-ai") => "training a model",
            Some("archive") => "a web archive",
            _ => "a purpose that the operator names on request",
        }
    }

    fn kept(&self) -> Markup {
        html! {
            ul {
                li { "The use of the pages: " (self.purpose_words()) ". Usage preferences of a site that exclude it are followed." }
                @if self.archives {
                    li { "Copies of pages, unless they or their headers say noarchive." }
                } @else {
                    li { "No copies of pages." }
                }
                li { "For each request: its time, URL, address of the server, status and size." }
                @if self.archives {
                    li { "Each robots.txt, to be able to show which rules were in force." }
                }
                li {
                    @if self.keeps_cookies {
                        "Cookies are sent back only to sites for which the operator configured it"
                    } @else {
                        "No cookies are sent back"
                    }
                    @if self.logs_in {
                        ", and only configured login forms are filled in."
                    } @else {
                        ", no forms are filled in, and no logins are used."
                    }
                    " No paywalls are bypassed."
                }
            }
        }
    }

    fn exclusion(&self) -> Markup {
        let agent = &self.agent;
        html! {
            p { "In robots.txt (RFC 9309), the crawler's name is " code { (agent) } ". To exclude it from the whole site:" }
            pre tabindex="0" { "User-agent: " (agent) "\nDisallow: /\n" }
            p { "To exclude it from a folder:" }
            pre tabindex="0" { "User-agent: " (agent) "\nDisallow: /private/\n" }
            p {
                "Rules for " code { "*" } " hold if there are none for " code { (agent) } ". A changed "
                "robots.txt is noticed after at most " (self.robots_max_age) ". If robots.txt can't be "
                "reached, nothing is fetched"
                @match &self.robots_last_good {
                    Some(time) => { ", unless a copy that is at most " (time) " old is known. " }
                    None => { ". " }
                }
                @if self.closed_by_refusal {
                    "If it is refused with 401 or 403, nothing is fetched."
                } @else {
                    "If it is refused with 401 or 403, there are no rules."
                }
            }
            p {
                "For single pages, a " code { "X-Robots-Tag" } " header or a " code { "robots" }
                " meta element with " code { "noindex" } ", " code { "nofollow" } " or " code { "noarchive" }
                " works, for all crawlers or for " code { (agent) } " alone."
            }
            p { "To see which line of a robots.txt decides about a URL, run the crawler's own command:" }
            pre tabindex="0" { "crawl robots https://www.example.org/private/ --agent " (agent) }
        }
    }

    fn pace(&self) -> Markup {
        html! {
            p {
                "The crawler sends at most " (self.per_host) " "
                @if self.per_host == 1 { "request" } @else { "requests" }
                " to a host at the same time, and pauses for at least " (self.delay)
                " after each. It slows down automatically if responses slow down. You can ask for more:"
            }
            ul {
                li { code { "Crawl-delay: 10" } " in robots.txt: seconds between requests." }
                li { "Status 429 or 503, with " code { "Retry-After" } " or without: the crawler waits." }
                @if self.revisits {
                    li {
                        code { "Cache-Control" } ", " code { "ETag" } " and " code { "Last-Modified" }
                        ": unchanged pages are not sent again. Visits adapt to how often a page changes."
                    }
                }
            }
            @if self.logs_in {
                p { "It sends only GET and HEAD requests, and POST to configured login forms." }
            } @else {
                p { "It sends only GET and HEAD requests." }
            }
        }
    }

    fn recognition(&self) -> Markup {
        html! {
            p { "Requests carry this " code { "User-Agent" } " header:" }
            pre tabindex="0" { (safe_line(&self.user_agent)) }
            @match &self.ip_ranges {
                Some(url) => p { "Requests come only from these addresses: " (link(url)) },
                None => p { "Requests come from no fixed addresses." },
            }
            @match &self.key_url {
                Some(url) => {
                    p {
                        @if self.always_signs {
                            "Every request is signed by Web Bot Auth (RFC 9421). A site can also ask for "
                            "other components of the request by "
                        } @else {
                            "Requests can be signed by Web Bot Auth (RFC 9421). A site asks for signatures by "
                        }
                        "answering 401, 403 or 429 with a header like this:"
                    }
                    pre tabindex="0" { "Accept-Signature: sig1=(\"@authority\" \"signature-agent\";key=\"sig1\");created;expires;keyid;tag=\"web-bot-auth\"" }
                    p { "The public keys are at " (link(url)) ". To verify the requests in a log:" }
                    pre tabindex="0" { "curl -o keys.json " (safe_line(url)) "\ncrawl identity verify access.jsonl --keys " (safe_line(url)) "=keys.json" }
                }
                None => p { "Requests are not signed." },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CrawlerDescription;

    #[test]
    fn the_page_has_the_items_of_the_crawler_best_practices_draft() {
        let page = CrawlerDescription {
            agent: "tea-bot".to_owned(),
            user_agent: "tea-bot/1 (+https://bot.example/bot.html)".to_owned(),
            operator: Some("A <b> Library".to_owned()),
            contact: "bot@e.example".to_owned(),
            delay: "1s".to_owned(),
            per_host: 1,
            robots_max_age: "1d".to_owned(),
            key_url: Some("https://bot.example/keys.json".to_owned()),
            ip_ranges: Some("https://bot.example/ips.json".to_owned()),
            ..CrawlerDescription::default()
        };
        let html = page.to_html();
        for part in [
            "User-agent: tea-bot\nDisallow: /\n",
            "X-Robots-Tag",
            "tea-bot/1 (+https://bot.example/bot.html)",
            "at most 1 request to a host",
            "Retry-After",
            "<link rel=\"client-ranges\" href=\"https://bot.example/ips.json\"></head>",
            "crawl robots https://www.example.org/private/ --agent tea-bot",
            "href=\"mailto:bot@e.example\"",
            "The use of the pages: a purpose that the operator names on request.",
            "Accept-Signature: ",
            "A &lt;b&gt; Library",
            "are erased",
        ] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn the_page_claims_only_configured_behaviour() {
        let plain = CrawlerDescription::default();
        let silent = CrawlerDescription {
            archives: true,
            keeps_cookies: true,
            logs_in: true,
            revisits: true,
            robots_last_good: Some("30d".to_owned()),
            closed_by_refusal: true,
            always_signs: true,
            key_url: Some("https://bot.example/keys.json".to_owned()),
            ..CrawlerDescription::default()
        };
        let (plain, silent) = (plain.to_html(), silent.to_html());
        for (words, also) in [
            ("No cookies are sent back, no forms are filled in", ""),
            (
                "It sends only GET and HEAD requests.",
                "and POST to configured login forms",
            ),
            ("nothing is fetched. If it is refused", "at most 30d old"),
            (
                "refused with 401 or 403, there are no rules",
                "401 or 403, nothing is fetched",
            ),
            ("Requests are not signed.", "Every request is signed"),
            ("No copies of pages.", "Each robots.txt, to be able to show"),
        ] {
            assert!(plain.contains(words) && !silent.contains(words), "{words}");
            assert!(
                silent.contains(also) && (also.is_empty() || !plain.contains(also)),
                "{also}"
            );
        }
        assert!(silent.contains("Visits adapt") && !plain.contains("Visits adapt"));
    }
}
