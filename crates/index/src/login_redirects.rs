//! The last answers that the crawl recorded for URLs. The answers decide whether a page that
//! redirects to a login stays in the index.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::error::IndexError;

/// Maximum redirects to follow. Browsers follow twenty.
pub(crate) const MAX_REDIRECTS: usize = 20;

/// The last answer of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedAnswer {
    /// A redirect to this URL.
    Redirect(String),
    /// A login form, a challenge or a refusal (401, 403) in place of a page.
    InPlace,
}

/// Looks up the last recorded answers of a set of URLs. The result maps URLs to their answers. URLs
/// without a [`RecordedAnswer`], such as those of ordinary pages, are left out.
pub type AnswerLookUp<'a> =
    dyn Fn(&BTreeSet<String>) -> Result<HashMap<String, RecordedAnswer>, IndexError> + 'a;

/// Returns those `urls` that lead to a [`RecordedAnswer::InPlace`], such as a login form, directly
/// or through redirects.
///
/// # Errors
/// The errors of `look_up`.
pub fn lead_to_login(
    urls: &BTreeSet<String>,
    look_up: &AnswerLookUp<'_>,
) -> Result<HashSet<String>, IndexError> {
    let mut answers: HashMap<String, RecordedAnswer> = HashMap::new();
    let mut open = urls.clone();
    for _ in 0..=MAX_REDIRECTS {
        open.retain(|url| !answers.contains_key(url));
        if open.is_empty() {
            break;
        }
        let new_answers = look_up(&open)?;
        let targets = new_answers.values().filter_map(|answer| match answer {
            RecordedAnswer::Redirect(to) => Some(to.clone()),
            RecordedAnswer::InPlace => None,
        });
        open = targets.collect();
        answers.extend(new_answers);
    }
    let leads_to_login = |url: &&String| {
        let mut url = *url;
        for _ in 0..=MAX_REDIRECTS {
            match answers.get(url) {
                Some(RecordedAnswer::Redirect(to)) => url = to,
                answer => return answer.is_some(),
            }
        }
        false
    };
    Ok(urls.iter().filter(leads_to_login).cloned().collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{MAX_REDIRECTS, RecordedAnswer, lead_to_login};

    #[test]
    fn redirects_are_followed_to_a_login() {
        let look_up = |urls: &BTreeSet<String>| {
            let answer = |url: &String| match url.as_str() {
                "login" => Some(RecordedAnswer::InPlace),
                "page" => None,
                "loop" => Some(RecordedAnswer::Redirect("loop".to_owned())),
                "moved" => Some(RecordedAnswer::Redirect("page".to_owned())),
                hops => match hops.parse::<usize>().unwrap() {
                    0 => Some(RecordedAnswer::Redirect("login".to_owned())),
                    more => Some(RecordedAnswer::Redirect((more - 1).to_string())),
                },
            };
            let answers = urls
                .iter()
                .filter_map(|url| Some((url.clone(), answer(url)?)));
            Ok(answers.collect())
        };
        let few = (MAX_REDIRECTS - 1).to_string();
        let many = MAX_REDIRECTS.to_string();
        let all = ["login", "page", "loop", "moved", "3", &few, &many];
        let urls = all.map(str::to_owned).into();
        let logins = lead_to_login(&urls, &look_up).unwrap();
        let mut logins: Vec<_> = logins.iter().map(String::as_str).collect();
        logins.sort_unstable();
        assert_eq!(logins, [few.as_str(), "3", "login"]);
    }
}
