//! What nginx answered.

use std::collections::{BTreeSet, HashSet};

/// A line of its log: the number of the connection, the status, the media type, the target.
pub(super) const LINE: &str = "$connection $status $sent_http_content_type $request_uri";

/// What a program was served.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    /// Targets of pages of HTML that were answered with 200, each once.
    pub(super) pages: BTreeSet<String>,
    pub(super) requests: usize,
    pub(super) connections: usize,
}

impl Served {
    pub(super) fn read(log: &str) -> Served {
        let mut served = Served::default();
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

    /// The URLs of the pages, a line each.
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
    use super::Served;

    #[test]
    fn pages_count_once_and_requests_each_time() {
        let log =
            "1 200 text/html /a\n1 200 text/html /a\n2 404 text/html /b\n3 200 text/css /c d\n";
        let served = Served::read(log);
        assert_eq!(served.pages.iter().collect::<Vec<_>>(), ["/a"]);
        assert_eq!((served.requests, served.connections), (4, 3));
        assert_eq!(served.list("http://h:1/"), "http://h:1/a\n");
    }
}
