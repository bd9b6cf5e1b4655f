//! `crawl frontier`: manages a shared frontier, its database servers and its workers.

mod move_buckets;
mod move_crawl;

use std::fmt::Write as _;
use std::time::Duration;

use crawl_shared_frontier::{
    CrawlOverview, LostDirectoryCounts, ServerGroupOverview, WorkerOverview, check_server, drain,
    overview, reopen,
};
use serde_json::json;

use crate::cli::args::{FrontierArgs, FrontierCommand, FrontierPlaceArgs};
use crate::error::shared_frontier::of_shared;
use crate::error::{CHECK_FAILED, CommandError, FINISHED};
use crate::settings::frontier_of_file;
use crate::shared_frontier::{check_url, credentials};
use crate::terminal::{note, print};

pub(crate) fn run(args: &FrontierArgs) -> Result<u8, CommandError> {
    match &args.command {
        FrontierCommand::Status { place, json } => status(place, *json),
        FrontierCommand::Check { urls } => check(urls),
        FrontierCommand::Import {
            dir,
            worker,
            place,
            json,
        } => move_crawl::import_crawl(dir, worker, place, *json),
        FrontierCommand::Export {
            dirs,
            output,
            place,
            json,
        } => move_crawl::export_crawl(dirs, output, place, *json),
        FrontierCommand::Reopen {
            worker,
            place,
            json,
        } => reopen_urls(worker, place, *json),
        FrontierCommand::Drain { worker, place } => drain_worker(worker, place),
        FrontierCommand::Move {
            buckets,
            to,
            place,
            json,
        } => move_buckets::run(buckets, to, place, *json),
    }
}

/// Returns the server groups and the crawl that the arguments name. The crawl is `None` if the
/// arguments don't name one.
fn place(args: &FrontierPlaceArgs) -> Result<(Vec<String>, Option<String>), CommandError> {
    let (of_file, crawl) = match &args.config {
        Some(file) => frontier_of_file(file)?,
        None => (Vec::new(), None),
    };
    let urls = match args.frontier.is_empty() {
        true => of_file,
        false => args.frontier.clone(),
    };
    if urls.is_empty() {
        return Err(CommandError::usage("no frontier given")
            .hint("add --frontier URL, or --config FILE with `frontier` in [frontier]"));
    }
    urls.iter().try_for_each(|url| check_url(url))?;
    Ok((urls, args.crawl.clone().or(crawl)))
}

fn status(args: &FrontierPlaceArgs, as_json: bool) -> Result<u8, CommandError> {
    let (urls, crawl) = place(args)?;
    let crawls = overview(&urls, &credentials(), crawl.as_deref());
    let crawls = crawls.map_err(|why| of_shared(&why))?;
    if let (Some(crawl), true) = (&crawl, crawls.is_empty()) {
        return Err(no_such_crawl(crawl));
    }
    for crawl in &crawls {
        let named = crawl.groups.len() as u64;
        if named < crawl.group_count {
            note(&format!(
                "crawl `{}` has {} server groups; only {named} of them are listed here",
                crawl.name, crawl.group_count
            ));
        }
    }
    if as_json {
        let crawls: Vec<_> = crawls.iter().map(object).collect();
        return print(format!("{:#}\n", json!({ "crawls": crawls })).as_bytes());
    }
    let mut text = String::new();
    for crawl in &crawls {
        write_crawl(&mut text, crawl);
    }
    if crawls.is_empty() {
        text.push_str("no crawl\n");
    }
    print(text.as_bytes())
}

fn no_such_crawl(crawl: &str) -> CommandError {
    CommandError::usage(format!("the frontier has no crawl `{crawl}`"))
        .hint("`crawl frontier status` without --crawl lists all crawls")
}

fn check(urls: &[String]) -> Result<u8, CommandError> {
    urls.iter().try_for_each(|url| check_url(url))?;
    let mut code = FINISHED;
    for url in urls {
        let checked = check_one(url)?;
        code = code.max(checked);
    }
    Ok(code)
}

fn check_one(url: &str) -> Result<u8, CommandError> {
    // Suppress panic messages. The check panics if the database server violates a clause of the
    // contract, and the violations are listed below in words for a user.
    std::panic::set_hook(Box::new(|_| {}));
    let checked = check_server(url, &credentials());
    let _ = std::panic::take_hook();
    let (clauses, broken) = checked.map_err(|why| of_shared(&why))?;
    if broken.is_empty() {
        return print(format!("satisfies all {clauses} clauses\n").as_bytes());
    }
    for name in &broken {
        print(format!("broken: {name}\n").as_bytes())?;
    }
    note(&format!(
        "{} of {clauses} clauses are violated: crawls can't share this frontier",
        broken.len()
    ));
    Ok(CHECK_FAILED)
}

/// Returns the server groups and the crawl that the arguments name.
///
/// # Errors
/// The arguments don't name a crawl.
fn place_of_crawl(args: &FrontierPlaceArgs) -> Result<(Vec<String>, String), CommandError> {
    let (urls, crawl) = place(args)?;
    let crawl = crawl.ok_or_else(|| {
        CommandError::usage("no crawl given").hint("add --crawl NAME, or --config FILE")
    })?;
    Ok((urls, crawl))
}

fn reopen_urls(worker: &str, args: &FrontierPlaceArgs, as_json: bool) -> Result<u8, CommandError> {
    let (urls, crawl) = place_of_crawl(args)?;
    let lost = reopen(&urls, &credentials(), &crawl, worker).map_err(|why| of_shared(&why))?;
    let code = match as_json {
        true => print(format!("{:#}\n", lost_object(&lost, &crawl, worker)).as_bytes())?,
        false => FINISHED,
    };
    note(&format!(
        "pages of worker `{worker}` will be fetched again: {}; {} buckets still to be checked by \
         their owners",
        lost.pages, lost.buckets_to_reopen
    ));
    note(&format!(
        "start workers if none is running; `{worker}` may be one of them, with an empty directory"
    ));
    Ok(code)
}

fn lost_object(lost: &LostDirectoryCounts, crawl: &str, worker: &str) -> serde_json::Value {
    json!({
        "crawl": crawl,
        "worker": worker,
        "pages": lost.pages,
        "bytes": lost.bytes,
        "buckets_to_reopen": lost.buckets_to_reopen,
    })
}

fn drain_worker(worker: &str, args: &FrontierPlaceArgs) -> Result<u8, CommandError> {
    let (urls, crawl) = place_of_crawl(args)?;
    match drain(&urls, &credentials(), &crawl, worker).map_err(|why| of_shared(&why))? {
        true => {
            note(&format!(
                "worker `{worker}` is handing over its hosts, and will then end"
            ));
            Ok(FINISHED)
        }
        false => Err(CommandError::usage(format!(
            "worker `{worker}` isn't running on crawl `{crawl}`"
        ))
        .hint("`crawl frontier status` lists all workers")),
    }
}

fn object(crawl: &CrawlOverview) -> serde_json::Value {
    let workers: Vec<_> = crawl.workers.iter().map(worker_object).collect();
    json!({
        "name": crawl.name,
        "version": crawl.program,
        "buckets": crawl.buckets,
        "buckets_free": crawl.free_buckets,
        "pending": crawl.pending,
        "deferred": crawl.deferred,
        "fetched": crawl.fetched,
        "failed": crawl.failed,
        "excluded": crawl.excluded,
        "links_waiting": crawl.links_waiting,
        "buckets_to_reopen": crawl.buckets_to_reopen,
        "exported_to": crawl.exported_to,
        "groups": crawl.groups.iter().map(group_object).collect::<Vec<_>>(),
        "pages_per_second": rounded(crawl.workers.iter().map(rate).sum()),
        "workers": workers,
    })
}

fn group_object(group: &ServerGroupOverview) -> serde_json::Value {
    json!({
        "number": group.number,
        "address": group.address,
        "buckets": group.buckets,
        "buckets_moving": group.moving,
        "pending": group.pending,
        "workers": group.workers,
    })
}

fn worker_object(worker: &WorkerOverview) -> serde_json::Value {
    json!({
        "name": worker.name,
        "group": worker.group,
        "state": state(worker),
        "heard_ms_ago": u64::try_from(worker.heard.as_millis()).unwrap_or(u64::MAX),
        "buckets": worker.buckets,
        "pending": worker.pending,
        "pages": worker.pages,
        "bytes": worker.bytes,
        "pages_per_second": rounded(rate(worker)),
    })
}

fn state(worker: &WorkerOverview) -> &'static str {
    match (worker.is_alive, worker.is_drained, worker.rests) {
        (false, ..) => "gone",
        (true, true, _) => "handing over",
        (true, false, true) => "waiting",
        (true, false, false) => "at work",
    }
}

/// Returns a worker's average pages per second since its start. 0 if the worker has ended.
fn rate(worker: &WorkerOverview) -> f64 {
    match worker.is_alive {
        true => {
            worker.pages_of_life as f64 / worker.age.max(Duration::from_millis(1)).as_secs_f64()
        }
        false => 0.0,
    }
}

fn rounded(rate: f64) -> f64 {
    (rate * 10.0).round() / 10.0
}

fn write_crawl(text: &mut String, crawl: &CrawlOverview) {
    let rate: f64 = crawl.workers.iter().map(rate).sum();
    // Writing to a string can't fail.
    let _ = writeln!(text, "crawl {}, version {}", crawl.name, crawl.program);
    let _ = writeln!(
        text,
        "  urls:    {} pending, {} fetched, {} failed, {} excluded, {} put aside; {} links in \
         transit",
        crawl.pending,
        crawl.fetched,
        crawl.failed,
        crawl.excluded,
        crawl.deferred,
        crawl.links_waiting
    );
    let _ = writeln!(
        text,
        "  buckets: {} of {} without an owner; {:.1} pages/s",
        crawl.free_buckets, crawl.buckets, rate
    );
    if crawl.buckets_to_reopen > 0 {
        let _ = writeln!(
            text,
            "  reopen:  {} buckets still to be checked for URLs with lost records",
            crawl.buckets_to_reopen
        );
    }
    if let Some(to) = &crawl.exported_to {
        let _ = writeln!(
            text,
            "  moved:   to {to}; workers can no longer continue it"
        );
    }
    let has_groups = crawl.group_count > 1;
    if has_groups {
        for group in &crawl.groups {
            write_group(text, group);
        }
    }
    for worker in &crawl.workers {
        let group = match has_groups {
            true => format!("group {}, ", worker.group),
            false => String::new(),
        };
        let _ = writeln!(
            text,
            "  {:<12} {:<12} {group}last seen {:.1} s ago, {} buckets, {} pending, {} pages, {:.1} \
             pages/s",
            worker.name,
            state(worker),
            worker.heard.as_secs_f64(),
            worker.buckets,
            worker.pending,
            worker.pages,
            self::rate(worker)
        );
    }
}

fn write_group(text: &mut String, group: &ServerGroupOverview) {
    let moving = match group.moving {
        0 => String::new(),
        moving => format!(" ({moving} being moved)"),
    };
    let workers = match group.workers {
        1 => "1 worker".to_owned(),
        workers => format!("{workers} workers"),
    };
    let _ = writeln!(
        text,
        "  group {}: {}, {} buckets{moving}, {} pending, {workers}",
        group.number, group.address, group.buckets, group.pending
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(change: impl FnOnce(&mut WorkerOverview)) -> WorkerOverview {
        let mut worker = WorkerOverview {
            name: "w1".to_owned(),
            group: 1,
            is_alive: true,
            rests: false,
            is_drained: false,
            heard: Duration::from_millis(1_200),
            age: Duration::from_secs(10),
            buckets: 512,
            pending: 7,
            pages: 140,
            pages_of_life: 35,
            bytes: 9_000,
        };
        change(&mut worker);
        worker
    }

    #[test]
    fn a_worker_has_a_one_word_state_and_a_rate_over_its_lifetime() {
        for (worker, expected, pace) in [
            (worker(|_| {}), "at work", 3.5),
            (worker(|it| it.rests = true), "waiting", 3.5),
            (worker(|it| it.is_drained = true), "handing over", 3.5),
            (worker(|it| it.is_alive = false), "gone", 0.0),
        ] {
            assert_eq!((state(&worker), rounded(rate(&worker))), (expected, pace));
        }
    }

    #[test]
    fn a_crawl_is_shown_as_text_and_as_an_object() {
        let mut crawl = CrawlOverview {
            name: "study".to_owned(),
            program: "0.1.0".to_owned(),
            buckets: 1_024,
            free_buckets: 512,
            pending: 7,
            deferred: 1,
            fetched: 130,
            failed: 2,
            excluded: 3,
            links_waiting: 4,
            buckets_to_reopen: 5,
            exported_to: None,
            group_count: 1,
            groups: vec![ServerGroupOverview {
                number: 0,
                address: "db1:5432".to_owned(),
                buckets: 1_024,
                moving: 6,
                workers: 1,
                pending: 7,
            }],
            workers: vec![worker(|_| {})],
        };
        let mut text = String::new();
        write_crawl(&mut text, &crawl);
        assert_eq!(text.lines().count(), 5);
        assert!(text.contains("5 buckets still to be checked"), "{text}");
        assert!(
            text.contains("512 of 1024 without an owner; 3.5 pages/s"),
            "{text}"
        );
        assert!(!text.contains("group"), "{text}");
        crawl.group_count = 2;
        let mut text = String::new();
        write_crawl(&mut text, &crawl);
        assert!(
            text.contains("group 0: db1:5432, 1024 buckets (6 being moved), 7 pending, 1 worker\n")
                && text.contains("group 1, last seen"),
            "{text}"
        );
        let object = object(&crawl);
        assert_eq!(object["groups"][0]["buckets_moving"], 6);
        assert_eq!(object["workers"][0]["state"], "at work");
        assert_eq!(
            (&object["links_waiting"], &object["buckets_free"]),
            (&json!(4), &json!(512))
        );
    }
}
