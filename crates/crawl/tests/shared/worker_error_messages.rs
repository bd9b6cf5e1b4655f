//! Everything that stops a worker is reported, with a hint.

use std::fs;
use std::process::{Command, Output};

use crawl_testweb::TestWeb;

use crate::shared_crawl_harness::{Crawl, Ended};

fn crawl() -> Crawl {
    Crawl::of(TestWeb::builder().seed(21).hosts(6).pages(60))
}

fn refused(command: &mut Command, code: i32) -> String {
    refusal(&command.output().unwrap(), code)
}

fn refusal(output: &Output, code: i32) -> String {
    let stderr = Ended::of(output).expect(code);
    assert!(
        stderr.contains("error: ") && stderr.contains("hint: "),
        "{stderr}"
    );
    stderr
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_database_server_that_is_down_is_named_without_a_password() {
    let crawl = crawl();
    // Nothing listens on this port.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let settings = crawl.output("study.toml");
    let url = |user: &str| format!("postgres://{user}@127.0.0.1:{port}/crawl");
    let seed = crawl.web.url(0, "/");
    let with_frontier = |url: &str| {
        let table = format!("[frontier]\nfrontier = [\"{url}\"]\nworker = \"w1\"\n");
        fs::write(&settings, format!("seed = [\"{seed}\"]\n{table}")).unwrap();
        let mut command = crawl.program();
        let command = command.arg("--config").arg(&settings).arg("--output");
        command.arg(crawl.output("w1")).env("PGPASSWORD", "secret");
        command.output().unwrap()
    };
    let stderr = refusal(&with_frontier(&url("me")), 3);
    assert!(
        stderr.contains("can't connect") && !stderr.contains("secret"),
        "{stderr}"
    );
    let written = refusal(&with_frontier(&url("me:secret")), 2);
    assert!(
        written.contains("PGPASSWORD") && !written.contains("secret"),
        "{written}"
    );
    let typed = refused(
        crawl.program().args([
            seed.as_str(),
            "--worker",
            "w1",
            "--frontier",
            &url("me:secret"),
        ]),
        2,
    );
    assert!(
        typed.contains("PGPASSWORD") && !typed.contains("secret"),
        "{typed}"
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_name_is_used_once_and_all_workers_have_the_same_settings() {
    let crawl = crawl();
    let flags = "--scope any --allow-private";
    let first = crawl.start("w1");
    crawl.wait_for_requests(20);
    let stderr = refused(&mut crawl.command_in("other", "w1", flags), 2);
    assert!(
        stderr.contains("worker `w1` is already running"),
        "{stderr}"
    );
    let stderr = refused(
        &mut crawl.command("w2", "--scope any --allow-private --max-depth 7"),
        2,
    );
    assert!(
        stderr.contains("+ scope.max-depth = ") && stderr.contains("- scope.max-depth"),
        "{stderr}"
    );
    first.wait().expect(0);
    // Once no worker is running, the crawl may continue with other settings.
    let ended = crawl
        .start_with("w2", "--scope any --allow-private --max-depth 7")
        .wait();
    ended.expect(0);
    crawl.check_whole(&["w1", "w2"]);
    let text = fs::read_to_string(crawl.output("w1").join("crawl.toml")).unwrap();
    assert!(text.contains("worker = \"w1\""), "{text}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_directory_belongs_to_one_worker() {
    let crawl = crawl();
    crawl.start("w1").wait().expect(0);
    let flags = "--scope any --allow-private";
    let stderr = refused(&mut crawl.command_in("w1", "w2", flags), 2);
    assert!(
        stderr.contains("is the directory of worker `w1`"),
        "{stderr}"
    );
    let stderr = refused(&mut crawl.command_in("new", "w1", flags), 2);
    assert!(
        stderr.contains("has records in a directory other than"),
        "{stderr}"
    );
    let mut alone = crawl.program();
    let seed = crawl.web.url(0, "/");
    alone
        .args([seed.as_str(), "--output"])
        .arg(crawl.output("w1"));
    let stderr = refused(&mut alone, 2);
    assert!(stderr.contains("whose frontier is elsewhere"), "{stderr}");
    let mut begun = crawl.program();
    begun
        .args([
            seed.as_str(),
            "--delay",
            "30ms",
            "--delay-factor",
            "0",
            "--output",
        ])
        .arg(crawl.output("own"));
    Ended::of(&begun.output().unwrap()).expect(0);
    let stderr = refused(&mut crawl.command_in("own", "w3", flags), 2);
    assert!(stderr.contains("its own frontier"), "{stderr}");
    crawl.check_whole(&["w1"]);
}
