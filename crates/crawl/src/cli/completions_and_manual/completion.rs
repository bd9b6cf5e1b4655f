//! Generates completion scripts for shells, and corrects what clap's scripts get wrong.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::{Shell, generate};

/// Returns the script that completes a command line in a shell.
pub(crate) fn script(shell: Shell, command: &Command) -> String {
    let mut command = hinted(visible(command));
    let mut script = Vec::new();
    generate(shell, &mut command, "crawl", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => with_positionals(&script, &command),
        Shell::Fish => with_values(&script, &command),
        Shell::Zsh => with_separate_values(&script),
        _ => script,
    }
}

/// Returns the command line without hidden subcommands, which only the program itself starts.
fn visible(command: &Command) -> Command {
    let commands = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    Command::new("crawl")
        .args(command.get_arguments().cloned())
        .subcommands(commands.cloned())
}

/// Makes the zsh script complete optional values after a space too, since the command line accepts
/// both `--index=on` and `--index on`.
fn with_separate_values(script: &str) -> String {
    let lines =
        script
            .split_inclusive('\n')
            .map(|line| match line.trim_start().starts_with("'--") {
                true => line.replacen("]::", "]:", 1),
                false => line.to_owned(),
            });
    lines.collect()
}

/// Adds completion hints to the values of arguments: whether a value is a file or a folder, or
/// which words are possible.
fn hinted(command: Command) -> Command {
    command.mut_args(with_hint).mut_subcommands(hinted)
}

/// Adds the completion hint that an argument's placeholder implies, e.g. a folder for `DIR`.
fn with_hint(arg: Arg) -> Arg {
    let placeholder = arg.get_value_names().unwrap_or_default().concat();
    let is_choice = !arg.get_possible_values().is_empty();
    let takes_value = arg.is_positional() || arg.get_action().takes_values();
    if is_choice || !takes_value {
        return arg;
    }
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    let words: Vec<String> = placeholder.split('|').map(str::to_owned).collect();
    if words.iter().all(|word| is_word(word)) {
        return arg.value_parser(PossibleValuesParser::new(words));
    }
    arg.value_hint(match placeholder.as_str() {
        "FILE" => ValueHint::FilePath,
        "DIR" => ValueHint::DirPath,
        "DIR|BUNDLE" => ValueHint::AnyPath,
        "URL" | "URL|HOST" | "ORIGIN" => ValueHint::Url,
        "HOST" => ValueHint::Hostname,
        _ => ValueHint::Other,
    })
}

/// Makes the bash script complete files and folders for commands whose first argument is a file or
/// a folder. The script that clap generates would list flags instead.
fn with_positionals(script: &str, command: &Command) -> String {
    command
        .get_subcommands()
        .fold(script.to_owned(), |script, subcommand| {
            let mut positionals = subcommand.get_positionals();
            let hint = positionals.next().map(Arg::get_value_hint);
            let option = match hint {
                Some(ValueHint::DirPath) => "dirnames",
                Some(ValueHint::FilePath | ValueHint::AnyPath) => "default",
                _ => return script,
            };
            let label = format!("        crawl__subcmd__{})\n", subcommand.get_name());
            with_positional(&script, &label, option, subcommand.has_subcommands())
        })
}

/// Makes the bash script complete paths as the arguments of one command. `label` is the first line
/// of the command's branch in the script's `case` statement. `option` is the option of `compopt`
/// that selects files or folders. If the command has subcommands, their names are completed after
/// the first argument.
fn with_positional(script: &str, label: &str, option: &str, has_subcommands: bool) -> String {
    const FLAGS: &str = "COMPREPLY=( $(compgen -W \"${opts}\" -- \"${cur}\") )\n";
    let Some(start) = script.find(label) else {
        return script.to_owned();
    };
    let (before, case) = script.split_at(start);
    let end = case.find("\n            ;;\n").unwrap_or(case.len());
    let (case, after) = case.split_at(end);
    let flags_only_after_dash = case.replacen(" || ${COMP_CWORD} -eq 2 ]]", " ]]", 1);
    let Some((head, tail)) = flags_only_after_dash.rsplit_once(FLAGS) else {
        return script.to_owned();
    };
    let paths = format!(
        "COMPREPLY=()\n            [[ ${{BASH_VERSINFO[0]}} -ge 4 ]] && compopt -o {option}\n"
    );
    let arguments = match has_subcommands {
        true => format!(
            "[[ ${{COMP_CWORD}} -gt 2 ]] && {FLAGS}            \
                         [[ ${{COMP_CWORD}} -gt 2 ]] && return 0\n            {paths}"
        ),
        false => paths,
    };
    format!("{before}{head}{arguments}{tail}{after}")
}

/// Makes the fish script complete the values of a crawl's flags. The script that clap generates
/// fails on a flag that still lacks its value, and mistakes a seed for a command.
fn with_values(script: &str, command: &Command) -> String {
    const PARSED: &str = "    argparse -s (__fish_crawl_global_optspecs) -- $cmd 2>/dev/null\n";
    const WITHOUT_LAST: &str =
        "    or argparse -s (__fish_crawl_global_optspecs) -- $cmd[1..-2] 2>/dev/null\n";
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let is_command = format!("    if contains -- \"$argv[1]\" help {}\n", names.join(" "));
    script
        .replacen(PARSED, &format!("{PARSED}{WITHOUT_LAST}"), 1)
        .replacen("    if set -q argv[1]\n", &is_command, 1)
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    use super::script;
    use crate::cli::args;

    /// Returns the part of the bash script that completes the command `name`.
    fn bash_case(name: &str) -> String {
        let script = script(Shell::Bash, &args::command());
        let (_, case) = script.split_once(&format!("        {name})\n")).unwrap();
        case.split("\n            ;;\n").next().unwrap().to_owned()
    }

    #[test]
    fn switches_and_choices_are_completed_with_their_words() {
        let bash = script(Shell::Bash, &args::command());
        let (_, index) = bash.split_once("                --index)\n").unwrap();
        let line = index.lines().next().unwrap();
        assert!(line.contains("compgen -W \"on off\""), "{line}");
        let zsh = script(Shell::Zsh, &args::command());
        let line = zsh
            .lines()
            .find(|line| line.starts_with("'--index=["))
            .unwrap();
        assert!(line.ends_with("]:on|off:(on off)' \\"), "{line}");
        assert!(zsh.contains(":DIR:_files -/' \\\n"));
        assert!(zsh.contains(":FILE:_files' \\\n"));
        let fish = script(Shell::Fish, &args::command());
        let index = fish
            .lines()
            .position(|line| line.contains(" -l index "))
            .unwrap();
        let lines: Vec<&str> = fish.lines().skip(index).take(2).collect();
        assert!(lines.concat().contains("on\\t''off\\t''"), "{lines:?}");
    }

    #[test]
    fn bash_completes_folders_and_files_as_arguments() {
        for (name, option) in [
            ("crawl__subcmd__report", "dirnames"),
            ("crawl__subcmd__search", "dirnames"),
            ("crawl__subcmd__control", "dirnames"),
            ("crawl__subcmd__init", "default"),
            ("crawl__subcmd__inspect", "default"),
            ("crawl__subcmd__verify", "default"),
        ] {
            let case = bash_case(name);
            let ends = case.ends_with(&format!("&& compopt -o {option}\n            return 0"));
            assert!(ends, "{name}: {case}");
            assert!(
                case.contains("if [[ ${cur} == -* ]] ; then"),
                "{name}: {case}"
            );
        }
        let control = bash_case("crawl__subcmd__control");
        assert!(control.contains("[[ ${COMP_CWORD} -gt 2 ]] && COMPREPLY=( $(compgen -W"));
        assert!(
            !bash_case("crawl__subcmd__plan").contains("compopt -o dirnames\n            return")
        );
    }

    #[test]
    fn fish_completes_values_of_flags_after_seeds() {
        let fish = script(Shell::Fish, &args::command());
        assert!(fish.contains("-- $cmd[1..-2] 2>/dev/null\n    or return\n"));
        let line = fish
            .lines()
            .find(|line| line.contains("contains -- \"$argv[1]\""));
        assert!(line.unwrap().contains(" report "), "{line:?}");
        assert!(!fish.contains("set -q argv[1]"));
    }

    #[test]
    fn internal_commands_are_not_offered() {
        for shell in [
            Shell::Bash,
            Shell::Zsh,
            Shell::Fish,
            Shell::Elvish,
            Shell::PowerShell,
        ] {
            let script = script(shell, &args::command()).replace('_', "-");
            assert!(!script.contains("read-document"), "{shell}");
        }
    }
}
