//! `crawl robots`: prints whether URLs may be fetched, and which line decides.

mod batch;
mod fetch;
mod non_rule_lines;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crawl_policy::{AgentRules, ProductToken, RequestPath, RobotsProfile};
use crawl_records::evidence_words;
use crawl_weburl::{CanonicalUrl, Origin};
use serde_json::{Value, json};

pub(crate) use self::fetch::fetch_once;
use self::non_rule_lines::NonRuleLine;
use crate::cli::args::RobotsArgs;
use crate::error::{CommandError, FINISHED, NEGATIVE_RESULT};
use crate::input_file_reader::read_file;
use crate::settings::{check_agent, typed_seed};
use crate::terminal::{print, print_json_lines};

/// Maximum bytes read from the robots.txt file of `--file`. `crawl-policy` has a lower limit, and
/// ignores everything beyond it.
const MAX_FILE_BYTES: u64 = 16 << 20;

pub(crate) fn run(args: &RobotsArgs) -> Result<u8, CommandError> {
    let agent = check_agent(&args.agent)?;
    let profile = args.robots.meaning();
    if args.batch {
        return batch::run(&agent, profile);
    }
    let typed = args
        .url
        .iter()
        .map(|url| TypedUrl::read(url, args.file.is_some()));
    let typed = typed.collect::<Result<Vec<_>, _>>()?;
    let rules = match &args.file {
        Some(path) => RobotsByOrigin::of_file(path, &agent, profile)?,
        None => RobotsByOrigin::fetched(&typed, args, &agent, profile)?,
    };
    let mut text = String::new();
    let mut all_allowed = true;
    for typed in &typed {
        let source = rules.of(typed);
        let allowed = source.allows(typed);
        all_allowed &= allowed;
        match args.json {
            true => {
                let _ = writeln!(text, "{}", source.object(typed, profile));
            }
            false => source.lines(typed, &mut text),
        }
    }
    match args.json {
        true => print_json_lines(&text)?,
        false => {
            rules.remarks(&mut text);
            print(text.as_bytes())?
        }
    };
    Ok(if all_allowed {
        FINISHED
    } else {
        NEGATIVE_RESULT
    })
}

/// A URL or path to judge.
struct TypedUrl {
    /// The text as typed.
    text: String,
    /// The path and the query as in a request line (origin form, RFC 9112 section 3.2.1).
    path: RequestPath<'static>,
    /// The whole URL. `None` if only a path was typed.
    url: Option<CanonicalUrl>,
}

impl TypedUrl {
    fn read(text: &str, path_will_do: bool) -> Result<TypedUrl, CommandError> {
        if path_will_do && let Ok(path) = RequestPath::new(text) {
            return Ok(TypedUrl {
                text: text.to_owned(),
                path: path.into_owned(),
                url: None,
            });
        }
        let url = typed_seed::read_page(text)?.url;
        Ok(TypedUrl {
            text: url.to_string(),
            path: RequestPath::of(url.as_url()).into_owned(),
            url: Some(url),
        })
    }
}

/// A robots.txt file that applies to some or all of the URLs to judge.
struct RobotsFile {
    /// The file's name in the output.
    name: String,
    /// The rules for the agent. `None` if the file is unreachable, which disallows everything (RFC
    /// 9309 section 2.3.1.4).
    robots: Option<AgentRules>,
    /// The result of fetching or reading the file, in words.
    answer: String,
}

/// The robots.txt files by origin. A file given by the user has the key `None` and applies to all
/// URLs.
struct RobotsByOrigin(BTreeMap<Option<Origin>, RobotsFile>);

impl RobotsByOrigin {
    fn of_file(
        path: &Path,
        agent: &ProductToken,
        profile: RobotsProfile,
    ) -> Result<RobotsByOrigin, CommandError> {
        let body = read_file(path, MAX_FILE_BYTES)?;
        let source = RobotsFile {
            name: path.display().to_string(),
            robots: Some(AgentRules::parse(&body, agent, profile)),
            answer: "read".to_owned(),
        };
        Ok(RobotsByOrigin(BTreeMap::from([(None, source)])))
    }

    fn fetched(
        typed: &[TypedUrl],
        args: &RobotsArgs,
        agent: &ProductToken,
        profile: RobotsProfile,
    ) -> Result<RobotsByOrigin, CommandError> {
        let urls: Vec<&CanonicalUrl> = typed
            .iter()
            .filter_map(|typed| typed.url.as_ref())
            .collect();
        let fetched = fetch::robots_of(&urls, args.contact.as_deref())?;
        let sources = fetched.into_iter().map(|(origin, fetched)| {
            let source = RobotsFile {
                name: origin.robots_url().to_string(),
                robots: fetched
                    .body
                    .map(|body| AgentRules::parse(&body, agent, profile)),
                answer: fetched.answer,
            };
            (Some(origin), source)
        });
        Ok(RobotsByOrigin(sources.collect()))
    }

    fn of(&self, typed: &TypedUrl) -> &RobotsFile {
        let origin = typed.url.as_ref().map(CanonicalUrl::origin);
        let named = self.0.get(&None);
        named
            .or_else(|| self.0.get(&origin))
            .expect("invariant: robots.txt was requested at each URL's origin")
    }

    /// Appends remarks on each file: its syntax oddities, and its lines other than rules, such as
    /// `Sitemap`.
    fn remarks(&self, text: &mut String) {
        self.0.values().for_each(|source| source.remarks(text));
    }
}

impl RobotsFile {
    fn allows(&self, typed: &TypedUrl) -> bool {
        match &self.robots {
            Some(robots) => robots.judge_path(&typed.path).is_allowed(),
            None => typed.path.as_str() == "/robots.txt",
        }
    }

    fn lines(&self, typed: &TypedUrl, text: &mut String) {
        let word = if self.allows(typed) {
            "allowed"
        } else {
            "disallowed"
        };
        let _ = writeln!(text, "{word:<11} {}", typed.text);
        let _ = writeln!(text, "            {}", self.because(typed));
    }

    fn because(&self, typed: &TypedUrl) -> String {
        let Some(robots) = &self.robots else {
            return format!(
                "{} can't be fetched ({}), so nothing is allowed (RFC 9309 section 2.3.1.4)",
                self.name,
                evidence_words(&self.answer)
            );
        };
        let verdict = robots.judge_path(&typed.path);
        let group = match verdict.group {
            Some(group) => format!("group `{}` on line {}", group.agent, group.line),
            None => "no group applies".to_owned(),
        };
        match verdict.rule {
            Some(rule) => format!(
                "by `{}` on line {}, {group}, read as {}",
                rule.text, rule.line, verdict.profile
            ),
            None => format!("no rule matches, {group} ({}: {})", self.name, self.answer),
        }
    }

    fn object(&self, typed: &TypedUrl, profile: RobotsProfile) -> Value {
        let robots = self.robots.as_ref();
        let verdict = robots.map(|robots| robots.judge_path(&typed.path));
        let profile = verdict.as_ref().map_or(profile, |verdict| verdict.profile);
        let rule = verdict.as_ref().and_then(|verdict| verdict.rule.as_ref());
        let group = verdict.as_ref().and_then(|verdict| verdict.group.as_ref());
        let delay = robots.and_then(AgentRules::crawl_delay);
        let sitemaps = robots.map(AgentRules::sitemaps).unwrap_or_default();
        let oddities = robots.map(AgentRules::oddities).unwrap_or_default();
        json!({
            "url": typed.text,
            "allowed": self.allows(typed),
            "line": rule.map(|rule| rule.line),
            "rule": rule.map(|rule| &rule.text),
            "group": group.map(|group| json!({"agent": group.agent, "line": group.line})),
            "profile": profile.to_string(),
            "robots": self.name,
            "answer": self.answer,
            "crawl_delay_ms": delay.map(|(delay, _)| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            "records": robots
                .map(non_rule_lines::records)
                .unwrap_or_default()
                .iter()
                .map(|record| json!({"line": record.line, "field": record.field, "value": record.value}))
                .collect::<Vec<_>>(),
            "usage": robots.map(|robots| non_rule_lines::usage(robots, typed.path.as_str())),
            "sitemaps": sitemaps.iter().map(|sitemap| &sitemap.url).collect::<Vec<_>>(),
            "oddities": oddities
                .iter()
                .map(|oddity| json!({"line": oddity.line, "what": oddity.what.name()}))
                .collect::<Vec<_>>(),
        })
    }

    fn remarks(&self, text: &mut String) {
        let Some(robots) = &self.robots else {
            return;
        };
        for NonRuleLine { line, field, value } in non_rule_lines::records(robots) {
            let _ = writeln!(text, "{} line {line}: {field}: {value}", self.name);
        }
        for oddity in robots.oddities() {
            let _ = writeln!(text, "{} line {}: {}", self.name, oddity.line, oddity.what);
        }
    }
}
