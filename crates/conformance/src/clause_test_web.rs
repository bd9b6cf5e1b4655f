//! Serves the web of a clause on loopback.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crawl_testweb::{HttpAnswer, ReceivedRequest, ScriptedReply, TestWeb, TestWebBuilder};

use crate::clause::{Clause, ScriptedReplyInput};
use crate::path_normalization::{normal, placed};

/// The words that pages consist of. Each page gets a different sequence of words, so that no
/// crawler mistakes pages for duplicates.
const WORDS: [&str; 16] = [
    "river", "stone", "lantern", "harbour", "copper", "meadow", "signal", "winter", "orchard",
    "ladder", "quiet", "market", "thread", "island", "violet", "summer",
];

const PAGE_WORDS: u64 = 60;

/// A clause's web, which is served until this value is dropped.
#[derive(Debug)]
pub struct ClauseTestWeb {
    /// The web and its log.
    pub web: TestWeb,
    /// `ADDRESS:PORT` of each host.
    pub authorities: Vec<String>,
}

/// State shared by the handlers of a web.
struct HandlerState {
    clause: Clause,
    token: String,
    authorities: OnceLock<Vec<String>>,
    /// Number of requests for each path on each host.
    counts: Mutex<HashMap<(u32, String), u32>>,
}

impl ClauseTestWeb {
    /// Starts the web of a clause, for a crawler with this product token.
    ///
    /// # Errors
    /// If an address or port can't be bound, or there are too few file handles.
    pub fn start(clause: &Clause, token: &str) -> io::Result<ClauseTestWeb> {
        let memory = Arc::new(HandlerState {
            clause: *clause,
            token: token.to_owned(),
            authorities: OnceLock::new(),
            counts: Mutex::default(),
        });
        let mut spec: TestWebBuilder = TestWeb::scripted(clause.hosts);
        if clause.shares_address {
            spec = spec.addresses(1);
        }
        for host in 0..clause.hosts {
            let memory = Arc::clone(&memory);
            spec = spec.handler(host, move |request| Some(memory.reply(request)));
        }
        let web = spec.try_start()?;
        let authorities: Vec<String> = (0..clause.hosts)
            .map(|host| web.authority(host).to_owned())
            .collect();
        // Setting the addresses only now is early enough: no client knows the ports yet, so no
        // request has arrived.
        let _ = memory.authorities.set(authorities.clone());
        Ok(ClauseTestWeb { web, authorities })
    }

    /// Returns the start URL of a crawl.
    pub fn start_url(&self) -> String {
        self.web.url(0, "/")
    }
}

impl HandlerState {
    fn reply(&self, request: &ReceivedRequest) -> ScriptedReply {
        let earlier = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts
                .entry((request.host, request.path.clone()))
                .or_default();
            *count += 1;
            *count - 1
        };
        self.clause.reply(&ScriptedReplyInput {
            request,
            earlier,
            token: &self.token,
            authorities: self.authorities.get().map_or(&[], Vec::as_slice),
        })
    }
}

impl Clause {
    /// Returns the reply of the clause's web to a request.
    pub fn reply(&self, ask: &ScriptedReplyInput<'_>) -> ScriptedReply {
        if let Some(reply) = self.special.and_then(|special| special(ask)) {
            return reply;
        }
        let (host, path) = (ask.request.host, normal(&ask.request.path));
        let is_asked = |known: &str| {
            let (known_host, known_path) = placed(known);
            known_host == host && normal(known_path) == path
        };
        if let Some(page) = self.pages.iter().find(|page| is_asked(page.path)) {
            let headers = page.headers.iter();
            let answer = HttpAnswer::of(page.status).body(filled(page.body, ask));
            return headers
                .fold(answer, |answer, (name, value)| {
                    answer.header(name, &filled(value, ask))
                })
                .into();
        }
        match path.as_str() {
            "/robots.txt" => HttpAnswer::text(&filled(self.robots, ask)).into(),
            "/" => HttpAnswer::html(&self.front_page(ask)).into(),
            _ if self.paths().chain(["/deep"]).any(is_asked) => {
                HttpAnswer::html(&page(&path, host)).into()
            }
            _ => HttpAnswer::of(404)
                .header("content-type", "text/html; charset=utf-8")
                .body("<!doctype html><title>Not found</title><p>There is no such page.")
                .into(),
        }
    }

    /// Returns all paths that the clause names.
    fn paths(&self) -> impl Iterator<Item = &'static str> {
        [self.shows, self.always, self.never]
            .into_iter()
            .flatten()
            .copied()
    }

    fn front_page(&self, ask: &ScriptedReplyInput<'_>) -> String {
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <title>Front page of host {}</title></head>\n<body><h1>{}</h1>\n",
            ask.request.host, self.title
        );
        let is_linked =
            |path: &&str| !self.hidden.contains(path) && !["/", "/robots.txt"].contains(path);
        for (number, path) in self.paths().filter(is_linked).enumerate() {
            let (host, path) = placed(path);
            let base = match ask.authorities.get(host as usize) {
                Some(authority) if host != ask.request.host => format!("http://{authority}"),
                _ => String::new(),
            };
            html.push_str(&format!(
                "<p><a href=\"{base}{path}\">page {number}</a></p>\n"
            ));
        }
        html + "</body></html>\n"
    }
}

/// Replaces the placeholders in a text.
fn filled(text: &str, ask: &ScriptedReplyInput<'_>) -> String {
    let mut text = text
        .replace("{token}", ask.token)
        .replace("{TOKEN}", &ask.token.to_uppercase());
    for (number, authority) in ask.authorities.iter().enumerate() {
        text = text.replace(&format!("{{{number}}}"), authority);
    }
    text
}

/// Returns an ordinary page, whose words depend on the path.
fn page(path: &str, host: u32) -> String {
    let mut state = path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut text = String::new();
    for _ in 0..PAGE_WORDS {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[usize::try_from(state >> 60).unwrap_or(0)]);
        text.push(' ');
    }
    let name = path.trim_start_matches('/').replace(['<', '&', '"'], "-");
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page {name} of host {host}\
         </title></head>\n<body><h1>{name}</h1>\n<p>{text}</p>\n</body></html>\n"
    )
}
