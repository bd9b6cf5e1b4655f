//! Serves a synthetic web until stdin closes or Ctrl-C, and prints the URLs of its hosts.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the command line"
)]

use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use crawl_testweb::{LinkMix, TestWeb, TestWebBuilder};

const USAGE: &str = "\
usage: crawl-testweb [--hosts N] [--pages N] [--seed N] [--latency-ms N]
                     [--crawl-delay SECONDS] [--plain]

Prints the root URL of each host, one a line, then serves until stdin closes or Ctrl-C. Where stdin
was closed it prints each request that came: its path, a space, its User-Agent.
--plain leaves out disallowed pages, redirects and the like.";

fn main() -> ExitCode {
    let spec = match parse(std::env::args().skip(1)) {
        Ok(Some(spec)) => spec,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let web = match spec.try_start() {
        Ok(web) => web,
        Err(error) => {
            eprintln!("error: the web did not start: {error}");
            return ExitCode::from(3);
        }
    };
    for host in 0..web.hosts() {
        println!("{}", web.url(host, "/"));
    }
    // An unreadable stdin counts as closed.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    for request in web.log() {
        println!("{} {}", request.path, request.user_agent());
    }
    ExitCode::SUCCESS
}

/// Parses the arguments into the settings of a web. Returns `None` if they request help.
fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<TestWebBuilder>, String> {
    let mut spec = TestWeb::builder();
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "--help" | "-h" => return Ok(None),
            "--plain" => {
                spec = spec.mix(LinkMix::plain());
                continue;
            }
            _ => {}
        }
        let value = args
            .next()
            .ok_or_else(|| format!("{flag} is unknown or lacks its value"))?;
        let number = || {
            value
                .parse::<u32>()
                .map_err(|_| format!("{flag} wants a number, not {value}"))
        };
        spec = match flag.as_str() {
            "--hosts" => spec.hosts(number()?),
            "--pages" => spec.pages(number()?.into()),
            "--seed" => spec.seed(number()?.into()),
            "--latency-ms" => spec.latency(Duration::from_millis(number()?.into())),
            "--crawl-delay" => spec.crawl_delay(&value),
            _ => return Err(format!("unknown flag {flag}")),
        };
    }
    Ok(Some(spec))
}
