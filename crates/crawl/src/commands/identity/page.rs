//! `crawl identity page`: the page about the crawler.

use std::fs;
use std::path::Path;

use crawl_records::BotPage;

use crate::error::{CommandError, FINISHED, unwritable};
use crate::settings::{Settings, check_agent, check_contact, key_url, user_agent};
use crate::terminal::note;

pub(super) fn run(
    out: &Path,
    ip_ranges: Option<&str>,
    settings: &Settings,
) -> Result<u8, CommandError> {
    let operator = &settings.operator;
    let agent = check_agent(&operator.agent)?;
    let Some(contact) = check_contact(&operator.contact)? else {
        let what = "the page needs --contact, a way for site owners to reach you".to_owned();
        return Err(CommandError::usage(what)
            .hint("give an email address, or put `contact` in [operator] of --config")
            .about("contact"));
    };
    let non_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let page = BotPage {
        user_agent: user_agent(&agent, Some(&contact)),
        agent: agent.to_string(),
        operator: non_empty(&operator.operator_name),
        institution: non_empty(&operator.institution),
        study: non_empty(&operator.study),
        study_page: non_empty(&operator.study_page),
        contact: contact.to_string(),
        purpose: settings
            .exclusion
            .purpose
            .meaning()
            .map(|purpose| purpose.to_string()),
        archives: settings.output.warc.is_on(),
        delay: settings.politeness.delay.to_string(),
        per_host: settings.politeness.per_host,
        robots_max_age: settings.exclusion.robots_max_age.to_string(),
        key_url: match operator.signature_agent.is_empty() {
            true => None,
            false => Some(key_url(operator)?),
        },
        ip_ranges: ip_ranges.map(str::to_owned),
    };
    fs::write(out, page.to_html()).map_err(|why| unwritable(out, &why))?;
    note(&format!("wrote {}", out.display()));
    Ok(FINISHED)
}
