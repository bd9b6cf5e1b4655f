//! The answers in nginx's log.

use std::collections::{BTreeSet, HashSet};

/// The log format: connection number, status, media type, target.
pub(super) const LINE: &str = "$connection $status $sent_http_content_type $request_uri";

/// The answers that a program received.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ServerLogSummary {
    /// Targets of HTML pages answered with 200, without duplicates.
    pub(super) pages: BTreeSet<String>,
    pub(super) requests: usize,
    pub(super) connections: usize,
}

impl ServerLogSummary {
    pub(super) fn read(log: &str) -> ServerLogSummary {
        let mut served = ServerLogSummary::default();
        let mut connections = HashSet::new();
        for line in log.lines() {
            let mut words = line.splitn(4, ' ');
            let (Some(connection), Some(status), Some(kind), Some(target)) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                continue;
            };
            connections.insert(connection);
            served.requests += 1;
            if status == "200" && kind.starts_with("text/html") {
                served.pages.insert(target.to_owned());
            }
        }
        served.connections = connections.len();
        served
    }

    /// Returns the URLs of the pages on the site at `base`, one per line.
    pub(super) fn list(&self, base: &str) -> String {
        let base = base.trim_end_matches('/');
        self.pages
            .iter()
            .map(|target| format!("{base}{target}\n"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::ServerLogSummary;

    #[test]
    fn pages_count_once_and_requests_each_time() {
        let log =
            "1 200 text/html /a\n1 200 text/html /a\n2 404 text/html /b\n3 200 text/css /c d\n";
        let served = ServerLogSummary::read(log);
        assert_eq!(served.pages.iter().collect::<Vec<_>>(), ["/a"]);
        assert_eq!((served.requests, served.connections), (4, 3));
        assert_eq!(served.list("http://h:1/"), "http://h:1/a\n");
    }
}
