//! Measures how much a slow name server delays a crawl of many hosts.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use crawl_testweb::{LogEntry, TestWeb};

use super::measured_program::{BuildProfile, WorkspaceProgram, build};
use xtask::workspace::Workspace;

#[derive(Args)]
pub(crate) struct SlowNamesArgs {
    /// Number of hosts, each with its own name and address
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    hosts: u32,
    /// Response time of each page, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50)]
    latency: u64,
    /// Crawls with each name server, alternating
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: u32,
    /// Measure the program built with the dev profile, which builds faster
    #[arg(long)]
    dev: bool,
}

const DOMAIN: &str = "names.example";
/// How many names in 100 get no answer.
const DEAD: u32 = 2;
/// How many names in 100 get a late answer.
const LATE: u32 = 5;
const LATE_BY: Duration = Duration::from_millis(300);
/// Maximum bytes of a query.
const MAX_QUERY: usize = 512;

/// The behaviour of the name server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NameServerBehaviour {
    /// Answers immediately.
    Fast,
    /// Ignores some names, delays others, and ignores all AAAA queries.
    Troubled,
}

pub(super) fn measure(workspace: &Workspace, args: &SlowNamesArgs) -> Result<()> {
    let program = build(
        workspace,
        BuildProfile::of(args.dev),
        WorkspaceProgram::Crawl,
    )?;
    let mut times: [Vec<Duration>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..args.runs.max(1) {
        for (kind, times) in [NameServerBehaviour::Fast, NameServerBehaviour::Troubled]
            .into_iter()
            .zip(&mut times)
        {
            times.push(crawl(workspace, &program, args, kind)?);
        }
    }
    let [fast, troubled] = times.map(median);
    let table = format!(
        "| name server | until the last live host was read |\n|---|---|\n\
         | answers at once | {:.2} s |\n\
         | {DEAD} % dead, {LATE} % after {} ms, AAAA silent | {:.2} s |\n\
         \nratio {:.2}\n",
        fast.as_secs_f64(),
        LATE_BY.as_millis(),
        troubled.as_secs_f64(),
        troubled.as_secs_f64() / fast.as_secs_f64(),
    );
    Ok(io::stdout().write_all(table.as_bytes())?)
}

/// Crawls all hosts once. Returns the time from the start to the last page, ignoring hosts whose
/// names don't resolve.
fn crawl(
    workspace: &Workspace,
    program: &Path,
    args: &SlowNamesArgs,
    kind: NameServerBehaviour,
) -> Result<Duration> {
    let web = TestWeb::builder()
        .hosts(args.hosts)
        .pages(1)
        .sitemap(false)
        .latency(Duration::from_millis(args.latency))
        .domain(DOMAIN)
        .start();
    let hosts = (0..web.hosts()).map(|host| (host, web.address(host).ip()));
    let names = NameServer::start("127.0.0.1:0", hosts.collect(), kind)?;
    let dir = workspace.target.join("bench-names");
    let config = workspace.target.join("bench-names.toml");
    let _ = fs::remove_dir_all(&dir);
    let seeds: Vec<_> = (0..web.hosts()).map(|host| web.url(host, "/")).collect();
    fs::write(&config, format!("seed = [\"{}\"]\n", seeds.join("\", \"")))?;
    let begun = web.now_us();
    let status = workspace
        .program(program)
        .arg("--config")
        .arg(&config)
        .args(["-q", "--retries", "0", "--max-depth", "0", "--warc", "off"])
        .args([
            "--sitemaps",
            "off",
            "--max-time",
            "60s",
            "--contact",
            "bench@example.org",
        ])
        .args(["--name-server", &names.address.to_string()])
        .arg("--output")
        .arg(&dir)
        .status()
        .context("can't start the crawler")?;
    let log = web.take_log();
    fs::remove_dir_all(&dir)?;
    fs::remove_file(&config)?;
    let pages = || log.iter().filter(|entry| entry.path == "/");
    let alive = (0..web.hosts())
        .filter(|host| !is_dead(*host, kind))
        .count();
    ensure!(
        pages().count() == alive,
        "{} of {alive} hosts were read; the crawler ended with {status}",
        pages().count()
    );
    let last = pages().filter_map(|page: &LogEntry| page.end_us).max();
    let last = last.context("no page was read")?;
    Ok(Duration::from_micros(last.saturating_sub(begun)))
}

fn is_dead(host: u32, kind: NameServerBehaviour) -> bool {
    kind == NameServerBehaviour::Troubled && host % 100 < DEAD
}

fn is_late(host: u32, kind: NameServerBehaviour) -> bool {
    kind == NameServerBehaviour::Troubled && (DEAD..DEAD + LATE).contains(&(host % 100))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A name server on loopback, which runs until the program exits.
pub(super) struct NameServer {
    pub(super) address: SocketAddr,
}

impl NameServer {
    /// Starts a server at `address` for the names whose first label is `h` and a host's number.
    pub(super) fn start(
        address: &str,
        hosts: HashMap<u32, IpAddr>,
        kind: NameServerBehaviour,
    ) -> Result<NameServer> {
        let socket =
            UdpSocket::bind(address).with_context(|| format!("can't serve names at {address}"))?;
        let address = socket.local_addr()?;
        let (late_sender, late) = mpsc::channel();
        let answers = socket.try_clone()?;
        thread::spawn(move || {
            let mut bytes = [0; MAX_QUERY];
            while let Ok((length, peer)) = socket.recv_from(&mut bytes) {
                let Some((host, is_v4, end)) = question(&bytes[..length]) else {
                    continue;
                };
                let Some(address) = hosts.get(&host) else {
                    continue;
                };
                if is_dead(host, kind) || (!is_v4 && kind == NameServerBehaviour::Troubled) {
                    continue;
                }
                let answer = answer(&bytes[..end], *address, is_v4);
                match is_late(host, kind) {
                    true => drop(late_sender.send((Instant::now() + LATE_BY, answer, peer))),
                    false => drop(socket.send_to(&answer, peer)),
                }
            }
        });
        thread::spawn(move || {
            // All late answers have the same delay, so they are due in the order of the queue.
            while let Ok((at, answer, peer)) = late.recv() {
                thread::sleep(at.saturating_duration_since(Instant::now()));
                drop(answers.send_to(&answer, peer));
            }
        });
        Ok(NameServer { address })
    }
}

/// Parses a query: the host's number, whether it is an A query, and its length (RFC 1035 section
/// 4.1.2).
fn question(query: &[u8]) -> Option<(u32, bool, usize)> {
    let first = usize::from(*query.get(12)?);
    let label = std::str::from_utf8(query.get(13..13 + first)?).ok()?;
    let mut at = 12;
    while *query.get(at)? > 0 {
        at += 1 + usize::from(query[at]);
    }
    let end = at + 5;
    let is_v4 = *query.get(end - 3)? == 1;
    Some((label.strip_prefix('h')?.parse().ok()?, is_v4, end))
}

/// Builds a response with one A record, or with none.
fn answer(query: &[u8], address: IpAddr, is_v4: bool) -> Vec<u8> {
    let mut bytes = query.to_vec();
    bytes[2] = 0x81;
    bytes[3] = 0x80;
    let records = match address {
        IpAddr::V4(v4) if is_v4 => vec![v4.octets()],
        _ => Vec::new(),
    };
    bytes[6..12].copy_from_slice(&[0, u8::from(!records.is_empty()), 0, 0, 0, 0]);
    for record in records {
        // The bytes of the record: a pointer to the name, type A, class IN, a TTL of an hour, a
        // length of four.
        bytes.extend_from_slice(&[0xC0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4]);
        bytes.extend_from_slice(&record);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{answer, question};

    #[test]
    fn a_question_is_read_and_answered() {
        let mut query = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        query.extend_from_slice(b"\x03h42\x05names\x07example\0\0\x01\0\x01");
        let (host, is_v4, end) = question(&query).unwrap();
        assert_eq!((host, is_v4, end), (42, true, query.len()));
        let bytes = answer(&query, "127.0.0.9".parse().unwrap(), true);
        assert_eq!(bytes[7], 1);
        assert_eq!(bytes[bytes.len() - 4..], [127, 0, 0, 9]);
        assert_eq!(answer(&query, "127.0.0.9".parse().unwrap(), false)[7], 0);
        assert_eq!(question(&query[..14]), None);
    }
}
