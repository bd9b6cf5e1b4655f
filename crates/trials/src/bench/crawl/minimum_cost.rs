//! The minimum cost of a crawl: each page is fetched once, and its bytes are searched for `href` to
//! count links. Links are not resolved or checked, and nothing is stored.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use clap::Args;
use http_body_util::{BodyExt as _, Empty};
use hyper::Response;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use memchr::memmem::Finder;
use tokio::net::TcpStream;
use tokio::task::LocalSet;

#[derive(Args)]
pub(crate) struct MinimumCostArgs {
    /// File of URLs of one host, one per line
    #[arg(long, value_name = "FILE")]
    urls: PathBuf,
    /// Number of connections, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 32)]
    connections: usize,
}

/// Fetches all URLs over kept connections.
pub(crate) fn fetch_all(args: &MinimumCostArgs) -> Result<()> {
    let text = fs::read_to_string(&args.urls)
        .with_context(|| format!("cannot read {}", args.urls.display()))?;
    let urls: Vec<&str> = text.lines().collect();
    let first = urls.first().context("there is no URL")?;
    let host = first
        .strip_prefix("http://")
        .and_then(|rest| rest.split('/').next())
        .with_context(|| format!("not http: {first}"))?;
    let prefix = format!("http://{host}");
    let targets: Option<Vec<&str>> = urls.iter().map(|url| url.strip_prefix(&prefix)).collect();
    let targets: Rc<[String]> = targets
        .context("URLs of several hosts")?
        .into_iter()
        .map(str::to_owned)
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let next = Rc::new(Cell::new(0));
    let links = Rc::new(Cell::new(0));
    LocalSet::new().block_on(&runtime, async {
        let mut workers = Vec::new();
        for _ in 0..args.connections.max(1) {
            let (targets, next, links) = (targets.clone(), next.clone(), links.clone());
            let host = host.to_owned();
            workers.push(tokio::task::spawn_local(async move {
                work(&host, &targets, &next, &links).await
            }));
        }
        for worker in workers {
            worker.await??;
        }
        anyhow::Ok(())
    })?;
    eprintln!("{} pages, {} links", targets.len(), links.get());
    Ok(())
}

async fn work(
    host: &str,
    targets: &[String],
    next: &Cell<usize>,
    links: &Cell<usize>,
) -> Result<()> {
    let stream = TcpStream::connect(host).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::task::spawn_local(connection);
    loop {
        let at = next.replace(next.get() + 1);
        let Some(target) = targets.get(at) else {
            return Ok(());
        };
        let request = hyper::Request::get(target.as_str())
            .header("host", host)
            .body(Empty::<Bytes>::new())?;
        sender.ready().await?;
        let answer = sender.send_request(request).await?;
        links.set(links.get() + count_links(answer, target).await?);
    }
}

/// Reads a page to its end. Returns how often its bytes contain `href`.
pub(super) async fn count_links(mut answer: Response<Incoming>, target: &str) -> Result<usize> {
    if answer.status() != 200 {
        bail!("{} for {target}", answer.status());
    }
    let href = Finder::new("href");
    let mut links = 0;
    while let Some(frame) = answer.body_mut().frame().await {
        if let Some(data) = frame?.data_ref() {
            links += href.find_iter(data).count();
        }
    }
    Ok(links)
}
