//! `crawl identity check`: fetches the published keys as a verifier does.

use crawl_fetcher::{Exchange, FetchConfig, Truncation};
use crawl_identity::{DIRECTORY_PATH, DIRECTORY_TYPE, KeySet, PublicKey, check_directory};
use crawl_weburl::canonicalize;
use http::header::CONTENT_TYPE;

use crate::clock;
use crate::commands::robots;
use crate::error::{CommandError, FINISHED, NOTHING_DONE};
use crate::identity::KeySource;
use crate::settings::{Settings, check_agent, check_ca_files, check_contact, key_url, user_agent};
use crate::terminal::print;

pub(super) fn run(settings: &Settings) -> Result<u8, CommandError> {
    let operator = &settings.operator;
    let url = key_url(operator)?;
    let source = KeySource::of(&operator.signature_key.0);
    let keys = source.is_given().then(|| source.read()).transpose()?;
    let agent = check_agent(&operator.agent)?;
    let contact = check_contact(&operator.contact)?;
    let target = canonicalize(None, &url);
    let target = target.map_err(|why| CommandError::usage(format!("`{url}`: {why}")))?;
    let config = FetchConfig {
        extra_roots: check_ca_files(&settings.fetch.ca_file)?,
        typed: vec![target.clone()],
        ..FetchConfig::new(user_agent(&agent, contact.as_ref()))
    };
    let faults = match robots::fetch_once(target, config)? {
        Ok(exchange) => {
            let now = u64::try_from(clock::now().as_second()).unwrap_or_default();
            faults(&url, &exchange, keys.as_ref(), now)
        }
        Err(failure) => vec![format!("it can't be fetched: {failure}")],
    };
    let mut text = format!("{url}: ");
    match faults.is_empty() {
        true => text.push_str("verifiers can use these keys\n"),
        false => text.push_str("verifiers can't use these keys\n"),
    }
    for fault in &faults {
        text.push_str(&format!("  {fault}\n"));
    }
    if keys.is_none() {
        text.push_str("  not compared with your private keys: give --signature-key\n");
    }
    print(text.as_bytes())?;
    Ok(match faults.is_empty() {
        true => FINISHED,
        false => NOTHING_DONE,
    })
}

/// Returns what is wrong with the answer of `url`. `keys` are the private keys, of which the one
/// that signs at `now` must be published.
fn faults(url: &str, answer: &Exchange, keys: Option<&KeySet>, now: u64) -> Vec<String> {
    if answer.status != 200 {
        return vec![format!(
            "the answer's status is {}; verifiers accept only 200 and follow no redirects",
            answer.status
        )];
    }
    let mut faults = Vec::new();
    let field = answer.headers.get(CONTENT_TYPE);
    let media_type = field
        .and_then(|field| field.to_str().ok())
        .unwrap_or_default();
    if url.ends_with(DIRECTORY_PATH) && media_type.split(';').next() != Some(DIRECTORY_TYPE) {
        faults.push(format!(
            "its Content-Type is `{media_type}` instead of `{DIRECTORY_TYPE}`"
        ));
    }
    if answer.truncated == Some(Truncation::Length) {
        faults.push("it is larger than 1 MiB".to_owned());
    }
    let text = String::from_utf8_lossy(&answer.body);
    let (published, found) = check_directory(&text);
    faults.extend(found.iter().map(ToString::to_string));
    let thumbprints: Vec<String> = published.iter().map(PublicKey::thumbprint).collect();
    for key in keys.map(KeySet::public).unwrap_or_default() {
        let thumbprint = key.thumbprint();
        let signs =
            keys.is_some_and(|keys| keys.at(now).is_ok_and(|now| now.thumbprint() == thumbprint));
        let is_later = key.not_before.is_some_and(|start| start > now);
        match thumbprints.contains(&thumbprint) {
            false if signs => {
                faults.push(format!("the key that signs now, {thumbprint}, isn't there"));
            }
            false if is_later => {
                faults.push(format!(
                    "the key that signs next, {thumbprint}, isn't there yet"
                ));
            }
            _ => {}
        }
    }
    for key in published
        .iter()
        .filter(|key| key.expires.is_some_and(|end| end <= now))
    {
        faults.push(format!("the key {} has expired", key.thumbprint()));
    }
    faults
}
