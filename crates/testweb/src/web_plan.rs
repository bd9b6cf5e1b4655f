//! The plan of the synthetic web: its places (URLs) and the links between them. Everything is
//! computed from (seed, host, number) and nothing is stored, so a web can have any number of pages.

use crate::random::SeededRandom;

/// The number of children of each node, in the tree of a host's pages and in the tree of hosts.
pub(crate) const FAN_OUT: u64 = 8;

/// Number of random links from a page to pages of its own host, in addition to the links that make
/// every page reachable.
const EXTRA_LINKS: u32 = 5;

/// Maximum ordinary pages in a sitemap. All other pages are discovered through links, because a
/// sitemap may list only 50,000 URLs (sitemaps.org).
const MAX_SITEMAP_PAGES: u64 = 40_000;

/// Shares of ordinary pages, in pages per 1,000, that link to each kind of place (URL) or have
/// another property. So that small webs have all kinds, the root of each host links to each kind of
/// place on its host, unless the share of the kind is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkMix {
    /// Links to URLs under `/private/`, which robots.txt disallows. The page at each such URL links
    /// to a page that nothing else links to, so that page is never discovered.
    pub private: u32,
    /// Links to URLs under `/private/open/`, which a longer `Allow` rule allows.
    pub open: u32,
    /// Links to URLs whose query matches a disallowed wildcard (`Disallow: /*?action=`).
    pub action: u32,
    /// Links to nofollow pages (half by META, half by X-Robots-Tag). Each such page links to a page
    /// that nothing else links to, so that page must not be fetched.
    pub dead_end: u32,
    /// Links to redirects (301, 302, 303, 307, 308). Most redirects lead to a page that nothing
    /// else links to.
    pub redirect: u32,
    /// Links to pages that answer 404.
    pub gone: u32,
    /// Pages listed only in the sitemap. This is the share of ordinary pages that have such a page
    /// next to them in the sitemap.
    pub orphan: u32,
    /// Pages linked only with `rel=nofollow`. 0 by default.
    pub shunned: u32,
    /// Ordinary pages with noindex: they are fetched and their links followed. This is a share of
    /// pages, not of links. A root never has noindex.
    pub noindex: u32,
    /// Links to a random page of another host.
    pub abroad: u32,
}

impl Default for LinkMix {
    fn default() -> LinkMix {
        LinkMix {
            private: 60,
            open: 30,
            action: 30,
            dead_end: 30,
            redirect: 60,
            gone: 30,
            orphan: 30,
            shunned: 0,
            noindex: 40,
            abroad: 150,
        }
    }
}

impl LinkMix {
    /// Returns the mix of a web that has only ordinary pages, which link to each other.
    pub fn plain() -> LinkMix {
        LinkMix {
            private: 0,
            open: 0,
            action: 0,
            dead_end: 0,
            redirect: 0,
            gone: 0,
            orphan: 0,
            shunned: 0,
            noindex: 0,
            abroad: 0,
        }
    }
}

/// A kind of place (URL). An ordinary page (`Page`) has its own number. Any other place
/// has the number of the ordinary page that leads to it or precedes it in the sitemap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PlannedUrlKind {
    Page,
    Private,
    Behind,
    Open,
    Action,
    DeadEnd,
    Hidden,
    Old,
    New,
    Gone,
    Orphan,
    Shunned,
}

const KINDS: [PlannedUrlKind; 12] = [
    PlannedUrlKind::Page,
    PlannedUrlKind::Private,
    PlannedUrlKind::Behind,
    PlannedUrlKind::Open,
    PlannedUrlKind::Action,
    PlannedUrlKind::DeadEnd,
    PlannedUrlKind::Hidden,
    PlannedUrlKind::Old,
    PlannedUrlKind::New,
    PlannedUrlKind::Gone,
    PlannedUrlKind::Orphan,
    PlannedUrlKind::Shunned,
];

/// A place in the web: a URL, identified by its host, its kind and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PlannedUrl {
    pub(crate) host: u32,
    pub(crate) kind: PlannedUrlKind,
    pub(crate) number: u64,
}

/// A link to a place, and whether the link is nofollow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlannedLink {
    pub(crate) to: PlannedUrl,
    /// Whether the link itself has `rel=nofollow`.
    pub(crate) shunned: bool,
}

/// The parameters that determine a synthetic web.
#[derive(Debug, Clone)]
pub(crate) struct WebParameters {
    pub(crate) seed: u64,
    pub(crate) hosts: u32,
    pub(crate) pages: u64,
    pub(crate) mix: LinkMix,
}

impl WebParameters {
    pub(crate) fn root(host: u32) -> PlannedUrl {
        PlannedUrl {
            host,
            kind: PlannedUrlKind::Page,
            number: 0,
        }
    }

    pub(crate) fn dice(&self, place: PlannedUrl, purpose: u64) -> SeededRandom {
        SeededRandom::of(&[
            self.seed,
            u64::from(place.host),
            place.kind as u64,
            place.number,
            purpose,
        ])
    }

    /// Returns the path and query of a place, in canonical form.
    pub(crate) fn path(&self, place: PlannedUrl) -> String {
        let n = place.number;
        match place.kind {
            PlannedUrlKind::Page if n == 0 => "/".to_owned(),
            PlannedUrlKind::Page => {
                let mut dice = self.dice(place, 0);
                let dir = dice.below(7);
                match dice.below(6) {
                    0 => format!("/d{dir}/page-{n}.html"),
                    1 => format!("/d{dir}/e{dir}/{n}/"),
                    2 => format!("/list?page={n}&sort=up"),
                    3 => format!("/d{dir}/caf%C3%A9-{n}.html"),
                    4 => format!("/d{dir}/~user/deep/er/{n}.htm"),
                    _ => format!("/p{n}"),
                }
            }
            PlannedUrlKind::Private => format!("/private/{n}.html"),
            PlannedUrlKind::Behind => format!("/behind/{n}.html"),
            PlannedUrlKind::Open => format!("/private/open/{n}.html"),
            PlannedUrlKind::Action => format!("/wiki/{n}?action=edit&id={n}"),
            PlannedUrlKind::DeadEnd => format!("/dead-end/{n}.html"),
            PlannedUrlKind::Hidden => format!("/hidden/{n}.html"),
            PlannedUrlKind::Old => format!("/old/{n}"),
            PlannedUrlKind::New => format!("/new/{n}.html"),
            PlannedUrlKind::Gone => format!("/gone/{n}.html"),
            PlannedUrlKind::Orphan => format!("/orphan/{n}.html"),
            PlannedUrlKind::Shunned => format!("/shunned/{n}.html"),
        }
    }

    /// Returns the place with this canonical path. `None` if no place has this path.
    pub(crate) fn find(&self, host: u32, path: &str) -> Option<PlannedUrl> {
        let number = if path == "/" { 0 } else { last_number(path)? };
        KINDS
            .into_iter()
            .map(|kind| PlannedUrl { host, kind, number })
            .find(|place| self.exists(*place) && self.path(*place) == path)
    }

    fn exists(&self, place: PlannedUrl) -> bool {
        let carrier = match place.kind {
            PlannedUrlKind::Page => return place.number < self.pages,
            PlannedUrlKind::Gone => return false,
            PlannedUrlKind::Behind => PlannedUrlKind::Private,
            PlannedUrlKind::Hidden => PlannedUrlKind::DeadEnd,
            PlannedUrlKind::New => PlannedUrlKind::Old,
            kind => kind,
        };
        self.carries(place.host, place.number, carrier)
    }

    /// Returns whether ordinary page `number` links to a place of this kind.
    fn carries(&self, host: u32, number: u64, kind: PlannedUrlKind) -> bool {
        let share = match kind {
            PlannedUrlKind::Private => self.mix.private,
            PlannedUrlKind::Open => self.mix.open,
            PlannedUrlKind::Action => self.mix.action,
            PlannedUrlKind::DeadEnd => self.mix.dead_end,
            PlannedUrlKind::Old => self.mix.redirect,
            PlannedUrlKind::Gone => self.mix.gone,
            PlannedUrlKind::Orphan if number >= MAX_SITEMAP_PAGES => 0,
            PlannedUrlKind::Orphan => self.mix.orphan,
            PlannedUrlKind::Shunned => self.mix.shunned,
            PlannedUrlKind::Page
            | PlannedUrlKind::Behind
            | PlannedUrlKind::Hidden
            | PlannedUrlKind::New => 0,
        };
        let page = PlannedUrl {
            host,
            kind: PlannedUrlKind::Page,
            number,
        };
        number < self.pages
            && share > 0
            && (number == 0 || self.dice(page, 1 + kind as u64).per_mille(share))
    }

    pub(crate) fn noindex(&self, place: PlannedUrl) -> bool {
        place.kind == PlannedUrlKind::Page
            && place.number > 0
            && self.dice(place, 20).per_mille(self.mix.noindex)
    }

    /// Returns the status and target of a redirect; `None` for other places.
    pub(crate) fn redirect(&self, place: PlannedUrl) -> Option<(u16, PlannedUrl)> {
        if place.kind != PlannedUrlKind::Old {
            return None;
        }
        let mut dice = self.dice(place, 21);
        let status = [301, 302, 303, 307, 308][usize::try_from(dice.below(5)).unwrap_or(0)];
        let abroad = self.hosts > 1 && place.number > 0 && dice.below(8) == 0;
        let to = if abroad {
            WebParameters::root(self.other_host(place.host, &mut dice))
        } else {
            PlannedUrl {
                kind: PlannedUrlKind::New,
                ..place
            }
        };
        Some((status, to))
    }

    /// Returns the links of the page at `place`, in document order. A target may occur twice.
    pub(crate) fn links(&self, place: PlannedUrl) -> Vec<PlannedLink> {
        let mut to = Vec::new();
        match place.kind {
            PlannedUrlKind::Page => self.page_links(place, &mut to),
            PlannedUrlKind::Private => to.push(PlannedUrl {
                kind: PlannedUrlKind::Behind,
                ..place
            }),
            PlannedUrlKind::DeadEnd => to.push(PlannedUrl {
                kind: PlannedUrlKind::Hidden,
                ..place
            }),
            PlannedUrlKind::Old | PlannedUrlKind::Gone => return Vec::new(),
            _ => {}
        }
        let mut dice = self.dice(place, 22);
        for _ in 0..EXTRA_LINKS {
            to.push(PlannedUrl {
                number: dice.below(self.pages),
                ..WebParameters::root(place.host)
            });
        }
        to.into_iter()
            .map(|to| PlannedLink {
                to,
                shunned: to.kind == PlannedUrlKind::Shunned,
            })
            .collect()
    }

    fn page_links(&self, page: PlannedUrl, to: &mut Vec<PlannedUrl>) {
        let numbers = children(page.number).take_while(|child| *child < self.pages);
        to.extend(numbers.map(|number| PlannedUrl { number, ..page }));
        if page.number == 0 {
            let hosts = children(u64::from(page.host)).filter_map(|host| u32::try_from(host).ok());
            to.extend(
                hosts
                    .take_while(|host| *host < self.hosts)
                    .map(WebParameters::root),
            );
        }
        let kinds = [
            PlannedUrlKind::Private,
            PlannedUrlKind::Open,
            PlannedUrlKind::Action,
            PlannedUrlKind::DeadEnd,
            PlannedUrlKind::Old,
            PlannedUrlKind::Gone,
            PlannedUrlKind::Shunned,
        ];
        for kind in kinds {
            if self.carries(page.host, page.number, kind) {
                to.push(PlannedUrl { kind, ..page });
            }
        }
        let mut dice = self.dice(page, 23);
        if self.hosts > 1 && dice.per_mille(self.mix.abroad) {
            let host = self.other_host(page.host, &mut dice);
            to.push(PlannedUrl {
                number: dice.below(self.pages),
                ..WebParameters::root(host)
            });
        }
    }

    /// Returns the entries of a host's sitemap: ordinary pages, and pages that nothing links to.
    pub(crate) fn sitemap(&self, host: u32) -> impl Iterator<Item = PlannedUrl> + '_ {
        (0..self.pages.min(MAX_SITEMAP_PAGES)).flat_map(move |number| {
            let page = PlannedUrl {
                host,
                kind: PlannedUrlKind::Page,
                number,
            };
            let orphan = PlannedUrl {
                kind: PlannedUrlKind::Orphan,
                ..page
            };
            let has_orphan = self.carries(host, number, PlannedUrlKind::Orphan);
            [Some(page), has_orphan.then_some(orphan)]
                .into_iter()
                .flatten()
        })
    }

    fn other_host(&self, host: u32, dice: &mut SeededRandom) -> u32 {
        let hosts = u64::from(self.hosts);
        let step = 1 + dice.below(hosts - 1);
        u32::try_from((u64::from(host) + step) % hosts).unwrap_or(0)
    }
}

/// Returns the children of the node `number` in a tree of all numbers with the root 0. Each node
/// has [`FAN_OUT`] children.
fn children(number: u64) -> impl Iterator<Item = u64> {
    let first = number.saturating_mul(FAN_OUT).saturating_add(1);
    first..first.saturating_add(FAN_OUT)
}

fn last_number(path: &str) -> Option<u64> {
    let end = path.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = path[..end]
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| at + 1);
    path[start..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(seed: u64) -> WebParameters {
        let mix = LinkMix {
            shunned: 40,
            ..LinkMix::default()
        };
        WebParameters {
            seed,
            hosts: 3,
            pages: 200,
            mix,
        }
    }

    #[test]
    fn every_path_leads_back_to_its_place() {
        let shape = shape(7);
        for host in 0..3 {
            for number in 0..200 {
                for kind in KINDS {
                    let place = PlannedUrl { host, kind, number };
                    let place_of_path = shape.find(host, &shape.path(place));
                    assert_eq!(place_of_path.is_some(), shape.exists(place));
                    assert!(place_of_path.is_none_or(|place_of_path| place_of_path == place));
                }
            }
        }
    }

    #[test]
    fn each_link_but_those_to_gone_pages_leads_to_a_place() {
        let shape = shape(8);
        for number in 0..200 {
            for edge in shape.links(PlannedUrl {
                host: 1,
                kind: PlannedUrlKind::Page,
                number,
            }) {
                assert_eq!(
                    shape.exists(edge.to),
                    edge.to.kind != PlannedUrlKind::Gone,
                    "{edge:?}"
                );
            }
        }
    }

    #[test]
    fn another_seed_is_another_web() {
        let paths = |seed| {
            let shape = shape(seed);
            (0..50)
                .map(move |n| {
                    shape.path(PlannedUrl {
                        number: n,
                        ..WebParameters::root(0)
                    })
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(paths(1), paths(1));
        assert_ne!(paths(1), paths(2));
    }
}
