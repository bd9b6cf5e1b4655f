//! `crawl identity page`: the page about the crawler.

use std::path::Path;

use crawl_engine::ForbiddenRobotsPolicy;
use crawl_fetcher::SignWhen;
use crawl_records::CrawlerDescription;

use crate::error::{CommandError, FINISHED};
use crate::output_file::write_file;
use crate::settings::{
    Settings, SiteSettings, check_agent, check_contact, fastest_pace, key_url, user_agent,
};
use crate::terminal::note;
use crate::values::RepeatInterval;

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
    let (delay, per_host) = fastest_pace(settings);
    let recrawl = &settings.recrawl;
    let last_good = settings.exclusion.robots_last_good;
    let mut sites = settings.site.values();
    let page = CrawlerDescription {
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
        keeps_cookies: sites.clone().any(SiteSettings::keeps_cookies),
        logs_in: sites.any(SiteSettings::has_login),
        revisits: recrawl.recrawl.is_on() || recrawl.every != RepeatInterval::NEVER,
        delay: delay.to_string(),
        per_host,
        robots_max_age: settings.exclusion.robots_max_age.to_string(),
        robots_last_good: (!last_good.get().is_zero()).then(|| last_good.to_string()),
        closed_by_refusal: settings.exclusion.robots_forbidden.meaning()
            == ForbiddenRobotsPolicy::Deny,
        key_url: match operator.signature.meaning() {
            None => None,
            Some(_) => Some(key_url(operator)?),
        },
        always_signs: operator.signature.meaning() == Some(SignWhen::Always),
        ip_ranges: ip_ranges.map(str::to_owned),
    };
    write_file(out, page.to_html())?;
    note(&format!("wrote {}", out.display()));
    Ok(FINISHED)
}
