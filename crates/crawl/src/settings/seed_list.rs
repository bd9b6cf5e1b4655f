//! Lists of seeds: files with one seed or JSON object per line, and sitemaps.

use crawl_extractor::{ReadingLimits, SitemapKind, read_sitemap};

use super::listed_seed::{ListedSeed, SeedProblem};
use super::typed_seed;
use crate::error::{CommandError, ErrorCollector, UnreadSettings};
use crate::input_file_reader::read_file;
use crate::values::FilePath;

/// Maximum size of a list of seeds, in bytes. It is limited because seeds are stored in
/// `crawl.toml`, which is read whole.
/// Beyond the limit: refused.
const MAX_SEED_LIST_BYTES: usize = 3 * 1024 * 1024;
/// Maximum number of seeds in one list.
/// Beyond the limit: refused.
const MAX_LISTED_SEEDS: usize = 10_000;
/// Maximum number of unusable lines to report individually; the rest are only counted.
const MAX_LINES_REPORTED: usize = 20;

const LINE_HINT: &str = "write one URL, host or JSON object with `url` per line, such as \
                         `https://example.org/` or `example.org`; lines starting with `#` are \
                         skipped";

/// Adds seeds to `seeds`: `sitemaps`, and the seeds that `files` list.
pub(super) fn read_in(
    seeds: &mut Option<Vec<ListedSeed>>,
    sitemaps: Vec<String>,
    files: Vec<FilePath>,
    problems: &mut ErrorCollector,
) {
    if !sitemaps.is_empty() {
        let sitemaps = sitemaps.into_iter().map(ListedSeed::sitemap);
        seeds.get_or_insert_default().extend(sitemaps);
    }
    for FilePath(file) in files {
        let list = read_file(&file, MAX_SEED_LIST_BYTES as u64 + 1);
        let name = match file.as_os_str() == "-" {
            true => "stdin".to_owned(),
            false => file.display().to_string(),
        };
        let mut of_list = ErrorCollector::default();
        if let Some(list) = of_list.note(list) {
            let listed = read_list(&list, &name, &mut of_list);
            seeds.get_or_insert_default().extend(listed);
        }
        let unread = || UnreadSettings::Keys {
            table: None,
            keys: vec!["seed".to_owned()],
        };
        problems.extend(of_list.map(|problem| problem.hiding(unread())));
    }
}

/// Reads the seeds of a list, or of a sitemap if the list starts with `<`. Adds all problems with
/// their lines to `problems`. `name` is the list's name in messages.
fn read_list(list: &[u8], name: &str, problems: &mut ErrorCollector) -> Vec<ListedSeed> {
    let list = without_bom(list);
    let mut refuse = |message: String, hint: &str| {
        problems.note::<()>(Err(
            CommandError::usage(format!("{name}: {message}")).hint(hint.to_owned())
        ));
        Vec::new()
    };
    let in_parts = "split it among several crawls";
    if list.len() > MAX_SEED_LIST_BYTES {
        let message = format!("the list of seeds is larger than {MAX_SEED_LIST_BYTES} bytes");
        return refuse(message, in_parts);
    }
    let mut of_entries = ErrorCollector::default();
    let seeds = match list.trim_ascii_start().first() {
        Some(b'<') => of_sitemap(list, name, &mut of_entries),
        _ => lines(list, name, LINE_HINT, &mut of_entries, |line, number| {
            read_line(line, name, number)
        }),
    };
    match seeds.len() {
        0 if of_entries.is_empty() => refuse("the list has no seeds".to_owned(), LINE_HINT),
        count if count > MAX_LISTED_SEEDS => {
            let message = format!("the list has {count} seeds, the maximum is {MAX_LISTED_SEEDS}");
            refuse(message, in_parts);
            problems.extend(of_entries);
            Vec::new()
        }
        _ => {
            problems.extend(of_entries);
            seeds
        }
    }
}

/// Strips the byte order mark that some editors write.
pub(super) fn without_bom(list: &[u8]) -> &[u8] {
    list.strip_prefix(b"\xef\xbb\xbf").unwrap_or(list)
}

/// All problems of one line of a list of seeds or hosts. Each has its column (starting at 1), its
/// message, and a hint if the general hint for the list doesn't apply.
#[derive(Debug)]
pub(super) struct ProblemsOfLine(Vec<(usize, String, Option<String>)>);

impl From<String> for ProblemsOfLine {
    fn from(message: String) -> ProblemsOfLine {
        ProblemsOfLine(vec![(1, message, None)])
    }
}

/// Parses each line of a list with `read`, which gets the line and its number. Skips empty lines
/// and comments. Adds the problems of each line that `read` rejects, up to `MAX_LINES_REPORTED`
/// lines.
pub(super) fn lines<T>(
    list: &[u8],
    name: &str,
    hint: &str,
    problems: &mut ErrorCollector,
    read: impl Fn(&str, u64) -> Result<T, ProblemsOfLine>,
) -> Vec<T> {
    let (mut entries, mut wrong) = (Vec::new(), 0);
    for (number, line) in (1..).zip(list.split(|&byte| byte == b'\n')) {
        let entry = match text_of(line) {
            Ok(None) => continue,
            Ok(Some(text)) => read(text, number),
            Err(message) => Err(message.into()),
        };
        match entry {
            Ok(entry) => entries.push(entry),
            Err(ProblemsOfLine(faults)) => {
                wrong += 1;
                for (column, message, own) in
                    faults.into_iter().filter(|_| wrong <= MAX_LINES_REPORTED)
                {
                    let message =
                        CommandError::usage(format!("{name}:{number}:{column}: {message}"));
                    let hint = own.unwrap_or_else(|| hint.to_owned());
                    problems.note::<()>(Err(message.hint(hint)));
                }
            }
        }
    }
    if wrong > MAX_LINES_REPORTED {
        let more = wrong - MAX_LINES_REPORTED;
        let message = format!("{name}: {more} more unusable lines");
        problems.note::<()>(Err(CommandError::usage(message)));
    }
    entries
}

/// Returns the text of a line. `None` if it is empty or a comment.
fn text_of(line: &[u8]) -> Result<Option<&str>, String> {
    let text = std::str::from_utf8(line).map(str::trim).map_err(|_| {
        let text = String::from_utf8_lossy(line);
        format!("`{}` isn't UTF-8", text.trim())
    })?;
    Ok((!text.is_empty() && !text.starts_with('#')).then_some(text))
}

fn read_line(line: &str, name: &str, number: u64) -> Result<ListedSeed, ProblemsOfLine> {
    let seed = match line.starts_with('{') {
        true => ListedSeed::of_json(line).map_err(|problems| {
            let placed = problems
                .into_iter()
                .map(|SeedProblem { key, message, hint }| {
                    (column_of(line, key.as_deref()), message, hint)
                });
            ProblemsOfLine(placed.collect())
        })?,
        false => ListedSeed::plain(line),
    };
    if let Err(why) = typed_seed::read(&seed.url) {
        let message = format!("unusable seed `{}`: {why}", seed.url);
        let key = if seed.is_sitemap { "sitemap" } else { "url" };
        let column = column_of(line, Some(key));
        return Err(ProblemsOfLine(vec![(column, message, None)]));
    }
    Ok(ListedSeed {
        place: Some(format!("{name}:{number}:1")),
        ..seed
    })
}

/// Returns the column, starting at 1, of a key in a line of JSON; 1 if the key isn't there.
fn column_of(line: &str, key: Option<&str>) -> usize {
    let key = key.and_then(|key| serde_json::to_string(key).ok());
    let at = key.and_then(|key| {
        let mut matches = line.match_indices(&key);
        matches.find_map(|(at, text)| {
            let rest = line[at + text.len()..].trim_start();
            rest.starts_with(':').then_some(at)
        })
    });
    line[..at.unwrap_or_default()].chars().count() + 1
}

/// Returns the pages that a sitemap file lists. Adds a problem for each of the first
/// `MAX_LINES_REPORTED` unusable URLs.
fn of_sitemap(list: &[u8], name: &str, problems: &mut ErrorCollector) -> Vec<ListedSeed> {
    let sitemap = read_sitemap(list, None, &ReadingLimits::default());
    let mut refuse = |message: &str, hint: &str| {
        let problem = CommandError::usage(format!("{name}: {message}")).hint(hint.to_owned());
        problems.note::<()>(Err(problem));
    };
    match sitemap.kind {
        SitemapKind::UrlSet => {
            let entries = sitemap.entries.into_iter().map(|entry| entry.loc);
            let (seeds, unusable): (Vec<_>, Vec<_>) =
                entries.partition(|seed| typed_seed::read(seed).is_ok());
            for seed in unusable.iter().take(MAX_LINES_REPORTED) {
                let message = format!("unusable seed `{seed}` in the sitemap");
                refuse(&message, "a `loc` must be a whole URL");
            }
            return seeds.into_iter().map(ListedSeed::plain).collect();
        }
        SitemapKind::Index => refuse(
            "this is a sitemap index, which lists sitemaps instead of pages",
            "give its URL with --seed-sitemap, or each sitemap that it lists with --seed-file",
        ),
        _ => refuse(
            "this is XML, but not a sitemap",
            "a sitemap has the element `urlset`; other lists have one URL per line",
        ),
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{CommandError, ErrorCollector, ListedSeed};

    fn read_list(list: &[u8], name: &str) -> Result<Vec<ListedSeed>, CommandError> {
        let mut problems = ErrorCollector::default();
        let seeds = super::read_list(list, name, &mut problems);
        problems.or(seeds)
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "an expectation is written where it is used"
    )]
    fn check(list: &[u8], expect: Expect) {
        let text = match read_list(list, "seeds.txt") {
            Ok(seeds) => {
                let seeds = seeds.iter().map(|seed| match seed.terms.is_empty() {
                    true => seed.url.clone(),
                    false => format!("{} {:?}", seed.url, seed.terms),
                });
                seeds.collect::<Vec<_>>().join(" ")
            }
            Err(refusal) => refusal.to_string(),
        };
        expect.assert_eq(&text);
    }

    #[test]
    fn a_line_is_a_seed_and_all_problems_are_reported_at_once() {
        check(
            "\u{feff}# mine\r\nhttp://a.example/x \r\n\n  b.example\nhttp://a.example/x".as_bytes(),
            expect!["http://a.example/x b.example http://a.example/x"],
        );
        check(
            b"a.example\nexample\nftp://c.example/\n\xff\n[\"http://a/\"]\n",
            expect![[r#"
                error: seeds.txt:2:1: unusable seed `example`: not a URL: relative URL without a base
                hint: write one URL, host or JSON object with `url` per line, such as `https://example.org/` or `example.org`; lines starting with `#` are skipped
                error: seeds.txt:3:1: unusable seed `ftp://c.example/`: scheme `ftp` is not http or https
                hint: write one URL, host or JSON object with `url` per line, such as `https://example.org/` or `example.org`; lines starting with `#` are skipped
                error: seeds.txt:4:1: `�` isn't UTF-8
                hint: write one URL, host or JSON object with `url` per line, such as `https://example.org/` or `example.org`; lines starting with `#` are skipped
                error: seeds.txt:5:1: unusable seed `["http://a/"]`: not a URL: relative URL without a base
                hint: write one URL, host or JSON object with `url` per line, such as `https://example.org/` or `example.org`; lines starting with `#` are skipped"#]],
        );
        check(
            b"\n# none\n",
            expect![[r#"
            error: seeds.txt: the list has no seeds
            hint: write one URL, host or JSON object with `url` per line, such as `https://example.org/` or `example.org`; lines starting with `#` are skipped"#]],
        );
        let unusable = read_list(&b"x\n".repeat(25), "s").unwrap_err();
        assert_eq!(unusable.others.len(), 20);
        assert_eq!(unusable.others[19].message, "s: 5 more unusable lines");
        let many = read_list(&b"a.example\n".repeat(10_001), "s").unwrap_err();
        assert_eq!(
            many.message,
            "s: the list has 10001 seeds, the maximum is 10000"
        );
        let long = read_list(&b"##\n".repeat(1024 * 1024 + 1), "s").unwrap_err();
        assert!(
            long.message.ends_with("larger than 3145728 bytes"),
            "{long}"
        );
    }

    #[test]
    fn a_json_line_is_a_seed_with_its_own_settings() {
        let list = b"a.example\n  {\"url\": \"b.example\", \"label\": \"press\"}\r\n";
        let seeds = read_list(list, "seeds.jsonl").unwrap();
        assert_eq!(seeds[1].terms.label.as_deref(), Some("press"));
        assert_eq!(seeds[1].place.as_deref(), Some("seeds.jsonl:2:1"));
        check(
            b"{\"url\": \"b.example\", \"lable\": \"depth\", \"depth\": \"2\"}\n{\"url\": \"example\"}\n",
            expect![[r#"
                error: seeds.txt:1:22: unknown key `lable` in a seed
                hint: did you mean `label`?
                error: seeds.txt:1:40: `depth`: expected a number, found `"2"`
                hint: write one URL, host or JSON object with `url` per line, such as `https://example.org/` or `example.org`; lines starting with `#` are skipped
                error: seeds.txt:2:2: unusable seed `example`: not a URL: relative URL without a base
                hint: write one URL, host or JSON object with `url` per line, such as `https://example.org/` or `example.org`; lines starting with `#` are skipped"#]],
        );
    }

    #[test]
    fn the_pages_of_a_sitemap_are_seeds() {
        check(
            b"<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>\
              <url><loc> http://a.example/?x=1&amp;y </loc></url><url><loc>http://b.example/</loc></url></urlset>",
            expect!["http://a.example/?x=1&y http://b.example/"],
        );
        check(
            b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>/x</loc></url></urlset>",
            expect![[r#"
                error: seeds.txt: unusable seed `/x` in the sitemap
                hint: a `loc` must be a whole URL"#]],
        );
        check(
            b"<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>\
              <sitemap><loc>http://a.example/s.xml</loc></sitemap></sitemapindex>",
            expect![[r#"
                error: seeds.txt: this is a sitemap index, which lists sitemaps instead of pages
                hint: give its URL with --seed-sitemap, or each sitemap that it lists with --seed-file"#]],
        );
        check(
            b"<html><a href=x>",
            expect![[r#"
            error: seeds.txt: this is XML, but not a sitemap
            hint: a sitemap has the element `urlset`; other lists have one URL per line"#]],
        );
    }
}
