//! After a recheck found that some robots.txt files changed, makes the next run of the crawl fetch
//! these files again.

use std::collections::BTreeSet;
use std::path::Path;

use crawl_archive::{DIGESTS, FilesToRehash, write_digests};
use crawl_fetcher::robots::{RobotsCopy, RobotsRulesState};
use crawl_frontier::{Frontier, FrontierError};
use crawl_scheduler::Tick;
use crawl_weburl::Origin;

use super::crawl_directory;
use crate::error::EngineError;
use crate::frontier_meta_keys::META_RECHECKED;

/// Makes the next run of the crawl in `dir` fetch the rules of these origins again, if the crawl in
/// `learnt` has other rules for them. The copies in `learnt` don't replace those in `dir`, because
/// each crawl must itself fetch and record the rules that it follows.
///
/// # Errors
/// [`EngineError`] if the state of either directory can't be read or changed.
pub fn expire_changed_rules(
    dir: &Path,
    learnt: &Path,
    origins: impl Iterator<Item = Origin>,
) -> Result<(), EngineError> {
    let learnt = crawl_directory::open_at_rest(learnt)?;
    {
        let frontier = crawl_directory::open_at_rest(dir)?;
        let mut changed: BTreeSet<String> = rechecked(&*frontier)?.into_iter().collect();
        let before = changed.len();
        for origin in origins {
            let copies = (copy(&*frontier, &origin)?, copy(&*learnt, &origin)?);
            if let (Some(old), Some(new)) = copies
                && has_other_rules(&old, &new)
            {
                changed.insert(origin.to_string());
            }
        }
        if changed.len() == before {
            return Ok(());
        }
        let listed = serde_json::to_vec(&changed).unwrap_or_default();
        let mut transaction = frontier.begin()?;
        transaction.keep_meta(META_RECHECKED, &listed);
        transaction.commit()?;
    }
    let listed = write_digests(dir, FilesToRehash::Named(&[crawl_directory::STATE]));
    listed.map_err(EngineError::disk(&dir.join(DIGESTS)))
}

/// At the start of a run, expires the rules that a recheck found changed. Returns their origins.
pub(crate) fn take_rechecked(
    frontier: &dyn Frontier,
    now: Tick,
) -> Result<Vec<String>, FrontierError> {
    let origins = rechecked(frontier)?;
    expire(frontier, &origins, now)?;
    Ok(origins)
}

/// Makes the stored rules of these origins expire now, and empties the list of origins whose rules
/// a recheck found changed.
pub(crate) fn expire(
    frontier: &dyn Frontier,
    origins: &[String],
    now: Tick,
) -> Result<(), FrontierError> {
    if origins.is_empty() {
        return Ok(());
    }
    let mut expired = Vec::new();
    for origin in origins
        .iter()
        .filter_map(|origin| Origin::parse(origin).ok())
    {
        if let Some(mut copy) = copy(frontier, &origin)? {
            copy.expires = copy.expires.min(now);
            expired.push((origin, copy.to_bytes()));
        }
    }
    let mut transaction = frontier.begin()?;
    for (origin, copy) in &expired {
        transaction.keep_robots(origin, copy);
    }
    transaction.keep_meta(META_RECHECKED, b"[]");
    transaction.commit()?;
    Ok(())
}

fn rechecked(frontier: &dyn Frontier) -> Result<Vec<String>, FrontierError> {
    let bytes = frontier.meta(META_RECHECKED)?.unwrap_or_default();
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}

fn copy(frontier: &dyn Frontier, origin: &Origin) -> Result<Option<RobotsCopy>, FrontierError> {
    let bytes = frontier.robots(origin)?;
    Ok(bytes.and_then(|bytes| RobotsCopy::from_bytes(&bytes).ok()))
}

/// Returns whether the rules of `new` are known and differ from those of `old`.
fn has_other_rules(old: &RobotsCopy, new: &RobotsCopy) -> bool {
    let is_known = !matches!(new.state, RobotsRulesState::Unreachable { .. });
    is_known && (&old.state, &old.body, &old.tdmrep) != (&new.state, &new.body, &new.tdmrep)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crawl_fetcher::Validators;
    use crawl_fetcher::robots::{RobotsCopy, RobotsRulesState, TdmReservationCopy};
    use crawl_frontier::{Frontier as _, MemoryFrontier};
    use crawl_scheduler::Tick;
    use crawl_weburl::Origin;

    use super::{META_RECHECKED, copy, has_other_rules, rechecked, take_rechecked};

    fn at(seconds: u64) -> Tick {
        Tick::from_micros(seconds * 1_000_000)
    }

    fn rules(origin: &Origin, body: &'static str) -> RobotsCopy {
        RobotsCopy {
            origin: origin.clone(),
            state: RobotsRulesState::Rules,
            status: Some(200),
            fetched_at: at(10),
            expires: at(1_000),
            lasts: Duration::from_secs(990),
            body: body.into(),
            good_at: Some(at(10)),
            url: origin.robots_url(),
            validators: Validators::default(),
            tdmrep: TdmReservationCopy::NotAsked,
        }
    }

    #[test]
    fn a_run_expires_changed_rules_once() {
        let origins =
            ["a", "b"].map(|name| Origin::parse(&format!("http://{name}.example")).unwrap());
        let frontier = MemoryFrontier::new();
        let mut transaction = frontier.begin().unwrap();
        for origin in &origins {
            let copy = rules(origin, "User-agent: *\nAllow: /\n");
            transaction.keep_robots(origin, &copy.to_bytes());
        }
        transaction.keep_meta(
            META_RECHECKED,
            br#"["http://a.example","http://gone.example"]"#,
        );
        transaction.commit().unwrap();
        let before = copy(&frontier, &origins[1]).unwrap().unwrap();
        let origins_taken = take_rechecked(&frontier, at(21)).unwrap();
        assert_eq!(origins_taken, ["http://a.example", "http://gone.example"]);
        assert_eq!(
            copy(&frontier, &origins[0]).unwrap().unwrap().expires,
            at(21)
        );
        assert_eq!(copy(&frontier, &origins[1]).unwrap().unwrap(), before);
        assert!(rechecked(&frontier).unwrap().is_empty());
    }

    #[test]
    fn only_other_rules_that_are_known_count_as_changed() {
        let origin = Origin::parse("http://a.example").unwrap();
        let old = rules(&origin, "Disallow: /a\n");
        let mut new = old.clone();
        new.fetched_at = at(500);
        new.expires = at(900);
        assert!(!has_other_rules(&old, &new));
        new.body = "Disallow: /b\n".into();
        assert!(has_other_rules(&old, &new));
        new.state = RobotsRulesState::Unreachable {
            why: "503".to_owned(),
            tries: 1,
        };
        assert!(!has_other_rules(&old, &new));
        new = old.clone();
        new.tdmrep = TdmReservationCopy::File("[]".into());
        assert!(has_other_rules(&old, &new));
    }
}
