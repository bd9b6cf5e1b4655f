//! A service of `docker/compose.yaml`, with only those settings that can be applied without
//! Compose.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::compose_files::{expand, strings};

/// How long Compose waits by default for a service to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Values that the compose file refers to but doesn't contain.
pub(super) struct ComposeFileContext<'a> {
    /// Variables that the compose file uses, with their values.
    pub(super) variables: &'a [(&'a str, &'a str)],
    /// The folder that contains the volumes and mounted files. Each has the file name of its source
    /// in the compose file.
    pub(super) folder: &'a Path,
    /// The image's entry point: a program and its first arguments.
    pub(super) entry_point: &'a [String],
}

#[derive(Debug, PartialEq)]
pub(super) struct ComposeService {
    pub(super) name: String,
    /// The program and its arguments.
    pub(super) argv: Vec<String>,
    /// The health check program and its arguments.
    pub(super) health: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) volumes: Vec<ServiceMount>,
    /// Folders in memory, each with its maximum size in the form that `mount` expects.
    pub(super) memory_folders: Vec<(String, String)>,
    /// User and group ids.
    pub(super) user: (u32, u32),
    pub(super) is_read_only: bool,
    pub(super) has_capabilities: bool,
    pub(super) may_gain_privileges: bool,
    pub(super) max_threads: u64,
    pub(super) stop_timeout: Duration,
    /// The service's port on this machine.
    pub(super) port: Option<u16>,
}

/// A volume or file that is mounted in a service.
#[derive(Debug, PartialEq)]
pub(super) struct ServiceMount {
    pub(super) source: PathBuf,
    pub(super) target: String,
    pub(super) is_file: bool,
    pub(super) is_read_only: bool,
}

impl ComposeService {
    pub(super) fn read(
        compose: &Value,
        name: &str,
        surroundings: &ComposeFileContext<'_>,
    ) -> Result<ComposeService> {
        let service = &compose["services"][name];
        ensure!(service.is_object(), "there is no service {name}");
        let expanded = |list: &Value| {
            let texts = strings(list).map(|text| expand(text, surroundings.variables));
            texts.collect::<Result<Vec<_>>>()
        };
        let mut argv = surroundings.entry_point.to_vec();
        argv.extend(expanded(&service["command"])?);
        let health = match expanded(&service["healthcheck"]["test"])?.as_slice() {
            [kind, argv @ ..] if kind == "CMD" => argv.to_vec(),
            other => bail!("{name}: the health check {other:?} is not read here"),
        };
        let stop_timeout = match service["stop_grace_period"].as_str() {
            Some(period) => seconds(period)
                .with_context(|| format!("{name}: stop_grace_period {period} is not read here"))?,
            None => STOP_TIMEOUT,
        };
        let volumes = strings(&service["volumes"])
            .map(|volume| ServiceMount::read(volume, surroundings.folder));
        let memory_folders = strings(&service["tmpfs"]).map(|folder| {
            let (folder, size) = folder.split_once(":size=").unwrap_or((folder, "50%"));
            (folder.to_owned(), size.to_owned())
        });
        let has = |key: &str, entry: &str| strings(&service[key]).any(|known| known == entry);
        Ok(ComposeService {
            name: name.to_owned(),
            argv,
            health,
            environment: environment(service, surroundings).with_context(|| name.to_owned())?,
            volumes: volumes.collect::<Result<_>>()?,
            memory_folders: memory_folders.collect(),
            user: ids(service["user"].as_str().unwrap_or_default())
                .with_context(|| name.to_owned())?,
            is_read_only: service["read_only"] == true,
            has_capabilities: !has("cap_drop", "ALL"),
            may_gain_privileges: !has("security_opt", "no-new-privileges:true"),
            max_threads: service["pids_limit"].as_u64().unwrap_or(u64::MAX),
            stop_timeout,
            port: strings(&service["ports"]).find_map(|port| port.split(':').nth(1)?.parse().ok()),
        })
    }
}

impl ServiceMount {
    fn read(volume: &str, folder: &Path) -> Result<ServiceMount> {
        let mut parts = volume.split(':');
        let (Some(source), Some(target)) = (parts.next(), parts.next()) else {
            bail!("the volume {volume} has no target");
        };
        let name = Path::new(source).file_name().unwrap_or_default();
        Ok(ServiceMount {
            source: folder.join(name),
            target: target.to_owned(),
            is_file: source.starts_with('.'),
            is_read_only: parts.next() == Some("ro"),
        })
    }
}

fn environment(
    service: &Value,
    surroundings: &ComposeFileContext<'_>,
) -> Result<Vec<(String, String)>> {
    let variables = service["environment"].as_object().into_iter().flatten();
    let expanded = variables.map(|(name, value)| {
        let value = value
            .as_str()
            .with_context(|| format!("{name} is no text"))?;
        Ok((name.clone(), expand(value, surroundings.variables)?))
    });
    expanded.collect()
}

/// Parses user and group, such as `10001:10001`.
pub(super) fn ids(user: &str) -> Result<(u32, u32)> {
    let ids = user
        .split_once(':')
        .and_then(|(user, group)| Some((user.parse().ok()?, group.parse().ok()?)));
    ids.with_context(|| format!("the user {user:?} is not two numbers"))
}

fn seconds(text: &str) -> Option<Duration> {
    let count = text.strip_suffix('s')?.parse().ok()?;
    Some(Duration::from_secs(count))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use serde_json::json;

    use super::{ComposeFileContext, ComposeService, ServiceMount};

    #[test]
    fn a_service_is_parsed() {
        let compose = json!({"services": {"s": {
            "user": "5:6", "read_only": true, "cap_drop": ["ALL"], "tmpfs": ["/tmp:size=9m"],
            "security_opt": ["no-new-privileges:true"], "pids_limit": 9,
            "stop_grace_period": "75s", "ports": ["127.0.0.1:80:81"],
            "command": ["--every", "1d"], "environment": {"WHO": "${WHO:?say who}"},
            "volumes": ["data:/data", "../config/a.toml:/etc/a.toml:ro"],
            "healthcheck": {"test": ["CMD", "bash", "-c", "echo $$x"]}}}});
        let surroundings = ComposeFileContext {
            variables: &[("WHO", "me")],
            folder: Path::new("/f"),
            entry_point: &["crawl".to_owned()],
        };
        let service = ComposeService::read(&compose, "s", &surroundings).unwrap();
        assert_eq!(service.argv, ["crawl", "--every", "1d"]);
        assert_eq!(service.health, ["bash", "-c", "echo $x"]);
        assert_eq!(service.environment, [("WHO".to_owned(), "me".to_owned())]);
        assert_eq!(
            service.memory_folders,
            [("/tmp".to_owned(), "9m".to_owned())]
        );
        assert_eq!(service.user, (5, 6));
        assert!(service.is_read_only);
        assert!(!service.has_capabilities && !service.may_gain_privileges);
        assert_eq!((service.max_threads, service.port), (9, Some(80)));
        assert_eq!(service.stop_timeout, Duration::from_secs(75));
        let volume = |source: &str, target: &str, is_file, is_read_only| ServiceMount {
            source: source.into(),
            target: target.to_owned(),
            is_file,
            is_read_only,
        };
        let volumes = [
            volume("/f/data", "/data", false, false),
            volume("/f/a.toml", "/etc/a.toml", true, true),
        ];
        assert_eq!(service.volumes, volumes);
        assert!(ComposeService::read(&compose, "t", &surroundings).is_err());
    }
}
