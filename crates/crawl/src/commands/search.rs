//! `crawl search`: prints ranked results for a terminal or as JSON.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use crawl_index::{FacetCounts, Hit, MarkedTextPart, SearchOptions, SearchResults};
use crawl_records::{counted, grouped, stored_settings};
use crawl_weburl::safe_line;
use textwrap::{Options, WordSplitter, wrap};

use crate::cli::args::{IndexArgs, SearchArgs};
use crate::cli::search_filter::all_filters;
use crate::clock;
use crate::commands::gather::as_one;
use crate::commands::index;
use crate::error::search_index::of_index;
use crate::error::{CommandError, FINISHED, INTERRUPTED};
use crate::search_index_opener;
use crate::terminal::{note, print_as_is, print_json};

/// Line width if the terminal does not report one.
const COLUMNS: usize = 80;
/// Maximum line width, since longer lines are hard to read.
const MAX_COLUMNS: usize = 100;
/// Maximum lines of an excerpt.
const EXCERPT_LINES: usize = 3;

/// Runs `crawl search`. The arguments may begin with the directories of several workers of a shared
/// crawl, which are searched together.
pub(crate) fn run(mut args: SearchArgs) -> Result<u8, CommandError> {
    let is_worker = |dir: &Path| {
        let settings = stored_settings(dir);
        let place = settings.get("frontier");
        let worker = place.and_then(|place| place.get("worker")?.as_str());
        worker.is_some_and(|worker| !worker.is_empty())
    };
    if !is_worker(&args.dir) {
        return search(&args);
    }
    let words = args.query.iter();
    let more_dirs = words.take_while(|word| is_worker(Path::new(word))).count();
    let more_dirs: Vec<PathBuf> = args.query.drain(..more_dirs).map(PathBuf::from).collect();
    if args.query.is_empty() {
        return Err(
            CommandError::usage("no search words given").hint("put them after the directories")
        );
    }
    let dirs = [vec![args.dir.clone()], more_dirs].concat();
    let gathered = as_one(&dirs, &mut args.dir)?;
    if gathered.is_some() {
        let to_index = IndexArgs {
            dir: args.dir.clone(),
            index_types: None,
            json: false,
        };
        if index::build(&to_index)?.is_none() {
            return Ok(INTERRUPTED);
        }
    }
    search(&args)
}

fn search(args: &SearchArgs) -> Result<u8, CommandError> {
    if args.limit == 0 {
        return Err(
            CommandError::usage("--limit is 0, so no results would be shown")
                .hint("remove --limit for 10 results; --limit 1 shows only the best"),
        );
    }
    let index = search_index_opener::open_with_rules(&args.dir, args.search_rules.as_deref())?;
    let columns = columns();
    let options = SearchOptions {
        limit: args.limit,
        offset: args.offset,
        excerpt: (columns - 3) * EXCERPT_LINES,
        now: clock::now().as_second(),
        filters: all_filters(&args.filter),
        facets: args.facets,
    };
    let answer = index.search(&args.query.join(" "), &options);
    let answer = answer.map_err(|error| of_index(&error, &args.dir))?;
    if args.json {
        return print_json(&answer);
    }
    if answer.results.is_empty() && answer.facets.is_none() {
        // An empty result is a message on stderr, because stdout is only for results.
        note(&nothing(&answer));
        return Ok(FINISHED);
    }
    let is_bold = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    // Print the text unchanged, because sanitizing would remove the escape codes for bold text. The
    // titles and excerpts in it are already sanitized.
    print_as_is(shown(&answer, args.offset, columns, is_bold).as_bytes())
}

/// Returns the symbols that can't be searched, if the query consists only of symbols. `None` if it
/// has a letter or a digit.
fn only_symbols(answer: &SearchResults) -> Option<String> {
    let has_word = answer.query.contains(char::is_alphanumeric);
    let symbols = answer.unknown.iter().map(|symbols| safe_line(symbols));
    let symbols: Vec<_> = symbols.map(|symbols| format!("`{symbols}`")).collect();
    (!has_word && !symbols.is_empty()).then(|| symbols.join(", "))
}

fn nothing(answer: &SearchResults) -> String {
    match &answer.did_you_mean {
        Some(meant) => format!("no results; did you mean `{meant}`?"),
        None if answer.total > 0 => {
            let results = counted(answer.total as u64, "result", "results");
            format!("no results at this offset ({results} in total)")
        }
        None => match only_symbols(answer) {
            Some(symbols) => format!("no results: no page contains {symbols}"),
            None => "no results".to_owned(),
        },
    }
}

fn shown(answer: &SearchResults, offset: usize, columns: usize, is_bold: bool) -> String {
    let mut text = String::new();
    if let Some(meant) = &answer.did_you_mean {
        let _ = writeln!(text, "results for `{}`\n", safe_line(meant));
    }
    if let Some(left_out) = answer.left_out() {
        let _ = writeln!(text, "{left_out}\n");
    }
    for (n, hit) in answer.results.iter().enumerate() {
        one(&mut text, offset + n + 1, hit, columns, is_bold);
    }
    let (first, last) = (offset + 1, offset + answer.results.len());
    let total = counted(answer.total as u64, "page", "pages");
    let _ = match answer.total == answer.results.len() {
        _ if answer.results.is_empty() => writeln!(text, "{}", nothing(answer)),
        true => writeln!(text, "{total}"),
        false => writeln!(text, "{first} to {last} of {total}"),
    };
    if let Some(facets) = &answer.facets {
        counts(&mut text, facets, columns);
    }
    text
}

/// Writes a line for each facet. The line lists the facet's values in the form that `--filter`
/// accepts.
fn counts(text: &mut String, facets: &FacetCounts, columns: usize) {
    let all = [
        ("folder", &facets.folder),
        ("version", &facets.version),
        ("language", &facets.language),
        ("type", &facets.document_type),
    ];
    for (name, values) in all {
        let each = values
            .iter()
            .map(|of| format!("{} ({})", safe_line(&of.value), grouped(of.count)));
        let line = format!("{name}: {}", each.collect::<Vec<_>>().join(", "));
        let options = Options::new(columns)
            .subsequent_indent("  ")
            .word_splitter(WordSplitter::NoHyphenation);
        if !values.is_empty() {
            text.push_str(&(wrap(&line, options).join("\n") + "\n"));
        }
    }
}

fn one(text: &mut String, number: usize, hit: &Hit, columns: usize, is_bold: bool) {
    let lead = format!("{number}. ");
    let indent = " ".repeat(lead.len());
    let mut paragraph = |first: &str, what: &str, lines: usize| {
        let options = Options::new(columns)
            .initial_indent(first)
            .subsequent_indent(&indent)
            .word_splitter(WordSplitter::NoHyphenation);
        for line in wrap(what, options).iter().take(lines) {
            text.push_str(line);
            text.push('\n');
        }
    };
    paragraph(&lead, &marked(&hit.title_parts, is_bold), EXCERPT_LINES);
    if !hit.excerpt.is_empty() {
        paragraph(
            &indent,
            &marked(&hit.excerpt_parts, is_bold),
            EXCERPT_LINES + 1,
        );
    }
    // A URL is never wrapped, so that it can be copied.
    let _ = writeln!(text, "{indent}{}", hit.leads_to);
    for section in &hit.sections {
        let name = section.name();
        if section.url != hit.leads_to {
            let _ = writeln!(text, "{indent}{name}: {}", section.url);
        }
    }
    text.push('\n');
}

/// Highlights words of the query on a terminal that supports it.
fn marked(parts: &[MarkedTextPart], is_bold: bool) -> String {
    let part = |part: &MarkedTextPart| {
        let clean = safe_line(&part.text);
        match part.is_match && is_bold {
            true => format!("\u{1b}[1m{clean}\u{1b}[0m"),
            false => clean.into_owned(),
        }
    };
    parts.iter().map(part).collect()
}

fn columns() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    let columns = size.map_or(COLUMNS, |(columns, _)| usize::from(columns.0));
    columns.clamp(40, MAX_COLUMNS)
}

#[cfg(test)]
mod tests {
    use crawl_index::{Hit, MarkedTextPart, ResultSection, SearchResults};
    use expect_test::expect;

    use super::shown;

    fn part(text: &str, is_match: bool) -> MarkedTextPart {
        MarkedTextPart {
            text: text.to_owned(),
            is_match,
        }
    }

    #[test]
    fn results_fit_the_terminal() {
        let url = "http://a.example/a/very/long/address/that/is/one/word/and/stays/so.html";
        let section = |heading: &str, url: String| ResultSection {
            heading: heading.to_owned(),
            parents: vec!["Making it".to_owned()],
            url,
        };
        let hit = Hit {
            url: url.to_owned(),
            leads_to: url.to_owned(),
            sections: vec![section("Steaming", format!("{url}#steam"))],
            title_parts: vec![part("Green ", false), part("tea", true)],
            excerpt: "x".to_owned(),
            excerpt_parts: vec![
                part("… leaves of green ", false),
                part("tea", true),
                part(" 東京都のお茶 are steamed \u{1b}[31mand dried …", false),
            ],
            ..Hit::default()
        };
        let answer = SearchResults {
            total: 12,
            results: vec![hit],
            did_you_mean: Some("tea".to_owned()),
            ..SearchResults::default()
        };
        expect![[r#"
            results for `tea`

            11. Green tea
                … leaves of green tea 東京都のお茶
                are steamed �[31mand dried …
                http://a.example/a/very/long/address/that/is/one/word/and/stays/so.html
                Steaming · Making it: http://a.example/a/very/long/address/that/is/one/word/and/stays/so.html#steam

            11 to 11 of 12 pages
        "#]]
        .assert_eq(&shown(&answer, 10, 40, false));
        assert!(shown(&answer, 0, 40, true).contains("\u{1b}[1mtea\u{1b}[0m"));
    }
}
