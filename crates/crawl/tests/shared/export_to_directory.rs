//! Shared crawls that are moved into a directory and continued there.

use std::fs;
use std::time::Duration;

use crawl_testweb::TestWeb;
use serde_json::Value;

use crate::shared_crawl_harness::{Crawl, Ended, repeated_paths};

const EVERYWHERE: &str = "--scope any --allow-private";

/// Returns the settings of a web that takes some seconds to crawl.
fn web(seed: u64) -> crawl_testweb::TestWebBuilder {
    let web = TestWeb::builder().seed(seed).hosts(12).pages(60);
    web.latency(Duration::from_millis(30))
}

impl Crawl {
    fn export(&self, workers: &[&str], output: &str) -> Ended {
        let args = [&["export"], workers, &["--output", output, "--json"]].concat();
        Ended::of(&self.frontier(&args))
    }

    /// Runs a command that needs no frontier.
    fn run(&self, args: &[&str]) -> Ended {
        Ended::of(&self.program().args(args).output().unwrap())
    }

    /// Continues the exported crawl. Passes its settings with `--config`: each worker has its own
    /// home folder, so the settings seem to come from another machine.
    fn go_on(&self, flags: &[&str]) -> Ended {
        let settings = ["--output", "back", "--config", "back/crawl.toml"];
        self.run(&[&settings, flags].concat())
    }

    /// Starts two workers, pauses them, and ends them while many URLs are pending. Without the
    /// pause they could finish the crawl first if this test is slow.
    fn begin_with_two(&self, flags: &str) {
        let (first, second) = self.start_two_with(flags);
        self.wait_for_requests(160);
        for worker in ["w1", "w2"] {
            self.control(worker, "pause");
        }
        let stderr = self.export(&["w1", "w2"], "back").expect(2);
        assert!(
            stderr.contains("can't move crawl") && stderr.contains("hint: "),
            "{stderr}"
        );
        for worker in [first, second] {
            worker.signal("INT");
            worker.wait().expect(130);
        }
        assert!(!self.output("back").exists());
    }

    /// Checks that the crawl in `back` is complete, according to the web's log and to its records.
    fn check_moved(&self) {
        self.check_whole(&["back"]);
        assert_eq!(repeated_paths(&self.web.log()), 0, "nobody died");
        self.excluded(&["back"]);
        self.run(&["audit", "back"]).expect(0);
        self.run(&["verify", "back"]).expect(0);
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_crawl_of_two_workers_continues_in_one_directory() {
    let crawl = Crawl::of(web(51));
    crawl.begin_with_two(EVERYWHERE);
    let before = crawl.pages(&["w1", "w2"]);
    let moved = crawl.export(&["w1", "w2"], "back");
    let counts: Value = serde_json::from_str(&moved.stdout).unwrap();
    let stderr = moved.expect(0);
    assert!(
        stderr.contains("continue with `crawl --output back --config back/crawl.toml`"),
        "{stderr}"
    );
    let count = |name: &str| counts[name].as_u64().unwrap();
    let fetched = count("fetched") + count("failed");
    assert_eq!(fetched, before.len() as u64, "{counts}");
    assert!(count("pending") > 0 && count("visits") > 0, "{counts}");
    assert!(count("hosts") > 0 && count("robots") > 0, "{counts}");
    assert_eq!(crawl.pages(&["back"]), before);

    // After the export, no worker can continue the crawl, and the crawl can't be exported to
    // another directory.
    let stderr = Ended::of(&crawl.command("w1", EVERYWHERE).output().unwrap()).expect(2);
    assert!(
        stderr.contains("was moved to") && stderr.contains("back"),
        "{stderr}"
    );
    let stderr = Ended::of(&crawl.command("w3", EVERYWHERE).output().unwrap()).expect(2);
    assert!(stderr.contains("was moved to"), "{stderr}");
    let stderr = crawl.export(&["w1", "w2"], "elsewhere").expect(2);
    assert!(stderr.contains("was moved to"), "{stderr}");
    let status = crawl.frontier(&["status"]);
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(
        status.contains("/back; workers can no longer continue it"),
        "{status}"
    );
    // The same command creates the directory again, as it would after a crash before the last step.
    fs::remove_dir_all(crawl.output("back")).unwrap();
    crawl.export(&["w1", "w2"], "back").expect(0);

    let stderr = crawl.go_on(&[]).expect(0);
    assert!(stderr.contains("finished"), "{stderr}");
    let after = crawl.pages(&["back"]);
    assert!(after.len() > before.len() && after.is_superset(&before));
    crawl.check_moved();
    crawl.run(&["report", "back"]).expect(0);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_crawl_of_two_groups_continues_in_one_directory_and_again_with_workers() {
    let crawl = Crawl::in_two_groups(web(52));
    crawl.begin_with_two(EVERYWHERE);
    crawl.export(&["w1", "w2"], "back").expect(0);
    crawl.go_on(&["--max-pages", "350"]).expect(0);
    // Move the crawl back into a frontier, under another name.
    let url = &crawl.groups()[0];
    let place = ["--frontier", url, "--crawl", "again"];
    let import = [&["frontier", "import", "back"], &place[..]].concat();
    crawl.run(&import).expect(0);
    let worker = ["--worker", "w1", "--max-pages", "unlimited"];
    crawl.go_on(&[&place[..], &worker].concat()).expect(0);
    crawl.check_moved();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_crawl_is_moved_with_the_records_of_all_workers_or_not_at_all() {
    let crawl = Crawl::of(TestWeb::builder().seed(53).hosts(12).pages(60));
    let (first, second) = crawl.start_two();
    first.wait().expect(0);
    second.wait().expect(0);
    let stderr = crawl.export(&["w1"], "back").expect(2);
    assert!(
        stderr.contains("the directory of worker `w2`") && stderr.contains("is not among"),
        "{stderr}"
    );
    let another = Crawl::of(TestWeb::builder().seed(53).hosts(1).pages(2));
    another.start("w1").wait().expect(0);
    let foreign = another.output("w1");
    let stderr = crawl
        .export(&[foreign.to_str().unwrap(), "w2"], "back")
        .expect(2);
    assert!(stderr.contains("not of one crawl"), "{stderr}");
    // Remove a row, which the export must detect.
    let path = crawl.output("w1").join("pages.jsonl");
    let rows = fs::read_to_string(&path).unwrap();
    let (first, _) = rows.split_once('\n').unwrap();
    fs::write(&path, &rows[first.len() + 1..]).unwrap();
    let stderr = crawl.export(&["w1", "w2"], "back").expect(2);
    assert!(stderr.contains("pages.jsonl: "), "{stderr}");
    fs::write(&path, rows).unwrap();
    assert!(!crawl.output("back").exists() && !crawl.output("back.new").exists());
    // Workers continue the crawl as before.
    let stderr = crawl.start("w1").wait().expect(0);
    assert!(stderr.contains("nothing left to do"), "{stderr}");
    crawl.export(&["w1", "w2"], "back").expect(0);
    let stderr = crawl.go_on(&[]).expect(0);
    assert!(stderr.contains("nothing left to do"), "{stderr}");
    crawl.check_moved();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn links_that_waited_are_admitted_and_have_their_rows() {
    let crawl = Crawl::of(web(54));
    // Links to these pages are excluded on every host.
    let flags = format!("{EVERYWHERE} --exclude /d[2-4]/");
    crawl.begin_with_two(&flags);
    crawl.export(&["w1", "w2"], "back").expect(0);
    crawl.go_on(&[]).expect(0);
    Ended::of(&crawl.command_alone("alone", &flags).output().unwrap()).expect(0);
    let excluded = crawl.excluded(&["alone"]);
    assert!(excluded.len() > 100, "{}", excluded.len());
    assert_eq!(crawl.excluded(&["back"]), excluded);
    assert_eq!(crawl.pages(&["back"]), crawl.pages(&["alone"]));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_crawl_that_was_imported_and_left_alone_is_moved_back() {
    let crawl = Crawl::of(TestWeb::builder().seed(55).hosts(12).pages(60));
    let flags = format!("{EVERYWHERE} --max-pages 100");
    Ended::of(&crawl.command_alone("one", &flags).output().unwrap()).expect(0);
    let imported = crawl.frontier(&["import", "one", "--worker", "w7"]);
    Ended::of(&imported).expect(0);
    let stderr = crawl.export(&["one"], "back").expect(0);
    assert_eq!(crawl.pages(&["back"]), crawl.pages(&["one"]));
    // The same user ran the crawl and exported it, so its settings count as this user's.
    assert!(
        stderr.contains("continue with `crawl --output back`;"),
        "{stderr}"
    );
    let settings = ["--output", "back", "--max-pages", "unlimited"];
    crawl.run(&settings).expect(0);
    crawl.check_moved();
}
