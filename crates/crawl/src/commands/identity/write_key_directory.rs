//! `crawl identity directory`: writes the files that an operator publishes.

use std::fs;
use std::path::Path;

use crawl_identity::{AgentCardDetails, DIRECTORY_TYPE, SignatureAgentCard};

use crate::error::{CommandError, FINISHED, unwritable};
use crate::identity::KeySource;
use crate::output_file::write_file;
use crate::settings::{Settings, check_agent, check_contact, fastest_pace, key_url, user_agent};
use crate::terminal::{note, print};

/// File name of the card that describes the crawler, in the root folder of the host that publishes
/// the keys.
const CARD: &str = "signature-agent-card.json";

pub(super) fn run(out: &Path, settings: &Settings) -> Result<u8, CommandError> {
    let url = key_url(&settings.operator)?;
    let keys = KeySource::of(&settings.operator.signature_key.0).read()?;
    let (origin, path) = split(&url);
    let card = card(settings, &url, origin)?;
    let card = serde_json::to_string_pretty(&card).unwrap_or_default() + "\n";
    let mut printed = String::new();
    for (name, text) in [(path, keys.to_directory_json()), (CARD, card)] {
        let file = out.join(name);
        let folder = file.parent().unwrap_or(out);
        fs::create_dir_all(folder).map_err(|why| unwritable(folder, &why))?;
        write_file(&file, text)?;
        printed.push_str(&format!("{}\n", file.display()));
    }
    note(&format!(
        "publish the files at {origin}/, the keys with `Content-Type: {DIRECTORY_TYPE}`; then run \
         `crawl identity check`"
    ));
    print(printed.as_bytes())?;
    Ok(FINISHED)
}

/// Splits an https URL into its origin and its path without the first slash.
fn split(url: &str) -> (&str, &str) {
    let host = url.strip_prefix("https://").unwrap_or(url);
    let slash = host.find('/').map(|at| at + "https://".len());
    let (origin, path) = url.split_at(slash.unwrap_or(url.len()));
    (origin, path.trim_start_matches('/'))
}

/// Returns the card that describes the crawler to site owners, filled in from its settings.
fn card(settings: &Settings, url: &str, origin: &str) -> Result<SignatureAgentCard, CommandError> {
    let operator = &settings.operator;
    let agent = check_agent(&operator.agent)?;
    let contact = check_contact(&operator.contact)?;
    let non_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let name = non_empty(&operator.operator_name).map(|name| format!("{agent} ({name})"));
    let contact_url = contact.as_ref().map(|contact| match contact.mail() {
        Some(mail) => format!("mailto:{mail}"),
        None => contact.to_string(),
    });
    let page = contact_url.clone().filter(|url| url.starts_with("http"));
    let (delay, per_host) = fastest_pace(settings);
    let requests = match per_host {
        1 => "one request".to_owned(),
        count => format!("{count} requests"),
    };
    Ok(SignatureAgentCard {
        client_id: format!("{origin}/{CARD}"),
        client_name: name.unwrap_or_else(|| agent.to_string()),
        client_uri: non_empty(&operator.study_page).or(page),
        contacts: contact_url.into_iter().collect(),
        jwks_uri: url.to_owned(),
        web_bot_auth: AgentCardDetails {
            expected_user_agent: user_agent(&agent, contact.as_ref()),
            rfc9309_product_token: agent.to_string(),
            rfc9309_compliance: ["User-Agent", "Allow", "Disallow", "Crawl-delay"]
                .map(str::to_owned)
                .to_vec(),
            trigger: "crawler".to_owned(),
            purpose: settings
                .exclusion
                .purpose
                .meaning()
                .map(|purpose| purpose.to_string()),
            rate_control: "429, 503, Retry-After, Crawl-delay".to_owned(),
            rate_expectation: format!(
                "at most {requests} at a time per host, and a pause of at least {delay} after each"
            ),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{card, split};
    use crate::settings::Settings;

    #[test]
    fn the_card_describes_the_crawler_by_its_settings() {
        let mut settings = Settings::default();
        settings.operator.contact = "bot@example.org".to_owned();
        settings.operator.operator_name = "Example Library".to_owned();
        let url = "https://bot.example/.well-known/http-message-signatures-directory";
        let (origin, path) = split(url);
        assert_eq!(path, ".well-known/http-message-signatures-directory");
        let card = serde_json::to_value(card(&settings, url, origin).unwrap()).unwrap();
        assert_eq!(
            card["client_id"],
            "https://bot.example/signature-agent-card.json"
        );
        assert_eq!(card["client_name"], "crawl (Example Library)");
        assert_eq!(card["jwks_uri"], url);
        assert_eq!(card["contacts"][0], "mailto:bot@example.org");
        let details = &card["web_bot_auth"];
        assert_eq!(details["rfc9309-product-token"], "crawl");
        assert_eq!(
            details["rate-expectation"],
            "at most one request at a time per host, and a pause of at least 1s after each"
        );
        assert!(details.get("purpose").is_none());
        settings.politeness.per_host = 3;
        settings.exclusion.purpose = toml::Value::from("search").try_into().unwrap();
        let table = "[site.\"e.example\"]\ndelay = \"300ms\"\nper-host = 2\n";
        settings.site = toml::from_str::<toml::Table>(table).unwrap()["site"]
            .clone()
            .try_into()
            .unwrap();
        let card = serde_json::to_value(super::card(&settings, url, origin).unwrap()).unwrap();
        let details = &card["web_bot_auth"];
        assert_eq!(
            details["rate-expectation"],
            "at most 3 requests at a time per host, and a pause of at least 300ms after each"
        );
        assert_eq!(details["purpose"], "search");
    }
}
