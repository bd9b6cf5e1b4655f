//! Applies the `Clean-param` lines in the archived robots.txt files of a crawl.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crawl_archive::FOLDER;
use crawl_policy::{AgentRules, RobotsStatus};
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};

use crate::audit::{
    MAX_HOPS, RobotsExchangeLocator, RobotsInterpretation, exchange_key, redirect_target,
};
use crate::error::RecordsError;
use crate::recognize_directory::stored_settings;
use crate::row_file_reader::requests;

/// The `Clean-param` lines of a crawl's origins. Each robots.txt is read when a URL of its origin
/// is first looked up.
#[derive(Debug)]
pub(super) struct CleanParamRules {
    dir: PathBuf,
    reader: RobotsInterpretation,
    /// `None` before the first look-up.
    copies: Option<RobotsCopies>,
    /// The rules of each origin that was looked up. `None` if it has no `Clean-param` lines.
    rules: HashMap<Origin, Option<AgentRules>>,
}

/// The last robots.txt of each origin. Takes about 150 bytes per origin.
#[derive(Debug)]
struct RobotsCopies {
    /// The start of the last request for each robots.txt and each target of its redirects, in
    /// milliseconds since 1970, and the status of the answer.
    requested: HashMap<String, (u64, u16)>,
    exchanges: RobotsExchangeLocator,
}

impl CleanParamRules {
    /// Prepares to read the `Clean-param` lines of the crawl in `dir`. `None` if the crawl ignored
    /// `Clean-param` lines, or has no archive.
    pub(super) fn open(dir: &Path) -> Option<CleanParamRules> {
        let settings = stored_settings(dir);
        let switch = settings
            .get("names")
            .and_then(|names| names.get("clean-params"));
        if switch.and_then(toml::Value::as_str) == Some("off") || !dir.join(FOLDER).is_dir() {
            return None;
        }
        Some(CleanParamRules {
            dir: dir.to_owned(),
            reader: RobotsInterpretation::of(&settings).ok()?,
            copies: None,
            rules: HashMap::new(),
        })
    }

    /// Returns the URL without the parameters that its site declares irrelevant. `None` if the URL
    /// has no such parameters. A robots.txt that can't be read has no rules.
    pub(super) fn clean(&mut self, url: &CanonicalUrl) -> Option<CanonicalUrl> {
        url.as_url().query()?;
        let origin = url.origin();
        if !self.rules.contains_key(&origin) {
            let rules = self.read(&origin).ok().flatten();
            let rules = rules.filter(|rules| !rules.clean_params().is_empty());
            self.rules.insert(origin.clone(), rules);
        }
        let cleaned = self.rules.get(&origin)?.as_ref()?.clean(url.as_url())?;
        canonicalize(None, cleaned.url.as_str()).ok()
    }

    fn read(&mut self, origin: &Origin) -> Result<Option<AgentRules>, RecordsError> {
        let copies = match &mut self.copies {
            Some(copies) => copies,
            copies => copies.insert(RobotsCopies::find(&self.dir)?),
        };
        let (agent, profile) = (&self.reader.agent, self.reader.profile);
        let mut url = origin.robots_url();
        for _ in 0..=MAX_HOPS {
            let Some(&(start, status)) = copies.requested.get(url.as_str()) else {
                break;
            };
            let Some(exchange) = copies.exchanges.read(url.as_str(), start)? else {
                break;
            };
            match redirect_target(status, &exchange, &url) {
                Some(to) => url = to,
                None => {
                    let body = exchange.body;
                    return Ok(body.map(|body| AgentRules::parse(&body, agent, profile)));
                }
            }
        }
        Ok(None)
    }
}

impl RobotsCopies {
    /// Reads `requests.jsonl` and the capture log of the archive. Malformed lines are skipped.
    fn find(dir: &Path) -> Result<RobotsCopies, RecordsError> {
        let mut requested = HashMap::new();
        let rows = requests(dir)?;
        for row in rows {
            let row = match row {
                Ok(row) if matches!(row.purpose.as_str(), "robots" | "hop") => row,
                Ok(_) | Err(RecordsError::Row { .. }) => continue,
                Err(why) => return Err(why),
            };
            let Some(status) = row.status else {
                continue;
            };
            match RobotsStatus::of(status) {
                RobotsStatus::Successful | RobotsStatus::Redirect => {
                    requested.insert(row.url, (row.start, status));
                }
                RobotsStatus::Unavailable => {
                    requested.remove(&row.url);
                }
                // The previous file stays in force, as after a failed request. A 304 is included.
                RobotsStatus::Unreachable => {}
            }
        }
        let wanted = requested
            .iter()
            .map(|(url, (start, _))| exchange_key(url, *start));
        let exchanges = RobotsExchangeLocator::find(dir, &wanted.collect())?;
        Ok(RobotsCopies {
            requested,
            exchanges: exchanges.unwrap_or_else(|| RobotsExchangeLocator::without_archive(dir)),
        })
    }
}
