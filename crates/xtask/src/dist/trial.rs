//! The claims of `docker/compose.yaml`, run with the image and held against the outcome.
//!
//! This runs in a network namespace that has a loopback and nothing else: the services listen on
//! the ports of their file, and neither meets other programs nor is met by them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::buildah::Buildah;
use super::running::{Root, Running, TIMEOUT, is_healthy, wait_for};
use super::service::{Service, Surroundings, ids};
use crate::compose;
use crate::workspace::{Workspace, output};

/// Who answers for the crawl, as a user says it in the environment.
const CONTACT: &str = "trial@example.org";
const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The line of the configuration that its user is told to change.
const SEED: &str = "https://www.example.org/";

/// With a second from one to the next, the first run is stopped in their midst.
const PAGES: usize = 12;
const PAGES_BEFORE_STOP: usize = 4;

/// The site that is crawled, and the claims that it is held against.
struct Trial {
    folder: PathBuf,
    /// The image's own settings.
    image: Value,
    root: Root,
    crawl: Service,
    serve: Service,
    /// The first page of the site that is crawled.
    site: String,
}

/// Runs the services and prints what was seen.
pub(super) fn run(workspace: &Workspace, buildah: &Buildah, folder: &Path) -> Result<()> {
    let compose = compose::read(workspace)?;
    let image = compose["services"]["crawl"]["image"].as_str();
    let image = image.context("the service crawl names no image")?;
    let told = buildah.configuration(image)?;
    let list = |key: &str| compose::strings(&told[key]).map(str::to_owned).collect();
    let entry_point: Vec<String> = list("Entrypoint");
    let folder = folder.join("trial");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let given = Surroundings {
        variables: &[("CRAWL_CONTACT", CONTACT), ("CRAWL_SERVE_TOKEN", TOKEN)],
        folder: &folder,
        entry_point: &entry_point,
    };
    let site = Site::start(workspace)?;
    let container = buildah.container(image)?;
    let trial = Trial {
        root: Root {
            path: container.mount()?,
            environment: list("Env"),
            folder: told["WorkingDir"].as_str().unwrap_or("/").to_owned(),
        },
        crawl: Service::read(&compose, "crawl", &given)?,
        serve: Service::read(&compose, "serve", &given)?,
        folder: folder.clone(),
        image: told,
        site: site.url.clone(),
    };
    trial.hold_image_to_compose()?;
    trial.prepare(workspace)?;
    trial.live()?;
    trial.nothing_was_asked_twice(&site.end()?)
}

impl Trial {
    /// Makes the volumes, and what they are mounted on, as an engine does before it starts.
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

    /// The checks that run nothing.
    fn hold_image_to_compose(&self) -> Result<()> {
        let user = self.image["User"].as_str().unwrap_or_default();
        for service in [&self.crawl, &self.serve] {
            let name = &service.name;
            ensure!(
                ids(user)? == service.user,
                "{name} runs as {:?}, and the image says {user}",
                service.user
            );
            for volume in service.volumes.iter().filter(|volume| !volume.is_file) {
                let target = &volume.target;
                ensure!(
                    self.image["Volumes"].get(target).is_some(),
                    "{name} keeps its files in {target}, which is no volume of the image"
                );
                // An engine gives a new volume the owner that the folder has in the image.
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

    /// The place on the machine of a path in the container.
    fn path(&self, path: &str) -> PathBuf {
        self.root.path.join(path.trim_start_matches('/'))
    }

    /// From the first start to the last stop.
    fn live(&self) -> Result<()> {
        let crawl = self.start(&self.crawl)?;
        // As `depends_on` has it: the search page starts once the crawl is healthy.
        let serve = self.start(&self.serve)?;
        let stopped_at = wait_for("the first pages", || {
            let rows = self.rows()?;
            Ok((rows.len() >= PAGES_BEFORE_STOP).then_some(rows.len()))
        })?;
        self.is_confined(&crawl, &self.crawl)?;
        self.is_confined(&serve, &self.serve)?;
        self.stop(crawl, &self.crawl)?;
        let kept = self.rows()?.len();
        ensure!(
            (stopped_at..PAGES).contains(&kept),
            "stopped after {stopped_at} pages, it left {kept} rows of {PAGES}"
        );
        seen(&format!("stopped in its midst: {kept} rows in the volume"));

        let crawl = self.start(&self.crawl)?;
        let port = self.serve.port.context("the service serve has no port")?;
        // The search page's service asks the other one, over a socket in their volume.
        let state = wait_for("the end of the round", || {
            let told: Value = serde_json::from_str(&get(port, "/api/crawl")?)?;
            let state = &told["state"];
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

    fn start(&self, service: &Service) -> Result<Running> {
        let name = &service.name;
        let log = self.folder.join(format!("{name}.log"));
        let mut running = Running::start(&self.root, service, log)?;
        wait_for(&format!("{name} to be healthy"), || {
            running.still_runs()?;
            Ok(is_healthy(&self.root, service).then_some(()))
        })
        .with_context(|| format!("hint: see {}", running.log.display()))?;
        seen(&format!("{name} runs, and its health check says so"));
        Ok(running)
    }

    /// Checks whether the kernel holds the process to what the service says.
    fn is_confined(&self, running: &Running, service: &Service) -> Result<()> {
        let name = &service.name;
        let (user, group) = service.user;
        let expected = [
            ("Uid", [user; 4].map(|id| id.to_string()).join(" ")),
            ("Gid", [group; 4].map(|id| id.to_string()).join(" ")),
            ("CapEff", "0000000000000000".to_owned()),
            ("NoNewPrivs", "1".to_owned()),
        ];
        for (key, value) in expected {
            let found = running.status(key)?;
            ensure!(found == value, "{name}: {key} is {found}, not {value}");
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

    /// Stops a service as an engine does, by the signal that the image names.
    fn stop(&self, running: Running, service: &Service) -> Result<()> {
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

    /// Rows of pages in the volume: how many there are of each URL.
    fn rows(&self) -> Result<BTreeMap<String, usize>> {
        let volume = self.crawl.volumes.iter().find(|volume| !volume.is_file);
        let volume = volume.context("the service crawl has no volume")?;
        let path = volume.source.join("site/pages.jsonl");
        let mut rows = BTreeMap::new();
        let text = fs::read_to_string(&path).unwrap_or_default();
        for line in text.lines() {
            // The last one may be half written.
            if let Ok(row) = serde_json::from_str::<Value>(line)
                && let Some(url) = row["url"].as_str()
            {
                *rows.entry(url.to_owned()).or_insert(0) += 1;
            }
        }
        Ok(rows)
    }

    /// Checks whether the search page finds all pages.
    fn is_found(&self, port: u16) -> Result<()> {
        ensure!(
            get(port, "/")?.contains("<html"),
            "the search page is no page"
        );
        // The word is in the title of each page.
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

    /// Checks whether going on cost no page, and whether the site learned who asked.
    fn nothing_was_asked_twice(&self, requests: &[String]) -> Result<()> {
        let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
        for request in requests {
            let (path, agent) = request.split_once(' ').unwrap_or((request, ""));
            ensure!(
                agent.contains(CONTACT),
                "a request says it is from {agent}, not from {CONTACT}"
            );
            *asked.entry(path).or_insert(0) += 1;
        }
        // A guess at a sitemap, too, is asked for once.
        let twice: Vec<_> = asked
            .iter()
            .filter(|(path, count)| **count > 1 && **path != "/robots.txt")
            .collect();
        ensure!(twice.is_empty(), "asked for more than once: {twice:?}");
        let rows = self.rows()?;
        let doubled: Vec<_> = rows.iter().filter(|(_, count)| **count > 1).collect();
        ensure!(doubled.is_empty(), "with more than one row: {doubled:?}");
        ensure!(rows.len() >= PAGES, "{} rows of {PAGES}", rows.len());
        seen(&format!(
            "{} requests: each page was asked for once, by the contact in the environment",
            requests.len()
        ));
        Ok(())
    }
}

/// A small site on loopback, in a process beside this one.
struct Site {
    process: Child,
    said: BufReader<ChildStdout>,
    url: String,
}

impl Site {
    fn start(workspace: &Workspace) -> Result<Site> {
        let mut command = Command::new(workspace.target.join("debug/crawl-testweb"));
        let pages = PAGES.to_string();
        let mut process = command
            .args(["--hosts", "1", "--plain", "--pages", &pages])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start crawl-testweb")?;
        let said = process.stdout.take().context("it has no stdout")?;
        let mut said = BufReader::new(said);
        let mut url = String::new();
        said.read_line(&mut url)?;
        ensure!(url.starts_with("http://127."), "the site is at {url:?}");
        Ok(Site {
            process,
            said,
            url: url.trim().to_owned(),
        })
    }

    /// Ends it, and gives the path and the `User-Agent` of each request.
    fn end(mut self) -> Result<Vec<String>> {
        drop(self.process.stdin.take());
        let mut requests = String::new();
        self.said.read_to_string(&mut requests)?;
        Ok(requests.lines().map(str::to_owned).collect())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // It ends where its stdin is closed.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Brings the loopback of this network namespace up.
pub(super) fn loopback_up(busybox: &Path) -> Result<()> {
    let mut up = Command::new(busybox);
    output(up.args(["ip", "link", "set", "lo", "up"])).map(drop)
}

/// The body that a server on loopback answers with 200.
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
