//! Checks the compose files, and the configuration file that a compose file mounts, without a
//! container engine.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::{Workspace, output, run};

const COMPOSE: &str = "docker/compose.yaml";
const WORKERS: &str = "docker/compose.workers.yaml";
const CONFIG: &str = "config/small-site.toml";

/// Variables that the compose files leave to the user, with values for the check.
const VARIABLES: [(&str, &str); 1] = [("CRAWL_SEED", "https://www.example.org/")];

/// Path in a service's file system where the configuration is mounted.
const MOUNTED: &str = "/etc/crawl/small-site.toml";

/// Python script that converts YAML to JSON with a maintained parser, resolving merge keys.
const AS_JSON: &str = "import json, sys\nfrom ruamel.yaml import YAML\n\
                       with open(sys.argv[1]) as file:\n    \
                       print(json.dumps(YAML(typ='safe').load(file)))\n";

pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    workspace.build_programs()?;
    let crawl = CrawlProgram(workspace);
    let mut faults = Vec::new();
    for file in [COMPOSE, WORKERS] {
        let mut schema = workspace.program(workspace.python_bin().join("check-jsonschema"));
        schema.args(["--builtin-schema", "vendor.compose-spec", file]);
        run(&mut schema)?;
        let compose = read_file(workspace, file)?;
        let of_file = self::faults(&workspace.root.join("docker"), &compose);
        faults.extend(of_file.iter().map(|fault| format!("{file}: {fault}")));
        for (service, argv) in commands(&compose)? {
            if let Err(why) = crawl.takes(&argv) {
                faults.push(format!("{file}: {service}: {why:#}"));
            }
        }
    }
    if let Err(why) = crawl.effective(&["--config", CONFIG]) {
        faults.push(format!("{CONFIG}: {why:#}"));
    }
    match faults.is_empty() {
        true => Ok(()),
        false => bail!("the compose files:\n  {}", faults.join("\n  ")),
    }
}

/// Reads `docker/compose.yaml`, as JSON.
pub(crate) fn read(workspace: &Workspace) -> Result<Value> {
    read_file(workspace, COMPOSE)
}

fn read_file(workspace: &Workspace, file: &str) -> Result<Value> {
    let mut read = workspace.program(workspace.python_bin().join("python"));
    let compose = output(read.args(["-c", AS_JSON, file]))?;
    serde_json::from_str(&compose).with_context(|| format!("{file} as JSON"))
}

/// Returns faults that the schema can't find: missing files, and services with more rights than
/// they need.
fn faults(folder: &Path, compose: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let services = compose["services"].as_object();
    for (name, service) in services.into_iter().flatten() {
        let mut demand = |is_met: bool, what: &str| {
            if !is_met {
                faults.push(format!("{name}: {what}"));
            }
        };
        if is_ours(service) {
            let user = service["user"].as_str().unwrap_or("root");
            let user = user.split(':').next().unwrap_or_default();
            demand(!matches!(user, "" | "root" | "0"), "runs as root");
            demand(service["read_only"] == true, "writes to its own files");
            demand(has(&service["cap_drop"], "ALL"), "keeps capabilities");
            let is_bounded = has(&service["security_opt"], "no-new-privileges:true");
            demand(is_bounded, "may gain privileges");
            demand(
                service["pids_limit"].is_number(),
                "may start any number of threads",
            );
        }
        demand(service["privileged"] != true, "is privileged");
        // The entry point of PostgreSQL's image makes the data directory private only if the
        // command begins with `postgres`.
        let own_start = || strings(&service["command"]).filter(|word| word.contains("postgres"));
        demand(
            !has(&service["command"], "bash")
                || own_start().all(|text| text.contains("chmod 0700")),
            "starts PostgreSQL in a data directory that others may read",
        );
        // Require a health check of each service that is meant to run forever. A service that is
        // restarted only on failure is expected to end.
        demand(
            service["healthcheck"]["test"].is_array() || service["restart"] == "on-failure",
            "has no health check",
        );
        let image = service["image"].as_str().unwrap_or_default();
        let is_fixed = image.contains([':', '@']) && !image.ends_with(":latest");
        demand(is_fixed, "names no fixed image");
        for port in strings(&service["ports"]) {
            demand(
                port.starts_with("127.0.0.1:"),
                &format!("is open to the world: {port}"),
            );
        }
        for volume in strings(&service["volumes"]) {
            let source = volume.split(':').next().unwrap_or_default();
            let is_there = match source.starts_with('.') {
                true => folder.join(source).exists(),
                false => compose["volumes"].get(source).is_some(),
            };
            demand(is_there, &format!("mounts what is not there: {volume}"));
        }
        if let Some(recipe) = service["build"]["dockerfile"].as_str() {
            let context = service["build"]["context"].as_str().unwrap_or(".");
            let is_there = folder.join(context).join(recipe).is_file();
            demand(
                is_there,
                &format!("is built from what is not there: {recipe}"),
            );
        }
    }
    faults
}

/// Returns whether a service runs our program. Services with third-party images are not checked.
fn is_ours(service: &Value) -> bool {
    let image = service["image"].as_str().unwrap_or_default();
    image == "crawl" || image.starts_with("crawl:")
}

fn has(list: &Value, entry: &str) -> bool {
    strings(list).any(|known| known == entry)
}

pub(crate) fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Returns the commands and health checks that run our program, each with the name of its service.
fn commands(compose: &Value) -> Result<Vec<(String, Vec<String>)>> {
    let services = compose["services"].as_object();
    let mut commands = Vec::new();
    for (name, service) in services.into_iter().flatten() {
        if !is_ours(service) {
            continue;
        }
        let argv = |list: &Value| -> Result<Vec<String>> {
            strings(list).map(|word| expand(word, &VARIABLES)).collect()
        };
        commands.push((name.clone(), argv(&service["command"])?));
        let health = argv(&service["healthcheck"]["test"])?;
        if let ["CMD", "crawl", argv @ ..] =
            &health.iter().map(String::as_str).collect::<Vec<_>>()[..]
        {
            let argv = argv.iter().map(|word| (*word).to_owned()).collect();
            commands.push((format!("{name}, health check"), argv));
        }
    }
    Ok(commands)
}

/// Replaces `${NAME}`, `${NAME:?MESSAGE}` and `$$` as Compose does.
pub(crate) fn expand(text: &str, variables: &[(&str, &str)]) -> Result<String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after;
            continue;
        }
        let inner = after
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'));
        let (inner, after) = inner.with_context(|| format!("{text} is not read here"))?;
        let name = inner.split(':').next().unwrap_or_default();
        let variable = variables.iter().find(|(variable, _)| *variable == name);
        let (_, value) = variable.with_context(|| {
            format!("nothing is known of the variable {name}\nhint: name it in the head of the compose file, and give it a value where that file is read")
        })?;
        expanded.push_str(value);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// The program `crawl`, as built in this workspace.
struct CrawlProgram<'a>(&'a Workspace);

impl CrawlProgram<'_> {
    /// Fails unless the program accepts the command and each flag.
    fn takes(&self, argv: &[String]) -> Result<()> {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        match argv.first() {
            Some(first) if first.starts_with('-') || first.contains("://") => {
                let here = argv.iter().map(|word| match *word {
                    MOUNTED => CONFIG,
                    word => word,
                });
                self.effective(&here.collect::<Vec<_>>())
            }
            // Append `--help`, so that the arguments before it are parsed but nothing runs.
            Some(_) => self.run(&[&argv[..], &["--help"]].concat()),
            None => bail!("it runs nothing"),
        }
    }

    /// Fails unless these arguments and the configuration that they name are valid.
    fn effective(&self, args: &[&str]) -> Result<()> {
        self.run(&[&["config", "--effective"], args].concat())
    }

    fn run(&self, args: &[&str]) -> Result<()> {
        let program = self.0.target.join("debug/crawl");
        output(self.0.program(program).args(args)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{commands, expand, faults};

    #[test]
    fn each_fault_of_a_service_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("here"), "").unwrap();
        let check = |service: serde_json::Value| {
            let compose = json!({"services": {"s": service}, "volumes": {"data": null}});
            faults(folder.path(), &compose)
        };
        let good = json!({"image": "crawl:1", "user": "5:5", "read_only": true,
            "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"], "pids_limit": 9,
            "healthcheck": {"test": ["CMD", "true"]}, "ports": ["127.0.0.1:1:1"],
            "volumes": ["data:/data", "./here:/x:ro"],
            "build": {"context": ".", "dockerfile": "here"}});
        assert_eq!(check(good.clone()), [""; 0]);
        let bad = json!({"image": "crawl:latest", "user": "0", "read_only": false,
            "privileged": true, "ports": ["80:80"], "volumes": ["other:/x", "./gone:/x"],
            "build": {"dockerfile": "gone"}});
        let named = [
            "s: runs as root",
            "s: writes to its own files",
            "s: keeps capabilities",
            "s: may gain privileges",
            "s: may start any number of threads",
            "s: is privileged",
            "s: has no health check",
            "s: names no fixed image",
            "s: is open to the world: 80:80",
            "s: mounts what is not there: other:/x",
            "s: mounts what is not there: ./gone:/x",
            "s: is built from what is not there: gone",
        ];
        assert_eq!(check(bad), named);
        let server = json!({"image": "postgres:15", "healthcheck": {"test": ["CMD", "true"]}});
        assert_eq!(check(server.clone()), [""; 0]);
        let standby = |command: &str| {
            let mut standby = server.clone();
            standby["command"] = json!(["bash", "-c", command]);
            check(standby)
        };
        let open = "s: starts PostgreSQL in a data directory that others may read";
        assert_eq!(standby("pg_basebackup && exec postgres"), [open]);
        let private = standby("pg_basebackup && chmod 0700 \"$PGDATA\" && exec postgres");
        assert_eq!(private, [""; 0]);
        let worker = json!({"image": "crawl:1", "restart": "on-failure"});
        assert!(!check(worker).iter().any(|fault| fault.contains("health")));
    }

    #[test]
    fn commands_of_our_own_program_are_found() {
        let compose = json!({"services": {
            "a": {"image": "crawl:1", "command": ["--every", "1d"],
                "healthcheck": {"test": ["CMD", "crawl", "x"]}},
            "b": {"image": "crawl:1", "command": ["${CRAWL_SEED:?a URL}"],
                "healthcheck": {"test": ["CMD", "bash"]}},
            "c": {"image": "postgres:15", "command": ["postgres"]}}});
        let argv = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let expected = [
            ("a".to_owned(), argv(&["--every", "1d"])),
            ("a, health check".to_owned(), argv(&["x"])),
            ("b".to_owned(), argv(&["https://www.example.org/"])),
        ];
        assert_eq!(commands(&compose).unwrap(), expected);
    }

    #[test]
    fn variables_are_replaced_as_in_compose() {
        let variables = [("A", "1")];
        let cases = [
            ("x", Some("x")),
            ("${A}", Some("1")),
            ("a ${A:?say} b $$ $${A}", Some("a 1 b $ ${A}")),
            ("${B}", None),
            ("$A", None),
        ];
        for (text, expected) in cases {
            let expanded = expand(text, &variables).ok();
            assert_eq!(expanded.as_deref(), expected, "{text}");
        }
    }
}
