//! The processes of a browser: their arguments, their profile, and their end.
//!
//! A shell is the leader of the browser's process group. The shell starts the browser and then
//! waits until a socket of this program is closed. So the group ends and the profile is removed
//! even if this program is killed.

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

use crate::config::PATH;
use crate::profile::Profile;
use crate::{BrowserConfig, BrowserError};

/// Maximum number of bytes kept of what the browser prints.
const MAX_OUTPUT: usize = 2000;

/// The shell's script. Arguments: the profile and the browser's command line. The browser reads commands
/// at descriptor 3 and writes at descriptor 4, which are one socket. A job in the background has
/// no standard input, so the descriptors are copied first.
const GUARDIAN: &str = r#"profile=$1; shift
exec 3<&0 4<&0 5<&1 </dev/null >/dev/null
"$@" 5<&- &
exec 3<&- 4<&-
read -r line <&5
kill -KILL $!
wait
rm -rf -- "$profile"
kill -KILL 0"#;

/// A running browser. Dropping it kills all its processes and removes its profile.
#[derive(Debug)]
pub(crate) struct Process {
    /// Closing this socket makes the shell kill the browser.
    lifeline: Option<BlockingStream>,
    shell: Option<Child>,
    /// `None` once it is being removed.
    profile: Option<Profile>,
    output: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    /// Starts a browser that uses the proxy at `wall_port`. Returns it with the socket for
    /// commands.
    pub(crate) fn start(
        config: &BrowserConfig,
        program: &Path,
        wall_port: u16,
    ) -> Result<(Process, UnixStream), BrowserError> {
        if config.sandbox && is_root() {
            return Err(BrowserError::SandboxAsRoot);
        }
        let failed = |path: &Path| {
            let program = path.to_owned();
            move |source| BrowserError::Start { program, source }
        };
        let profile =
            Profile::create(&config.profile_parent).map_err(failed(&config.profile_parent))?;
        let path = profile.path.clone();
        let started = spawn(config, program, profile, wall_port);
        started.map_err(|error| {
            // The folder is empty, and the other error is more important.
            let _ = std::fs::remove_dir_all(&path);
            failed(program)(error)
        })
    }

    /// Returns the process group.
    pub(crate) fn group(&self) -> Option<u32> {
        self.shell.as_ref().map(Child::id)
    }

    /// Returns the end of what the browser printed.
    pub(crate) fn output(&self) -> String {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&output).trim().to_owned()
    }

    /// Kills all processes and waits for their end, and removes the profile.
    pub(crate) fn end(&mut self) {
        self.lifeline = None;
        if let (Some(shell), Some(profile)) = (self.shell.take(), self.profile.take()) {
            reap(shell, &profile);
        }
    }
}

impl Drop for Process {
    /// Doesn't wait for the end, which a thread does.
    fn drop(&mut self) {
        self.lifeline = None;
        if let (Some(shell), Some(profile)) = (self.shell.take(), self.profile.take()) {
            std::thread::spawn(move || reap(shell, &profile));
        }
    }
}

/// Waits for the shell, which kills itself once the lifeline has ended.
fn reap(mut shell: Child, profile: &Profile) {
    // An error would mean that it isn't there any more.
    let _ = shell.wait();
    // Only if a process of the browser still wrote while the shell removed it.
    let _ = std::fs::remove_dir_all(&profile.path);
}

/// Returns whether this program runs as root.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn spawn(
    config: &BrowserConfig,
    program: &Path,
    profile: Profile,
    wall_port: u16,
) -> io::Result<(Process, UnixStream)> {
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
    let process = Process {
        lifeline: Some(lifeline),
        shell: Some(shell),
        profile: Some(profile),
        output: Arc::default(),
    };
    // The command holds our copies of the browser's ends of the sockets.
    drop(command);
    let asynchronous = |stream: BlockingStream| {
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    };
    tokio::spawn(keep_end(asynchronous(output)?, process.output.clone()));
    Ok((process, asynchronous(commands)?))
}

/// Keeps the end of what the browser prints.
async fn keep_end(mut output: UnixStream, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(MAX_OUTPUT);
        kept.drain(..excess);
    }
}

/// Features that make requests which the interception doesn't see, and isolation of sites, because
/// virtual time needs all frames of a page in one process.
const DISABLED_FEATURES: &str = "AutofillServerCommunication,DialMediaRouteProvider,\
    GlobalMediaControls,HttpsUpgrades,IsolateOrigins,LinkPrefetch,MediaRouter,\
    OptimizationHints,PaintHolding,Prerender2,Prerender2InHeadlessMode,Translate,site-per-process";

/// A scheduler of prefetches that starts none, because prefetches of speculation rules evade the
/// interception, and holdbacks don't apply to pages under the DevTools protocol.
const NO_PREFETCHES: &str = "PrefetchSchedulerTesting:\
    kPrefetchSchedulerTestingActiveSetSizeLimitForBase/0/\
    kPrefetchSchedulerTestingActiveSetSizeLimitForBurst/0";

const SWITCHES: [&str; 29] = [
    "--headless",
    "--remote-debugging-pipe",
    // The wall has a name, because rules apply to addresses too.
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
    // Nothing is shown, and `/dev/shm` is small in containers.
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
    // Half of the memory for one page's JavaScript, so that a greedy page dies alone.
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
