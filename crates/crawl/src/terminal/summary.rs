//! The summary that a run prints at its end, and the run's exit code.

use std::fmt::Write as _;

use crawl_engine::{ArchivePresence, EndReason, IndexRebuildReason, IndexSummary, RunSummary};
use crawl_records::{
    CrawlReport, ExtractRuleCounts, PendingCounts, counted, failure_words, grouped, size,
};
use crawl_weburl::safe_line;

use super::index_count_descriptions::{by_reason, index_counts};
use super::progress::roughly;
use super::unfetchable_hosts::{MAX_NAMED, all_parked, hints, moment, name_unreached, outcome};
use crate::clock;
use crate::error::{FINISHED, INTERRUPTED, NEGATIVE_RESULT, quoted};

/// The budgets that start over with each run. After one of them ends a run, the same command
/// continues the crawl.
const PER_RUN: [&str; 2] = ["max-time", "max-time-per-host"];

/// Counters in `RunSummary::unusable` that the summary reports, each with its description.
const LEFT_OUT: [(&str, [&str; 2], &str); 5] = [
    (
        "sitemap_limit",
        ["sitemap URL", "sitemap URLs"],
        "over the limit of --max-sitemap-urls",
    ),
    (
        "sitemap_elsewhere",
        ["sitemap", "sitemaps"],
        "on other hosts listed in robots.txt; add a host with --host HOST",
    ),
    ("secret", ["link", "links"], "with a secret of [site]"),
    (
        "built_by_scripts",
        ["page", "pages"],
        "whose text seems to be built by scripts; read with --render auto",
    ),
    (
        "rendering_skipped",
        ["page", "pages"],
        "whose text seems to be built by scripts, not rendered since similar pages showed no more; \
         render with --render on",
    ),
];

/// Whether crawl.toml has a mark that identifies it as its user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigTrustStatus {
    Yes,
    /// crawl.toml has no mark, because the user's key could not be stored.
    No,
    /// crawl.toml needs no mark, because its directory is removed when the program ends.
    Temporary,
}

/// Formats the summary of a run: counts, duration, the directory, and the command that continues
/// it.
///
/// Pages, bytes and failures are those of the whole crawl as `report` counts them, so the summary
/// agrees with `crawl report`. `exe` is the command that continues the crawl: `crawl` or `crawl
/// check`. `mark` indicates whether the next start trusts the crawl's own crawl.toml.
pub(crate) fn closing(
    summary: &RunSummary,
    report: &CrawlReport,
    exe: &str,
    mark: ConfigTrustStatus,
) -> String {
    let mut text = format!("{}\n", how(summary));
    name_problems(summary, &mut text);
    name_unmatched_rules(summary, report, &mut text);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {:<9} {value}", format!("{name}:"));
    };
    let pages = |count| counted(count, "page", "pages");
    let fetched = format!(
        "{}, {}",
        pages(report.pages.total),
        size(report.pages.bytes)
    );
    line(
        "fetched",
        match summary.resumed {
            true => format!("{fetched} ({} in this run)", pages(summary.pages_of_run)),
            false => fetched,
        },
    );
    if summary.round > 1 {
        line("round", round(summary));
    }
    line("excluded", excluded(report));
    for (why, [one, many], words) in LEFT_OUT {
        if let Some(count) = summary.unusable.get(why) {
            line(
                "left out",
                format!("{} {words}", counted(*count, one, many)),
            );
        }
    }
    if !report.pages.unrendered.is_empty() {
        line("left out", unrendered(report));
    }
    if let Some(index) = &summary.indexed {
        line("index", indexed(index, summary));
    }
    let is_temporary = mark == ConfigTrustStatus::Temporary;
    line(
        "failed",
        match is_temporary {
            true => grouped(report.pages.failed),
            false => failed(summary, report),
        },
    );
    line("hosts", report.coverage_line());
    if summary.pending > 0 {
        let pending = report.pending.as_ref().map(ToString::to_string);
        line(
            "pending",
            pending.unwrap_or_else(|| grouped(summary.pending)),
        );
    }
    let requests = counted(summary.requests, "request", "requests");
    let robots = grouped(summary.robots_requests);
    let took = roughly_or_tenths(summary.elapsed);
    line(
        "took",
        format!("{took}, {requests}, {robots} of them for robots.txt"),
    );
    if is_temporary {
        return text;
    }
    let output = summary.output.display().to_string();
    line("output", output.clone());
    let is_index_cut_short = summary.ended == EndReason::Interrupted
        && summary
            .indexed
            .as_ref()
            .is_some_and(|index| !index.is_complete());
    if summary.pending > 0 || is_index_cut_short {
        line("continue", go_on(summary, report, exe, mark));
    }
    text
}

/// Returns the command that continues the crawl, or what to do first if that command would fetch
/// nothing.
fn go_on(summary: &RunSummary, report: &CrawlReport, exe: &str, mark: ConfigTrustStatus) -> String {
    let output = quoted(&summary.output);
    let config = match mark {
        ConfigTrustStatus::Yes | ConfigTrustStatus::Temporary => String::new(),
        ConfigTrustStatus::No => {
            format!(" --config {}", quoted(&summary.output.join("crawl.toml")))
        }
    };
    let command = format!("{exe} --output {output}{config}");
    // Budgets of hosts may hold back all remaining URLs. The command would then fetch nothing.
    let held_by = report.pending.as_ref().and_then(PendingCounts::budgets);
    let held_by = held_by.filter(|held| !held.iter().any(|budget| is_per_run(budget)));
    match &summary.ended {
        EndReason::Budget(budget)
            if held_by.as_ref().is_some_and(|held| !held.contains(budget)) =>
        {
            let held_by = held_by.unwrap_or_default().join(", ");
            format!("raise {budget} and {held_by} first, nothing else is left to fetch")
        }
        EndReason::Finished | EndReason::Interrupted if held_by.is_some() => {
            let budgets = held_by.unwrap_or_default().join(", ");
            format!("raise {budgets} first, nothing else is left to fetch")
        }
        EndReason::Budget(budget) if !is_per_run(budget) => {
            format!("{command} --{budget} MORE")
        }
        EndReason::TableBudget(budget) if is_per_run(budget) => command,
        EndReason::TableBudget(budget) => {
            format!("raise {budget} in a config FILE, then {exe} --output {output} --config FILE")
        }
        EndReason::NoFetchableHost(hosts) if all_parked(hosts) => {
            "unpark a host first, nothing else is left to fetch".to_owned()
        }
        EndReason::NoFetchableHost(hosts) if hosts.iter().any(|host| host.is_tried_at_start) => {
            command
        }
        EndReason::NoFetchableHost(hosts) => {
            match hosts.iter().filter_map(|host| host.next_try).min() {
                Some(at) => format!("{command} (from {})", moment(at)),
                None => command,
            }
        }
        EndReason::HandedOver => "the other workers continue with these URLs".to_owned(),
        EndReason::Finished if !summary.parked.is_empty() => {
            "unpark a host first, nothing else is left to fetch".to_owned()
        }
        EndReason::Finished | EndReason::Budget(_) | EndReason::Interrupted => command,
    }
}

/// Returns whether a budget starts over with each run. The name of a `budget` may end with the
/// table that sets it: `max-time of group press`.
fn is_per_run(budget: &str) -> bool {
    let name = budget.split(" of ").next().unwrap_or(budget);
    PER_RUN.contains(&name)
}

/// Describes the contents of the search index, and how to add the pages that it lacks.
fn indexed(index: &IndexSummary, summary: &RunSummary) -> String {
    let build = format!("`crawl index {}`", quoted(&summary.output));
    match &index.fault {
        Some((why, ArchivePresence::No)) => {
            return format!("{why}: can't build it without an archive");
        }
        Some((IndexRebuildReason::NotBuilt, ArchivePresence::Yes)) => {
            return format!(
                "{}: the next start builds it, or {build}",
                IndexRebuildReason::NotBuilt
            );
        }
        Some((damaged, ArchivePresence::Yes)) => return format!("{damaged}: run {build}"),
        None => {}
    }
    let mut words = index_counts(
        index.pages,
        index.duplicates,
        &index.left_out,
        index.canonical_elsewhere,
    );
    if !index.kept.is_empty() {
        words.push_str(&format!(
            "; kept, since removing them would drop more than a tenth of the index: {}; {build} \
             removes them",
            by_reason(&index.kept)
        ));
    }
    match index.waiting_bytes {
        0 => words,
        waiting => format!(
            "{words}; {} of pages left for the next start or {build}",
            size(waiting)
        ),
    }
}

/// Formats the number of failed pages, with the command that lists links to them.
fn failed(summary: &RunSummary, report: &CrawlReport) -> String {
    let count = grouped(report.pages.failed);
    match report.broken.pages {
        0 => count,
        _ => {
            let output = quoted(&summary.output);
            format!("{count}; links to broken pages: crawl report {output} --broken")
        }
    }
}

/// Describes the changes detected in a later round, and when the next page is due.
fn round(summary: &RunSummary) -> String {
    let changes = &summary.changes;
    let counts = [
        (changes.new, "new"),
        (changes.changed, "changed"),
        (changes.same, "same"),
        (changes.gone, "gone"),
        (changes.broken, "broken"),
    ];
    let counts = counts.map(|(count, name)| format!("{} {name}", grouped(count)));
    let due = summary
        .next_due
        .map(|due| jiff::Timestamp::from_second(due.into()));
    let due = match due {
        Some(Ok(due)) if due > clock::now() => format!("; next page due from {due:.0}"),
        Some(_) => "; more pages are due".to_owned(),
        None => String::new(),
    };
    format!("{}: {}{due}", summary.round, counts.join(", "))
}

/// Lists what was not reached, what to do about it, and oddities of robots.txt files.
fn name_problems(summary: &RunSummary, text: &mut String) {
    name_unreached(summary, text);
    for hint in hints(summary) {
        let _ = writeln!(text, "  hint: {hint}");
    }
    for url in summary.strange_robots.iter().take(MAX_NAMED) {
        let _ = writeln!(
            text,
            "  odd: {url} doesn't look like a robots.txt file; the rules in it, if any, were applied"
        );
    }
}

/// Lists the extraction rules, and the fields in them, that matched nothing in the whole crawl.
/// Lists nothing if the crawl was interrupted or handed over, because it may still find matches.
fn name_unmatched_rules(summary: &RunSummary, report: &CrawlReport, text: &mut String) {
    let rules = report.extraction.iter().flat_map(|fields| &fields.rules);
    let warnings: Vec<String> = rules.flat_map(ExtractRuleCounts::warnings).collect();
    let may_continue = matches!(
        summary.ended,
        EndReason::Interrupted | EndReason::HandedOver
    );
    if warnings.is_empty() || may_continue {
        return;
    }
    for warning in warnings.iter().take(MAX_NAMED) {
        let _ = writeln!(text, "  warning: {}", safe_line(warning));
    }
    if let Some(more @ 1..) = warnings.len().checked_sub(MAX_NAMED) {
        let more = counted(more as u64, "warning", "warnings");
        let _ = writeln!(
            text,
            "  and {more} more: crawl report {}",
            quoted(&summary.output)
        );
    }
    let _ = writeln!(
        text,
        "  hint: correct the rules in FILE; crawl extract {} --config FILE reads the archive again",
        quoted(&summary.output)
    );
}

/// Returns the exit code of a run that ended.
pub(crate) fn exit_code(summary: &RunSummary, fail_on_error: bool) -> u8 {
    let incomplete = summary.failed > 0 || matches!(summary.ended, EndReason::NoFetchableHost(_));
    match &summary.ended {
        EndReason::Interrupted => INTERRUPTED,
        EndReason::HandedOver => FINISHED,
        _ if summary.seeds_fetched == 0 && !summary.seeds_failed.is_empty() => NEGATIVE_RESULT,
        EndReason::Finished | EndReason::NoFetchableHost(_) if summary.seeds_fetched == 0 => {
            NEGATIVE_RESULT
        }
        _ if fail_on_error && incomplete => NEGATIVE_RESULT,
        _ => FINISHED,
    }
}

fn how(summary: &RunSummary) -> String {
    match &summary.ended {
        EndReason::Finished
            if summary.resumed && summary.pages_of_run == 0 && summary.requests == 0 =>
        {
            "finished: nothing left to do".to_owned()
        }
        EndReason::Finished if summary.seeds_fetched == 0 && !summary.seeds_failed.is_empty() => {
            outcome(summary)
        }
        EndReason::Finished => "finished".to_owned(),
        EndReason::Budget(which) => format!("ended by --{which}"),
        EndReason::TableBudget(which) => format!("ended by {which}"),
        EndReason::Interrupted => "interrupted; fetched pages are saved".to_owned(),
        EndReason::HandedOver => "handed its hosts over to the other workers".to_owned(),
        EndReason::NoFetchableHost(_) => outcome(summary),
    }
}

/// Formats the excluded URLs by reason. URLs that were not fetched because of a budget are pending,
/// so they don't count.
fn excluded(report: &CrawlReport) -> String {
    let reasons = report.excluded.by_decision();
    let named: Vec<String> = reasons
        .iter()
        .map(|(reason, count)| format!("{reason} {}", grouped(*count)))
        .collect();
    match report.excluded.decided() {
        0 => "0".to_owned(),
        total => format!("{} ({})", grouped(total), named.join(", ")),
    }
}

/// Formats the number of pages that could not be rendered, with the reasons.
fn unrendered(report: &CrawlReport) -> String {
    let errors = &report.pages.unrendered;
    let reasons: Vec<String> = errors
        .iter()
        .map(|(error, count)| format!("{} {}", failure_words(error), grouped(*count)))
        .collect();
    let count = counted(errors.values().sum(), "page", "pages");
    let reasons = reasons.join(", ");
    format!("{count} read as sent, because rendering failed ({reasons})")
}

fn roughly_or_tenths(time: std::time::Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1}s", time.as_secs_f64()),
        _ => roughly(time),
    }
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use crawl_engine::{
        ArchivePresence, EndReason, IndexRebuildReason, IndexSummary, PageChangeCounts,
        RunConnectivity, RunSummary, SeedFailure, UnfetchableHost,
    };
    use crawl_records::{CrawlReport, HostCoverage, PendingCounts};
    use crawl_scheduler::Tick;
    use crawl_weburl::{HostKey, canonicalize};
    use expect_test::{Expect, expect};

    use super::{ConfigTrustStatus, closing, exit_code};

    fn summary(ended: EndReason) -> RunSummary {
        RunSummary {
            ended,
            indexed: None,
            pages: 1234,
            pages_of_run: 1234,
            failed: 2,
            pending: 0,
            round: 1,
            changes: PageChangeCounts::default(),
            next_due: None,
            requests: 1300,
            robots_requests: 1,
            bytes: 12_345_678,
            excluded: BTreeMap::from([("robots".to_owned(), 40), ("scope".to_owned(), 1005)]),
            unusable: BTreeMap::new(),
            seeds_fetched: 1,
            seeds_failed: Vec::new(),
            strange_robots: Vec::new(),
            rules: Vec::new(),
            parked: Vec::new(),
            elapsed: Duration::from_secs(1_301),
            reach: RunConnectivity::Answered,
            output: "crawl-e.example".into(),
            created: Vec::new(),
            resumed: false,
        }
    }

    /// Returns the report of a crawl with these pages and one complete host.
    fn report(summary: &RunSummary) -> CrawlReport {
        let mut report = CrawlReport::default();
        report.pages.total = summary.pages;
        report.pages.failed = summary.failed;
        report.pages.bytes = summary.bytes;
        report.broken.pages = summary.changes.broken;
        report.coverage.insert(HostCoverage::Whole, 1);
        report.excluded.by_reason =
            BTreeMap::from([("robots".to_owned(), 40), ("scope".to_owned(), 1005)]);
        report.excluded.total = 1045;
        report
    }

    fn check(summary: &RunSummary, code: u8, expect: Expect) {
        assert_eq!(exit_code(summary, false), code);
        expect.assert_eq(&closing(
            summary,
            &report(summary),
            "crawl",
            ConfigTrustStatus::Yes,
        ));
    }

    #[test]
    fn finished() {
        check(
            &summary(EndReason::Finished),
            0,
            expect![[r#"
                finished
                  fetched:  1,234 pages, 12.3 MB
                  excluded: 1,045 (robots 40, scope 1,005)
                  failed:   2
                  hosts:    1 complete
                  took:     21m41s, 1,300 requests, 1 of them for robots.txt
                  output:   crawl-e.example
            "#]],
        );
        let mut left_out = summary(EndReason::Finished);
        left_out.unusable = BTreeMap::from([
            ("built_by_scripts", 1),
            ("sitemap_limit", 1_250_000),
            ("mailto", 3),
            ("rendering_skipped", 17),
        ]);
        let mut counts = report(&left_out);
        let unrendered = [("browser_missing", 2), ("render_timeout", 1)];
        let unrendered = unrendered.map(|(error, count)| (error.to_owned(), count));
        counts.pages.unrendered = BTreeMap::from(unrendered);
        let text = closing(&left_out, &counts, "crawl", ConfigTrustStatus::Yes);
        for line in [
            "1 page whose text seems to be built by scripts; read with --render auto",
            "1,250,000 sitemap URLs over the limit of --max-sitemap-urls",
            "17 pages whose text seems to be built by scripts, not rendered since similar pages \
             showed no more; render with --render on",
            "3 pages read as sent, because rendering failed (browser missing 2, render timeout 1)",
        ] {
            assert!(text.contains(&format!("\n  left out: {line}\n")), "{text}");
        }
        let mut round = summary(EndReason::Finished);
        round.resumed = true;
        round.round = 3;
        round.changes = PageChangeCounts {
            new: 3,
            changed: 51,
            same: 1178,
            gone: 2,
            broken: 4,
        };
        round.next_due = Some(4_000_000_000);
        check(
            &round,
            0,
            expect![[r#"
                finished
                  fetched:  1,234 pages, 12.3 MB (1,234 pages in this run)
                  round:    3: 3 new, 51 changed, 1,178 same, 2 gone, 4 broken; next page due from 2096-10-02T07:06:40Z
                  excluded: 1,045 (robots 40, scope 1,005)
                  failed:   2; links to broken pages: crawl report crawl-e.example --broken
                  hosts:    1 complete
                  took:     21m41s, 1,300 requests, 1 of them for robots.txt
                  output:   crawl-e.example
            "#]],
        );
        let mut nothing_left = summary(EndReason::Finished);
        nothing_left.resumed = true;
        (nothing_left.pages_of_run, nothing_left.requests) = (0, 0);
        check(
            &nothing_left,
            0,
            expect![[r#"
                finished: nothing left to do
                  fetched:  1,234 pages, 12.3 MB (0 pages in this run)
                  excluded: 1,045 (robots 40, scope 1,005)
                  failed:   2
                  hosts:    1 complete
                  took:     21m41s, 0 requests, 1 of them for robots.txt
                  output:   crawl-e.example
            "#]],
        );
    }

    #[test]
    fn the_summary_of_a_later_round_counts_each_page_of_the_crawl_once() {
        let mut second = summary(EndReason::Finished);
        (second.round, second.pages, second.failed) = (2, 3, 1);
        let mut of_crawl = report(&summary(EndReason::Finished));
        (of_crawl.pages.total, of_crawl.pages.failed) = (34, 4);
        let text = closing(&second, &of_crawl, "crawl", ConfigTrustStatus::Yes);
        assert!(text.contains("  fetched:  34 pages, "), "{text}");
        assert!(text.contains("  failed:   4\n"), "{text}");
    }

    #[test]
    fn commands_that_would_fetch_nothing_are_not_suggested() {
        let go_on = |ended: EndReason| {
            let mut summary = summary(ended);
            summary.pending = 7;
            let text = closing(&summary, &report(&summary), "crawl", ConfigTrustStatus::Yes);
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("  continue: "));
            line.unwrap_or_default().to_owned()
        };
        assert_eq!(
            go_on(EndReason::TableBudget(
                "max-pages of group press".to_owned()
            )),
            "raise max-pages of group press in a config FILE, then crawl --output crawl-e.example \
             --config FILE"
        );
        assert_eq!(
            go_on(EndReason::TableBudget("max-time of group press".to_owned())),
            "crawl --output crawl-e.example"
        );
        assert_eq!(
            go_on(EndReason::HandedOver),
            "the other workers continue with these URLs"
        );
        assert_eq!(
            go_on(EndReason::Budget("max-time")),
            "crawl --output crawl-e.example"
        );
        let mut cut_short = summary(EndReason::Interrupted);
        cut_short.indexed = Some(IndexSummary::default());
        let text = closing(
            &cut_short,
            &report(&cut_short),
            "crawl",
            ConfigTrustStatus::Yes,
        );
        assert!(
            text.contains("  continue: crawl --output crawl-e.example\n"),
            "{text}"
        );
        let mut ended = summary(EndReason::Budget("max-pages"));
        ended.pending = 7;
        let mut by_site = report(&ended);
        by_site.pending = Some(PendingCounts {
            total: 7,
            by_reason: BTreeMap::from([("max-pages of [site.\"e.example\"]".to_owned(), 7)]),
        });
        let text = closing(&ended, &by_site, "crawl", ConfigTrustStatus::Yes);
        let line = "  continue: raise max-pages and max-pages of [site.\"e.example\"] first, \
                    nothing else is left to fetch\n";
        assert!(text.contains(line), "{text}");
        // This budget starts over with each run, so the summary suggests the same command.
        let mut finished = summary(EndReason::Finished);
        finished.pending = 7;
        let mut by_time = report(&finished);
        by_time.pending = Some(PendingCounts {
            total: 7,
            by_reason: BTreeMap::from([("max-time-per-host".to_owned(), 7)]),
        });
        let text = closing(&finished, &by_time, "crawl", ConfigTrustStatus::Yes);
        let line = "  continue: crawl --output crawl-e.example\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn pending_urls_of_a_budget_are_counted_once_and_the_budget_is_named() {
        let mut interrupted = summary(EndReason::Interrupted);
        interrupted.pending = 7;
        let mut report = report(&interrupted);
        report.excluded.by_reason.insert("budget".to_owned(), 7);
        report.excluded.total += 7;
        report.pending = Some(PendingCounts {
            total: 7,
            by_reason: BTreeMap::from([("max-pages-per-host".to_owned(), 7)]),
        });
        let text = closing(&interrupted, &report, "crawl", ConfigTrustStatus::Yes);
        for line in [
            "  excluded: 1,045 (robots 40, scope 1,005)\n",
            "  pending:  7 (max-pages-per-host)\n",
            "  continue: raise max-pages-per-host first, nothing else is left to fetch\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn one_is_singular() {
        let mut one = summary(EndReason::Finished);
        (one.pages, one.pages_of_run, one.requests, one.resumed) = (1, 1, 1, true);
        let text = closing(&one, &report(&one), "crawl", ConfigTrustStatus::Yes);
        assert!(
            text.contains("fetched:  1 page, 12.3 MB (1 page in this run)\n"),
            "{text}"
        );
        assert!(
            text.contains(", 1 request, 1 of them for robots.txt\n"),
            "{text}"
        );
    }

    #[test]
    fn ended_early() {
        let mut budget = summary(EndReason::Budget("max-pages"));
        budget.pending = 7;
        budget.output = "it's here".into();
        check(
            &budget,
            0,
            expect![[r#"
                ended by --max-pages
                  fetched:  1,234 pages, 12.3 MB
                  excluded: 1,045 (robots 40, scope 1,005)
                  failed:   2
                  hosts:    1 complete
                  pending:  7
                  took:     21m41s, 1,300 requests, 1 of them for robots.txt
                  output:   it's here
                  continue: crawl --output 'it'\''s here' --max-pages MORE
            "#]],
        );
        let mut interrupted = summary(EndReason::Interrupted);
        interrupted.pending = 7;
        check(
            &interrupted,
            130,
            expect![[r#"
                interrupted; fetched pages are saved
                  fetched:  1,234 pages, 12.3 MB
                  excluded: 1,045 (robots 40, scope 1,005)
                  failed:   2
                  hosts:    1 complete
                  pending:  7
                  took:     21m41s, 1,300 requests, 1 of them for robots.txt
                  output:   crawl-e.example
                  continue: crawl --output crawl-e.example
            "#]],
        );
    }

    #[test]
    fn without_a_stored_key_the_config_file_is_named() {
        let mut interrupted = summary(EndReason::Interrupted);
        interrupted.pending = 7;
        interrupted.output = "it's here".into();
        let text = closing(
            &interrupted,
            &report(&interrupted),
            "crawl",
            ConfigTrustStatus::No,
        );
        let line = r"continue: crawl --output 'it'\''s here' --config 'it'\''s here/crawl.toml'";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn an_incomplete_index_is_described() {
        let damaged = || IndexRebuildReason::Damaged("meta.json is missing".to_owned());
        for (fault, waiting_bytes, expected) in [
            (
                Some((IndexRebuildReason::NotBuilt, ArchivePresence::Yes)),
                0,
                "not built yet with the pages of earlier runs: the next start builds it, or \
                 `crawl index crawl-e.example`",
            ),
            (
                Some((IndexRebuildReason::NotBuilt, ArchivePresence::No)),
                0,
                "not built yet with the pages of earlier runs: can't build it without an \
                 archive",
            ),
            (
                Some((damaged(), ArchivePresence::Yes)),
                0,
                "damaged: meta.json is missing: run `crawl index crawl-e.example`",
            ),
            (
                None,
                1_500_000,
                "partial; duplicates are resolved when a run finishes normally; \
                 1.5 MB of pages left for the next start or `crawl index crawl-e.example`",
            ),
        ] {
            let mut summary = summary(EndReason::Interrupted);
            summary.indexed = Some(IndexSummary {
                fault,
                waiting_bytes,
                ..IndexSummary::default()
            });
            let text = closing(&summary, &report(&summary), "crawl", ConfigTrustStatus::Yes);
            assert!(text.contains(&format!("index:    {expected}\n")), "{text}");
        }
    }

    #[test]
    fn unreachable_hosts_and_failed_seeds_are_named() {
        let mut unreachable = summary(EndReason::NoFetchableHost(vec![UnfetchableHost {
            host: HostKey::parse("e.example").unwrap(),
            why: "http://e.example/robots.txt: connect_refused".to_owned(),
            next_try: Some(Tick::from_micros(1_795_219_199_123_000)),
            is_tried_at_start: false,
        }]));
        unreachable.pending = 1;
        assert_eq!(exit_code(&unreachable, true), 1);
        check(
            &unreachable,
            0,
            expect![[r#"
                fetched what was reachable; can't connect to http://e.example: connection refused
                  next try: from 2026-11-20T23:59:59Z
                  hint: check that the server is running, and its port
                  hint: the next start retries these URLs; to wait longer, raise --wait-unreachable
                  fetched:  1,234 pages, 12.3 MB
                  excluded: 1,045 (robots 40, scope 1,005)
                  failed:   2
                  hosts:    1 complete
                  pending:  1
                  took:     21m41s, 1,300 requests, 1 of them for robots.txt
                  output:   crawl-e.example
                  continue: crawl --output crawl-e.example (from 2026-11-20T23:59:59Z)
            "#]],
        );
        let mut parked = unreachable.clone();
        let EndReason::NoFetchableHost(hosts) = &mut parked.ended else {
            panic!("{:?}", parked.ended)
        };
        hosts[0].next_try = None;
        check(
            &parked,
            0,
            expect![[r#"
                ended: e.example is parked
                  hint: fetch their URLs with `crawl control DIR unpark HOST`
                  fetched:  1,234 pages, 12.3 MB
                  excluded: 1,045 (robots 40, scope 1,005)
                  failed:   2
                  hosts:    1 complete
                  pending:  1
                  took:     21m41s, 1,300 requests, 1 of them for robots.txt
                  output:   crawl-e.example
                  continue: unpark a host first, nothing else is left to fetch
            "#]],
        );
        unreachable.seeds_fetched = 0;
        assert_eq!(exit_code(&unreachable, false), 1);
        let mut failed = summary(EndReason::Finished);
        failed.seeds_fetched = 0;
        failed.seeds_failed = vec![SeedFailure {
            url: canonicalize(None, "http://e.example/").unwrap(),
            why: "404".to_owned(),
        }];
        check(
            &failed,
            1,
            expect![[r#"
                can't fetch http://e.example/: not found (404)
                  fetched:  1,234 pages, 12.3 MB
                  excluded: 1,045 (robots 40, scope 1,005)
                  failed:   2
                  hosts:    1 complete
                  took:     21m41s, 1,300 requests, 1 of them for robots.txt
                  output:   crawl-e.example
            "#]],
        );
    }

    #[test]
    fn failed_pages_fail_the_run_only_on_request() {
        let finished = summary(EndReason::Finished);
        assert_eq!(
            (exit_code(&finished, false), exit_code(&finished, true)),
            (0, 1)
        );
    }
}
