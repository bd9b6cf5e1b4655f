//! Mutation testing: cargo-mutants puts one small fault at a time into the code, and the package's
//! tests should fail. A mutant that no test catches is untested code.
//!
//! The workspace has too many mutants to run them all, so a sample is drawn.

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::pinned_tools::{self, CratesIoProgram};
use crate::workspace::{Workspace, output};

const VERSION: &str = "27.1.0";

/// Maximum address space per process, in bytes. Memory is limited because a mutant may allocate
/// endlessly.
const MAX_ADDRESS_SPACE: u64 = 8 << 30;

/// In-memory folder for the files of tests, so that tests don't wait for a disk. Used only if it
/// exists.
const MEMORY_FOLDER: &str = "/dev/shm";

/// Maximum file size, in bytes. Files are limited because test files may be in memory.
const MAX_FILE_SIZE: u64 = 1 << 30;

/// A package to mutate, and the tests that should catch the mutants.
struct MutatedPackage {
    package: &'static str,
    files: &'static str,
    /// The targets to build and run.
    tests: &'static str,
    /// Tests to skip, by parts of their names.
    skipped: &'static [&'static str],
}

const PARTS: [MutatedPackage; 7] = [
    part("crawl-weburl", "crates/weburl/src/**", "--tests", &[]),
    part("crawl-scheduler", "crates/scheduler/src/**", "--tests", &[]),
    part("crawl-policy", "crates/policy/src/**", "--tests", &[]),
    part("crawl-scope", "crates/scope/src/**", "--tests", &[]),
    part("crawl-traps", "crates/traps/src/**", "--tests", &[]),
    // Skip the benchmark and the tests of torn commits and failing disks, because these take as
    // long as all other tests.
    part(
        "crawl-frontier",
        "crates/frontier/src/**",
        "--tests",
        &["torn", "bench", "a_disk_that_fails"],
    ),
    // Run only the unit tests, because the loopback tests take too long to run once per mutant.
    part(
        "crawl-engine",
        "crates/engine/src/crawl_loop/**",
        "--lib",
        &[],
    ),
];

/// Paths of test code, which is not mutated.
const EXCLUDED: [&str; 2] = [
    "crates/frontier/src/conformance/**",
    "crates/*/src/**/fuzz_checks.rs",
];

const fn part(
    package: &'static str,
    files: &'static str,
    tests: &'static str,
    skipped: &'static [&'static str],
) -> MutatedPackage {
    MutatedPackage {
        package,
        files,
        tests,
        skipped,
    }
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of mutants to draw from all packages together
    #[arg(long, value_name = "N", default_value_t = 100)]
    sample: usize,
    /// Number of mutants to skip, for example those of a smaller sample that ran before
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,
    /// The same seed draws the same mutants from the same code
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Run only the mutants drawn from this package (may be repeated)
    #[arg(long = "package", value_name = "NAME")]
    packages: Vec<String>,
}

pub(crate) fn check(workspace: &Workspace, args: &Args) -> Result<()> {
    let packages = PARTS.map(|part| part.package);
    if let Some(name) = args
        .packages
        .iter()
        .find(|name| !packages.contains(&name.as_str()))
    {
        bail!(
            "no mutants are drawn of {name}\nhint: of {}",
            packages.join(", ")
        );
    }
    let tool = CargoMutants::install(workspace)?;
    workspace.copy_files(&tool.tree)?;
    let mut lists = Vec::new();
    for part in &PARTS {
        lists.push(tool.list(part)?);
    }
    let drawn = draw(&lists, args.skip..args.sample, args.seed);
    let mut total = MutantOutcomes::default();
    for ((part, list), drawn) in PARTS.iter().zip(&lists).zip(&drawn) {
        let is_wanted = args.packages.is_empty() || args.packages.iter().any(|x| x == part.package);
        if !is_wanted || drawn.is_empty() {
            continue;
        }
        let outcomes = tool.run(part, list, drawn)?;
        eprintln!(
            "\n{}: {} of {} mutants: {}",
            part.package,
            drawn.len(),
            list.len(),
            outcomes.shown()
        );
        total.add(outcomes);
    }
    eprintln!(
        "\nall, with --sample {} --skip {} --seed {}: {}",
        args.sample,
        args.skip,
        args.seed,
        total.shown()
    );
    Ok(())
}

/// Draws the sample from lists of mutants, one list per package. Ranks all mutants, and returns
/// those of each list whose rank is in `part`, in list order.
///
/// A mutant's rank depends only on the seed and on the mutants' names. So a larger sample includes
/// every smaller sample with the same seed, and most of a sample stays the same when code changes
/// elsewhere.
fn draw(lists: &[Vec<String>], part: Range<usize>, seed: u64) -> Vec<Vec<String>> {
    let mut ranked: Vec<(u64, &str)> = lists
        .iter()
        .flatten()
        .map(|name| (rank(seed, name), name.as_str()))
        .collect();
    ranked.sort_unstable();
    let part = part.start..part.end.min(ranked.len());
    let drawn = ranked.get(part).unwrap_or_default();
    let drawn: HashSet<&str> = drawn.iter().map(|(_, name)| *name).collect();
    let is_drawn = |name: &&String| drawn.contains(name.as_str());
    lists
        .iter()
        .map(|list| list.iter().filter(is_drawn).cloned().collect())
        .collect()
}

/// Hashes seed and name with FNV-1a, followed by the mixing step of SplitMix64. With FNV alone,
/// names that differ only at the end would get similar ranks.
fn rank(seed: u64, name: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in seed.to_le_bytes().into_iter().chain(name.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// The installed cargo-mutants and its folders.
struct CargoMutants<'a> {
    workspace: &'a Workspace,
    program: PathBuf,
    /// The folder for `tree`, the build output, test files and reports.
    folder: PathBuf,
    /// A copy of the workspace's files, which is mutated in place. Kept between runs, because a new
    /// path would make Cargo rebuild the libraries.
    tree: PathBuf,
}

impl CargoMutants<'_> {
    fn install(workspace: &Workspace) -> Result<CargoMutants<'_>> {
        // Build cargo-mutants unoptimised, because it mostly waits for other builds.
        let program = pinned_tools::cargo_program(
            workspace,
            &CratesIoProgram {
                package: "cargo-mutants",
                version: VERSION,
                program: "cargo-mutants",
                args: &["--debug"],
            },
        )?;
        let folder = workspace.target.join("mutants");
        Ok(CargoMutants {
            workspace,
            program,
            tree: folder.join("tree"),
            folder,
        })
    }

    /// Lists the names of all mutants of a part, in source order.
    fn list(&self, part: &MutatedPackage) -> Result<Vec<String>> {
        let mut command = self.workspace.program(&self.program);
        self.choose(&mut command, part);
        let list: Value = serde_json::from_str(&output(command.args(["--list", "--json"]))?)?;
        let mutants = list.as_array().context("cargo-mutants lists no mutants")?;
        mutants.iter().map(name).collect()
    }

    fn run(
        &self,
        part: &MutatedPackage,
        list: &[String],
        drawn: &[String],
    ) -> Result<MutantOutcomes> {
        let folder = self.folder.join(part.package);
        let report = folder.join("mutants.out");
        let memory = Path::new(MEMORY_FOLDER);
        let temporary = match memory.is_dir() {
            true => memory.join(format!("crawl-mutants-{}", std::process::id())),
            false => self.folder.join("tmp"),
        };
        // Remove the report and the test files of an earlier run.
        for folder in [&report, &temporary] {
            if folder.exists() {
                std::fs::remove_dir_all(folder)?;
            }
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        // cargo-mutants with `--iterate` skips mutants that an earlier run caught, so list the
        // mutants that were not drawn as caught. The drawn ones can't be selected with `--re`
        // instead, because cargo-mutants 27.1 runs deletions of struct fields whatever their name.
        let left_out: String = list
            .iter()
            .filter(|name| !drawn.contains(name))
            .map(|name| format!("{name}\n"))
            .collect();
        let caught = report.join("previously_caught.txt");
        std::fs::write(&caught, left_out)
            .with_context(|| format!("cannot write {}", caught.display()))?;

        let mut command = self.workspace.program("prlimit");
        command.arg(format!("--as={MAX_ADDRESS_SPACE}"));
        command.arg(format!("--fsize={MAX_FILE_SIZE}"));
        command.arg(&self.program);
        self.choose(&mut command, part);
        command.args(["--in-place", "--cargo-arg", part.tests]);
        // Shuffle, so that an interrupted run has tried a random sample.
        command.args(["--shuffle", "--timeout-multiplier", "3"]);
        command.arg("--iterate").arg("--output").arg(&folder);
        command.args(["--", "--"]);
        for name in part.skipped {
            command.args(["--skip", name]);
        }
        command.env("CARGO_TARGET_DIR", self.folder.join("build"));
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        // Run fewer cases per property than a normal test run, to save time. More cases could only
        // catch more mutants.
        command.env("PROPTEST_CASES", "64");
        command.env("TMPDIR", &temporary);
        eprintln!("\n==== {}: {} mutants ====", part.package, drawn.len());
        let status = command.status().context("cannot run prlimit");
        // Remove the files that killed tests left behind.
        std::fs::remove_dir_all(&temporary)?;
        let status = status?;
        match status.code() {
            // 0: all mutants caught, 2: some missed, 3: some timed out.
            Some(0 | 2 | 3) => MutantOutcomes::read(&report.join("outcomes.json")),
            _ => bail!("cargo-mutants ended with {status}"),
        }
    }

    fn choose(&self, command: &mut Command, part: &MutatedPackage) {
        command.args(["mutants", "--package", part.package, "--dir"]);
        command.arg(&self.tree);
        command.args(["--file", part.files]);
        command.args(EXCLUDED.iter().flat_map(|files| ["--exclude", files]));
    }
}

fn name(mutant: &Value) -> Result<String> {
    let name = mutant["name"].as_str();
    name.map(str::to_owned)
        .with_context(|| format!("cargo-mutants names no mutant: {mutant}"))
}

/// The outcomes of the mutants that ran.
#[derive(Default)]
struct MutantOutcomes {
    caught: usize,
    /// Number of mutants that don't compile.
    unviable: usize,
    missed: Vec<String>,
    /// Mutants under which the tests did not end, which count as caught.
    timed_out: Vec<String>,
}

impl MutantOutcomes {
    fn read(path: &Path) -> Result<MutantOutcomes> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let report: Value = serde_json::from_str(&text)?;
        let mut outcomes = MutantOutcomes::default();
        for outcome in report["outcomes"].as_array().into_iter().flatten() {
            // Skip the baseline run, which has no mutant.
            let mutant = &outcome["scenario"]["Mutant"];
            match outcome["summary"].as_str() {
                _ if mutant.is_null() => {}
                Some("CaughtMutant") => outcomes.caught += 1,
                Some("Unviable") => outcomes.unviable += 1,
                Some("MissedMutant") => outcomes.missed.push(name(mutant)?),
                Some("Timeout") => outcomes.timed_out.push(name(mutant)?),
                other => bail!("{} came out as {other:?}", name(mutant)?),
            }
        }
        Ok(outcomes)
    }

    fn add(&mut self, other: MutantOutcomes) {
        self.caught += other.caught;
        self.unviable += other.unviable;
        self.missed.extend(other.missed);
        self.timed_out.extend(other.timed_out);
    }

    fn shown(&self) -> String {
        let caught = self.caught + self.timed_out.len();
        let viable = caught + self.missed.len();
        let mut text = format!(
            "{} caught, {} missed, {} timed out, {} unviable; {} % of {viable} viable ones caught",
            self.caught,
            self.missed.len(),
            self.timed_out.len(),
            self.unviable,
            100 * caught / viable.max(1),
        );
        for (heading, names) in [("missed", &self.missed), ("timed out", &self.timed_out)] {
            for name in names {
                text.push_str(&format!("\n  {heading}: {name}"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{MutantOutcomes, draw};

    fn lists() -> Vec<Vec<String>> {
        let list = |package: &str, count: usize| {
            (0..count)
                .map(|line| format!("{package}.rs:{line}:1: replace + with -"))
                .collect()
        };
        vec![list("a", 300), list("b", 0), list("c", 700)]
    }

    #[test]
    fn a_sample_depends_only_on_its_seed() {
        let sample = draw(&lists(), 0..100, 7);
        assert_eq!(sample, draw(&lists(), 0..100, 7));
        assert_ne!(sample, draw(&lists(), 0..100, 8));
        assert_eq!(sample.iter().flatten().count(), 100);
        // The drawn mutants must be in the order of their list.
        for (drawn, list) in sample.iter().zip(lists()) {
            let expected: Vec<_> = list.iter().filter(|name| drawn.contains(name)).collect();
            assert_eq!(drawn.iter().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn packages_are_drawn_by_their_size() {
        let [small, empty, large] = draw(&lists(), 0..200, 1).try_into().unwrap();
        assert!((45..=75).contains(&small.len()), "{}", small.len());
        assert_eq!(empty, [""; 0]);
        assert_eq!(small.len() + large.len(), 200);
    }

    #[test]
    fn a_larger_sample_is_a_smaller_one_and_the_rest() {
        let large = draw(&lists(), 0..150, 3);
        let parts = [draw(&lists(), 0..50, 3), draw(&lists(), 50..150, 3)];
        for (at, large) in large.iter().enumerate() {
            let [small, rest] = [&parts[0][at], &parts[1][at]];
            assert_eq!(small.len() + rest.len(), large.len());
            assert!(small.iter().chain(rest).all(|name| large.contains(name)));
        }
    }

    #[test]
    fn a_sample_ends_with_the_lists() {
        assert_eq!(draw(&lists(), 0..5_000, 1), lists());
        for none in [0..0, 1_000..2_000, 5_000..6_000] {
            assert_eq!(draw(&lists(), none, 1), vec![Vec::<String>::new(); 3]);
        }
        assert_eq!(draw(&[], 0..10, 1), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_timed_out_mutant_counts_as_caught() {
        let outcomes = MutantOutcomes {
            caught: 7,
            unviable: 5,
            missed: vec!["a".to_owned()],
            timed_out: vec!["b".to_owned(), "c".to_owned()],
        };
        assert_eq!(
            outcomes.shown(),
            "7 caught, 1 missed, 2 timed out, 5 unviable; 90 % of 10 viable ones caught\
             \n  missed: a\n  timed out: b\n  timed out: c"
        );
    }
}
