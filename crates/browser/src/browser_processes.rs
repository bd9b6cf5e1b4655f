//! The processes of a browser: their arguments, their profile, and their end.
//!
//! A shell starts the browser and leads the browser's process group. The shell waits until this
//! program closes a socket (the lifeline), then kills the group and removes the profile. If this
//! program is killed, the system closes the socket, so the browser ends too.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream as BlockingStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use crate::browser_profile_folder::BrowserProfileFolder;
use crate::config::PATH;
use crate::{BrowserConfig, BrowserError};

/// Number of bytes to keep from the end of the browser's output.
const MAX_OUTPUT: usize = 2000;

/// The shell's script. The arguments are the profile and the command line of the browser. Standard
/// input is the socket for commands, which the browser expects as descriptors 3 (to read commands)
/// and 4 (to write replies). The script copies the socket to these descriptors before it starts the
/// browser, because a background job loses its standard input.
const GUARDIAN: &str = r#"profile=$1; shift
exec 3<&0 4<&0 5<&1 </dev/null >/dev/null
"$@" 5<&- &
exec 3<&- 4<&-
read -r line <&5
kill -KILL $!
wait
rm -rf -- "$profile"
kill -KILL 0"#;

/// The processes of a running browser, and its profile. Dropping the value kills and removes them.
#[derive(Debug)]
pub(crate) struct BrowserProcesses {
    /// When this socket is closed, the shell kills the browser.
    lifeline: Option<BlockingStream>,
    shell: Option<Child>,
    /// The profile. `None` once the process is being ended.
    profile: Option<BrowserProfileFolder>,
    output: Arc<Mutex<Vec<u8>>>,
}

impl BrowserProcesses {
    /// Starts a browser that uses the proxy at `wall_port` for all connections. Returns the browser
    /// and the socket for commands.
    pub(crate) fn start(
        config: &BrowserConfig,
        program: &Path,
        wall_port: u16,
    ) -> Result<(BrowserProcesses, UnixStream), BrowserError> {
        if config.sandbox && is_root() {
            return Err(BrowserError::SandboxAsRoot);
        }
        let failed = |path: &Path| {
            let program = path.to_owned();
            move |source| BrowserError::Start { program, source }
        };
        let profile = BrowserProfileFolder::create(&config.profile_parent)
            .map_err(failed(&config.profile_parent))?;
        let path = profile.path.clone();
        let started = spawn(config, program, profile, wall_port);
        started.map_err(|error| {
            // Ignore errors of the removal: the error of the failed start is more important, and is
            // returned.
            let _ = std::fs::remove_dir_all(&path);
            failed(program)(error)
        })
    }

    /// Returns the id of the browser's process group. `None` after [`BrowserProcesses::end`].
    pub(crate) fn group(&self) -> Option<u32> {
        self.shell.as_ref().map(Child::id)
    }

    /// Returns the last output of the browser, up to [`MAX_OUTPUT`] bytes.
    pub(crate) fn output(&self) -> String {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&output).trim().to_owned()
    }

    /// Kills all processes of the browser, waits until they have ended, and removes the profile.
    pub(crate) fn end(&mut self) {
        self.lifeline = None;
        if let (Some(shell), Some(profile)) = (self.shell.take(), self.profile.take()) {
            reap(shell, &profile);
        }
    }
}

impl Drop for BrowserProcesses {
    /// Kills the browser without blocking: a thread waits until it has ended.
    fn drop(&mut self) {
        self.lifeline = None;
        if let (Some(shell), Some(profile)) = (self.shell.take(), self.profile.take()) {
            std::thread::spawn(move || reap(shell, &profile));
        }
    }
}

/// Waits until the shell has ended, and removes the profile if it still exists. The shell kills its
/// process group, including itself, once the lifeline is closed.
fn reap(mut shell: Child, profile: &BrowserProfileFolder) {
    // Ignore errors: they mean that the shell doesn't exist any more.
    let _ = shell.wait();
    // Usually the shell has removed the folder. The folder can still exist if a browser process
    // wrote to it during the removal.
    let _ = std::fs::remove_dir_all(&profile.path);
}

/// Returns whether this program runs as root.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn spawn(
    config: &BrowserConfig,
    program: &Path,
    profile: BrowserProfileFolder,
    wall_port: u16,
) -> io::Result<(BrowserProcesses, UnixStream)> {
    let folder = &profile.path;
    let (commands, browser_commands) = BlockingStream::pair()?;
    let (lifeline, shell_lifeline) = BlockingStream::pair()?;
    let (output, browser_output) = BlockingStream::pair()?;
    let stdio = |stream: BlockingStream| Stdio::from(OwnedFd::from(stream));
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", GUARDIAN, "sh"])
        .arg(folder)
        .arg(program)
        .args(arguments(config, folder, wall_port))
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", folder)
        .env("TMPDIR", folder)
        .env("XDG_CONFIG_HOME", folder)
        .env("XDG_CACHE_HOME", folder)
        .env("TZ", "UTC")
        .envs(config.environment.iter().cloned())
        .process_group(0)
        .stdin(stdio(browser_commands))
        .stdout(stdio(shell_lifeline))
        .stderr(stdio(browser_output));
    let shell = command.spawn()?;
    let process = BrowserProcesses {
        lifeline: Some(lifeline),
        shell: Some(shell),
        profile: Some(profile),
        output: Arc::default(),
    };
    // Drop the command to close our copies of the sockets that the browser uses.
    drop(command);
    let asynchronous = |stream: BlockingStream| {
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    };
    tokio::spawn(keep_end(asynchronous(output)?, process.output.clone()));
    Ok((process, asynchronous(commands)?))
}

/// Reads the browser's output and keeps the last [`MAX_OUTPUT`] bytes.
async fn keep_end(mut output: UnixStream, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(MAX_OUTPUT);
        kept.drain(..excess);
    }
}

/// Browser features to disable. Most of these features make requests that can't be intercepted.
/// Site isolation is disabled because virtual time works only if all frames of a page are in one
/// process.
const DISABLED_FEATURES: &str = "AutofillServerCommunication,DialMediaRouteProvider,\
    GlobalMediaControls,HttpsUpgrades,IsolateOrigins,LinkPrefetch,MediaRouter,\
    OptimizationHints,PaintHolding,Prerender2,Prerender2InHeadlessMode,Translate,site-per-process";

/// Limits the number of prefetches to 0, because prefetches by speculation rules can't be
/// intercepted. The usual way to disable them (holdbacks) has no effect under the DevTools
/// protocol.
const NO_PREFETCHES: &str = "PrefetchSchedulerTesting:\
    kPrefetchSchedulerTestingActiveSetSizeLimitForBase/0/\
    kPrefetchSchedulerTestingActiveSetSizeLimitForBurst/0";

const SWITCHES: [&str; 29] = [
    "--headless",
    "--remote-debugging-pipe",
    // Refer to the proxy by a host name, which the first rule maps to 127.0.0.1. The second rule
    // would block an address, even 127.0.0.1.
    "--host-resolver-rules=MAP wall.invalid 127.0.0.1, MAP * ~NOTFOUND",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-quic",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
    "--no-service-autorun",
    "--deny-permission-prompts",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-site-isolation-trials",
    // Don't use `/dev/shm`, because it is small in containers. Don't use a GPU, because nothing is
    // displayed.
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--hide-scrollbars",
    "--mute-audio",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
];

fn arguments(config: &BrowserConfig, profile: &Path, wall_port: u16) -> Vec<std::ffi::OsString> {
    let mut arguments: Vec<std::ffi::OsString> = SWITCHES.iter().map(Into::into).collect();
    let mut profile_switch = std::ffi::OsString::from("--user-data-dir=");
    profile_switch.push(profile);
    arguments.push(profile_switch);
    // Limit the JavaScript heap of a page to half of the memory, so that a page with a memory leak
    // dies before the whole browser is killed.
    let heap_mib = (config.memory_bytes >> 21).max(16);
    arguments.extend(
        [
            format!("--proxy-server=http://wall.invalid:{wall_port}"),
            format!("--disable-features={DISABLED_FEATURES}"),
            format!("--enable-features={NO_PREFETCHES}"),
            format!("--js-flags=--max-old-space-size={heap_mib}"),
            format!("--user-agent={}", config.user_agent),
            format!("--lang={}", config.language),
            format!("--accept-lang={}", config.language),
        ]
        .map(Into::into),
    );
    if !config.sandbox {
        arguments.push("--no-sandbox".into());
    }
    arguments.push("about:blank".into());
    arguments
}
