//! Lists of hosts: inline, or in files with one host per line.

use std::path::Path;

use crawl_weburl::{HostKey, HostPatternMap};

use super::seed_list::{lines, without_bom};
use crate::error::{CommandError, ErrorCollector, UnreadSettings};
use crate::input_file_reader::read_file;
use crate::values::HostListEntry;

/// Maximum size of a list of hosts, in bytes. It is limited because hosts are stored in
/// `crawl.toml`, which is read whole.
/// Beyond the limit: refused.
const MAX_HOST_LIST_BYTES: u64 = 1024 * 1024;

const LINE_HINT: &str = "write one host per line, such as `www.example.org`; lines starting with \
                         `#` are skipped";

/// The key that lists excluded hosts. Its file may be empty, because nobody has opted out yet when a
/// study starts.
const EXCLUDED: &str = "exclude-host";

/// A key that lists hosts, with its value.
pub(super) struct HostListSetting<'l> {
    pub(super) key: &'static str,
    /// The name of the `[group]` table that contains the key. `None` if the key is not in a
    /// `[group]` table.
    pub(super) group: Option<&'l str>,
    pub(super) hosts: &'l mut Vec<HostListEntry>,
}

/// Replaces each `@FILE` in the lists with the hosts in the file.
pub(super) fn read_in(lists: Vec<HostListSetting<'_>>, problems: &mut ErrorCollector) {
    for HostListSetting { key, group, hosts } in lists {
        let listed = std::mem::take(hosts).into_iter();
        let listed = listed.flat_map(|entry| match entry {
            HostListEntry::File(file) => {
                let mut of_list = ErrorCollector::default();
                let hosts = of_file(&file, key == EXCLUDED, &mut of_list);
                problems.extend(of_list.map(|problem| hiding(key, group, problem)));
                hosts
            }
            host => vec![host],
        });
        *hosts = listed.collect();
    }
}

/// Sets the key and the group that a problem concerns, and marks the key as unread.
fn hiding(key: &'static str, group: Option<&str>, problem: CommandError) -> CommandError {
    let table = group.map(|name| ("group", name.to_owned()));
    let unread = UnreadSettings::Keys {
        table: table.clone(),
        keys: vec![key.to_owned()],
    };
    problem.about(key).about_table(table).hiding(unread)
}

/// Returns the readable hosts in a list file. Adds a problem for each unreadable line, and for a
/// list without hosts unless it `may_be_empty`.
fn of_file(file: &Path, may_be_empty: bool, problems: &mut ErrorCollector) -> Vec<HostListEntry> {
    let Some(list) = problems.note(read_file(file, MAX_HOST_LIST_BYTES + 1)) else {
        return Vec::new();
    };
    let name = file.display();
    let mut refuse = |message: String, hint: &str| {
        let problem = CommandError::usage(format!("{name}: {message}")).hint(hint.to_owned());
        problems.note::<()>(Err(problem));
        Vec::new()
    };
    if list.len() as u64 > MAX_HOST_LIST_BYTES {
        let message = format!("the list of hosts is larger than {MAX_HOST_LIST_BYTES} bytes");
        return refuse(message, "list their parent domains instead, or remove some");
    }
    let read = |line: &str, _| match line.parse() {
        Ok(HostListEntry::File(_)) => Err(format!("`{line}`: a list can't include files").into()),
        Ok(host) => Ok(host),
        Err(_) => Err(format!("not a host name or address: `{line}`").into()),
    };
    let mut of_lines = ErrorCollector::default();
    let list = without_bom(&list);
    let hosts = lines(list, &name.to_string(), LINE_HINT, &mut of_lines, read);
    if hosts.is_empty() && of_lines.is_empty() && !may_be_empty {
        return refuse("the list has no hosts".to_owned(), LINE_HINT);
    }
    problems.extend(of_lines);
    hosts
}

/// Returns the hosts of a list as a table, without duplicates.
pub(crate) fn host_table(listed: &[HostListEntry]) -> HostPatternMap<()> {
    let mut table = HostPatternMap::default();
    for name in names(listed) {
        // Inserting a duplicate fails, which is harmless.
        let _ = table.insert(name, ());
    }
    table
}

/// Returns the hosts of a list as keys.
pub(crate) fn host_keys(listed: &[HostListEntry]) -> Vec<HostKey> {
    names(listed)
        .filter_map(|name| HostKey::parse(name).ok())
        .collect()
}

/// Returns the names of hosts in a list. Skips entries that name a file: they occur only in a
/// `crawl.toml` that was edited by hand, and the check of the settings reports them.
pub(super) fn names(listed: &[HostListEntry]) -> impl Iterator<Item = &str> {
    listed.iter().filter_map(|entry| match entry {
        HostListEntry::Host(name) => Some(&**name),
        HostListEntry::File(_) => None,
    })
}

pub(super) fn is_file(entry: &HostListEntry) -> bool {
    matches!(entry, HostListEntry::File(_))
}

/// Rejects a list that still names a file: `crawl.toml` must have the hosts themselves.
pub(super) fn check_read_in(
    key: &'static str,
    listed: &[HostListEntry],
) -> Result<(), CommandError> {
    match listed.iter().find(|entry| is_file(entry)) {
        None => Ok(()),
        Some(file) => Err(CommandError::usage(format!(
            "`{key}` contains the file `{file}`, which isn't allowed in a directory's crawl.toml"
        ))
        .hint(format!(
            "list the hosts there, or give `--{key} {file}` again"
        ))
        .about(key)),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{ErrorCollector, read_in};
    use crate::settings::config_file::parse;

    #[test]
    fn a_file_of_hosts_is_replaced_by_its_hosts() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name).display().to_string()
        };
        let good = file(
            "good.txt",
            "\u{feff}# opted out\r\nb.example\n\n 192.0.2.7 \n",
        );
        let text = format!("[scope]\nhost = [\"a.example\", \"@{good}\"]\n");
        let mut layer = parse(&text, "x").unwrap();
        let mut problems = ErrorCollector::default();
        read_in(layer.host_lists(), &mut problems);
        problems.or(()).unwrap();
        let hosts = layer.scope.host.unwrap();
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["a.example", "b.example", "192.0.2.7"]);

        let bad = file(
            "bad.txt",
            "http://a.example/\n@x\nb.example\n\u{fffd}*.example\n",
        );
        let none = file("none.txt", "# none\n");
        let text = format!("[scope]\nexclude-host = [\"@{none}\"]\n");
        let mut layer = parse(&text, "x").unwrap();
        let mut problems = ErrorCollector::default();
        read_in(layer.host_lists(), &mut problems);
        problems.or(()).unwrap();
        assert!(layer.scope.exclude_host.unwrap().is_empty());

        let text = format!("[scope]\nhost = [\"@{bad}\", \"@{none}\"]\n");
        let mut layer = parse(&text, "x").unwrap();
        let mut problems = ErrorCollector::default();
        read_in(layer.host_lists(), &mut problems);
        let message = problems.or(()).unwrap_err().to_string();
        let message = message.replace(&dir.path().display().to_string(), "DIR");
        expect![[r#"
            error: DIR/bad.txt:1:1: not a host name or address: `http://a.example/`
            hint: write one host per line, such as `www.example.org`; lines starting with `#` are skipped
            error: DIR/bad.txt:2:1: `@x`: a list can't include files
            hint: write one host per line, such as `www.example.org`; lines starting with `#` are skipped
            error: DIR/bad.txt:4:1: not a host name or address: `�*.example`
            hint: write one host per line, such as `www.example.org`; lines starting with `#` are skipped
            error: DIR/none.txt: the list has no hosts
            hint: write one host per line, such as `www.example.org`; lines starting with `#` are skipped"#]].assert_eq(&message);
    }
}
