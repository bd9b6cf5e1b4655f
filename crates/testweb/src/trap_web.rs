//! A web of 200 real pages and six endless traps.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::TestWeb;
use crate::random::SeededRandom;
use crate::request_reader::ReceivedRequest;
use crate::scripted_reply::{HttpAnswer, ScriptedReply};
use crate::web_plan::LinkMix;

/// Number of ordinary pages, which form a tree with additional random links.
const ARTICLES: u64 = 153;
const FAN_OUT: u64 = 5;
/// Number of consecutive months in the calendar that have events.
const MONTHS: u64 = 3;
const EVENTS_A_MONTH: u64 = 2;
/// Number of items in the shop. The front page of the shop shows only the first few, and the page
/// of each colour shows the items of this colour. So the pages of all colours together show every
/// item.
const THINGS: u64 = 30;
const ON_THE_FRONT: u64 = 10;
const COLOURS: [&str; 4] = ["red", "green", "blue", "grey"];
/// Filters of the shop other than the colour. The shop ignores these filters, so a page with such a
/// filter shows the same items as the page without the filter.
const FURTHER: [(&str, [&str; 3]); 2] = [
    ("size", ["s", "m", "l"]),
    ("brand", ["acme", "umbra", "vela"]),
];
/// The first month of the calendar with events, as a number of months since year 0: May 2031.
const FIRST_MONTH: u64 = 2031 * 12 + 4;

/// The kinds of traps, as returned by [`TrapWeb::trap_of`].
pub const TRAPS: [&str; 6] = [
    "calendar",
    "session",
    "path",
    "facets",
    "redirects",
    "missing",
];

/// A web of 200 real pages and six traps on one host, computed from a seed.
///
/// Some real pages are reachable only through a trap: events in the first months of the calendar,
/// and items in the shop that are shown only if a filter is selected.
#[derive(Debug, Clone, Copy)]
pub struct TrapWeb {
    seed: u64,
}

impl TrapWeb {
    /// Creates the web that is computed from `seed`.
    pub fn new(seed: u64) -> TrapWeb {
        TrapWeb { seed }
    }

    /// Starts the web, which is listening when this function returns.
    ///
    /// # Panics
    /// If no address is available.
    pub fn start(self) -> TestWeb {
        TestWeb::builder()
            .seed(self.seed)
            .mix(LinkMix::plain())
            .sitemap(false)
            .handler(0, move |request| Some(self.answer(request)))
            .start()
    }

    /// Returns the paths of all real pages.
    pub fn real(self) -> BTreeSet<String> {
        let articles = (0..ARTICLES).map(|n| self.article_path(n));
        let months = (0..MONTHS).map(|month| month_path(FIRST_MONTH + month));
        let events =
            (0..MONTHS * EVENTS_A_MONTH).map(|n| format!("/event/{n}-{}", self.word(n, 1)));
        let things = (0..THINGS).map(|n| self.thing_path(n));
        let colours = COLOURS.iter().map(|colour| format!("/shop?color={colour}"));
        let fronts = ["/", "/events/", "/shop", "/help/"].map(str::to_owned);
        let all = articles
            .chain(months)
            .chain(events)
            .chain(things)
            .chain(colours);
        all.chain(fronts).collect()
    }

    /// Returns the trap that a path belongs to; `None` for real pages.
    pub fn trap_of(self, path: &str) -> Option<&'static str> {
        let prefixes = ["/events/", "/s/", "/help/", "/shop?", "/go/", "/lost/"];
        let trap = prefixes
            .iter()
            .position(|prefix| path.starts_with(prefix))?;
        (!self.real().contains(path)).then_some(TRAPS[trap])
    }

    fn answer(self, request: &ReceivedRequest) -> ScriptedReply {
        let path = request.path.as_str();
        if let Some(n) = path.strip_prefix("/go/") {
            let next = SeededRandom::of(&[self.seed, 9, n.parse().unwrap_or(0)]).below(1 << 40);
            return HttpAnswer::redirect(302, &format!("/go/{next}")).into();
        }
        match self.html(path) {
            Some(html) => HttpAnswer::html(&html).into(),
            None if path == "/robots.txt" => HttpAnswer::text("User-agent: *\nDisallow:\n").into(),
            None => HttpAnswer::of(404).into(),
        }
    }

    fn html(self, path: &str) -> Option<String> {
        let selection = path.strip_prefix("/shop?");
        Some(match path {
            "/" => self.front(),
            "/events/" => self.page(path, 60, &[month_path(FIRST_MONTH)]),
            "/shop" => self.shop(""),
            _ if selection.is_some() => self.shop(selection?),
            // Every path below `/help/` gets the same page, whose relative link leads to an ever
            // longer path.
            _ if path.starts_with("/help/") => self.page("/help/", 90, &["more/".to_owned()]),
            _ if path.starts_with("/events/") => self.month(path)?,
            _ if path.starts_with("/lost/") => self.missing(path),
            _ => match path
                .strip_prefix("/s/")
                .and_then(|rest| rest.split_once('/'))
            {
                Some((_, article)) => self.article(&format!("/{article}"), path)?,
                None if path.starts_with("/a/") => self.article(path, path)?,
                None if self.real().contains(path) => self.page(path, 50, &["/".to_owned()]),
                None => return None,
            },
        })
    }

    fn front(self) -> String {
        let links = ["/events/", "/shop", "/help/", "/lost/amber"].map(str::to_owned);
        let articles = (0..FAN_OUT).map(|n| self.article_path(n));
        self.page(
            "/",
            80,
            &links.into_iter().chain(articles).collect::<Vec<_>>(),
        )
    }

    fn article_path(self, n: u64) -> String {
        format!("/a/{}-{n}.html", self.word(n, 2))
    }

    /// Returns an article. If the requested path has a session ID, the article's links have one
    /// too.
    fn article(self, path: &str, requested_path: &str) -> Option<String> {
        let n: u64 = path
            .strip_suffix(".html")?
            .rsplit_once('-')?
            .1
            .parse()
            .ok()?;
        if n >= ARTICLES || self.article_path(n) != path {
            return None;
        }
        let mut dice = SeededRandom::of(&[self.seed, 3, n]);
        let children = (1..=FAN_OUT).map(|child| n * FAN_OUT + child + FAN_OUT - 1);
        let mut links: Vec<u64> = children.filter(|child| *child < ARTICLES).collect();
        links.extend((0..2).map(|_| dice.below(ARTICLES)));
        let in_session = requested_path != path;
        let mut paths: Vec<String> = links
            .iter()
            .map(|to| match in_session {
                true => self.with_session(requested_path, *to),
                false => self.article_path(*to),
            })
            .collect();
        // Add a link to the article itself, with a new session ID, like the link "Print this page"
        // on many sites.
        paths.push(self.with_session(requested_path, n));
        if n % 60 == 7 && !in_session {
            paths.push(format!("/go/{n}"));
            paths.push(format!("/lost/{}", self.word(n, 4)));
        }
        let words = 60 + dice.below(120);
        Some(self.page(path, words, &paths))
    }

    fn with_session(self, requested_path: &str, n: u64) -> String {
        let seeds = requested_path.bytes().map(u64::from).chain([self.seed, n]);
        let mut dice = SeededRandom::of(&seeds.collect::<Vec<_>>());
        format!(
            "/s/{:016x}{:016x}{}",
            dice.next(),
            dice.next(),
            self.article_path(n)
        )
    }

    fn month(self, path: &str) -> Option<String> {
        let (year, month) = path
            .strip_prefix("/events/")?
            .trim_end_matches('/')
            .split_once('/')?;
        let month = year.parse::<u64>().ok()? * 12 + month.parse::<u64>().ok()?.checked_sub(1)?;
        let mut html = format!(
            "<title>Calendar of {} {}</title><table>",
            month % 12 + 1,
            month / 12
        );
        for day in 1..=28 + month % 4 {
            let _ = write!(html, "<td>{day}</td>");
        }
        let house_rules = self.prose("house rules", 90);
        let _ = write!(html, "</table><p>All events are free. {house_rules}</p>");
        let at = month.checked_sub(FIRST_MONTH).filter(|at| *at < MONTHS);
        for n in at
            .into_iter()
            .flat_map(|at| at * EVENTS_A_MONTH..(at + 1) * EVENTS_A_MONTH)
        {
            let text = self.prose(&format!("event{n}"), 12);
            let _ = write!(
                html,
                "<p><a href='/event/{n}-{}'>{text}</a></p>",
                self.word(n, 1)
            );
        }
        for to in [month - 1, month + 1] {
            let _ = write!(
                html,
                "<a href='{}'>{} {}</a> ",
                month_path(to),
                to % 12 + 1,
                to / 12
            );
        }
        Some(html)
    }

    fn thing_path(self, n: u64) -> String {
        format!("/shop/item/{n}-{}", self.word(n, 5))
    }

    /// Returns the shop's front page, or the page for `selection`. Only the colour in `selection`
    /// filters the items.
    fn shop(self, selection: &str) -> String {
        let chosen: Vec<(&str, &str)> = selection
            .split('&')
            .filter_map(|part| part.split_once('='))
            .collect();
        let colour = chosen
            .iter()
            .find(|(name, _)| *name == "color")
            .map(|(_, value)| *value);
        let mut html = format!("<title>Shop</title><p>{}</p><ul>", self.prose("shop", 40));
        let shown = (0..THINGS).filter(|n| match colour {
            Some(colour) => COLOURS[usize::try_from(n % 4).unwrap_or(0)] == colour,
            None => *n < ON_THE_FRONT,
        });
        for n in shown {
            let text = self.prose(&format!("thing{n}"), 8);
            let _ = write!(html, "<li><a href='{}'>{text}</a></li>", self.thing_path(n));
        }
        html.push_str("</ul>");
        let colours = COLOURS.iter().map(|value| ("color", *value));
        let further = FURTHER
            .iter()
            .flat_map(|(name, values)| values.iter().map(|value| (*name, *value)));
        for (name, value) in colours.chain(further) {
            if chosen.iter().all(|(known, _)| *known != name) {
                let both = [selection, &format!("{name}={value}")].join("&");
                let _ = write!(
                    html,
                    "<a href='/shop?{}'>{value}</a> ",
                    both.trim_start_matches('&')
                );
            }
        }
        html
    }

    /// Returns an error page for a missing path. Like a soft 404, the page is sent with status 200.
    /// The links on the page lead to further missing paths.
    fn missing(self, path: &str) -> String {
        let mut dice = SeededRandom::of(&path.bytes().map(u64::from).collect::<Vec<_>>());
        let (first, second) = (self.word(dice.next(), 6), self.word(dice.next(), 6));
        format!(
            "<title>Oh dear</title><p>There is nothing to be found at {path}, and we are sorry for \
             that. Perhaps <a href='{first}'>this</a> or <a href='{second}'>that</a> is what you \
             were looking for.</p>"
        )
    }

    fn page(self, path: &str, words: u64, links: &[String]) -> String {
        let mut html = format!("<!doctype html><title>{}</title>", self.prose(path, 4));
        let _ = write!(
            html,
            "<p>{}</p>",
            self.prose(&format!("{path} text"), words)
        );
        for link in links {
            let _ = write!(html, "<a href='{link}'>on</a> ");
        }
        html
    }

    fn prose(self, of: &str, words: u64) -> String {
        let seeds: Vec<u64> = of.bytes().map(u64::from).chain([self.seed]).collect();
        let mut dice = SeededRandom::of(&seeds);
        let words: Vec<String> = (0..words).map(|_| made_up(&mut dice)).collect();
        words.join(" ")
    }

    fn word(self, n: u64, purpose: u64) -> String {
        made_up(&mut SeededRandom::of(&[self.seed, n, purpose]))
    }
}

fn month_path(month: u64) -> String {
    format!("/events/{}/{:02}/", month / 12, month % 12 + 1)
}

/// Returns a word of three syllables.
fn made_up(dice: &mut SeededRandom) -> String {
    const SYLLABLES: [&str; 24] = [
        "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su",
        "ta", "ve", "wi", "xo", "yu", "zan", "bre", "cli", "dro",
    ];
    let mut syllable = || SYLLABLES[usize::try_from(dice.below(24)).unwrap_or(0)];
    [syllable(), syllable(), syllable()].concat()
}

#[cfg(test)]
mod tests {
    use super::{TRAPS, TrapWeb};

    #[test]
    fn there_are_200_real_pages_and_each_is_answered() {
        for seed in 0..3 {
            let web = TrapWeb::new(seed);
            let real = web.real();
            assert_eq!(real.len(), 200);
            for path in &real {
                assert!(web.html(path).is_some(), "{path}");
                assert_eq!(web.trap_of(path), None);
            }
        }
    }

    #[test]
    fn each_trap_leads_on() {
        let web = TrapWeb::new(1);
        let article = web.article_path(3);
        let in_session = web.with_session(&article, 3);
        for (path, on, trap) in [
            ("/events/2040/01/", "/events/2040/02/", TRAPS[0]),
            (in_session.as_str(), "/s/", TRAPS[1]),
            ("/help/more/more/", "more/", TRAPS[2]),
            (
                "/shop?color=red&size=m",
                "/shop?color=red&size=m&brand=acme",
                TRAPS[3],
            ),
            ("/lost/amber", "href=", TRAPS[5]),
        ] {
            assert_eq!(web.trap_of(path), Some(trap), "{path}");
            assert!(web.html(path).unwrap().contains(on), "{path}");
        }
        assert_eq!(web.trap_of("/go/7"), Some(TRAPS[4]));
    }
}
