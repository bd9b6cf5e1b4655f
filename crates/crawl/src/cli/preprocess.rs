//! Rewrites the command line before clap reads it.
//!
//! Clap can't express two of our rules: a flag's optional value may follow `=` or be the next word
//! (`--resources all`), and a word that is a URL or a host is a seed (`crawl example.org`). Both
//! rules are derived from clap's own definitions, so a new flag needs no change here.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, FromArgMatches as _};

use crate::cli::args::{self, Cli};
use crate::error::CommandError;
use crate::settings::typed_seed::is_seed;
use crate::settings::{CONTACT_HINT, read_contact};

/// The reason why a command line can't be read.
#[derive(Debug)]
pub(crate) enum CommandLineError {
    /// clap's error: wrong syntax, or a request for help or the version.
    Syntax(clap::Error),
    /// A value in the command line or in the environment is unusable.
    Value(CommandError),
}

/// Reads this process's command line.
pub(crate) fn read() -> Result<Cli, CommandLineError> {
    let matches = matches(built(), std::env::args_os())?;
    check_environment(&matches).map_err(CommandLineError::Value)?;
    Cli::from_arg_matches(&matches).map_err(CommandLineError::Syntax)
}

/// Parses a command line, whose first word is the name of the program.
pub(super) fn matches(
    command: Command,
    words: impl IntoIterator<Item = OsString>,
) -> Result<ArgMatches, CommandLineError> {
    let words = prepare(&command, words).map_err(CommandLineError::Value)?;
    command
        .try_get_matches_from(words)
        .map_err(CommandLineError::Syntax)
}

/// Builds the complete definition of the command line. By default clap builds it only while
/// parsing, which is too late for this module.
pub(super) fn built() -> Command {
    let mut command = args::command();
    command.build();
    command
}

/// Rejects an unusable contact from the environment. The error names the variable, because the user
/// didn't type the contact and might look elsewhere.
fn check_environment(matches: &ArgMatches) -> Result<(), CommandError> {
    let matches = matches.subcommand().map_or(matches, |(_, matches)| matches);
    // Most subcommands have no `--contact`, so there is nothing to check.
    let Ok(Some(contact)) = matches.try_get_one::<String>("contact") else {
        return Ok(());
    };
    if matches.value_source("contact") != Some(ValueSource::EnvVariable) {
        return Ok(());
    }
    let read = read_contact(contact);
    read.map(drop).map_err(|why| {
        CommandError::usage(format!(
            "unusable contact in the environment variable CRAWL_CONTACT: {why}"
        ))
        .hint(CONTACT_HINT)
    })
}

/// Rewrites the command line for clap: `--resources all` as `--resources=all`, and `example.org` as
/// `--seed=example.org`.
///
/// # Errors
/// A word or a flag's value is empty, usually because of an unset shell variable. Or a seed isn't
/// valid UTF-8.
fn prepare(
    command: &Command,
    words: impl IntoIterator<Item = OsString>,
) -> Result<Vec<OsString>, CommandError> {
    let mut words = words.into_iter().peekable();
    let mut prepared: Vec<OsString> = words.next().into_iter().collect();
    let mut command = command;
    let mut is_past_flags = false;
    while let Some(word) = words.next() {
        let Some(text) = word.to_str() else {
            if takes_seeds(command) && !word.as_encoded_bytes().starts_with(b"-") {
                let seed = word.display();
                return Err(CommandError::usage(format!("`{seed}` isn't valid UTF-8"))
                    .hint("percent-encode other bytes of a URL, such as `%E9`"));
            }
            prepared.push(word);
            continue;
        };
        if text.is_empty() {
            return Err(empty("an argument is empty".to_owned()));
        }
        if is_past_flags {
            prepared.push(as_seed(command, text).unwrap_or(word));
        } else if text == "--" {
            is_past_flags = true;
            // Drop the `--`, because this command's positional words are seeds. Every seed is
            // rewritten as a flag, which must not come after `--`.
            if !takes_seeds(command) {
                prepared.push(word);
            }
        } else if let Some((flag, value)) = flag_of(command, text) {
            match value {
                Some("") => return Err(empty_value(flag)),
                Some(_) => prepared.push(word),
                None if may_stand_alone(flag) => {
                    let next = words.next_if(|next| is_meant_for(command, flag, next));
                    prepared.push(match next {
                        Some(next) => [word, "=".into(), next].into_iter().collect(),
                        None => word,
                    });
                }
                None => {
                    prepared.push(word);
                    if words.peek().is_some_and(|next| next.is_empty()) {
                        return Err(empty_value(flag));
                    }
                    prepared.extend(words.next());
                }
            }
        } else if let Some(subcommand) = command.find_subcommand(text) {
            command = subcommand;
            prepared.push(word);
        } else {
            prepared.push(as_seed(command, text).unwrap_or(word));
        }
    }
    Ok(prepared)
}

/// Returns whether a flag's value is optional.
fn may_stand_alone(flag: &Arg) -> bool {
    flag.is_require_equals_set() && flag.get_num_args().is_some_and(|n| n.min_values() == 0)
}

/// Returns the flag in a word such as `--flag` or `--flag=VALUE`, and the value if the word
/// contains it. `None` if the word isn't a flag that takes a value.
fn flag_of<'a, 'w>(command: &'a Command, word: &'w str) -> Option<(&'a Arg, Option<&'w str>)> {
    let takes_value = |flag: &&Arg| !flag.is_positional() && flag.get_action().takes_values();
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let mut flags = command.get_arguments().filter(takes_value);
        return Some((flags.find(|flag| flag.get_long() == Some(name))?, value));
    }
    // A word such as `-qv` may contain several short flags. The first short flag that takes a value
    // ends the flags: the rest of the word is its value.
    let shorts = word.strip_prefix('-')?;
    shorts.char_indices().find_map(|(at, short)| {
        let mut flags = command.get_arguments().filter(takes_value);
        let flag = flags.find(|flag| flag.get_short() == Some(short))?;
        let value = &shorts[at + short.len_utf8()..];
        Some((flag, (!value.is_empty()).then_some(value)))
    })
}

/// Returns whether the word after a flag is meant as the flag's value. This is so if the flag
/// accepts the word, or if the word can be neither a seed nor a command. In the latter case, clap
/// rejects the word and lists the possible values.
fn is_meant_for(command: &Command, flag: &Arg, next: &OsString) -> bool {
    let is_word = |word: &&str| !word.is_empty() && !word.starts_with('-');
    let Some(word) = next.to_str().filter(is_word) else {
        return false;
    };
    let is_else = is_seed(word) || command.find_subcommand(word).is_some();
    takes(flag, word) || (takes_seeds(command) && !is_else)
}

/// Returns whether a flag accepts a value, by parsing it with a command that has only this flag.
fn takes(flag: &Arg, word: &str) -> bool {
    let Some(name) = flag.get_long() else {
        return false;
    };
    let alone = Command::new("").no_binary_name(true).arg(flag.clone());
    let read = alone.try_get_matches_from([format!("--{name}={word}")]);
    read.is_ok()
}

/// Rewrites a seed as `--seed=SEED`. `None` if the word isn't a seed, or the command takes no
/// seeds.
fn as_seed(command: &Command, word: &str) -> Option<OsString> {
    (takes_seeds(command) && is_seed(word)).then(|| format!("--seed={word}").into())
}

/// Returns whether words of a command may be seeds: the command has the flag `--seed` and no
/// positional arguments.
fn takes_seeds(command: &Command) -> bool {
    command.get_positionals().next().is_none()
        && command
            .get_arguments()
            .any(|flag| flag.get_long() == Some("seed"))
}

fn empty(message: String) -> CommandError {
    CommandError::usage(message).hint("remove it, or check that the shell variable in it is set")
}

fn empty_value(flag: &Arg) -> CommandError {
    let refusal = empty(format!("the value of {flag} is empty"));
    match flag.get_long() {
        // Refuse an empty `--proxy`, e.g. from an unset shell variable. Otherwise the crawl would
        // send its requests without the proxy.
        Some("proxy") => refusal.hint(
            "check that the shell variable in it is set; to clear a proxy that the directory \
             remembers, put `proxy = \"\"` under [fetch] in a file for --config",
        ),
        _ => refusal,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{built, may_stand_alone, prepare, takes};

    fn check(typed: &str, meant: &str) {
        let words = typed.split(' ').map(OsString::from);
        let prepared = prepare(&built(), words).unwrap();
        let prepared: Vec<&str> = prepared.iter().filter_map(|word| word.to_str()).collect();
        assert_eq!(prepared.join(" "), meant);
    }

    #[test]
    fn every_flag_with_an_optional_value_takes_it_as_the_next_word() {
        let (all, mut tried) = (built(), 0);
        let all = std::iter::once(&all).chain(all.get_subcommands());
        for (command, flag) in all.flat_map(|of| of.get_arguments().map(move |flag| (of, flag))) {
            if !may_stand_alone(flag) {
                continue;
            }
            let names = flag.get_value_names().unwrap_or_default().concat();
            for value in names.split('|') {
                assert!(takes(flag, value), "{flag} takes {value}");
                let name = match command.get_name() {
                    "crawl" => "crawl".to_owned(),
                    name => format!("crawl {name}"),
                };
                let long = flag.get_long().unwrap();
                check(
                    &format!("{name} --{long} {value} --verbose"),
                    &format!("{name} --{long}={value} --verbose"),
                );
                if let Some(short) = flag.get_short() {
                    check(
                        &format!("{name} -v{short} {value}"),
                        &format!("{name} -v{short}={value}"),
                    );
                }
                tried += 1;
            }
            assert!(!takes(flag, "example.org"), "{flag}");
        }
        // For both `crawl` and `crawl config`, at least seven switches with two values each and
        // `--resources` with three values were tried.
        assert!(tried >= 2 * (7 * 2 + 3), "{tried}");
    }

    #[test]
    fn a_word_that_is_no_value_stays_a_seed_or_a_subcommand() {
        check(
            "crawl --resources example.org -q",
            "crawl --resources --seed=example.org -q",
        );
        check("crawl -q on.example", "crawl -q --seed=on.example");
        check("crawl --recrawl --links on", "crawl --recrawl --links=on");
        check("crawl --resources al", "crawl --resources=al");
        check("crawl --resources report", "crawl --resources report");
        check("crawl --resources=own on", "crawl --resources=own on");
        check("crawl report on", "crawl report on");
    }

    #[test]
    fn a_url_or_a_host_is_a_seed() {
        check(
            "crawl http://a.example/ --output b.example --seed c.example d.example:81",
            "crawl --seed=http://a.example/ --output b.example --seed c.example --seed=d.example:81",
        );
        check(
            "crawl config --effective [::1]:80",
            "crawl config --effective --seed=[::1]:80",
        );
        check("crawl serach a.example", "crawl serach --seed=a.example");
        check("crawl -- a.example", "crawl --seed=a.example");
        check(
            "crawl robots http://a.example/ -- -x",
            "crawl robots http://a.example/ -- -x",
        );
        check("crawl search d.ir -- -x", "crawl search d.ir -- -x");
        check("crawl help search", "crawl help search");
    }

    #[test]
    fn empty_values_are_refused() {
        for (words, said) in [
            (&["crawl", ""][..], "an argument is empty"),
            (
                &["crawl", "--output", ""],
                "the value of --output <DIR> is empty",
            ),
            (
                &["crawl", "--output="],
                "the value of --output <DIR> is empty",
            ),
            (&["crawl", "report", ""], "an argument is empty"),
            (
                &["crawl", "export", "c", "--out", ""],
                "the value of --out <FILE> is empty",
            ),
        ] {
            let words = words.iter().map(OsString::from);
            let refusal = prepare(&built(), words).unwrap_err();
            assert_eq!(refusal.message, said);
        }
        let words = ["crawl", "--proxy", ""].iter().map(OsString::from);
        let hint = prepare(&built(), words).unwrap_err().hint.unwrap();
        assert!(hint.contains("`proxy = \"\"` under [fetch]"), "{hint}");
    }
}
