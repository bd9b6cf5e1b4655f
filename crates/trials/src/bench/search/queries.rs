//! The judged queries in `crates/trials/queries/*.tsv`. Each file's head explains its rows.

use anyhow::{Context, Result, bail};

/// The use of a set of queries: tuning or measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuerySetUse {
    /// For tuning the ranking.
    Tune,
    /// Only for measurements.
    HeldOut,
}

/// A query and its relevant pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JudgedQuery {
    pub(super) set: QuerySetUse,
    /// The kind of query, such as `howto` or `typo`. The heads of the files list all kinds.
    pub(super) kind: String,
    pub(super) query: String,
    /// The relevant pages, by their path below the documentation's folder, each with its grade.
    pub(super) pages: Vec<(String, RelevanceGrade)>,
}

/// How well a page answers a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RelevanceGrade {
    Useful = 1,
    Answers = 2,
}

/// Parses the rows of a file.
///
/// # Errors
/// Fails if a row is invalid, with its number, if a query occurs twice, or if no page answers it.
pub(super) fn parse(text: &str) -> Result<Vec<JudgedQuery>> {
    let mut all: Vec<JudgedQuery> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let judged = row(line).with_context(|| format!("line {}: {line}", number + 1))?;
        if all.iter().any(|other| other.query == judged.query) {
            bail!("line {}: {:?} is a duplicate", number + 1, judged.query);
        }
        all.push(judged);
    }
    Ok(all)
}

fn row(line: &str) -> Result<JudgedQuery> {
    let cells: Vec<&str> = line.split('\t').collect();
    let &[set, kind, query, pages] = cells.as_slice() else {
        bail!("{} cells, not 4", cells.len());
    };
    let set = match set {
        "tune" => QuerySetUse::Tune,
        "held-out" => QuerySetUse::HeldOut,
        other => bail!("no set is called {other:?}"),
    };
    let pages = pages.split(' ').map(page).collect::<Result<Vec<_>>>()?;
    if pages
        .iter()
        .all(|(_, grade)| *grade != RelevanceGrade::Answers)
    {
        bail!("no page answers it");
    }
    Ok(JudgedQuery {
        set,
        kind: kind.to_owned(),
        query: query.to_owned(),
        pages,
    })
}

fn page(cell: &str) -> Result<(String, RelevanceGrade)> {
    let (path, grade) = cell.split_once('=').context("a page without grade")?;
    let grade = match grade {
        "2" => RelevanceGrade::Answers,
        "1" => RelevanceGrade::Useful,
        other => bail!("no grade {other:?}"),
    };
    Ok((path.to_owned(), grade))
}

#[cfg(test)]
mod tests {
    use super::{QuerySetUse, RelevanceGrade, parse};

    const PYTHON: &str = include_str!("../../../queries/python-docs.tsv");
    const GIT: &str = include_str!("../../../queries/git-docs.tsv");
    const HELD_OUT: [&str; 4] = [
        include_str!("../../../queries/sqlite-docs.tsv"),
        include_str!("../../../queries/octave-docs.tsv"),
        include_str!("../../../queries/aptitude-fr-docs.tsv"),
        include_str!("../../../queries/django-docs.tsv"),
    ];
    const OTHERS: [&str; 3] = [
        include_str!("../../../queries/postfix-docs.tsv"),
        include_str!("../../../queries/postgresql-docs.tsv"),
        include_str!("../../../queries/apache-docs.tsv"),
    ];

    #[test]
    fn the_committed_sets_match_their_heads() {
        let python = parse(PYTHON).unwrap();
        assert!(python.len() >= 90, "{}", python.len());
        let other_sets = OTHERS.map(|text| parse(text).unwrap());
        let git = parse(GIT).unwrap();
        let (measured, halved_git) = git.split_at(50);
        assert!(
            measured
                .iter()
                .all(|judged| judged.set == QuerySetUse::HeldOut)
        );
        let held_out = HELD_OUT.map(|text| parse(text).unwrap());
        for judged in held_out.iter().flatten() {
            assert_eq!(judged.set, QuerySetUse::HeldOut, "{}", judged.query);
        }
        let others_halved = other_sets.iter().map(Vec::as_slice);
        for halved in [&python[..], halved_git].into_iter().chain(others_halved) {
            assert!(halved.len() >= 60, "{}", halved.len());
            for (n, judged) in halved.iter().enumerate() {
                let set = [QuerySetUse::Tune, QuerySetUse::HeldOut][n % 2];
                assert_eq!(judged.set, set, "{}", judged.query);
            }
        }
        for judged in python
            .iter()
            .chain(&git)
            .chain(other_sets.iter().chain(&held_out).flatten())
        {
            let best = judged.pages.first().map(|(_, grade)| *grade);
            assert_eq!(best, Some(RelevanceGrade::Answers), "{}", judged.query);
            let index = |path: &str| path.contains("genindex") || path.contains("changelog");
            assert!(judged.pages.iter().all(|(path, _)| !index(path)));
        }
    }

    #[test]
    fn invalid_rows_are_reported() {
        let named = |text: &str| format!("{:#}", parse(text).unwrap_err());
        let row = "tune\thowto\ttea\ta.html=2\n";
        assert!(named("tune\thowto\ttea\n").contains("line 1"));
        assert!(named(&row.replace("tune", "tunes")).contains("tunes"));
        assert!(named(&row.replace("=2", "=3")).contains("no grade"));
        assert!(named(&row.replace("=2", "=1")).contains("no page answers it"));
        assert!(named(&format!("# head\n{row}{row}")).contains("line 3"));
    }
}
