//! `crawl export --to bundle`: complete, reproducible and without secrets, and every byte is
//! checked.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crawl_testweb::{HttpAnswer, TestWeb};
use flate2::read::MultiGzDecoder;

use crate::harness::{Cmd, Dir, Ran, setup};

const STUDY: &str = "\
[operator]
kind = \"research\"
contact = \"ada@example.org\"
operator-name = \"Ada \\\"Example\\\"\"
institution = \"Institute of Examples\"
study = \"How pages: link\"
study-page = \"https://example.org/study\"
";

/// Crawls two hosts for a study, with secrets in its configuration.
fn study(dir: &Dir, cmd: &mut Cmd) {
    drop(study_with(dir, cmd, ""));
}

/// Crawls as [`study`] does, with `more` tables at the end of the configuration. Returns the hosts.
fn study_with(dir: &Dir, cmd: &mut Cmd, more: &str) -> TestWeb {
    let front = "<title>front</title><a href=/gone>a</a><a href=/moved>b</a><a href=/barred>c</a>";
    let web = TestWeb::builder()
        .seed(9)
        .hosts(2)
        .pages(6)
        .robots(0, "User-agent: *\nDisallow: /barred\n")
        .script(0, "/", HttpAnswer::html(front))
        .script(0, "/gone", HttpAnswer::of(404))
        .script(0, "/moved", HttpAnswer::redirect(301, "/"))
        .start();
    let config = format!(
        "{STUDY}[site.\"127.0.0.1\"]\ndelay = \"0s\"\nbasic-auth = \"me:s3cr3t-one\"\n\
         headers = {{ X-Key = \"s3cr3t-two\", X-Env = \"env:SECRET_NAME\" }}\n\
         cookies = {{ session = \"s3cr3t-three\" }}\n{more}"
    );
    dir.write("study.toml", &config);
    cmd.env("SECRET_NAME", "s3cr3t-four");
    let seeds = [web.url(0, "/"), web.url(1, "/")];
    let ran = cmd.run(&[
        "--config",
        "study.toml",
        "--seed",
        &seeds[0],
        "--seed",
        &seeds[1],
        "--output",
        "c",
        "--links",
        "on",
        "--delay",
        "0s",
        "--delay-factor",
        "0",
        "--progress",
        "off",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    web
}

fn export(cmd: &Cmd, out: &str) -> String {
    let ran = cmd.run(&["export", "c", "--to", "bundle", "--out", out]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stderr
}

/// Returns all files of a folder by path.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut contents = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                contents.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    contents
}

#[test]
fn a_bundle_is_complete_reproducible_and_without_secrets() {
    let (dir, mut cmd) = setup("bundle");
    study(&dir, &mut cmd);
    dir.write("c/notes.jsonl", "{\"password\":\"s3cr3t-five\"}\n");
    let message = export(&cmd, "b");
    assert!(message.starts_with("b written: "), "{message}");
    assert!(
        message.ends_with("left out, since bundles don't include such files: notes.jsonl\n"),
        "{message}"
    );
    // Files that the user keeps next to the archive are left out too.
    dir.write("c/archive/mine.warc.gz", "");
    let message = export(&cmd, "again");
    assert!(
        message.ends_with(": archive/mine.warc.gz, notes.jsonl\n"),
        "{message}"
    );
    let bundle = files(&dir.file("b"));
    let names: Vec<_> = bundle.keys().collect();
    assert!(bundle == files(&dir.file("again")), "{names:?}");
    for name in [
        "bagit.txt",
        "data/CITATION.cff",
        "data/README.md",
        "data/archive/index.cdxj",
        "data/crawl.toml",
        "data/croissant.json",
        "data/excluded.jsonl",
        "data/report.json",
        "data/requests.jsonl",
        "data/ro-crate-context.json",
        "data/ro-crate-metadata.json",
        "data/robots.jsonl",
        "data/tables/excluded.parquet",
        "tagmanifest-sha256.txt",
    ] {
        assert!(bundle.contains_key(name), "{name} of {names:?}");
    }
    let robots = String::from_utf8_lossy(&bundle["data/robots.jsonl"]);
    assert!(
        robots.contains(r#""text":"User-agent: *\nDisallow: /barred\n""#),
        "{robots}"
    );
    let readme = String::from_utf8_lossy(&bundle["data/README.md"]);
    assert!(
        readme.starts_with("# How pages: link\n") && readme.contains("Institute"),
        "{readme}"
    );

    let mark = dir.read("c/crawl.toml");
    let mark = mark
        .lines()
        .find_map(|line| line.strip_prefix("mark = "))
        .unwrap()
        .trim_matches('"');
    for (name, bytes) in &bundle {
        let mut plain = Vec::new();
        match name.ends_with(".gz") {
            true => drop(
                MultiGzDecoder::new(&bytes[..])
                    .read_to_end(&mut plain)
                    .unwrap(),
            ),
            false => plain.clone_from(bytes),
        }
        for secret in ["s3cr3t", "SECRET_NAME", "bWU6czNjcjN0", mark] {
            let is_in = plain
                .windows(secret.len())
                .any(|found| found == secret.as_bytes());
            assert!(!is_in, "{name} holds {secret}");
        }
    }

    let text = cmd.run(&["verify", "b"]).ok();
    assert!(
        text.starts_with("digests    ") && text.ends_with("defects    none\n"),
        "{text}"
    );
    // The bundle's payload is a crawl's directory, which all other commands accept.
    assert!(
        cmd.run(&["audit", "b/data"])
            .ok()
            .contains("breaches   none")
    );
    let wacz = cmd.run(&["export", "b/data", "--to", "wacz", "--out", "b.wacz"]);
    assert_eq!(wacz.code, 0, "{}", wacz.stderr);
    let there = cmd.run(&["export", "c", "--to", "bundle", "--out", "b"]);
    assert_eq!(there.code, 2, "{}", there.stderr);
}

#[test]
fn a_bundle_has_the_files_of_every_feature() {
    let (dir, mut cmd) = setup("bundle-features");
    let rules = |selector: &str| {
        format!("[[extract]]\nname = \"titles\"\n[extract.fields]\ntitle = \"{selector}\"\n")
    };
    let more = format!(
        "[sample]\nsample = 3\n[output]\nindex = \"on\"\n[group.study]\nhosts = [\"127.0.0.1\"]\n\
         max-pages = 40\n{}",
        rules("h2")
    );
    let _web = study_with(&dir, &mut cmd, &more);
    export(&cmd, "b");
    assert_eq!(
        dir.read("b/data/extract-rules.json"),
        dir.read("c/extract-rules.json")
    );
    assert_eq!(cmd.run(&["verify", "b"]).code, 0);
    dir.write("rules.toml", &rules("title"));
    assert_eq!(cmd.run(&["extract", "c", "--config", "rules.toml"]).code, 0);
    assert_eq!(cmd.run(&["recheck", "c"]).code, 0);
    let page = dir.rows("c/pages.jsonl")[0]["url"].clone();
    assert_eq!(cmd.run(&["forget", "c", page.as_str().unwrap()]).code, 0);
    let message = export(&cmd, "later");
    assert!(!message.contains("left out"), "{message}");
    for name in ["extract-rules.json", "recheck.jsonl", "tombstones.jsonl"] {
        assert_eq!(
            dir.read(&format!("later/data/{name}")),
            dir.read(&format!("c/{name}"))
        );
    }
    assert_eq!(cmd.run(&["verify", "later"]).code, 0);
}

/// Returns the next number of a pseudo-random sequence (`SplitMix64`).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn each_of_a_thousand_flipped_bits_is_reported_by_its_file() {
    let (dir, mut cmd) = setup("bundle-flips");
    study(&dir, &mut cmd);
    export(&cmd, "b");
    let root = dir.file("b");
    let scratch = dir.file("scratch");
    fs::create_dir(&scratch).unwrap();
    let whole = crawl_bundle::verify(&root, &scratch).unwrap();
    assert!(whole.is_whole() && whole.unchecked.is_empty(), "{whole}");
    let bundle: Vec<(String, Vec<u8>)> = files(&root).into_iter().collect();
    let mut state = 2026;
    let mut records = 0;
    for flip in 0..1000 {
        // Each flip uses the next file, so that short files are tested as well.
        let (name, bytes) = &bundle[flip % bundle.len()];
        if bytes.is_empty() {
            continue;
        }
        let at = usize::try_from(random(&mut state)).unwrap() % bytes.len();
        let bit = random(&mut state) % 8;
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << bit;
        fs::write(root.join(name), &flipped).unwrap();
        let findings = crawl_bundle::verify(&root, &scratch).unwrap();
        fs::write(root.join(name), bytes).unwrap();
        let mut named = findings
            .findings
            .iter()
            .filter(|finding| finding.file == *name);
        assert!(
            named.next().is_some(),
            "bit {bit} of byte {at} of {name}: {findings}"
        );
        records += usize::from(named.any(|finding| finding.offset.is_some_and(|o| o <= at as u64)));
    }
    assert!(records > 20, "{records} flips were named by their record");
    assert!(crawl_bundle::verify(&root, &scratch).unwrap().is_whole());
}

#[test]
fn wrong_contents_with_right_digests_are_detected() {
    let (dir, mut cmd) = setup("bundle-remade");
    study(&dir, &mut cmd);
    export(&cmd, "b");
    // Changes a file, and regenerates the manifests, as anyone who tampers with a bundle can do.
    let remade = |file: &str, from: &str, to: &str| {
        let path = dir.file("b").join(file);
        let before = fs::read_to_string(&path).unwrap();
        let after = before.replacen(from, to, 1);
        assert_ne!(before, after);
        fs::write(&path, after).unwrap();
        let manifest = dir.read("b/manifest-sha256.txt");
        let tags = dir.read("b/tagmanifest-sha256.txt");
        let fixed = redigested(&dir, &manifest);
        dir.write("b/manifest-sha256.txt", &fixed);
        dir.write("b/tagmanifest-sha256.txt", &redigested(&dir, &tags));
        let ran = cmd.run(&["verify", "b"]);
        fs::write(&path, before).unwrap();
        dir.write("b/manifest-sha256.txt", &manifest);
        dir.write("b/tagmanifest-sha256.txt", &tags);
        assert_eq!(ran.code, 4, "{}", ran.stdout);
        ran.stdout
    };
    let findings = remade(
        "data/pages.jsonl",
        "\"title\":\"front\"",
        "\"title\":\"other\"",
    );
    let table =
        "data/tables/pages.parquet: column `title` has a value that is not in the row files";
    assert!(findings.contains(table), "{findings}");
    let findings = remade("data/robots.jsonl", "/barred", "/others");
    assert!(
        findings.contains(": differs from the response in the archive"),
        "{findings}"
    );
    assert!(
        findings.contains("its description of `robots.jsonl` does not match the file"),
        "{findings}"
    );
    let findings = remade("data/requests.jsonl", "\"status\":404", "\"status\":410");
    assert!(
        findings.contains("its status differs from line"),
        "{findings}"
    );
}

fn redigested(dir: &Dir, manifest: &str) -> String {
    let lines = manifest.lines().map(|line| {
        let (_, path) = line.split_once("  ").unwrap();
        let bytes = fs::read(dir.file("b").join(path)).unwrap();
        let digest = crawl_archive::DigestAlgorithm::Sha256.of(&[&bytes]);
        format!("{}  {path}\n", digest.strip_prefix("sha256:").unwrap())
    });
    lines.collect()
}

#[test]
fn an_unfinished_crawl_can_t_be_bundled() {
    let (dir, mut cmd) = setup("bundle-running");
    study(&dir, &mut cmd);
    fs::remove_file(dir.file("c/waiting.jsonl")).unwrap();
    let ran = cmd.run(&["export", "c", "--to", "bundle", "--out", "b"]);
    assert_eq!(
        ran.refusal(&dir),
        "2\nerror: the last run of the crawl in `c` has not ended, or was killed\nhint: wait until it \
         ends, or continue with `crawl --output c` and stop it with Ctrl-C; `--to wacz` exports what there is so far"
    );
    assert!(!dir.file("b").exists());
}

#[test]
fn folders_without_a_crawl_are_not_bundled_and_empty_ones_are_reported() {
    let (dir, mut cmd) = setup("bundle-folders");
    fs::create_dir(dir.file("none")).unwrap();
    let ran = cmd.run(&["export", "none", "--to", "bundle", "--out", "b"]);
    assert_eq!(
        ran.refusal(&dir),
        "2\nerror: no crawl in `none`\n\
         hint: give the directory of a crawl, with its pages.jsonl"
    );
    assert!(!dir.file("b").exists());
    study(&dir, &mut cmd);
    export(&cmd, "b");
    fs::create_dir(dir.file("b/data/more")).unwrap();
    let ran = cmd.run(&["verify", "b"]);
    let defect = "  data/more: no manifest lists a file in this folder\n";
    assert!(
        ran.code == 4 && ran.stdout.contains(defect),
        "{}",
        ran.stdout
    );
    // A file that was changed after the end of the crawl can't be bundled.
    let page = dir.read("c/report.html").replacen("<title>", "<title>x", 1);
    dir.write("c/report.html", &page);
    let ran = cmd.run(&["export", "c", "--to", "bundle", "--out", "b2"]);
    let reason = "report.html: its SHA-256 differs from digests.jsonl";
    assert!(
        ran.code == 4 && ran.stderr.contains(reason),
        "{}",
        ran.stderr
    );
}

/// `CRAWL_DESCRIPTIONS_PYTHON` is a Python with roc-validator, mlcroissant, cffconvert and bagit.
/// `CRAWL_RO_CRATE_CONTEXT` is the context of RO-Crate 1.2 as another project publishes it. The
/// validators read the bundle's own copy of the context and use no network. Takes about 20 s.
#[test]
#[ignore = "needs validators of descriptions: cargo xtask test sets them up"]
fn validators_of_ro_crate_croissant_citations_and_bags_accept_a_bundle() {
    let (dir, mut cmd) = setup("bundle-validators");
    study(&dir, &mut cmd);
    export(&cmd, "b");
    let named = |name: &str| PathBuf::from(std::env::var_os(name).unwrap());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundle.py");
    let mut check = Command::new(named("CRAWL_DESCRIPTIONS_PYTHON"));
    check
        .arg(script)
        .arg(dir.file("b"))
        .arg(named("CRAWL_RO_CRATE_CONTEXT"))
        .arg(dir.file("cache"))
        .env("HOME", dir.path());
    let ran = Ran::of_command(&mut check).ok();
    let accepted: Vec<&str> = ran.lines().collect();
    assert_eq!(
        accepted,
        [
            "ro-crate-1.2",
            "process-run-crate-0.5",
            "croissant",
            "citation",
            "bagit"
        ]
    );
}
