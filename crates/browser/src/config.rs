//! Settings of a browser, and the search for its program.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::browser_profile_folder;

/// The names under which Chromium is installed, in order of preference.
const PROGRAMS: [&str; 3] = ["chromium-headless-shell", "chromium", "google-chrome"];

/// Width and height of the browser window, in pixels.
pub(crate) const WINDOW: (u32, u32) = (1280, 1024);

/// The value of `PATH` in the environment of the browser's processes.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How long the program may take to print its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(10);

/// Maximum length of the version line that the program prints, in bytes.
const MAX_VERSION_BYTES: u64 = 200;

/// Settings of a browser.
#[derive(Debug, Clone)]
pub struct BrowserConfig {
    /// The path of the browser's program. If `None`, the program is searched for in `search_path`.
    pub program: Option<PathBuf>,
    /// A list of folders in the format of `$PATH`. Only used if `program` is `None`.
    pub search_path: Option<OsString>,
    /// Additional environment variables for the browser. The environment otherwise contains only a
    /// fixed `PATH`, the time zone UTC, and folders within the profile.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether to enable the browser's sandbox. Browsers refuse to run as root with a sandbox.
    pub sandbox: bool,
    /// Maximum number of pages rendered at a time.
    pub tabs: usize,
    /// Maximum virtual time of a page, which is the time that its scripts see.
    pub page_time: Duration,
    /// Maximum real time to render a page, without the time that the page's requests wait for the
    /// caller.
    pub timeout: Duration,
    /// The value of the header `User-Agent` and of `navigator.userAgent`.
    pub user_agent: String,
    /// The value of the header `Accept-Language` and of `navigator.languages`.
    pub language: String,
    /// Maximum size of a serialized DOM, in bytes.
    pub max_dom_bytes: usize,
    /// Maximum resident memory of all processes of the browser, in bytes.
    pub memory_bytes: u64,
    /// Maximum number of requests of one page to pass to the caller. Further requests are refused.
    pub max_requests: u32,
    /// Seed of `Math.random`.
    pub seed: u64,
    /// Whether to take a screenshot of each page. A screenshot shows the window, which has 1280 by
    /// 1024 pixels.
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

    /// Returns the name and version that the browser's program prints, such as `Chromium
    /// 156.0.1.2`. `None` if the program is not found or doesn't print a version within ten
    /// seconds.
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
            // Ignore errors: output that can't be read counts as no version.
            let _ = BufReader::new(output.take(MAX_VERSION_BYTES)).read_line(&mut line);
            let _ = sender.send(line);
        });
        let line = line.recv_timeout(VERSION_PATIENCE);
        // Ignore errors: they mean that the program has already ended.
        let _ = child.kill();
        let _ = child.wait();
        let version = line.ok()?.trim().to_owned();
        let is_plain = !version.chars().any(char::is_control);
        (is_plain && !version.is_empty()).then_some(version)
    }

    /// Returns the path of the browser's program: `program`, or the first known program in
    /// `search_path`. `None` if there is none.
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

    /// Removes profiles that earlier runs left behind. A profile remains if the program and the
    /// shell that started the browser are killed at the same time.
    pub fn remove_abandoned_profiles(&self) {
        browser_profile_folder::remove_abandoned(&self.profile_parent);
    }
}
