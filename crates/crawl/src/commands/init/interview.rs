//! The questions of `crawl init`: which one comes next, and whether an answer is usable.

use std::path::PathBuf;

use crawl_scope::folder;
use crawl_weburl::canonicalize;

use super::answers::{InitAnswers, InitPurpose};
use super::config_text::config_text;
use crate::error::CommandError;
use crate::settings::{
    CONTACT_HINT, check_seed, check_without_seeds, default_output, parse, read_contact,
};

/// The default answer to the question for the maximum number of pages to fetch.
const DEFAULT_MAX_PAGES: u64 = 10_000;

/// The subject of a question. The variants are in the order of the questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuestionTopic {
    Seed,
    Folder,
    Contact,
    Purpose,
    OwnSite,
    StudyPage,
    OperatorName,
    Institution,
    Study,
    MaxPages,
    Output,
}

impl QuestionTopic {
    /// Returns the config keys whose values an answer to this question can make invalid.
    fn keys(self) -> &'static [&'static str] {
        match self {
            QuestionTopic::Seed => &["seed"],
            QuestionTopic::Folder => &["scope"],
            QuestionTopic::Contact => &["contact"],
            QuestionTopic::Purpose => &["purpose"],
            QuestionTopic::OwnSite => &["own-site"],
            // A study page makes the crawl a study, whose seeds must not be placeholders.
            QuestionTopic::StudyPage => &["study-page", "seed"],
            QuestionTopic::OperatorName => &["operator-name"],
            QuestionTopic::Institution => &["institution"],
            QuestionTopic::Study => &["study"],
            QuestionTopic::MaxPages => &["max-pages"],
            QuestionTopic::Output => &["output"],
        }
    }
}

/// A question as the user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InterviewQuestion {
    pub(super) topic: QuestionTopic,
    /// Text of one or more lines, without a trailing line break.
    pub(super) text: String,
    /// The answer that an empty line selects, as displayed. `None` if an answer is required.
    pub(super) default: Option<String>,
}

/// Facts that `crawl init` knows before its first question.
#[derive(Clone, Debug, Default)]
pub(super) struct InterviewContext {
    /// The contact in the environment or in the user's own config.toml. Empty if there is none.
    pub(super) contact: String,
    /// The working directory, an absolute path.
    pub(super) working_folder: PathBuf,
    /// The absolute path of the folder for the config file. The crawl needs another folder.
    pub(super) config_folder: PathBuf,
}

/// The dialogue of `crawl init`.
#[derive(Clone, Debug)]
pub(super) struct Interview {
    surroundings: InterviewContext,
    pub(super) answers: InitAnswers,
}

impl Interview {
    /// Creates a dialogue without answers.
    pub(super) fn new(surroundings: InterviewContext) -> Interview {
        Interview {
            surroundings,
            answers: InitAnswers::default(),
        }
    }

    /// Returns the next question. Skips questions that the answers so far make unnecessary. `None`
    /// after the last question.
    pub(super) fn question(&self) -> Option<InterviewQuestion> {
        let topic = self.next_topic()?;
        let (text, default) = self.words(topic);
        Some(InterviewQuestion {
            topic,
            text,
            default,
        })
    }

    fn next_topic(&self) -> Option<QuestionTopic> {
        let answers = &self.answers;
        let has_folder = answers
            .url()
            .is_some_and(|url| folder(url.path()).as_ref() != "/");
        let is_study = answers.purpose == Some(InitPurpose::Research);
        let has_study_page = answers.has_study_page();
        let open = [
            (QuestionTopic::Seed, answers.seed.is_none()),
            (
                QuestionTopic::Folder,
                has_folder && answers.is_folder_only.is_none(),
            ),
            (QuestionTopic::Contact, answers.contact.is_none()),
            (QuestionTopic::Purpose, answers.purpose.is_none()),
            (
                QuestionTopic::OwnSite,
                !is_study && answers.is_own_site.is_none(),
            ),
            (
                QuestionTopic::StudyPage,
                is_study && answers.study_page.is_none(),
            ),
            (
                QuestionTopic::OperatorName,
                has_study_page && answers.operator_name.is_none(),
            ),
            (
                QuestionTopic::Institution,
                has_study_page && answers.institution.is_none(),
            ),
            (
                QuestionTopic::Study,
                has_study_page && answers.study.is_none(),
            ),
            (QuestionTopic::MaxPages, answers.max_pages.is_none()),
            (QuestionTopic::Output, answers.output.is_none()),
        ];
        open.into_iter()
            .find(|(_, is_open)| *is_open)
            .map(|(topic, _)| topic)
    }

    /// Returns the text of a question, and its default as shown.
    fn words(&self, topic: QuestionTopic) -> (String, Option<String>) {
        let url = self.answers.url();
        let (text, default) = match topic {
            QuestionTopic::Seed => (
                "What should be crawled? A URL, or a host such as www.example.org".to_owned(),
                None,
            ),
            QuestionTopic::Folder => {
                let path = url.map(|url| folder(url.path()).into_owned());
                let path = path.unwrap_or_default();
                (
                    format!("Only pages below {path}? Otherwise the whole host (y/n)"),
                    Some("n".to_owned()),
                )
            }
            QuestionTopic::Contact => {
                let contact = &self.surroundings.contact;
                let contact = (!contact.is_empty()).then(|| contact.clone());
                let none = || (!self.answers.needs_contact()).then(|| "none".to_owned());
                (
                    "Who are you? An email address or URL where site owners can reach you"
                        .to_owned(),
                    contact.or_else(none),
                )
            }
            QuestionTopic::Purpose => (purposes(), Some("1".to_owned())),
            QuestionTopic::OwnSite => (
                "Do you run this site? Then it is crawled faster (y/n)".to_owned(),
                Some("n".to_owned()),
            ),
            QuestionTopic::StudyPage => (
                "Which page tells site owners about the study, and how to opt out? A URL"
                    .to_owned(),
                Some("none yet".to_owned()),
            ),
            QuestionTopic::OperatorName => {
                ("Who is responsible for the study? A name".to_owned(), None)
            }
            QuestionTopic::Institution => ("For which institution?".to_owned(), None),
            QuestionTopic::Study => ("What is the study about? One sentence".to_owned(), None),
            QuestionTopic::MaxPages => (
                "How many pages at most? A number, or unlimited".to_owned(),
                Some(DEFAULT_MAX_PAGES.to_string()),
            ),
            QuestionTopic::Output => (
                "Which folder should the crawl be written to?".to_owned(),
                url.map(|url| default_output(url).display().to_string()),
            ),
        };
        (text, default)
    }

    /// Records an answer to the next question. An empty answer selects the default.
    ///
    /// # Errors
    /// [`CommandError`] if the answer is unusable, or if it is empty and there is no default. In
    /// both cases, nothing is recorded.
    pub(super) fn answer(&mut self, typed: &str) -> Result<(), CommandError> {
        let Some(question) = self.question() else {
            return Ok(());
        };
        let typed = typed.trim();
        // The prompt shows the default, so users may also type it.
        let is_default = typed.is_empty() || question.default.as_deref() == Some(typed);
        let text = match (is_default, question.default) {
            (true, Some(default)) => default,
            (true, None) => return Err(CommandError::usage("an answer is required here")),
            (false, _) => typed.to_owned(),
        };
        let mut answers = self.answers.clone();
        match question.topic {
            QuestionTopic::Seed => answers.seed = Some((text.clone(), check_seed(&text)?)),
            QuestionTopic::Folder => answers.is_folder_only = Some(read_yes(&text)?),
            QuestionTopic::Contact => {
                let has_none = is_default && self.surroundings.contact.is_empty();
                answers.contact = Some(match has_none {
                    true => String::new(),
                    false => read_contact(&text).map(|_| text).map_err(|why| {
                        CommandError::usage(format!("unusable contact {why}")).hint(CONTACT_HINT)
                    })?,
                });
            }
            QuestionTopic::Purpose => answers.purpose = Some(read_purpose(&text)?),
            QuestionTopic::OwnSite => answers.is_own_site = Some(read_yes(&text)?),
            QuestionTopic::StudyPage => {
                answers.study_page = Some(match is_default {
                    true => String::new(),
                    false => read_page(text)?,
                });
            }
            QuestionTopic::OperatorName => answers.operator_name = Some(text),
            QuestionTopic::Institution => answers.institution = Some(text),
            QuestionTopic::Study => answers.study = Some(text),
            QuestionTopic::MaxPages => answers.max_pages = Some(read_max_pages(&text)?),
            QuestionTopic::Output => answers.output = Some(read_output(text, &self.surroundings)?),
        }
        check_keys(&answers, question.topic.keys())?;
        self.answers = answers;
        Ok(())
    }
}

fn purposes() -> String {
    let lines = InitPurpose::OFFERED
        .iter()
        .zip(1..)
        .map(|(purpose, number)| {
            let (name, meaning) = purpose.words();
            format!("\n  {number}  {name:<16}  {meaning}")
        });
    format!("What is the crawl for?{}", lines.collect::<String>())
}

/// Checks the config file for the answers as a crawl would. Reports only problems with `keys`.
fn check_keys(answers: &InitAnswers, keys: &[&str]) -> Result<(), CommandError> {
    let settings = parse(&config_text(answers, "", ""), "answers")?.settle();
    let Err(mut problem) = check_without_seeds(&settings) else {
        return Ok(());
    };
    let other_problems = std::mem::take(&mut problem.others);
    let mut all = std::iter::once(problem).chain(other_problems);
    let is_about =
        |problem: &CommandError| problem.subject.key.is_some_and(|key| keys.contains(&key));
    match all.find(is_about) {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}

fn read_yes(text: &str) -> Result<bool, CommandError> {
    match text.to_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err(CommandError::usage(format!(
            "`{text}` is neither `y` nor `n`"
        ))),
    }
}

fn read_purpose(text: &str) -> Result<InitPurpose, CommandError> {
    InitPurpose::read(text).ok_or_else(|| {
        let names: Vec<&str> = InitPurpose::OFFERED
            .iter()
            .map(|each| each.words().0)
            .collect();
        CommandError::usage(format!("`{text}` is not one of the purposes"))
            .hint(format!("give a number, or one of: {}", names.join(", ")))
    })
}

fn read_page(text: String) -> Result<String, CommandError> {
    match canonicalize(None, &text) {
        Ok(_) => Ok(text),
        Err(why) => Err(CommandError::usage(format!("unusable URL `{text}`: {why}"))
            .hint("it looks like `https://example.org/study`")),
    }
}

fn read_max_pages(text: &str) -> Result<Option<u64>, CommandError> {
    let digits: String = text.chars().filter(|c| !matches!(c, ',' | '_')).collect();
    match (text, digits.parse()) {
        ("unlimited", _) => Ok(None),
        // Accept at most `i64::MAX`, because TOML has no larger integers.
        (_, Ok(pages)) if (1..=i64::MAX as u64).contains(&pages) => Ok(Some(pages)),
        _ => Err(
            CommandError::usage(format!("`{text}` is not a number of pages"))
                .hint("give a whole number of 1 or more, or `unlimited`"),
        ),
    }
}

/// Returns `text` unless it names the folder of the config file, because a crawl needs its own
/// folder.
fn read_output(text: String, surroundings: &InterviewContext) -> Result<String, CommandError> {
    let output = surroundings.working_folder.join(&text);
    // Compare path components, because this comparison ignores `.` and trailing slashes.
    match output
        .components()
        .eq(surroundings.config_folder.components())
    {
        true => Err(CommandError::usage(format!(
            "`{text}` is the folder of the config file, and a crawl needs a folder of its own"
        ))
        .hint("give the name of a new folder")),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Interview, InterviewContext, QuestionTopic};

    fn interview(contact: &str) -> Interview {
        Interview::new(InterviewContext {
            contact: contact.to_owned(),
            working_folder: PathBuf::from("/work"),
            config_folder: PathBuf::from("/work"),
        })
    }

    /// Answers the questions in order. Returns the topic of each question.
    fn answered(interview: &mut Interview, answers: &[&str]) -> Vec<QuestionTopic> {
        answers
            .iter()
            .map(|answer| {
                let topic = interview.question().unwrap().topic;
                interview.answer(answer).unwrap();
                topic
            })
            .collect()
    }

    #[test]
    fn questions_that_do_not_matter_are_skipped() {
        let mut site = interview("");
        let topics = answered(&mut site, &["example.org", "a@b.example", "2", "", "", ""]);
        assert_eq!(
            topics,
            [
                QuestionTopic::Seed,
                QuestionTopic::Contact,
                QuestionTopic::Purpose,
                QuestionTopic::OwnSite,
                QuestionTopic::MaxPages,
                QuestionTopic::Output
            ]
        );
        assert_eq!(site.question(), None);
        let mut folder = interview("");
        let topics = answered(&mut folder, &["https://example.net/docs/a", "y"]);
        assert_eq!(topics, [QuestionTopic::Seed, QuestionTopic::Folder]);
        let mut study = interview("a@b.example");
        let answers = ["tea.example/docs/", "", "", "archive", "https://b.example/"];
        let topics = answered(&mut study, &answers);
        assert_eq!(topics[4], QuestionTopic::StudyPage);
        let topics = answered(&mut study, &["Ada", "Institute", "Tea"]);
        assert_eq!(
            topics,
            [
                QuestionTopic::OperatorName,
                QuestionTopic::Institution,
                QuestionTopic::Study
            ]
        );
        let mut archive = interview("a@b.example");
        answered(&mut archive, &["example.net", "", "research", ""]);
        assert_eq!(archive.question().unwrap().topic, QuestionTopic::MaxPages);
    }

    #[test]
    fn defaults_are_shown_and_taken() {
        let mut own = interview("me@b.example");
        assert_eq!(own.question().unwrap().default, None);
        own.answer("http://127.0.0.1:8000/").unwrap();
        let shown = own.question().unwrap().default;
        assert_eq!(shown.as_deref(), Some("me@b.example"));
        own.answer("").unwrap();
        assert_eq!(own.answers.contact.as_deref(), Some("me@b.example"));
        answered(&mut own, &["2", "y"]);
        let shown = own.question().unwrap().default;
        assert_eq!(shown.as_deref(), Some("10000"));
        answered(&mut own, &["unlimited"]);
        assert_eq!(own.answers.max_pages, Some(None));
        let shown = own.question().unwrap().default;
        assert_eq!(shown.as_deref(), Some("crawl-127.0.0.1-8000"));
    }

    #[test]
    fn a_contact_is_required_for_public_hosts() {
        let mut public = interview("");
        public.answer("example.org").unwrap();
        let refusal = public.answer("").unwrap_err();
        assert_eq!(refusal.message, "an answer is required here");
        let mut private = interview("");
        private.answer("192.168.1.7").unwrap();
        private.answer("").unwrap();
        assert_eq!(private.answers.contact.as_deref(), Some(""));
    }

    #[test]
    fn an_unusable_answer_is_refused_and_not_recorded() {
        for (before, answer, message) in [
            (&[][..], "example", "unusable seed `example`: "),
            (&[], "ftp://example.org/", "unusable seed "),
            (&["example.org/a/"], "maybe", "`maybe` is neither"),
            (&["tea.example"], "nobody", "unusable contact `nobody`: "),
            (
                &["example.org"],
                "you@example.org",
                "`contact` is still the placeholder",
            ),
            (&["example.org", "a@b.example"], "9", "`9` is not one of"),
            (
                &["example.net", "a@b.example", "archive"],
                "study",
                "unusable URL `study`: ",
            ),
            (
                &["example.org", "a@b.example", "archive"],
                "https://b.example/",
                "`seed` is still the placeholder",
            ),
            (
                &["example.net", "a@b.example", "check", "n"],
                "0",
                "`0` is not a number of pages",
            ),
            (
                &["example.net", "a@b.example", "check", "n", "10,000"],
                "./",
                "`./` is the folder of the config file",
            ),
        ] {
            let mut interview = interview("");
            answered(&mut interview, before);
            let question = interview.question();
            let refusal = interview.answer(answer).unwrap_err();
            assert!(refusal.message.starts_with(message), "{refusal}");
            assert_eq!(interview.question(), question, "{answer}");
        }
    }
}
