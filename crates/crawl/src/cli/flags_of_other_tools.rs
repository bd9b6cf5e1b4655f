//! Flags of other crawlers and downloaders (wget, curl, HTTrack, Scrapy, lychee), for hints about
//! the flags of this program that do the same.

use clap::Command;

/// Why no flag turns robots.txt off.
pub(super) const ROBOTS_ALWAYS_APPLY: &str = "no flag ignores robots.txt, because it is what the \
     site permits; a site's owner can permit this crawler by its name (--agent)";

/// Flags of this program, each with the flags of other tools that do the same. If tools disagree on
/// the meaning of a short flag, its meaning in wget is listed.
const OUR_FLAGS: [(&str, &[&str]); 24] = [
    (
        "max-depth",
        &["--depth", "--level", "-l", "--depth-limit", "-d"],
    ),
    (
        "output",
        &[
            "-o",
            "-O",
            "-P",
            "--out",
            "--output-dir",
            "--directory-prefix",
            "--path",
        ],
    ),
    ("out", &["-o", "-O", "--output"]),
    ("agent", &["--user-agent", "--useragent", "-U"]),
    (
        "delay",
        &[
            "--wait",
            "-w",
            "--waitretry",
            "--random-wait",
            "--download-delay",
            "--sleep",
        ],
    ),
    (
        "include",
        &["--accept", "--accept-regex", "-A", "--allow", "-I"],
    ),
    (
        "exclude",
        &[
            "--reject",
            "--reject-regex",
            "-R",
            "--deny",
            "--exclude-path",
            "--exclude-directories",
            "-X",
        ],
    ),
    ("host", &["--domains", "-D", "--allowed-domains"]),
    ("exclude-host", &["--exclude-domains"]),
    ("scope any", &["--span-hosts", "-H"]),
    ("scope prefix", &["--no-parent"]),
    ("hops-off-scope", &["--ext-depth"]),
    ("resources", &["--page-requisites", "-p"]),
    ("max-pages", &["--limit", "--max-urls", "--max-files"]),
    ("max-bytes", &["--quota", "-Q", "--size-limit"]),
    ("max-time", &["--time-limit"]),
    ("max-rate", &["--rate", "--rate-limit"]),
    (
        "concurrency",
        &[
            "--max-concurrency",
            "--concurrent-requests",
            "--sockets",
            "-c",
            "--threads",
        ],
    ),
    (
        "retries",
        &["--tries", "-t", "--retry", "--max-retries", "--retry-times"],
    ),
    ("timeout", &["-T", "--max-wait"]),
    ("seed-file", &["--input-file", "-i", "--url-file"]),
    ("ca-file", &["--cacert", "--ca-certificate"]),
    ("cookies", &["--load-cookies", "--cookie", "-b"]),
    ("log", &["--output-file", "-a", "--logfile", "--log-file"]),
];

/// Flags of other tools that no flag of a crawl replaces, each with what to do instead.
const NO_FLAGS: [(&[&str], &str); 7] = [
    (
        &[
            "--ignore-robots",
            "--ignore-robots-txt",
            "--no-robots",
            "--no-robots-txt",
            "--robotstxt",
            "-e",
            "--execute",
        ],
        ROBOTS_ALWAYS_APPLY,
    ),
    (
        &["-r", "--recursive"],
        "every crawl follows links; --max-depth 0 fetches only the seeds",
    ),
    (
        &["-m", "--mirror", "-k", "--convert-links"],
        "crawl first; then `crawl export DIR --to mirror --out FOLDER` writes files that open \
         without a server",
    ),
    (
        &[
            "--header",
            "--headers",
            "--user",
            "--password",
            "--http-user",
            "--http-password",
            "--basic-auth",
        ],
        "headers and credentials belong to one host: put them under [site.\"HOST\"] in a file for \
         --config",
    ),
    (
        &["--insecure", "--no-check-certificate"],
        "certificates are always checked; --ca-file adds a certificate authority",
    ),
    (
        &["-L", "--location", "--follow-redirects"],
        "redirects are always followed; --max-redirects limits them",
    ),
    (
        &["--spider"],
        "`crawl check URL` lists a site's broken links",
    ),
];

/// Returns the hint for a flag that `command` doesn't have, but that another tool has. The hint is
/// a flag of `command` that does the same, or the advice in [`NO_FLAGS`]. `None` if there is
/// neither.
pub(super) fn hint(command: &Command, flag: &str) -> Option<String> {
    let has = |name: &str| {
        let mut flags = command.get_arguments();
        flags.any(|arg| arg.get_long() == name.split(' ').next())
    };
    let ours = OUR_FLAGS
        .iter()
        .find(|(name, theirs)| theirs.contains(&flag) && has(name));
    if let Some((name, _)) = ours {
        return Some(format!("`{flag}` is `--{name}` here"));
    }
    let advice = NO_FLAGS.iter().find(|(theirs, _)| theirs.contains(&flag));
    advice
        .filter(|_| has("max-depth"))
        .map(|(_, advice)| (*advice).to_owned())
}

#[cfg(test)]
mod tests {
    use super::{NO_FLAGS, OUR_FLAGS, hint};
    use crate::cli::preprocess::built;

    #[test]
    fn flags_of_other_tools_lead_to_flags_that_exist() {
        let crawl = built();
        let takes = |flag: &str| {
            crawl.get_arguments().any(|arg| {
                let short = arg.get_short().map(|short| format!("-{short}"));
                let long = arg.get_long().map(|long| format!("--{long}"));
                [short, long].iter().flatten().any(|own| own == flag)
            })
        };
        for (name, theirs) in OUR_FLAGS {
            let own = format!("--{}", name.split(' ').next().unwrap());
            // Only subcommands have `--out`, so the flags that map to it are exempt from both
            // checks.
            assert!(takes(&own) || name == "out", "{own}");
            for flag in theirs.iter().filter(|_| name != "out") {
                assert!(!takes(flag), "{flag}");
            }
        }
        for flag in NO_FLAGS.iter().flat_map(|(theirs, _)| *theirs) {
            assert!(!takes(flag), "{flag}");
        }
    }

    #[test]
    fn a_flag_is_mapped_to_one_that_the_command_has() {
        let crawl = built();
        let of = |command: &str| crawl.find_subcommand(command).unwrap();
        let check = |command, flag, expected: Option<&str>| {
            assert_eq!(hint(command, flag).as_deref(), expected, "{flag}");
        };
        check(&crawl, "--depth", Some("`--depth` is `--max-depth` here"));
        check(
            &crawl,
            "--no-parent",
            Some("`--no-parent` is `--scope prefix` here"),
        );
        check(&crawl, "-o", Some("`-o` is `--output` here"));
        check(of("export"), "-o", Some("`-o` is `--out` here"));
        check(of("report"), "-o", None);
        check(of("report"), "-r", None);
        check(&crawl, "--sede", None);
        let robots = hint(of("plan"), "--ignore-robots").unwrap();
        assert!(robots.starts_with("no flag ignores robots.txt"), "{robots}");
    }
}
