//! The stored form of the deferred kinds of URLs: one kind per line.

use crawl_weburl::{HostKey, SpellingStepPolicies};

use super::deferred_url_kinds::{DeferredUrlKind, DeferredUrlKinds};
use super::{FIRST_PROBE, MAX_DEFERRED_KINDS, TrapDetector};

/// The first line of the stored form, which names the layout.
const LAYOUT: &str = "parked 2";
/// The first line of an earlier version's layout, in which the kinds of URLs have no host.
const HOSTLESS: &str = "parked 1";

impl TrapDetector {
    /// Encodes the deferred kinds of URLs. Returns `None` if they have not changed since the last
    /// call.
    pub fn stored(&mut self) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.has_changed) {
            return None;
        }
        let mut places: Vec<_> = self.deferred.iter().collect();
        places.sort_unstable_by_key(|(place, _)| **place);
        let lines = places.into_iter().map(|(place, deferred)| {
            let names = deferred.names.as_ref().map(|names| names.join("&"));
            let names = names.map_or("-".to_owned(), |names| format!("={names}"));
            let looks = u8::from(deferred.by_looks);
            let host = deferred.host.as_ref().map_or("-", HostKey::as_str);
            format!("{place:016x}\t{host}\t{looks}\t{names}\t{}", deferred.rule)
        });
        let lines: Vec<String> = std::iter::once(LAYOUT.to_owned()).chain(lines).collect();
        Some(lines.join("\n").into_bytes())
    }

    /// Restores stored deferred kinds of URLs. Skips lines that can't be read. The kinds in those
    /// lines are learned again from further pages.
    pub fn restore(&mut self, stored: &[u8]) {
        if let Some(kinds) = read(stored) {
            self.deferred = DeferredUrlKinds::default();
            self.put(kinds);
        }
    }

    /// Merges the deferred kinds of URLs that several workers of one crawl stored. The result is
    /// what a single worker with all their hosts would store. `None` if nothing is deferred.
    #[must_use]
    pub fn merge_stored(all: &[&[u8]]) -> Option<Vec<u8>> {
        let mut traps = TrapDetector::new(SpellingStepPolicies::default(), true);
        for kinds in all.iter().filter_map(|stored| read(stored)) {
            traps.put(kinds);
            traps.has_changed = true;
        }
        traps.stored()
    }

    fn put(&mut self, kinds: Vec<(u64, DeferredUrlKind)>) {
        let room = MAX_DEFERRED_KINDS.saturating_sub(self.deferred.len());
        for (place, kind) in kinds.into_iter().take(room) {
            self.deferred.insert(place, kind);
        }
    }
}

/// Decodes stored kinds of URLs, each with its key. `None` if the layout is unknown.
fn read(stored: &[u8]) -> Option<Vec<(u64, DeferredUrlKind)>> {
    let text = String::from_utf8_lossy(stored);
    let mut lines = text.split('\n');
    let has_hosts = match lines.next()? {
        LAYOUT => true,
        HOSTLESS => false,
        _ => return None,
    };
    let read = |line| match has_hosts {
        true => with_host(line),
        false => kind(line, None),
    };
    Some(lines.filter_map(read).collect())
}

/// Decodes a line with a host after the key.
fn with_host(line: &str) -> Option<(u64, DeferredUrlKind)> {
    let (place, rest) = line.split_once('\t')?;
    let (host, rest) = rest.split_once('\t')?;
    let host = match host {
        "-" => None,
        host => Some(HostKey::parse(host).ok()?),
    };
    kind(&format!("{place}\t{rest}"), host)
}

fn kind(line: &str, host: Option<HostKey>) -> Option<(u64, DeferredUrlKind)> {
    let mut fields = line.splitn(4, '\t');
    let mut next = || fields.next();
    let place = u64::from_str_radix(next()?, 16).ok()?;
    let by_looks = next()? == "1";
    let names = next()?.strip_prefix('=');
    let names = names.map(|names| names.split('&').map(str::to_owned).collect());
    let deferred = DeferredUrlKind {
        host,
        rule: next()?.to_owned(),
        by_looks,
        names,
        put_aside: 0,
        next_probe: FIRST_PROBE,
    };
    Some((place, deferred))
}

#[cfg(test)]
mod tests {
    use crawl_weburl::{SpellingStepPolicies, UrlShape, canonicalize};

    use super::TrapDetector;
    use crate::{UrlDisposition, keys};

    fn restored(lines: &[String]) -> TrapDetector {
        let mut traps = TrapDetector::new(SpellingStepPolicies::default(), true);
        traps.restore(format!("parked 2\n{}", lines.join("\n")).as_bytes());
        traps
    }

    /// Returns a stored line about the kind of URLs that `path` belongs to. With `is_family`, the
    /// key of the kind is that of the URL's family ([`UrlShape::family`]).
    fn kind(path: &str, is_family: bool, rest: &str) -> String {
        let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
        let (template, family) = keys(&url.host_key(), &UrlShape::of(&url));
        let place = if is_family { family.unwrap() } else { template };
        format!("{place:016x}\ta.example\t{rest}")
    }

    #[test]
    fn stored_kinds_are_restored_and_stored_again() {
        let mut lines = vec![
            kind("/a/1", false, "0\t-\tendless /a/#"),
            kind("/b?x=1", true, "1\t=x&y\tfacets /b?: such\tas"),
        ];
        lines.sort_unstable();
        let mut traps = restored(&lines);
        assert_eq!(traps.stored(), None, "nothing has changed");
        traps.has_changed = true;
        let stored = format!("parked 2\n{}", lines.join("\n"));
        assert_eq!(traps.stored(), Some(stored.clone().into_bytes()));
        assert_eq!(traps.stored(), None);
        let (one, two) = lines.split_at(1);
        let [one, two] = [one, two].map(|lines| format!("parked 2\n{}", lines.concat()));
        let merged = TrapDetector::merge_stored(&[two.as_bytes(), b"parked 3", one.as_bytes()]);
        assert_eq!(merged, Some(stored.clone().into_bytes()));
        assert_eq!(TrapDetector::merge_stored(&[]), None);
        // An unknown layout and unreadable lines change nothing.
        traps.restore(b"parked 3\n");
        assert_eq!(traps.deferred.len(), 2);
        lines.insert(1, "zz\ta.example\t1\t-\tcalendar".to_owned());
        assert_eq!(restored(&lines).deferred.len(), 2);
        // Lines in the layout of an earlier version, without hosts.
        let hostless = format!("parked 1\n{}", lines.join("\n").replace("\ta.example", ""));
        traps.restore(hostless.as_bytes());
        assert_eq!(traps.deferred.len(), 2);
        traps.has_changed = true;
        let stored = String::from_utf8(traps.stored().unwrap()).unwrap();
        assert_eq!(stored.matches("\t-\t").count(), 3, "{stored}");
        traps.restore(stored.as_bytes());
        assert_eq!(traps.deferred.len(), 2);
    }

    #[test]
    fn a_kind_applies_by_signs_and_names() {
        for (line, path, level, is_deferred) in [
            (kind("/a/1", false, "1\t-\tby looks"), "/a/2", 0, true),
            (kind("/a/1", false, "0\t-\tby level"), "/a/2", 0, false),
            (kind("/a/1", false, "0\t-\tby level"), "/a/2", 1, true),
            (kind("/a/1", false, "1\t-\tby looks"), "/b/2", 0, false),
            (
                kind("/b?x=1", true, "1\t=x&y\tby name"),
                "/b?y=2&z=1",
                0,
                true,
            ),
            (kind("/b?x=1", true, "1\t=x&y\tby name"), "/b?z=1", 0, false),
        ] {
            let traps = restored(std::slice::from_ref(&line));
            let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
            let disposition = traps.standing(&url, None, level);
            let expected = match is_deferred {
                true => UrlDisposition::Defer(line.rsplit('\t').next().unwrap().to_owned()),
                false => UrlDisposition::Fetch,
            };
            assert_eq!(disposition, expected, "{line} {path} {level}");
        }
    }

    #[test]
    fn probes_of_a_deferred_kind_become_rarer() {
        let mut traps = restored(&[kind("/a/1", false, "1\t-\tcalendar /a/#")]);
        let url = canonicalize(None, "http://a.example/a/2").unwrap();
        let probes = (1..=3000).filter(|_| {
            let disposition = traps.disposition(&url, None, 0);
            disposition == UrlDisposition::Fetch
        });
        assert_eq!(probes.collect::<Vec<_>>(), [128, 512, 2048]);
    }
}
