//! A small site on loopback, which trials crawl.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::workspace::{Workspace, run};

/// A site served by a separate process, which is stopped on drop.
pub(super) struct SiteServerProcess {
    process: Child,
    stdout: BufReader<ChildStdout>,
    /// The URL of the first page.
    pub(super) url: String,
}

impl SiteServerProcess {
    /// Builds the server of the site.
    pub(super) fn build(workspace: &Workspace) -> Result<()> {
        run(&mut workspace.cargo(&["build", "--locked", "--package", "crawl-testweb"]))
    }

    /// Starts a site with `pages` pages. Needs a server built by [`SiteServerProcess::build`].
    pub(super) fn start(workspace: &Workspace, pages: usize) -> Result<SiteServerProcess> {
        let mut command = Command::new(workspace.target.join("debug/crawl-testweb"));
        let mut process = command
            .args(["--hosts", "1", "--plain", "--pages", &pages.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start crawl-testweb")?;
        let stdout = process.stdout.take().context("it has no stdout")?;
        let mut stdout = BufReader::new(stdout);
        let mut url = String::new();
        stdout.read_line(&mut url)?;
        ensure!(url.starts_with("http://127."), "the site is at {url:?}");
        Ok(SiteServerProcess {
            process,
            stdout,
            url: url.trim().to_owned(),
        })
    }

    /// Ends the site. Returns the path and `User-Agent` of each request.
    pub(super) fn end(mut self) -> Result<Vec<String>> {
        drop(self.process.stdin.take());
        let mut requests = String::new();
        self.stdout.read_to_string(&mut requests)?;
        Ok(requests.lines().map(str::to_owned).collect())
    }
}

impl Drop for SiteServerProcess {
    fn drop(&mut self) {
        // The site ends when its stdin is closed.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
