//! The gate: every check, in order, with its time.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::workspace::{self, Workspace};
use crate::{bench, boundaries, browser, debian, docker, simulate, tools, torture};

/// One check, or one thing that checks need.
struct Step {
    name: &'static str,
    /// Needs a download or a server, so `--quick` leaves it out.
    heavy: bool,
    run: fn(&Workspace) -> Result<()>,
}

const STEPS: [Step; 18] = [
    Step {
        name: "fmt",
        heavy: false,
        run: fmt,
    },
    Step {
        name: "boundaries",
        heavy: false,
        run: boundaries::check,
    },
    Step {
        name: "debian-packages",
        heavy: true,
        run: debian::fetch,
    },
    Step {
        name: "chromium",
        heavy: true,
        run: browser::fetch,
    },
    Step {
        name: "python-tools",
        heavy: true,
        run: tools::python,
    },
    Step {
        name: "docker",
        heavy: true,
        run: docker::check,
    },
    Step {
        name: "clippy",
        heavy: false,
        run: clippy,
    },
    Step {
        name: "test",
        heavy: false,
        run: test,
    },
    Step {
        name: "test-with-servers",
        heavy: true,
        run: test_with_servers,
    },
    Step {
        name: "browser",
        heavy: true,
        run: browser::test,
    },
    Step {
        name: "search-quality",
        heavy: true,
        run: bench::search_quality,
    },
    Step {
        name: "simulate",
        heavy: false,
        run: |_| simulate::small(),
    },
    Step {
        name: "torture",
        heavy: false,
        run: torture::small,
    },
    Step {
        name: "doctest",
        heavy: false,
        run: doctest,
    },
    Step {
        name: "doc",
        heavy: false,
        run: doc,
    },
    Step {
        name: "example",
        heavy: false,
        run: example,
    },
    Step {
        name: "cargo-deny",
        heavy: true,
        run: tools::cargo_deny,
    },
    Step {
        name: "deny",
        heavy: true,
        run: deny,
    },
];

pub(crate) fn list() {
    for step in &STEPS {
        eprintln!(
            "{}{}",
            step.name,
            if step.heavy {
                "  (not with --quick)"
            } else {
                ""
            }
        );
    }
}

/// Runs all steps, or the light ones, or those that are named; stops at the first that fails.
pub(crate) fn run(workspace: &Workspace, quick: bool, named: &[String]) -> Result<()> {
    if let Some(name) = named
        .iter()
        .find(|name| STEPS.iter().all(|step| step.name != **name))
    {
        bail!("there is no step {name}\nhint: cargo xtask test --list");
    }
    let wanted = |step: &&Step| {
        if named.is_empty() {
            !(quick && step.heavy)
        } else {
            named.iter().any(|n| n == step.name)
        }
    };
    let steps: Vec<&Step> = STEPS.iter().filter(wanted).collect();
    let start = Instant::now();
    let mut times: Vec<(&str, Duration)> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        eprintln!("\n==== {}/{} {} ====", at + 1, steps.len(), step.name);
        let begin = Instant::now();
        let done = (step.run)(workspace);
        times.push((step.name, begin.elapsed()));
        if let Err(error) = done {
            return Err(error.context(format!("step {} failed", step.name)));
        }
    }
    eprintln!(
        "\n==== all {} steps passed in {} s ====",
        steps.len(),
        start.elapsed().as_secs()
    );
    for (name, time) in times {
        eprintln!("{:>7.1} s  {name}", time.as_secs_f64());
    }
    Ok(())
}

fn fmt(workspace: &Workspace) -> Result<()> {
    run_cargo(workspace, "fmt --all --check")
}

fn clippy(workspace: &Workspace) -> Result<()> {
    run_cargo(
        workspace,
        "clippy --workspace --all-targets --locked -- -D warnings",
    )
}

fn test(workspace: &Workspace) -> Result<()> {
    run_cargo(workspace, "test --workspace --lib --bins --tests --locked")
}

fn test_with_servers(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(
        workspace,
        "test --workspace --lib --bins --tests --locked -- --ignored",
    );
    command.env("CRAWL_PYTHON_BIN", workspace.python_bin());
    command.envs(debian::environment(workspace)?);
    workspace::run(&mut command)
}

fn doctest(workspace: &Workspace) -> Result<()> {
    run_cargo(workspace, "test --workspace --doc --locked")
}

fn doc(workspace: &Workspace) -> Result<()> {
    let mut command = cargo(workspace, "doc --workspace --no-deps --locked");
    workspace::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn example(workspace: &Workspace) -> Result<()> {
    run_cargo(
        workspace,
        "run --locked --package crawl --example first_crawl",
    )
}

fn deny(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.program(tools::cargo_deny_program(workspace));
    workspace::run(command.args(["--locked", "check", "bans", "licenses", "sources"]))
}

fn run_cargo(workspace: &Workspace, args: &str) -> Result<()> {
    workspace::run(&mut cargo(workspace, args))
}

fn cargo(workspace: &Workspace, args: &str) -> Command {
    workspace.cargo(&args.split(' ').collect::<Vec<_>>())
}
