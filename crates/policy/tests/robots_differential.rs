//! Compares random files with two oracles: a slow, simple reference written independently, and
//! another crate. `--nocapture` shows how much was compared.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

#[path = "fuzz_checks/reference_matcher.rs"]
mod reference;

use std::cell::Cell;

use crawl_policy::{AgentRules, ProductToken, RequestPath, RobotsProfile};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Counts of comparisons. Any difference fails the test, which shows the file.
#[derive(Default)]
struct Counts {
    files: Cell<u64>,
    checks: Cell<u64>,
    refusals: Cell<u64>,
}

impl Counts {
    fn count(&self, cell: impl Fn(&Counts) -> &Cell<u64>) {
        cell(self).set(cell(self).get() + 1);
    }

    fn report(&self, oracle: &str, excluded: &str) {
        let [files, checks, refusals] = [&self.files, &self.checks, &self.refusals].map(Cell::get);
        assert!(
            checks > files && refusals * 20 > checks,
            "too little is compared"
        );
        println!(
            "{oracle}: {files} files, {checks} checks, {refusals} of them refusals, 0 differences; left out: {excluded}"
        );
    }
}

fn runner() -> TestRunner {
    TestRunner::new(Config {
        cases: 8 * Config::default().cases,
        failure_persistence: None,
        ..Config::default()
    })
}

/// Generates lines that the crate and both oracles interpret in the same way.
fn common_line() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "User-agent: (ourbot|other|\\*)\n",
        9 => "(Disallow|Allow|disallow|Dissallow): (/[abx]{0,3}([*][ab.]{0,2}){0,2}[$]?|)\n",
        3 => "(Disallow|Allow): /[ab]{0,2}(ü|%c3%bc|%61|~)[*ab]{0,2}\n",
        1 => "(# comment|Sitemap: https://a.example/s.xml|Disallow /ab|)\n",
    ]
}

/// Generates any line, including lines that only the crate and the reference interpret in the same
/// way.
fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => common_line(),
        2 => "(User-agent|useragent): ?(ourbot/2|bot2x|ourbot other|\\* x|)\r?\n",
        3 => "(Dis|dis|)allow ?: ?/?[ab*%]{0,5}(/index.html|%2[aAfF4]|\\$| x)\\$? ?\r?\n",
        1 => "(Crawl-delay|Host|x): ?[0-9a-z]{0,3}\r\n",
        1 => "[ -~]{0,12}\n",
    ]
}

#[test]
fn we_and_the_reference_agree() {
    let (counts, agent) = (Counts::default(), ProductToken::new("ourbot").unwrap());
    let lines = prop::collection::vec(any_line(), 0..24);
    let path = "/[abx.]{0,5}(%C3%BC|~|%2a|/index.html|)[ab]{0,3}(\\?[ab]{0,2}|#x)?";
    let cases = (lines, prop::collection::vec(path, 1..8));
    let compare = |(lines, paths): (Vec<String>, Vec<String>)| {
        let file = lines.concat();
        let robots = AgentRules::parse(file.as_bytes(), &agent, RobotsProfile::Rfc9309);
        counts.count(|counts| &counts.files);
        for path in &paths {
            let verdict = robots.judge_path(&RequestPath::new(path.as_str()).unwrap());
            let actual = (verdict.is_allowed(), verdict.rule.map(|rule| rule.line));
            let expect = reference::judge(file.as_bytes(), &agent, path);
            prop_assert_eq!(actual, expect, "{}\n{}", path, file);
            counts.count(|counts| &counts.checks);
            if !actual.0 {
                counts.count(|counts| &counts.refusals);
            }
        }
        Ok(())
    };
    runner().run(&cases, compare).unwrap();
    counts.report(
        "the reference, verdict and line",
        "UTF-16, which it does not bridge",
    );
}

#[test]
fn we_and_another_crate_agree() {
    let (counts, agent) = (Counts::default(), ProductToken::new("ourbot").unwrap());
    let lines = prop::collection::vec(common_line(), 0..24);
    let path = "/[abx.]{0,5}(%C3%BC|~|)[ab]{0,3}(\\?[ab]{0,2})?";
    let cases = (lines, prop::collection::vec(path, 1..8));
    let compare = |(lines, paths): (Vec<String>, Vec<String>)| {
        let file = lines.concat();
        let robots = AgentRules::parse(file.as_bytes(), &agent, RobotsProfile::Rfc9309);
        let robotxt_rules = robotxt::Robots::parse(file.as_bytes(), "ourbot");
        counts.count(|counts| &counts.files);
        for path in &paths {
            let verdict = robots.judge_path(&RequestPath::new(path.as_str()).unwrap());
            let allowed = robotxt_rules.is_allowed(path);
            prop_assert_eq!(
                verdict.is_allowed(),
                allowed,
                "{} {:?}\n{}",
                path,
                verdict,
                file
            );
            counts.count(|counts| &counts.checks);
            if !allowed {
                counts.count(|counts| &counts.refusals);
            }
        }
        Ok(())
    };
    runner().run(&cases, compare).unwrap();
    counts.report(
        "robotxt, verdict",
        "what it reads otherwise: paths without a slash (it adds one), escaped reserved bytes (it knows no literal `*` and `$`), other records in a group's header (they end it), names with a version (only whole names count), index pages (they allow no folder)",
    );
}
