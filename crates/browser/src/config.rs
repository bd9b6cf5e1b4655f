//! Settings of a browser, and where its program is found.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::profile;

/// The names under which Chromium is installed, in order of preference.
const PROGRAMS: [&str; 3] = ["chromium-headless-shell", "chromium", "google-chrome"];

/// Width and height of the browser's window, in pixels.
pub(crate) const WINDOW: (u32, u32) = (1280, 1024);

/// The `PATH` of the browser's processes.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How long the program may take to print its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(10);

/// Maximum bytes of a version.
const MAX_VERSION_BYTES: u64 = 200;

/// Settings of a browser.
#[derive(Debug, Clone)]
pub struct BrowserConfig {
    /// The browser's program. If `None`, it is looked for in the folders of `search_path`.
    pub program: Option<PathBuf>,
    /// A list of folders as in `$PATH`, searched if `program` is `None`.
    pub search_path: Option<OsString>,
    /// Variables of the browser's environment, which is empty otherwise except for a fixed `PATH`,
    /// the time zone UTC and folders within the profile.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether the browser's sandbox is on. Browsers refuse to run as root with a sandbox.
    pub sandbox: bool,
    /// Maximum number of pages rendered at a time.
    pub tabs: usize,
    /// Maximum time that passes for a page, by its own clock.
    pub page_time: Duration,
    /// Maximum time to render a page, by our clock, without the time that requests of the page
    /// wait for the caller.
    pub timeout: Duration,
    /// `User-Agent` and `navigator.userAgent`.
    pub user_agent: String,
    /// `Accept-Language` and `navigator.languages`.
    pub language: String,
    /// Maximum size of a serialized DOM, in bytes.
    pub max_dom_bytes: usize,
    /// Maximum resident memory of all processes of the browser, in bytes.
    pub memory_bytes: u64,
    /// Maximum number of requests of one page that reach the caller. The rest is refused.
    pub max_requests: u32,
    /// Seed of `Math.random`.
    pub seed: u64,
    /// Whether to take a screenshot of each page: of the 1280 by 1024 pixels that its window shows.
    pub screenshots: bool,
    /// Maximum size of a screenshot, in bytes.
    pub max_screenshot_bytes: usize,
    /// Folder for the browser's profile. Each start uses a new profile.
    pub profile_parent: PathBuf,
}

impl BrowserConfig {
    /// Returns the default settings, with a profile in the folder for temporary files.
    #[must_use]
    pub fn new(user_agent: impl Into<String>) -> BrowserConfig {
        BrowserConfig {
            program: None,
            search_path: None,
            environment: Vec::new(),
            sandbox: true,
            tabs: 2,
            page_time: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
            user_agent: user_agent.into(),
            language: "en".to_owned(),
            max_dom_bytes: 32 << 20,
            memory_bytes: 2 << 30,
            max_requests: 200,
            seed: 0,
            screenshots: false,
            max_screenshot_bytes: 4 << 20,
            profile_parent: std::env::temp_dir(),
        }
    }

    /// Returns the name and version that the browser's program prints, such as `Chromium 156.0.1.2`.
    /// `None` if it prints none soon.
    #[must_use]
    pub fn program_version(&self) -> Option<String> {
        let mut command = Command::new(self.find_program()?);
        command
            .arg("--version")
            .env_clear()
            .env("PATH", PATH)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let output = child.stdout.take()?;
        let (sender, line) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            // Output that can't be read counts as no version.
            let _ = BufReader::new(output.take(MAX_VERSION_BYTES)).read_line(&mut line);
            let _ = sender.send(line);
        });
        let line = line.recv_timeout(VERSION_PATIENCE);
        // Errors mean that it has ended.
        let _ = child.kill();
        let _ = child.wait();
        let version = line.ok()?.trim().to_owned();
        let is_plain = !version.chars().any(char::is_control);
        (is_plain && !version.is_empty()).then_some(version)
    }

    /// Returns the browser's program: `program`, or the first one found in `search_path`.
    #[must_use]
    pub fn find_program(&self) -> Option<PathBuf> {
        if let Some(program) = &self.program {
            return program.is_file().then(|| program.clone());
        }
        let folders: Vec<PathBuf> = std::env::split_paths(self.search_path.as_ref()?).collect();
        let paths = PROGRAMS
            .iter()
            .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        paths.into_iter().find(|path| path.is_file())
    }

    /// Removes the profiles of browsers that were killed together with their programs.
    pub fn remove_abandoned_profiles(&self) {
        profile::remove_abandoned(&self.profile_parent);
    }
}
