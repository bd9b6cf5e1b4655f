//! Hosts served over TLS 1.3 by nginx, each with its own certificate, and the authority that signs
//! the certificates.

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use crawl_testweb::{Nginx, NginxEndpoint, NginxLogDestination, NginxSpec};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use xtask::debian_packages;
use xtask::workspace::Workspace;

use super::page_generator::{PageGenerator, ROBOTS, path};
use super::server_log_summary::ServerLogSummary;

/// The log format: whether the TLS session was resumed (`r`), the HTTP version, and the fields that
/// [`ServerLogSummary::read`] parses.
const LOG_LINE: &str = "$ssl_session_reused $server_protocol $connection $status \
                        $sent_http_content_type $host$request_uri";

/// Generated hosts, whose pages and certificates are on disk. Each certificate chain has one
/// intermediate certificate, as is usual.
pub(super) struct TlsHosts {
    dir: PathBuf,
    hosts: u32,
    pages_a_host: u32,
}

/// The answers in nginx's log for one program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TlsServerLogSummary {
    pub(super) served: ServerLogSummary,
    /// Number of connections whose TLS session was resumed.
    pub(super) resumed: usize,
    /// Number of requests over HTTP/2.
    pub(super) http2: usize,
}

impl TlsHosts {
    /// Writes certificates and pages below a folder.
    pub(super) fn create(dir: &Path, hosts: u32, pages_a_host: u32) -> Result<TlsHosts> {
        let _ = fs::remove_dir_all(dir);
        let certificates = dir.join("certificates");
        fs::create_dir_all(&certificates)?;
        let root = CertifiedIssuer::self_signed(authority("root"), KeyPair::generate()?)?;
        let middle =
            CertifiedIssuer::signed_by(authority("intermediate"), KeyPair::generate()?, &root)?;
        fs::write(dir.join("root.pem"), root.pem())?;
        // All hosts have the same key. Clients verify as many signatures as they would with
        // separate keys.
        let key = KeyPair::generate()?;
        fs::write(dir.join("key.pem"), key.serialize_pem())?;
        let pages = PageGenerator::new(pages_a_host);
        for host in 0..hosts {
            let name = host_name(host);
            let mut params = CertificateParams::new([name.clone()])?;
            params.distinguished_name.push(DnType::CommonName, &name);
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            params.use_authority_key_identifier_extension = true;
            let leaf = params.signed_by(&key, &middle)?;
            let chain = leaf.pem() + &middle.pem();
            fs::write(certificates.join(format!("{name}.pem")), chain)?;
            write_pages(&dir.join("pages").join(name), &pages, host, pages_a_host)?;
        }
        Ok(TlsHosts {
            dir: dir.to_owned(),
            hosts,
            pages_a_host,
        })
    }

    /// Starts a server with an empty log.
    pub(super) fn serve(&self, workspace: &Workspace, is_http2: bool) -> Result<Nginx> {
        let dir = self.dir.join("server");
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir)?;
        let (program, mime_types) = debian_packages::nginx(workspace);
        Nginx::start(&NginxSpec {
            sends_gzip: false,
            program,
            mime_types,
            root: self.dir.join("pages/$host"),
            log: NginxLogDestination::File(self.log()),
            endpoint: NginxEndpoint::Hosts {
                certificates: self.dir.join("certificates"),
                key: self.dir.join("key.pem"),
                is_http2,
            },
            dir,
            log_line: LOG_LINE,
        })
        .context("cannot start nginx")
    }

    /// Returns the answers in the log of a server that has ended.
    pub(super) fn served(&self) -> Result<TlsServerLogSummary> {
        Ok(TlsServerLogSummary::read(&fs::read_to_string(self.log())?))
    }

    fn log(&self) -> PathBuf {
        self.dir.join("server/access.log")
    }

    /// Returns the certificate of the authority, a PEM file.
    pub(super) fn root(&self) -> PathBuf {
        self.dir.join("root.pem")
    }

    /// Returns the number of pages on all hosts together.
    pub(super) fn pages(&self) -> u64 {
        u64::from(self.hosts) * u64::from(self.pages_a_host)
    }

    /// Returns the URL of the first page of each host.
    pub(super) fn seeds(&self, nginx: &Nginx) -> Vec<String> {
        let seed = |host| format!("https://{}:{}/", host_name(host), nginx.port());
        (0..self.hosts).map(seed).collect()
    }

    /// Returns all URLs that a crawl fetches, host by host: robots.txt and all pages.
    pub(super) fn urls(&self, nginx: &Nginx) -> Vec<String> {
        let seeds = self.seeds(nginx);
        let targets =
            std::iter::once("/robots.txt".to_owned()).chain((0..self.pages_a_host).map(path));
        let targets: Vec<String> = targets.collect();
        let of_host = |seed: &String| {
            let origin = seed.trim_end_matches('/').to_owned();
            targets
                .iter()
                .map(move |target| format!("{origin}{target}"))
        };
        seeds.iter().flat_map(of_host).collect()
    }

    /// Returns the address of each host.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (u32, IpAddr)> {
        (0..self.hosts).map(|host| (host, Ipv4Addr::LOCALHOST.into()))
    }
}

impl TlsServerLogSummary {
    fn read(log: &str) -> TlsServerLogSummary {
        let mut resumed = HashSet::new();
        let mut http2 = 0;
        let mut rest_of_log = String::with_capacity(log.len());
        for line in log.lines() {
            let mut words = line.splitn(3, ' ');
            let (Some(reused), Some(version), Some(rest)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            if reused == "r" {
                resumed.extend(rest.split(' ').next());
            }
            http2 += usize::from(version == "HTTP/2.0");
            rest_of_log.push_str(rest);
            rest_of_log.push('\n');
        }
        TlsServerLogSummary {
            served: ServerLogSummary::read(&rest_of_log),
            resumed: resumed.len(),
            http2,
        }
    }
}

/// Returns the name of a host, such as `h7.example`. Each host is a separate site.
fn host_name(host: u32) -> String {
    format!("h{host}.example")
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.use_authority_key_identifier_extension = true;
    params
}

fn write_pages(folder: &Path, pages: &PageGenerator, host: u32, count: u32) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("robots.txt"), ROBOTS)?;
    fs::write(folder.join("index.html"), pages.html(host, 0))?;
    for page in 1..count {
        let file = folder.join(path(page).trim_start_matches('/'));
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(file, pages.html(host, page))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::TlsServerLogSummary;

    #[test]
    fn resumed_connections_count_once() {
        let log = ". HTTP/2.0 1 200 text/html a/\nr HTTP/1.1 2 200 text/html b/\n\
                   r HTTP/1.1 2 404 text/html b/c d\n";
        let read = TlsServerLogSummary::read(log);
        assert_eq!((read.resumed, read.http2), (1, 1));
        assert_eq!((read.served.requests, read.served.connections), (3, 2));
        assert_eq!(read.served.pages.iter().collect::<Vec<_>>(), ["a/", "b/"]);
    }
}
