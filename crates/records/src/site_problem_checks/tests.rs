//! Tests of the checks of links, which are made from faults.

use super::{of_links, reason, template_note};
use crate::broken_links::key;
use crate::self_contained_report_page::{SiteOrigin, TableCell, checks};
use crate::site_faults::{FaultKind, PageFault, SiteFaultReport};
use crate::site_report::{RedirectChain, SiteReport};

fn fault(page: &str, to: &str, kind: FaultKind, why: &str) -> PageFault {
    PageFault {
        page: Some(format!("https://e.example{page}")),
        to: format!("https://e.example{to}"),
        kind,
        why: why.to_owned(),
        text: Some("<b>the link</b>".to_owned()),
        status: None,
        error: None,
        element: None,
    }
}

fn faults(faults: Vec<PageFault>) -> SiteFaultReport {
    SiteFaultReport {
        faults,
        graded: (0..40)
            .map(|page| key(&format!("https://e.example/p{page}")))
            .collect(),
        kinds: FaultKind::ALL.to_vec(),
        ..SiteFaultReport::default()
    }
}

#[test]
fn links_are_grouped_by_target_with_the_pages_to_fix() {
    let mut all: Vec<PageFault> = (0..7)
        .map(|page| {
            fault(
                &format!("/p{page}"),
                "/gone",
                FaultKind::Broken,
                "not found (404)",
            )
        })
        .collect();
    all.push(fault(
        "/p0",
        "/old",
        FaultKind::Redirect,
        "moved to https://e.example/new",
    ));
    let html = checks(&of_links(&faults(all), None)).into_string();
    assert_eq!(html.matches("class=\"check\"").count(), 2);
    assert!(
        html.contains("7 of 40 pages (17.5\u{a0}%) have a broken link"),
        "{html}"
    );
    assert!(html.contains("not found (404)") && html.contains("<summary>4 more pages</summary>"));
    assert!(html.contains("“&lt;b&gt;the link&lt;/b&gt;”"));
    assert!(html.contains("href=\"https://e.example/new\""));
    // Broken links come first. The two kinds without faults have grade A, but no section.
    assert!(html.find("id=\"broken-links\"") < html.find("id=\"redirects\""));
    assert_eq!(html.matches("g gA").count(), 2);
}

#[test]
fn kinds_that_were_not_searched_for_have_no_grade() {
    let mut some = faults(Vec::new());
    some.kinds = vec![FaultKind::Fragment];
    let graded = of_links(&some, None);
    let ids: Vec<_> = graded.iter().map(|check| check.id).collect();
    assert_eq!(ids, ["anchors"]);
    // With a baseline, only new faults are listed. So the share of all affected pages is unknown,
    // and the check has no grade.
    some.known = 3;
    assert!(of_links(&some, None)[0].measure.is_none());
}

#[test]
fn the_reason_of_a_moved_page_is_a_link() {
    let words = |why: &str| match reason(why, &SiteOrigin::default()) {
        TableCell::Markup(markup) => markup.into_string(),
        _ => String::new(),
    };
    assert_eq!(words("no element has the id é"), "no element has the id é");
    assert!(words("moved to http://e.example/b").starts_with("<a href="));
}

#[test]
fn a_link_on_every_page_is_probably_in_the_template() {
    let all = (0..40).map(|page| {
        let moved = "moved to https://e.example/new";
        fault(&format!("/p{page}"), "/old", FaultKind::Redirect, moved)
    });
    let mut all: Vec<PageFault> = all.collect();
    all.push(fault("/p0", "/old2", FaultKind::Redirect, "moved to x"));
    let html = checks(&of_links(&faults(all), None)).into_string();
    assert!(html.contains("<strong>on every page: probably in the template</strong>"));
    assert!(html.contains("<summary>40 pages</summary>"), "{html}");
    assert_eq!(html.matches("in the template").count(), 1);
    assert!(html.contains("2 moved addresses on 40 of 40 pages"));
    assert!(html.contains("2 moved addresses on 40 pages."));
    assert_eq!(
        template_note(37, 40).unwrap(),
        "on 37 of 40 pages: probably in the template"
    );
    assert_eq!((template_note(35, 40), template_note(2, 2)), (None, None));
}

#[test]
fn broken_links_outside_html_pages_are_never_graded_a() {
    let missing = "not found (404)";
    let gone = |page, to| fault(page, to, FaultKind::Broken, missing);
    let sheet = gone("/style.css", "/gone.png");
    let html = checks(&of_links(&faults(vec![sheet.clone()]), None)).into_string();
    let grade_b = "g gB\"><span class=\"hidden\">grade </span>B</span> <strong>";
    assert!(html.contains(&format!("{grade_b}Overall.")), "{html}");
    assert!(html.contains(&format!("{grade_b}Broken links</strong>")));
    assert!(html.contains("1 broken address on 0 of 40 pages and in 1 other document<"));
    assert!(html.contains("1 broken address in 1 document."), "{html}");

    // The sentence and the list of grades count the same pages and documents.
    let both = faults(vec![sheet, gone("/p1", "/gone.png"), gone("/p1", "/x")]);
    let html = checks(&of_links(&both, None)).into_string();
    assert!(
        html.contains("2 broken addresses on 1 page and in 1 other document."),
        "{html}"
    );
    assert!(html.contains("2 broken addresses on 1 of 40 pages and in 1 other document<"));

    let mut seed = gone("/", "/");
    seed.page = None;
    let html = checks(&of_links(&faults(vec![seed]), None)).into_string();
    assert!(
        html.contains(&format!("{grade_b}Broken links</strong>")),
        "{html}"
    );
    assert!(
        html.contains("<span class=\"soft\">1 broken address</span>"),
        "{html}"
    );
}

#[test]
fn redirect_chains_without_a_permanent_redirect_are_not_graded_a() {
    let site = SiteReport {
        redirect_chains: vec![RedirectChain {
            url: "https://e.example/one".to_owned(),
            to: ["two", "end"]
                .map(|path| format!("https://e.example/{path}"))
                .to_vec(),
            links: 1,
        }],
        ..SiteReport::default()
    };
    let html = checks(&of_links(&faults(Vec::new()), Some(&site))).into_string();
    assert_eq!(
        (html.matches("g gA").count(), html.matches("g gB").count()),
        (3, 3),
        "{html}"
    );
    assert!(html.contains("<span class=\"soft\">1 redirect chain</span>"));
}

#[test]
fn a_link_in_other_documents_is_not_blamed_on_the_template() {
    let broken = |page: &str| fault(page, "/gone", FaultKind::Broken, "not found (404)");
    let all = (0..40)
        .map(|sheet| broken(&format!("/{sheet}.css")))
        .collect();
    let html = checks(&of_links(&faults(all), None)).into_string();
    assert!(!html.contains("in the template"), "{html}");
}
