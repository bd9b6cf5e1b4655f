//! A service that runs in a container, and the state of its process in `/proc`.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::compose_service_parser::ComposeService;
use crate::workspace::output;

/// Maximum time to wait for a service. The time is long, because the machine may be busy.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);

/// Interval between two checks while waiting.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The file system of a container, with the environment and the working folder that its image sets.
pub(super) struct ContainerFileSystem {
    pub(super) path: PathBuf,
    pub(super) environment: Vec<String>,
    pub(super) folder: String,
}

/// A running service. Killed when dropped.
pub(super) struct RunningService {
    process: Child,
    pub(super) log: PathBuf,
}

impl RunningService {
    pub(super) fn start(
        root: &ContainerFileSystem,
        service: &ComposeService,
        log: PathBuf,
    ) -> Result<RunningService> {
        let log_file = File::options().create(true).append(true).open(&log)?;
        let mut command = root.command(service, &service.argv);
        command
            .stdin(Stdio::null())
            .stdout(log_file.try_clone()?)
            .stderr(log_file);
        let process = command.spawn().context("cannot start unshare")?;
        Ok(RunningService { process, log })
    }

    /// Fails if the service has ended.
    pub(super) fn still_runs(&mut self) -> Result<()> {
        match self.process.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("it ended with {status}\n{}", self.last_words()),
        }
    }

    /// Returns the value of `key` in the `/proc/PID/status` of the service's process.
    pub(super) fn status(&self, key: &str) -> Result<String> {
        let path = format!("/proc/{}/status", self.process.id());
        let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let line = line.with_context(|| format!("{path} has no {key}"))?;
        Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Returns whether the process's root is mounted read-only.
    pub(super) fn has_read_only_root(&self) -> Result<bool> {
        let path = format!("/proc/{}/mountinfo", self.process.id());
        let mounts = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        // If several file systems are mounted at the root, the last one counts.
        let root = mounts
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .rfind(|fields| fields.get(4) == Some(&"/"))
            .with_context(|| format!("{path} has no root"))?;
        let options = root.get(5).copied().unwrap_or_default();
        Ok(options.split(',').any(|option| option == "ro"))
    }

    /// Sends the signal that stops the service. Returns the service's exit status and how long it
    /// took to stop.
    pub(super) fn stop(mut self, signal: &str) -> Result<(ExitStatus, Duration)> {
        let begin = Instant::now();
        kill(signal, self.process.id())?;
        let status = wait_for("the end of the service", || Ok(self.process.try_wait()?))?;
        Ok((status, begin.elapsed()))
    }

    fn last_words(&self) -> String {
        let log_text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log_text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

impl Drop for RunningService {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            // Wait for the killed process, because it would otherwise remain as a zombie.
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

/// Runs a service's health check once.
pub(super) fn is_healthy(root: &ContainerFileSystem, service: &ComposeService) -> bool {
    output(&mut root.command(service, &service.health)).is_ok()
}

/// Calls `look` repeatedly until it returns a value. Fails after [`TIMEOUT`], naming `what`.
pub(super) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look().with_context(|| format!("while waiting for {what}"))? {
            return Ok(seen);
        }
        ensure!(
            begin.elapsed() < TIMEOUT,
            "{what} did not come within {} s",
            TIMEOUT.as_secs()
        );
        sleep(LOOK_INTERVAL);
    }
}

impl ContainerFileSystem {
    /// Returns a command that runs in the container, confined as the service requires. Doesn't use
    /// `buildah run`, which can't start a program on a read-only root in a chroot. The command is a
    /// chain of programs. Each replaces itself with the next one, so the process becomes the
    /// service.
    fn command(&self, service: &ComposeService, argv: &[String]) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--", "sh", "-ec", &self.script(service)])
            .arg(&self.path)
            .arg("chroot")
            .arg(&self.path)
            .arg("setpriv")
            .arg(format!("--reuid={}", service.user.0))
            .arg(format!("--regid={}", service.user.1))
            .arg("--clear-groups");
        if !service.has_capabilities {
            command.args(["--inh-caps=-all", "--bounding-set=-all"]);
        }
        if !service.may_gain_privileges {
            command.arg("--no-new-privs");
        }
        command
            .args(["env", "--ignore-environment"])
            .arg(format!("--chdir={}", self.folder))
            .arg(format!("HOME={}", self.folder))
            .args(&self.environment);
        for (name, value) in &service.environment {
            command.arg(format!("{name}={value}"));
        }
        command.args(argv);
        command
    }

    /// Returns the shell script that mounts the file systems of the service and then becomes the
    /// service. `$0` is the root of the container.
    fn script(&self, service: &ComposeService) -> String {
        let mut script = "mount --bind \"$0\" \"$0\"\n\
                          mount --rbind /dev \"$0/dev\"\n\
                          mount -t proc proc \"$0/proc\"\n"
            .to_owned();
        for volume in &service.volumes {
            let (source, target) = (volume.source.display(), &volume.target);
            script += &format!("mount --bind '{source}' \"$0{target}\"\n");
            if volume.is_read_only {
                script += &format!("mount -o remount,bind,ro \"$0{target}\"\n");
            }
        }
        for (folder, size) in &service.memory_folders {
            script += &format!("mount -t tmpfs -o size={size} tmpfs \"$0{folder}\"\n");
        }
        if service.is_read_only {
            script += "mount -o remount,bind,ro \"$0\"\n";
        }
        script + "exec \"$@\"\n"
    }
}

/// Sends a signal to a process. Uses a shell, because `kill` is built into every shell.
fn kill(signal: &str, process: u32) -> Result<()> {
    let signal = signal.trim_start_matches("SIG");
    output(Command::new("sh").args(["-c", &format!("kill -s {signal} {process}")])).map(drop)
}
