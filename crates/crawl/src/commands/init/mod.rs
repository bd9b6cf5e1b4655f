//! `crawl init`: asks what to crawl, and writes a config file.

mod answers;
mod config_text;
mod interview;

use std::fs::{self, File};
use std::io::{self, BufRead, ErrorKind, IsTerminal as _, Read as _, Write};
use std::path::Path;

use self::config_text::config_text;
use self::interview::{Interview, InterviewContext, InterviewQuestion};
use crate::cli::args::DEFAULT_CONFIG;
use crate::error::{CommandError, INTERRUPTED, quoted, unwritable};
use crate::settings::{UserFolders, check_without_seeds, parse, user_contact};
use crate::terminal::{note, print};

/// Maximum bytes of an answer that is typed.
/// Beyond the limit: refused.
const MAX_ANSWER_BYTES: u64 = 8 * 1024;

/// Whether the answers are typed at a terminal or come from a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InterviewMode {
    /// Each question is printed and repeated until its answer is usable.
    Interactive,
    /// The first unusable answer is an error.
    Scripted,
}

pub(crate) fn run(file: &Path) -> Result<u8, CommandError> {
    // Check the path of the file before the first question. Otherwise the user might answer all
    // questions in vain.
    check_target(file)?;
    let mut interview = Interview::new(surroundings(file)?);
    let stdin = io::stdin();
    let mode = match stdin.is_terminal() {
        true => InterviewMode::Interactive,
        false => InterviewMode::Scripted,
    };
    converse(&mut interview, mode, &mut stdin.lock(), &mut io::stderr())?;
    let shown = quoted(file);
    let command = format!("crawl --config {shown}");
    let check = format!("crawl config --check {shown}");
    let text = config_text(&interview.answers, &command, &check);
    check_without_seeds(&parse(&text, &shown)?.settle())?;
    write_new(file, &text)?;
    print(format!("Wrote {shown}. Start the crawl with:\n  {command}\n").as_bytes())
}

/// Offers to create a config file if the program was started on a terminal and there is no such
/// file yet. Returns the exit code of the dialogue. `None` if the dialogue wasn't offered or was
/// declined.
pub(crate) fn offer() -> Result<Option<u8>, CommandError> {
    let file = Path::new(DEFAULT_CONFIG);
    let is_on_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_on_terminal || file.symlink_metadata().is_ok() {
        return Ok(None);
    }
    write_text(
        &mut io::stderr(),
        "No URL given. Create a config now? [Y/n] ",
    );
    let answer = read_line(&mut io::stdin().lock())?;
    let answer = answer.map(|answer| answer.trim().to_lowercase());
    match answer.as_deref() {
        Some("" | "y" | "yes") => run(file).map(Some),
        Some(_) | None => Ok(None),
    }
}

/// Refuses a path that can't become a new file.
fn check_target(file: &Path) -> Result<(), CommandError> {
    let shown = file.display();
    if shown.to_string().contains("://") {
        return Err(
            CommandError::usage(format!("`{shown}` is a URL, not the name of a file"))
                .hint("run `crawl init`, which asks for the URL"),
        );
    }
    // Refuse control characters, because the config file's comments contain the file's own name.
    if shown.to_string().contains(char::is_control) {
        return Err(CommandError::usage(format!(
            "the file name {:?} has a control character",
            shown.to_string()
        )));
    }
    if file.symlink_metadata().is_ok() {
        return Err(exists(file));
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    match fs::metadata(folder) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(unwritable(file, &ErrorKind::NotADirectory.into())),
        Err(why) => Err(unwritable(file, &why)),
    }
}

fn exists(file: &Path) -> CommandError {
    let shown = quoted(file);
    CommandError::usage(format!("{shown} already exists, and is never overwritten")).hint(format!(
        "give another name, as in `crawl init site.toml`, or start a crawl with it: `crawl \
         --config {shown}`"
    ))
}

/// Collects the facts that `crawl init` knows before its first question.
fn surroundings(file: &Path) -> Result<InterviewContext, CommandError> {
    let absolute = |path: &Path| {
        std::path::absolute(path)
            .map_err(|why| CommandError::disk(format!("can't read the current folder: {why}")))
    };
    let contact = match std::env::var("CRAWL_CONTACT") {
        Ok(contact) if !contact.is_empty() => contact,
        _ => user_contact(&UserFolders::of_process())?.unwrap_or_default(),
    };
    let config_folder = absolute(file)?;
    Ok(InterviewContext {
        contact,
        working_folder: absolute(Path::new("."))?,
        config_folder: config_folder.parent().unwrap_or(&config_folder).to_owned(),
    })
}

/// Asks all questions and records the answers.
///
/// # Errors
/// In interactive mode, the user closed the input. In scripted mode, an answer is missing or
/// unusable.
fn converse(
    interview: &mut Interview,
    mode: InterviewMode,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> Result<(), CommandError> {
    while let Some(question) = interview.question() {
        if mode == InterviewMode::Interactive {
            write_text(output, &prompt(&question));
        }
        let line = read_line(input)?;
        if mode == InterviewMode::Interactive && line.is_none() {
            write_text(output, "\n");
            return Err(CommandError {
                code: INTERRUPTED,
                ..CommandError::usage("interrupted: no file was written")
            });
        }
        match interview.answer(&line.unwrap_or_default()) {
            Ok(()) => {}
            Err(problem) if mode == InterviewMode::Interactive => note(&problem.to_string()),
            Err(problem) => return Err(in_script(problem, &question)),
        }
    }
    Ok(())
}

/// Returns the prompt of a question, with its default in brackets.
fn prompt(question: &InterviewQuestion) -> String {
    match (&question.default, question.text.contains('\n')) {
        (Some(default), true) => format!("{}\n[{default}] ", question.text),
        (Some(default), false) => format!("{} [{default}] ", question.text),
        (None, _) => format!("{}: ", question.text),
    }
}

/// Adds the question's text to the error about its answer, because a scripted dialogue prints no
/// questions.
fn in_script(problem: CommandError, question: &InterviewQuestion) -> CommandError {
    let first_line = question.text.lines().next().unwrap_or_default();
    let hint = "stdin needs one answer per line; an empty line takes the default, if there is one";
    CommandError {
        message: format!("{first_line}: {}", problem.message),
        hint: problem.hint.or_else(|| Some(hint.to_owned())),
        ..problem
    }
}

/// Reads a line. `None` at the end of the input.
fn read_line(input: &mut impl BufRead) -> Result<Option<String>, CommandError> {
    let mut line = Vec::new();
    let read = input.take(MAX_ANSWER_BYTES).read_until(b'\n', &mut line);
    read.map_err(|why| CommandError::usage(format!("can't read an answer: {why}")))?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.len() as u64 == MAX_ANSWER_BYTES && line.last() != Some(&b'\n') {
        return Err(CommandError::usage(format!(
            "an answer is longer than {MAX_ANSWER_BYTES} bytes"
        )));
    }
    String::from_utf8(line)
        .map(Some)
        .map_err(|_| CommandError::usage("an answer is not valid UTF-8"))
}

/// Prints a text without a line break. Ignores errors, such as a closed stderr.
fn write_text(output: &mut impl Write, text: &str) {
    let _ = output.write_all(text.as_bytes());
    let _ = output.flush();
}

/// Writes a file that must not exist.
fn write_new(file: &Path, text: &str) -> Result<(), CommandError> {
    let written = File::create_new(file).and_then(|mut created| {
        let written = created.write_all(text.as_bytes());
        if written.is_err() {
            // Remove the partial file. Otherwise the next attempt would fail, because it refuses to
            // overwrite an existing file. Report only the write error, even if removing fails too.
            let _ = fs::remove_file(file);
        }
        written
    });
    written.map_err(|why| match why.kind() {
        ErrorKind::AlreadyExists => exists(file),
        _ => unwritable(file, &why),
    })
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests {
    use expect_test::{Expect, expect};

    use super::config_text::config_text;
    use super::interview::{Interview, InterviewContext};
    use crate::settings::{check, parse};

    /// Compares the config file for these answers with an expectation, and checks it as a crawl
    /// would.
    fn check_config(answers: &[&str], expect: Expect) {
        let mut interview = Interview::new(InterviewContext::default());
        for answer in answers {
            interview.answer(answer).unwrap();
        }
        assert_eq!(interview.question(), None);
        let text = config_text(&interview.answers, "RUN", "CHECK");
        expect.assert_eq(&text);
        let settings = parse(&text, "crawl.toml").unwrap().settle();
        check(&settings).unwrap();
    }

    #[test]
    fn a_site_check_of_the_users_own_folder() {
        check_config(
            &[
                "example.org/docs/",
                "y",
                "a@b.example",
                "check",
                "y",
                "500",
                "",
            ],
            expect![[r##"
                # Written by `crawl init`. Start or continue the crawl: RUN
                # After a change: CHECK
                # Every key with its default: crawl config

                # Where the crawl starts: one or more URLs or hosts. Sitemaps are found automatically.
                seed = ["example.org/docs/"]

                [operator]
                # Where site owners can reach you. Sent with each request.
                contact = "a@b.example"

                [scope]
                # Only pages in the folder of the seed. `host` crawls its whole host.
                scope = "prefix"
                # Stop after this many pages. The same command with a larger number continues.
                max-pages = 500
                # Fetch images, styles and scripts too, to find broken ones.
                resources = "all"
                # Also fetch the pages of other sites that are linked, to find dead links.
                # hops-off-scope = 1

                [politeness]
                # You run this site, so that a delay below 200ms is allowed.
                own-site = "on"
                # The time between two requests. Without this line: 1s.
                delay = "100ms"

                [output]
                # The folder of the crawl, relative to where the command runs.
                output = "crawl-example.org"
                # Record links, for the reports `crawl report --broken` and `--faults`.
                links = "on"
            "##]],
        );
    }

    #[test]
    fn texts_of_a_study_are_quoted() {
        let about = r#"How "tea" is brewed, C:\ and 'all'"#;
        check_config(
            &[
                "http://127.0.0.1:8000/",
                "https://b.example/bot",
                "archive",
                "https://b.example/study",
                "Ada",
                "Institute",
                about,
                "unlimited",
                "my crawl",
            ],
            expect![[r##"
                # Written by `crawl init`. Start or continue the crawl: RUN
                # After a change: CHECK
                # Every key with its default: crawl config

                # Where the crawl starts: one or more URLs or hosts. Sitemaps are found automatically.
                seed = ["http://127.0.0.1:8000/"]

                [operator]
                # Where site owners can reach you. Sent with each request.
                contact = "https://b.example/bot"
                # A study: it starts only if all of these are set, and its records contain them.
                kind = "research"
                operator-name = "Ada"
                institution = "Institute"
                study = '''How "tea" is brewed, C:\ and 'all''''
                study-page = "https://b.example/study"

                [scope]
                # Stop after this many pages. The same command with a larger number continues.
                max-pages = "unlimited"

                [exclusion]
                # What the pages are for. Pages whose site refuses this use are left out.
                purpose = "archive"

                [output]
                # The folder of the crawl, relative to where the command runs.
                output = "my crawl"
                # Complete responses, as WARC files.
                warc = "on"
                # Every link between pages, in links.jsonl.
                links = "on"
                # Pause while less than this is free on the disk.
                min-free = "1GiB"
            "##]],
        );
    }
}
