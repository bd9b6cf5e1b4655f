//! `crawl identity check`: fetches the published keys as a verifier does.

use bytes::Bytes;
use crawl_coding::{DecodeEnd, DecodeLimits, decode};
use crawl_fetcher::{FetchConfig, TruncationReason};
use crawl_identity::{
    DIRECTORY_PATH, DIRECTORY_TYPE, PublicKey, SignableMessage, SigningKeySet, check_directory,
    verify_directory_response,
};
use crawl_weburl::canonicalize;
use http::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};

use crate::clock;
use crate::commands::robots;
use crate::error::{CommandError, FINISHED, NEGATIVE_RESULT};
use crate::identity::KeySource;
use crate::settings::{Settings, check_agent, check_ca_files, check_contact, key_url, user_agent};
use crate::terminal::print;

/// Maximum time in seconds for which verifiers may cache the keys: one week. The check adds a note
/// if the response allows more.
const MAX_AGE: u64 = 7 * 86_400;

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
    let now = u64::try_from(clock::now().as_second()).unwrap_or_default();
    let authority = target.as_url().authority().to_owned();
    let findings = match robots::fetch_once(target, config)? {
        Ok(exchange) => {
            let answer = PublishedKeysAnswer {
                url: &url,
                authority: &authority,
                status: exchange.status,
                headers: &exchange.headers,
                body: &exchange.body,
                is_cut: exchange.truncated == Some(TruncationReason::Length),
            };
            answer.judge(keys.as_ref(), now)
        }
        Err(failure) => KeyFindings {
            faults: vec![("fetch", format!("it can't be fetched: {failure}"))],
            notes: Vec::new(),
        },
    };
    let mut text = format!("{url}: ");
    match findings.faults.is_empty() {
        true => text.push_str("verifiers can use these keys\n"),
        false => text.push_str("verifiers can't use these keys\n"),
    }
    for (name, problem) in &findings.faults {
        text.push_str(&format!("  {name}: {problem}\n"));
    }
    for (name, problem) in &findings.notes {
        text.push_str(&format!("  note: {name}: {problem}\n"));
    }
    if keys.is_none() {
        text.push_str("  not compared with your private keys: give --signature-key\n");
    }
    print(text.as_bytes())?;
    Ok(match findings.faults.is_empty() {
        true => FINISHED,
        false => NEGATIVE_RESULT,
    })
}

/// The name of a fault or note, and its description.
type NamedFinding = (&'static str, String);

/// The findings of a check of published keys.
#[derive(Debug, Default, PartialEq, Eq)]
struct KeyFindings {
    /// Defects that may make verifiers reject keys.
    faults: Vec<NamedFinding>,
    /// Possible improvements of the published keys and of the response's headers.
    notes: Vec<NamedFinding>,
}

/// The server's response to the request for the published keys.
struct PublishedKeysAnswer<'a> {
    url: &'a str,
    authority: &'a str,
    status: u16,
    headers: &'a HeaderMap,
    /// The body as sent, still with its content coding.
    body: &'a Bytes,
    /// Whether the body was truncated at the maximum length.
    is_cut: bool,
}

impl PublishedKeysAnswer<'_> {
    /// Lists the faults of the response and possible improvements. `keys` are the operator's
    /// private keys, whose public halves must be published. `now` is in seconds since 1970.
    fn judge(&self, keys: Option<&SigningKeySet>, now: u64) -> KeyFindings {
        let mut findings = KeyFindings::default();
        if self.status != 200 {
            let problem = format!(
                "the answer's status is {}; verifiers accept only 200 and follow no redirects",
                self.status
            );
            findings.faults.push(("status", problem));
            return findings;
        }
        let media_type = self.field("content-type");
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        if self.url.ends_with(DIRECTORY_PATH) && !essence.eq_ignore_ascii_case(DIRECTORY_TYPE) {
            let problem =
                format!("its Content-Type is `{media_type}` instead of `{DIRECTORY_TYPE}`");
            findings.faults.push(("media-type", problem));
        }
        if self.is_cut {
            let problem = "it is larger than 1 MiB".to_owned();
            findings.faults.push(("size", problem));
        }
        self.judge_caching(&mut findings);
        let codings = self.headers.get_all(CONTENT_ENCODING);
        let codings: Vec<&[u8]> = codings.iter().map(HeaderValue::as_bytes).collect();
        let decoded = decode(codings, self.body, &DecodeLimits::default());
        if !matches!(decoded.end, DecodeEnd::Whole) && !self.is_cut {
            let coding = self.field("content-encoding");
            let problem = format!("its body isn't what Content-Encoding says, `{coding}`");
            findings.faults.push(("coding", problem));
        }
        let (published, faults) = check_directory(&String::from_utf8_lossy(&decoded.bytes));
        let faults = faults.iter().map(|fault| (fault.name(), fault.to_string()));
        findings.faults.extend(faults);
        judge_dates(&published, now, &mut findings);
        if let Some(keys) = keys {
            judge_own(&published, keys, now, &mut findings);
        }
        self.judge_signatures(&published, now, &mut findings);
        findings
    }

    /// Adds a note if the response's caching rules burden verifiers or keep removed keys in use.
    fn judge_caching(&self, findings: &mut KeyFindings) {
        let control = self.field("cache-control").to_ascii_lowercase();
        let mut directives = control.split(',').map(str::trim);
        let max_age = directives.find_map(|directive| directive.strip_prefix("max-age="));
        let max_age = max_age.and_then(|seconds| seconds.parse::<u64>().ok());
        let problem = match max_age {
            _ if control.contains("no-store") => {
                "Cache-Control forbids storing the keys, so verifiers fetch them for each request"
                    .to_owned()
            }
            Some(seconds) if seconds > MAX_AGE => {
                format!("max-age is {seconds} s: a key that you remove may be accepted that long")
            }
            None if self.field("expires").is_empty() => {
                "it has no max-age, such as `Cache-Control: max-age=86400`, so verifiers guess how \
                 long the keys are good"
                    .to_owned()
            }
            _ => return,
        };
        findings.notes.push(("cache", problem));
    }

    fn judge_signatures(&self, published: &[PublicKey], now: u64, findings: &mut KeyFindings) {
        let fields = self.headers.iter();
        let response = SignableMessage {
            authority: self.authority.to_owned(),
            fields: fields
                .map(|(name, value)| {
                    let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                    (name.as_str().to_owned(), value)
                })
                .collect(),
            is_response: true,
            ..SignableMessage::default()
        };
        let (valid, faults) = verify_directory_response(&response, self.body, published, now);
        let is_signed = valid > 0 || !faults.is_empty();
        let faults = faults.iter();
        findings
            .faults
            .extend(faults.map(|fault| ("signature", fault.to_string())));
        if !is_signed {
            let problem = "the response isn't signed with its keys, which the protocol recommends";
            findings.notes.push(("signature", problem.to_owned()));
        }
    }

    /// Returns a header field as text. Empty if the field is missing.
    fn field(&self, name: &str) -> String {
        let values = self.headers.get_all(name).iter();
        let values: Vec<_> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        values.join(", ")
    }
}

/// Adds a fault or a note for each published key whose dates are wrong or don't include `now`, and
/// a fault if no published key is in use.
fn judge_dates(published: &[PublicKey], now: u64, findings: &mut KeyFindings) {
    for key in published {
        let thumbprint = key.thumbprint();
        let dates = (key.not_before, key.expires);
        match dates {
            (Some(start), Some(end)) if end <= start => {
                let problem = format!("the key {thumbprint} ends (`exp`) before it starts (`nbf`)");
                findings.faults.push(("nbf-exp", problem));
            }
            (_, Some(end)) if end <= now => {
                let problem =
                    format!("the key {thumbprint} has expired (`exp` is {end}): remove it");
                findings.faults.push(("expired", problem));
            }
            (Some(start), _) if start > now => {
                let problem =
                    format!("the key {thumbprint} is in use only from {start} on (`nbf`)");
                findings.notes.push(("not-yet", problem));
            }
            _ => {}
        }
    }
    if !published.is_empty() && !published.iter().any(|key| key.is_in_use(now)) {
        let problem = "no published key is in use now".to_owned();
        findings.faults.push(("in-use", problem));
    }
}

/// Adds a fault for each of the operator's `keys` that signs now or later but isn't published, and
/// a fault if no key can sign now.
fn judge_own(published: &[PublicKey], keys: &SigningKeySet, now: u64, findings: &mut KeyFindings) {
    let current = keys.at(now);
    if let Err(why) = &current {
        findings
            .faults
            .push(("own-keys", format!("of your own keys: {why}")));
    }
    for key in keys.public() {
        let thumbprint = key.thumbprint();
        if published.iter().any(|key| key.thumbprint() == thumbprint) {
            continue;
        }
        let signs = current
            .as_ref()
            .is_ok_and(|current| current.thumbprint() == thumbprint);
        let is_later = key.not_before.is_some_and(|start| start > now);
        let problem = match (signs, is_later) {
            (true, _) => format!("the key that signs now, {thumbprint}, isn't there"),
            (_, true) => format!("the key that signs next, {thumbprint}, isn't there yet"),
            _ => continue,
        };
        findings.faults.push(("missing-key", problem));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use bytes::Bytes;
    use crawl_identity::SigningKeySet;
    use http::HeaderMap;

    use super::{DIRECTORY_TYPE, KeyFindings, PublishedKeysAnswer};

    const URL: &str = "https://bot.example/.well-known/http-message-signatures-directory";

    fn judge(
        fields: &[(&'static str, &'static str)],
        body: Vec<u8>,
        keys: Option<&SigningKeySet>,
    ) -> KeyFindings {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        let answer = PublishedKeysAnswer {
            url: URL,
            authority: "bot.example",
            status: 200,
            headers: &headers,
            body: &Bytes::from(body),
            is_cut: false,
        };
        answer.judge(keys, 1000)
    }

    fn names(findings: &[(&'static str, String)]) -> Vec<&'static str> {
        findings.iter().map(|(name, _)| *name).collect()
    }

    #[test]
    fn a_compressed_directory_is_read() {
        let mut keys = SigningKeySet::default();
        keys.add([1; 32], None);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(keys.to_directory_json().as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        let fields = [
            ("content-type", DIRECTORY_TYPE),
            ("content-encoding", "gzip"),
            ("cache-control", "max-age=86400"),
        ];
        let findings = judge(&fields, gzip.clone(), Some(&keys));
        assert_eq!(findings.faults, []);
        assert_eq!(names(&findings.notes), ["signature"]);
        let cut = judge(&fields, gzip[..gzip.len() / 2].to_vec(), None);
        assert_eq!(names(&cut.faults)[0], "coding");
    }

    #[test]
    fn every_defect_has_a_name() {
        let mut keys = SigningKeySet::default();
        keys.add([1; 32], None);
        let json = keys.to_directory_json();
        let with = |member: &str| json.replace("\"kty\"", &format!("{member}, \"kty\""));
        let typed = [
            ("content-type", DIRECTORY_TYPE),
            ("cache-control", "max-age=60"),
        ];
        for (body, expected) in [
            (json.clone(), vec![]),
            (with("\"d\": \"x\""), vec!["private-key"]),
            (json.replace("\"kid\": \"", "\"kid\": \"x"), vec!["kid"]),
            (with("\"exp\": 999"), vec!["expired", "in-use"]),
            (with("\"nbf\": 9, \"exp\": 8"), vec!["nbf-exp", "in-use"]),
            (with("\"nbf\": 1001"), vec!["in-use"]),
            ("{".to_owned(), vec!["json", "missing-key"]),
        ] {
            let findings = judge(&typed, body.clone().into_bytes(), Some(&keys));
            assert_eq!(names(&findings.faults), expected, "{body}");
        }
        let untyped = judge(&[("cache-control", "no-store")], json.into_bytes(), None);
        assert_eq!(names(&untyped.faults), ["media-type"]);
        assert_eq!(names(&untyped.notes), ["cache", "signature"]);
        let forged = [
            typed[0],
            typed[1],
            ("content-digest", "sha-256=:AAAA:"),
            (
                "signature-input",
                "a=();tag=\"http-message-signatures-directory\"",
            ),
            ("signature", "a=:AAAA:"),
        ];
        let forged = judge(&forged, keys.to_directory_json().into_bytes(), None);
        assert_eq!(names(&forged.faults), ["signature"]);
    }
}
