//! Fuzzing: builds the targets of `crates/fuzz` with libFuzzer and runs them.
//!
//! The stable compiler is enough, because `RUSTC_BOOTSTRAP` unlocks the passes that record which
//! code an input reaches. The code is safe Rust, so no sanitizer runs. Targets compare results, and
//! are built with assertions and overflow checks.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, output, run};

#[path = "../../fuzz/src/corpus_line_escape.rs"]
mod escape;

use escape::{escaped, unescaped};

/// The flags that instrument code for libFuzzer, as cargo-fuzz passes them.
const INSTRUMENTED: &str = "['-Cpasses=sancov-module', \
     '-Cllvm-args=-sanitizer-coverage-level=4', \
     '-Cllvm-args=-sanitizer-coverage-inline-8bit-counters', \
     '-Cllvm-args=-sanitizer-coverage-pc-table', \
     '-Cllvm-args=-sanitizer-coverage-trace-compares']";
/// Packages to instrument, because they read inputs. All others run at full speed.
///
/// A package with a build script can't be listed, because Cargo would instrument the script too.
/// `crawl-weburl` is not listed either: the Public Suffix List would become 150,000 counters, which
/// libFuzzer reads and clears for each input.
const READERS: [&str; 29] = [
    "adobe-cmap-parser",
    "cookie_store",
    "crawl",
    "crawl-archive",
    "crawl-coding",
    "crawl-dates",
    "crawl-documents",
    "crawl-extractor",
    "crawl-fetcher",
    "crawl-fields",
    "crawl-frontier",
    "crawl-index",
    "crawl-index-entry",
    "crawl-policy",
    "crawl-records",
    "crawl-scope",
    "crawl-shared-frontier",
    "crawl-traps",
    "html5ever",
    "hyper",
    "lopdf",
    "pdf-extract",
    "postgres-protocol",
    "quick-xml",
    "sfv",
    "tokio-postgres",
    "toml",
    "toml_parser",
    "zip",
];
/// Packages that no target runs. They are built without optimization, because optimizing them would
/// take minutes.
const UNUSED: [&str; 21] = [
    "clap_builder",
    "clap_complete",
    "crawl-engine",
    "crawl-gather",
    "crawl-mirror",
    "crawl-sample",
    "crawl-wacz",
    "fjall",
    "h2",
    "hickory-net",
    "hickory-proto",
    "hickory-resolver",
    "lsm-tree",
    "moka",
    "rustls",
    "tantivy",
    "tantivy-columnar",
    "tantivy-fst",
    "tantivy-sstable",
    "tower-http",
    "x509-cert",
];
/// Maximum bytes of a corpus in the repository. If a corpus is larger, its longest inputs are
/// dropped.
const MAX_CORPUS_BYTES: usize = 100 << 10;
/// Maximum seconds for one input. A slower input is a failure.
const MAX_SECONDS: u32 = 5;
/// Maximum memory for one input, in MiB. An input that takes more is a failure.
const MAX_MEMORY: u32 = 2048;

/// Arguments of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Targets [default: all]
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Number of inputs per target
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    runs: u64,
    /// End each target after this many seconds
    #[arg(long, value_name = "SECONDS", conflicts_with = "runs")]
    time: Option<u32>,
    /// Maximum length of inputs, instead of the target's own
    #[arg(long, value_name = "BYTES")]
    length: Option<usize>,
    /// Finally replace the corpora in the repository by the shortest inputs that reach the same
    /// code
    #[arg(long)]
    minimize: bool,
}

pub(crate) fn run_targets(workspace: &Workspace, args: &Args) -> Result<()> {
    let names = targets(&workspace.root)?;
    if let Some(name) = args.targets.iter().find(|name| !names.contains(name)) {
        bail!(
            "no target {name}\nhint: the targets are {}",
            names.join(", ")
        );
    }
    let chosen = match args.targets.is_empty() {
        true => &names,
        false => &args.targets,
    };
    let programs = build(workspace, chosen)?;
    for name in chosen {
        let target = FuzzTarget {
            workspace,
            name,
            program: programs.join(name),
            inputs: workspace.target.join("fuzz/corpus").join(name),
        };
        target.unpack()?;
        target.fuzz(args)?;
        if args.minimize {
            target.minimize()?;
        }
    }
    Ok(())
}

/// Returns the names of the targets, sorted.
fn targets(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for file in fs::read_dir(root.join("crates/fuzz/src/bin"))? {
        let file = file?.path();
        names.extend(
            file.file_stem()
                .map(|stem| stem.to_string_lossy().into_owned()),
        );
    }
    names.sort();
    Ok(names)
}

/// Builds the targets with the library versions of the workspace. Returns the folder of the
/// programs.
fn build(workspace: &Workspace, names: &[String]) -> Result<PathBuf> {
    let package = workspace.root.join("crates/fuzz");
    fs::copy(
        workspace.root.join("Cargo.lock"),
        package.join("Cargo.lock"),
    )?;
    let version = output(workspace.program("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc names no host")?;
    let folder = workspace.target.join("fuzz");
    let mut cargo = workspace.cargo(&["build", "--release"]);
    // Name the platform, because otherwise Cargo would also instrument build scripts and macros.
    cargo.args(["--target", host, "--target-dir"]).arg(&folder);
    cargo.arg("--manifest-path").arg(package.join("Cargo.toml"));
    cargo.args(names.iter().flat_map(|name| ["--bin", name.as_str()]));
    cargo.arg("-Zprofile-rustflags");
    for setting in profile() {
        cargo.args(["--config", &setting]);
    }
    cargo
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "--cfg fuzzing");
    run(&mut cargo)?;
    Ok(folder.join(host).join("release"))
}

/// Returns the Cargo settings that choose which packages are instrumented and optimized.
fn profile() -> Vec<String> {
    let flags = |package: &str, flags| format!("profile.release.{package}rustflags = {flags}");
    let mut settings = vec![
        flags("", INSTRUMENTED),
        flags("build-override.", "[]"),
        flags("package.\"*\".", "[]"),
    ];
    settings.extend(READERS.map(|name| flags(&format!("package.{name}."), INSTRUMENTED)));
    settings.extend(UNUSED.map(|name| format!("profile.release.package.{name}.opt-level = 0")));
    settings
}

/// Runs a fuzzer that writes a failing input to the file `failure`. First removes the file that an
/// earlier run left.
///
/// The inner error is the failing input, or `None` if the fuzzer failed without one. The outer
/// error is an I/O error.
fn failing_input(fuzzer: &mut Command, failure: &Path) -> Result<Result<(), Option<Vec<u8>>>> {
    match fs::remove_file(failure) {
        Err(why) if why.kind() != ErrorKind::NotFound => return Err(why.into()),
        _ => {}
    }
    Ok(run(fuzzer).map_err(|_| fs::read(failure).ok()))
}

struct FuzzTarget<'w> {
    workspace: &'w Workspace,
    name: &'w str,
    program: PathBuf,
    /// The folder with one file per input, including the inputs of earlier runs.
    inputs: PathBuf,
}

impl FuzzTarget<'_> {
    /// Returns the path of the corpus in the repository.
    fn corpus(&self) -> PathBuf {
        let folder = self.workspace.root.join("crates/fuzz/corpus");
        folder.join(format!("{}.txt", self.name))
    }

    /// Writes each input of the corpus to a file in `inputs`.
    fn unpack(&self) -> Result<()> {
        fs::create_dir_all(&self.inputs)?;
        let corpus = self.corpus();
        let text = fs::read_to_string(&corpus).unwrap_or_default();
        for (number, line) in (1..).zip(text.lines()) {
            let input = unescaped(line)
                .with_context(|| format!("{}:{number}: not an input", corpus.display()))?;
            fs::write(self.inputs.join(format!("line-{number}")), input)?;
        }
        Ok(())
    }

    fn fuzz(&self, args: &Args) -> Result<()> {
        let failures = self.workspace.target.join("fuzz/failures");
        fs::create_dir_all(&failures)?;
        let failure = failures.join(format!("{}.input", self.name));
        let words = self.workspace.root.join("crates/fuzz/dictionaries");
        let words = words.join(format!("{}.dict", self.name));
        let mut command = self.workspace.program(&self.program);
        command.arg(&self.inputs);
        command.arg(match args.time {
            Some(seconds) => format!("-max_total_time={seconds}"),
            None => format!("-runs={}", args.runs),
        });
        command.arg(format!("-dict={}", words.display()));
        command.arg(format!("-exact_artifact_path={}", failure.display()));
        let length = args.length.unwrap_or_else(|| max_bytes(self.name));
        command.arg(format!("-max_len={length}"));
        command.arg(format!("-timeout={MAX_SECONDS}"));
        command.arg(format!("-rss_limit_mb={MAX_MEMORY}"));
        command.arg("-print_final_stats=1");
        let Err(input) = failing_input(&mut command, &failure)? else {
            return Ok(());
        };
        let Some(input) = input else {
            bail!(
                "{} failed without an input\nhint: a stack overflow leaves none; run {} in a debugger",
                self.name,
                self.program.display()
            );
        };
        bail!(
            "{} fails for the input {}\nhint: add it to {}: {}",
            self.name,
            failure.display(),
            self.corpus().display(),
            escaped(&input)
        )
    }

    /// Replaces the corpus with the shortest inputs that together reach all code that the current
    /// inputs reach.
    fn minimize(&self) -> Result<()> {
        let merged = self.inputs.with_extension("merged");
        let _ = fs::remove_dir_all(&merged);
        fs::create_dir_all(&merged)?;
        let mut command = self.workspace.program(&self.program);
        command
            .arg("-set_cover_merge=1")
            .arg(&merged)
            .arg(&self.inputs);
        run(&mut command)?;
        let mut inputs = Vec::new();
        for file in fs::read_dir(&merged)? {
            inputs.push(fs::read(file?.path())?);
        }
        inputs.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        fs::write(self.corpus(), packed(&inputs))?;
        Ok(())
    }
}

/// Formats inputs as the lines of a corpus, and drops those beyond `MAX_CORPUS_BYTES`.
fn packed(inputs: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for input in inputs {
        let line = escaped(input);
        if text.len() + line.len() >= MAX_CORPUS_BYTES {
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Returns the maximum length of the inputs of a target. Short inputs run faster, and most faults
/// need few bytes.
fn max_bytes(target: &str) -> usize {
    match target {
        "pdf" | "row_files" => 700,
        "config" | "docx" | "http_responses" | "warc" => 400,
        "link_header" => 64,
        _ => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Path, escaped, failing_input, fs, packed, targets, unescaped};

    #[test]
    fn every_input_is_one_line() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        let line = escaped(&all);
        assert!(line.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        assert_eq!(unescaped(&line), Some(all));
        for line in ["\\", "\\q", "\\x", "\\x0", "\\xgg"] {
            assert_eq!(unescaped(line), None, "{line}");
        }
        let inputs = [b"".to_vec(), b"a\n\\".to_vec()];
        assert_eq!(packed(&inputs), "\na\\n\\\\\n");
    }

    #[test]
    fn only_a_failed_run_names_its_own_input() {
        let folder = tempfile::tempdir().unwrap();
        let failure = folder.path().join("a.input");
        let fuzzer = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]).env("FAILURE", &failure);
            failing_input(&mut command, &failure).unwrap()
        };
        let failed = fuzzer("printf bad > \"$FAILURE\"; exit 1");
        assert_eq!(failed, Err(Some(b"bad".to_vec())));
        assert_eq!(fuzzer("exit 1"), Err(None));
        assert_eq!(fuzzer("exit 0"), Ok(()));
    }

    #[test]
    fn every_target_has_a_corpus_and_a_dictionary() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let names = targets(&root).unwrap();
        assert!(names.len() > 20);
        for (folder, ending) in [("corpus", "txt"), ("dictionaries", "dict")] {
            let folder = root.join("crates/fuzz").join(folder);
            let mut files: Vec<_> = fs::read_dir(folder)
                .unwrap()
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect();
            files.sort();
            let expected: Vec<_> = names
                .iter()
                .map(|name| format!("{name}.{ending}"))
                .collect();
            assert_eq!(files, expected);
        }
    }
}
