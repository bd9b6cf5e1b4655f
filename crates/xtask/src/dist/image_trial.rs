//! Runs the image and checks the claims of `docker/compose.yaml`.
//!
//! The services run in a network namespace with only loopback, so that they can listen on the ports
//! of the compose file without conflicts with other programs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::buildah::Buildah;
use super::compose_service_parser::{ComposeFileContext, ComposeService, ids};
use super::running_service::{ContainerFileSystem, RunningService, TIMEOUT, is_healthy, wait_for};
use super::site_server_process::SiteServerProcess;
use crate::compose_files;
use crate::workspace::{Workspace, output};

/// The crawl's contact, as a user sets it in the environment.
const CONTACT: &str = "trial@example.org";
const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The seed in the example configuration, which a user must replace.
const SEED: &str = "https://www.example.org/";

/// Number of pages of the site.
const PAGES: usize = 12;
/// Number of fetched pages after which the trial stops the first run.
const PAGES_BEFORE_STOP: usize = 4;

/// The services to run, and the site to crawl.
struct ImageTrial {
    folder: PathBuf,
    /// The configuration of the image.
    image: Value,
    root: ContainerFileSystem,
    crawl: ComposeService,
    serve: ComposeService,
    /// The URL of the site's first page.
    site: String,
}

/// Runs the services of `docker/compose.yaml`, and prints which claims were checked.
pub(super) fn run(workspace: &Workspace, buildah: &Buildah, folder: &Path) -> Result<()> {
    let compose = compose_files::read(workspace)?;
    let image = compose["services"]["crawl"]["image"].as_str();
    let image = image.context("the service crawl names no image")?;
    let configuration = buildah.configuration(image)?;
    let list = |key: &str| {
        compose_files::strings(&configuration[key])
            .map(str::to_owned)
            .collect()
    };
    let entry_point: Vec<String> = list("Entrypoint");
    let folder = folder.join("trial");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let surroundings = ComposeFileContext {
        variables: &[("CRAWL_CONTACT", CONTACT), ("CRAWL_SERVE_TOKEN", TOKEN)],
        folder: &folder,
        entry_point: &entry_point,
    };
    let site = SiteServerProcess::start(workspace, PAGES)?;
    let container = buildah.container(image)?;
    let trial = ImageTrial {
        root: ContainerFileSystem {
            path: container.mount()?,
            environment: list("Env"),
            folder: configuration["WorkingDir"]
                .as_str()
                .unwrap_or("/")
                .to_owned(),
        },
        crawl: ComposeService::read(&compose, "crawl", &surroundings)?,
        serve: ComposeService::read(&compose, "serve", &surroundings)?,
        folder: folder.clone(),
        image: configuration,
        site: site.url.clone(),
    };
    trial.hold_image_to_compose()?;
    trial.prepare(workspace)?;
    trial.live()?;
    trial.nothing_was_fetched_twice(&site.end()?)
}

impl ImageTrial {
    /// Creates the volumes and mount points, as a container engine does before it starts a service.
    fn prepare(&self, workspace: &Workspace) -> Result<()> {
        let (user, group) = self.crawl.user;
        for volume in self.crawl.volumes.iter().chain(&self.serve.volumes) {
            let target = self.path(&volume.target);
            if volume.is_file {
                let name = volume.source.file_name().unwrap_or_default();
                let path = workspace.root.join("config").join(name);
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                ensure!(text.contains(SEED), "{} has no {SEED}", path.display());
                fs::write(&volume.source, text.replace(SEED, &self.site))?;
                fs::create_dir_all(target.parent().unwrap_or(&self.root.path))?;
                fs::write(&target, "")?;
            } else {
                fs::create_dir_all(&volume.source)?;
                chown(&volume.source, Some(user), Some(group))?;
            }
        }
        Ok(())
    }

    /// Fails unless the image has the user and the volumes that the compose file expects.
    fn hold_image_to_compose(&self) -> Result<()> {
        let user = self.image["User"].as_str().unwrap_or_default();
        for service in [&self.crawl, &self.serve] {
            let name = &service.name;
            ensure!(
                ids(user)? == service.user,
                "{name} runs as {:?}, but the image sets {user}",
                service.user
            );
            for volume in service.volumes.iter().filter(|volume| !volume.is_file) {
                let target = &volume.target;
                ensure!(
                    self.image["Volumes"].get(target).is_some(),
                    "{name} keeps its files in {target}, which is no volume of the image"
                );
                // A new volume gets the owner of its folder in the image.
                let folder = fs::metadata(self.path(target))
                    .with_context(|| format!("the image has no {target}"))?;
                ensure!(
                    (folder.uid(), folder.gid()) == service.user,
                    "{target} is not the user's own in the image"
                );
            }
        }
        seen(
            "the image has the user and the volume that compose.yaml uses, and the volume is the user's own",
        );
        Ok(())
    }

    /// Returns the path on the machine of a path in the container.
    fn path(&self, path: &str) -> PathBuf {
        self.root.path.join(path.trim_start_matches('/'))
    }

    /// Runs both services: stops the crawl midway, restarts it, waits until its round ends, and
    /// stops both.
    fn live(&self) -> Result<()> {
        let crawl = self.start(&self.crawl)?;
        // Start the search page only once the crawl is healthy, as `depends_on` demands.
        let serve = self.start(&self.serve)?;
        let stopped_at = wait_for("the first pages", || {
            let rows = self.rows()?;
            Ok((rows.len() >= PAGES_BEFORE_STOP).then_some(rows.len()))
        })?;
        self.is_confined(&crawl, &self.crawl)?;
        self.is_confined(&serve, &self.serve)?;
        self.stop(crawl, &self.crawl)?;
        let rows_kept = self.rows()?.len();
        ensure!(
            (stopped_at..PAGES).contains(&rows_kept),
            "stopped after {stopped_at} pages, it left {rows_kept} rows of {PAGES}"
        );
        seen(&format!(
            "stopped in its midst: {rows_kept} rows in the volume"
        ));

        let crawl = self.start(&self.crawl)?;
        let port = self.serve.port.context("the service serve has no port")?;
        // `serve` queries the crawl through a socket in a volume that the two services share.
        let state = wait_for("the end of the round", || {
            let answer: Value = serde_json::from_str(&get(port, "/api/crawl")?)?;
            let state = &answer["state"];
            Ok((state["phase"] == "waiting").then(|| state.clone()))
        })?;
        let (next, failed) = (&state["next_round"], &state["failed"]);
        seen(&format!("finished: {failed} failed, next round {next}"));
        self.is_found(port)?;
        ensure!(
            is_healthy(&self.root, &self.crawl),
            "the crawl is not healthy while it waits for its next round"
        );
        seen("the crawl is healthy while it waits for its next round");
        self.stop(crawl, &self.crawl)?;
        self.stop(serve, &self.serve)
    }

    fn start(&self, service: &ComposeService) -> Result<RunningService> {
        let name = &service.name;
        let log = self.folder.join(format!("{name}.log"));
        let mut running = RunningService::start(&self.root, service, log)?;
        wait_for(&format!("{name} to be healthy"), || {
            running.still_runs()?;
            Ok(is_healthy(&self.root, service).then_some(()))
        })
        .with_context(|| format!("hint: see {}", running.log.display()))?;
        seen(&format!("{name} runs, and its health check succeeds"));
        Ok(running)
    }

    /// Checks that the kernel confines the process as the service requires.
    fn is_confined(&self, running: &RunningService, service: &ComposeService) -> Result<()> {
        let name = &service.name;
        let (user, group) = service.user;
        let expected = [
            ("Uid", [user; 4].map(|id| id.to_string()).join(" ")),
            ("Gid", [group; 4].map(|id| id.to_string()).join(" ")),
            ("CapEff", "0000000000000000".to_owned()),
            ("NoNewPrivs", "1".to_owned()),
        ];
        for (key, value) in expected {
            let actual = running.status(key)?;
            ensure!(actual == value, "{name}: {key} is {actual}, not {value}");
        }
        ensure!(
            running.has_read_only_root()? == service.is_read_only,
            "{name}: its root is not mounted as compose.yaml says"
        );
        let threads: u64 = running.status("Threads")?.parse()?;
        ensure!(
            threads < service.max_threads,
            "{name}: {threads} threads, and it may have {}",
            service.max_threads
        );
        seen(&format!(
            "{name}: user {user}, no capabilities, no new privileges, root read-only, {threads} of {} \
             threads, {} of memory at most",
            service.max_threads,
            running.status("VmHWM")?
        ));
        Ok(())
    }

    /// Stops a service as a container engine does, with the stop signal that the image names.
    fn stop(&self, running: RunningService, service: &ComposeService) -> Result<()> {
        let name = &service.name;
        let signal = self.image["StopSignal"].as_str().unwrap_or("SIGTERM");
        let (status, took) = running.stop(signal)?;
        ensure!(
            matches!(status.code(), Some(0 | 130)),
            "{name} ended with {status} on {signal}"
        );
        ensure!(
            took < service.stop_timeout,
            "{name} took {took:?} to stop, and Compose kills it after {:?}",
            service.stop_timeout
        );
        seen(&format!(
            "{name} stopped {:.1} s after {signal}, {status}",
            took.as_secs_f64()
        ));
        Ok(())
    }

    /// Returns the number of page rows of each URL in the volume.
    fn rows(&self) -> Result<BTreeMap<String, usize>> {
        let volume = self.crawl.volumes.iter().find(|volume| !volume.is_file);
        let volume = volume.context("the service crawl has no volume")?;
        let path = volume.source.join("site/pages.jsonl");
        let mut rows = BTreeMap::new();
        let text = fs::read_to_string(&path).unwrap_or_default();
        for line in text.lines() {
            // Skip a row that can't be parsed, because the last one may be incomplete.
            if let Ok(row) = serde_json::from_str::<Value>(line)
                && let Some(url) = row["url"].as_str()
            {
                *rows.entry(url.to_owned()).or_insert(0) += 1;
            }
        }
        Ok(rows)
    }

    /// Checks that the search page finds all pages.
    fn is_found(&self, port: u16) -> Result<()> {
        ensure!(
            get(port, "/")?.contains("<html"),
            "the search page is no page"
        );
        // Each page has the word `page` in its title.
        let answer: Value = serde_json::from_str(&get(port, "/api/search?q=page")?)?;
        ensure!(
            answer["total"] == PAGES,
            "of {PAGES} pages the search finds {}",
            answer["total"]
        );
        seen(&format!(
            "the search on port {port} finds all {PAGES} pages"
        ));
        Ok(())
    }

    /// Checks that no page was fetched twice, although the crawl was restarted, and that every
    /// request identified the crawler.
    fn nothing_was_fetched_twice(&self, requests: &[String]) -> Result<()> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for request in requests {
            let (path, agent) = request.split_once(' ').unwrap_or((request, ""));
            ensure!(
                agent.contains(CONTACT),
                "a request has the contact {agent}, not {CONTACT}"
            );
            *counts.entry(path).or_insert(0) += 1;
        }
        // Require that each path was requested only once, even a guessed sitemap. robots.txt may be
        // requested again.
        let twice: Vec<_> = counts
            .iter()
            .filter(|(path, count)| **count > 1 && **path != "/robots.txt")
            .collect();
        ensure!(twice.is_empty(), "requested more than once: {twice:?}");
        let rows = self.rows()?;
        let doubled: Vec<_> = rows.iter().filter(|(_, count)| **count > 1).collect();
        ensure!(doubled.is_empty(), "with more than one row: {doubled:?}");
        ensure!(rows.len() >= PAGES, "{} rows of {PAGES}", rows.len());
        seen(&format!(
            "{} requests: each page was requested once, by the contact in the environment",
            requests.len()
        ));
        Ok(())
    }
}

/// Brings up loopback in this network namespace.
pub(super) fn loopback_up(busybox: &Path) -> Result<()> {
    let mut up = Command::new(busybox);
    output(up.args(["ip", "link", "set", "lo", "up"])).map(drop)
}

/// Requests a path from a server on loopback. Returns the body of a response with status 200.
fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("nothing listens on port {port}"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.split(' ').nth(1) == Some("200") => Ok(body.to_owned()),
        _ => bail!("{path} is answered with {answer:.200}"),
    }
}

fn seen(what: &str) {
    eprintln!("seen: {what}");
}
