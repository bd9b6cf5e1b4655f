//! The minimum cost of a crawl over TLS: one handshake per host, and each page is fetched once.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio_rustls::TlsConnector;

use super::minimum_cost::count_links;

#[derive(Args)]
pub(crate) struct TlsMinimumCostArgs {
    /// File of https URLs, one per line
    #[arg(long, value_name = "FILE")]
    urls: PathBuf,
    /// PEM file of the authority to trust
    #[arg(long, value_name = "FILE")]
    ca_file: PathBuf,
    /// Address of all hosts
    #[arg(long, value_name = "ADDRESS")]
    address: SocketAddr,
    /// Number of hosts at a time, with one connection each
    #[arg(long, value_name = "N", default_value_t = 256)]
    connections: usize,
}

/// State shared by all connections.
struct ConnectionTotals {
    connector: TlsConnector,
    address: SocketAddr,
    /// The hosts with the targets to fetch from each.
    hosts: Vec<(String, Vec<String>)>,
    next: Cell<usize>,
    links: Cell<usize>,
}

/// Fetches all URLs, over one connection per host.
pub(crate) fn fetch_all_over_tls(args: &TlsMinimumCostArgs) -> Result<()> {
    let text = fs::read_to_string(&args.urls)
        .with_context(|| format!("cannot read {}", args.urls.display()))?;
    let mut hosts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for url in text.lines() {
        let rest = url.strip_prefix("https://");
        let (host, target) = rest
            .and_then(|rest| rest.split_once('/'))
            .with_context(|| format!("not https: {url}"))?;
        hosts.entry(host).or_default().push(format!("/{target}"));
    }
    let shared = Rc::new(ConnectionTotals {
        connector: connector(args)?,
        address: args.address,
        hosts: hosts
            .into_iter()
            .map(|(host, targets)| (host.to_owned(), targets))
            .collect(),
        next: Cell::default(),
        links: Cell::default(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    LocalSet::new().block_on(&runtime, async {
        let worker = |_| tokio::task::spawn_local(Rc::clone(&shared).work());
        let workers: Vec<_> = (0..args.connections.max(1)).map(worker).collect();
        for worker in workers {
            worker.await??;
        }
        anyhow::Ok(())
    })?;
    eprintln!("{} hosts, {} links", shared.hosts.len(), shared.links.get());
    Ok(())
}

fn connector(args: &TlsMinimumCostArgs) -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&args.ca_file)? {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec!["h2".into(), "http/1.1".into()];
    Ok(TlsConnector::from(Arc::new(config)))
}

impl ConnectionTotals {
    async fn work(self: Rc<Self>) -> Result<()> {
        loop {
            let at = self.next.replace(self.next.get() + 1);
            let Some((host, targets)) = self.hosts.get(at) else {
                return Ok(());
            };
            self.fetch_host(host, targets).await?;
        }
    }

    async fn fetch_host(&self, host: &str, targets: &[String]) -> Result<()> {
        let name = host.split(':').next().unwrap_or(host).to_owned();
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let stream = self
            .connector
            .connect(ServerName::try_from(name)?, stream)
            .await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let io = TokioIo::new(stream);
        if is_http2 {
            let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
            let connection = tokio::task::spawn_local(connection);
            for target in targets {
                let url = format!("https://{host}{target}");
                let request = hyper::Request::get(url).body(Empty::<Bytes>::new())?;
                sender.ready().await?;
                self.note(count_links(sender.send_request(request).await?, target).await?);
            }
            drop(sender);
            connection.await??;
        } else {
            let (mut sender, connection) = http1::handshake(io).await?;
            let connection = tokio::task::spawn_local(connection);
            for target in targets {
                let request = hyper::Request::get(target.as_str())
                    .header("host", host)
                    .body(Empty::<Bytes>::new())?;
                sender.ready().await?;
                self.note(count_links(sender.send_request(request).await?, target).await?);
            }
            drop(sender);
            connection.await??;
        }
        Ok(())
    }

    fn note(&self, links: usize) {
        self.links.set(self.links.get() + links);
    }
}
