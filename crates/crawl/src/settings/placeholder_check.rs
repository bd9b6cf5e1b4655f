//! Rejects placeholders of the example configurations, which must not reach site owners.

use crawl_weburl::{CanonicalUrl, canonicalize};

use super::choices::CrawlKind;
use super::setting_definitions::{Operator, Settings};
use crate::error::{CommandError, ErrorCollector};

/// Domains reserved for examples (RFC 2606 section 3); mail sent there is never read.
const EXAMPLE_DOMAINS: [&str; 3] = ["example.com", "example.net", "example.org"];
/// The contact in the example files. Other addresses at [`EXAMPLE_DOMAINS`] are accepted, because
/// someone typed them on purpose.
const EXAMPLE_CONTACT: &str = "you@example.org";
/// The placeholder for the operator's name in `config/research.toml`.
const EXAMPLE_NAME: &str = "Your Name";
const EXAMPLE_INSTITUTION: &str = "Your Institute";

/// Adds a problem for each placeholder in the settings of a crawl that fetches from public hosts.
/// Seeds are checked only for a study: a general crawl may well start at `https://example.org/`.
pub(super) fn check_placeholders(
    settings: &Settings,
    seeds: &[CanonicalUrl],
    problems: &mut ErrorCollector,
) {
    let Operator {
        kind,
        contact,
        operator_name,
        institution,
        study_page,
        ..
    } = &settings.operator;
    let mut refuse = |key: &'static str, value: &str| {
        let message = format!("`{key}` is still the placeholder `{value}`");
        let hint = match key {
            "seed" => "list the sites of your study".to_owned(),
            key => format!("replace it by your own {key}, which owners of visited sites see"),
        };
        problems.note::<()>(Err(CommandError::usage(message).hint(hint).about(key)));
    };
    let mailbox = contact.trim().trim_start_matches("mailto:");
    if mailbox.eq_ignore_ascii_case(EXAMPLE_CONTACT) {
        refuse("contact", contact);
    }
    if *kind != CrawlKind::Research {
        return;
    }
    for seed in seeds.iter().filter(|seed| is_example(seed.host())) {
        refuse("seed", seed.as_str());
    }
    if operator_name == EXAMPLE_NAME {
        refuse("operator-name", operator_name);
    }
    if institution == EXAMPLE_INSTITUTION {
        refuse("institution", institution);
    }
    if host_of(study_page).is_some_and(|host| is_example(&host)) {
        refuse("study-page", study_page);
    }
}

/// Returns the host of a URL or an email address. `None` for other text.
fn host_of(text: &str) -> Option<String> {
    let text = text.trim();
    match canonicalize(None, text) {
        Ok(url) => Some(url.host().to_owned()),
        Err(_) => {
            let (_, host) = text.rsplit_once('@')?;
            Some(host.to_ascii_lowercase())
        }
    }
}

fn is_example(host: &str) -> bool {
    EXAMPLE_DOMAINS.iter().any(|domain| {
        let before = host.strip_suffix(domain);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use crate::settings::check;
    use crate::settings::config_file::parse;

    fn problems(text: &str) -> String {
        let settings = parse(text, "x").unwrap().settle();
        check(&settings).map_or_else(|problem| problem.to_string(), |_| String::new())
    }

    #[test]
    fn placeholders_of_the_example_files_are_refused() {
        let research = include_str!("../../../../config/research.toml");
        let message = problems(research);
        for placeholder in [
            "`contact` is still the placeholder `you@example.org`",
            "`seed` is still the placeholder `https://www.example.org/`",
            "`seed` is still the placeholder `https://www.example.net/`",
            "`operator-name` is still the placeholder `Your Name`",
            "`institution` is still the placeholder `Your Institute`",
            "`study-page` is still the placeholder `https://example.org/study`",
        ] {
            assert!(message.contains(placeholder), "{placeholder}: {message}");
        }
        let own = research
            .replace("Your ", "Our ")
            .replace("example.org", "e.example")
            .replace("example.net", "f.example");
        assert_eq!(problems(&own), "");
        let site = problems(include_str!("../../../../config/small-site.toml"));
        assert!(
            site.contains("`contact` is still the placeholder"),
            "{site}"
        );
    }

    #[test]
    fn a_general_crawl_may_begin_at_an_example_domain() {
        let crawl = "seed = [\"https://example.org/\"]\n[operator]\ncontact = ";
        assert_eq!(problems(&format!("{crawl}\"me@example.org\"")), "");
        for contact in ["mailto:you@example.org", "You@Example.org"] {
            let message = problems(&format!("{crawl}\"{contact}\""));
            assert!(message.contains("`contact` is still"), "{message}");
        }
        // On loopback no contact is needed, so a placeholder is accepted.
        let local = "seed = [\"http://127.0.0.1/\"]\n[operator]\ncontact = \"you@example.org\"";
        assert_eq!(problems(local), "");
    }
}
