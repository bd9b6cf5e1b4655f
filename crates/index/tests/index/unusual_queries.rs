//! Tests of queries with names, symbols, accents, and words about changes.

use crawl_index::IndexedPage;

use crate::support::{found, heading, indexed, page, search};

#[test]
fn a_name_in_a_heading_ranks_as_the_same_words_typed_apart() {
    let filler = "The server reads its values when it starts, and again when it is told to. ";
    let settings = IndexedPage {
        headings: vec![
            heading(3, "ALLOWED_HOSTS", "hosts", 0),
            heading(3, "CACHES", "caches", 0),
        ],
        ..page(
            "http://a.example/settings",
            "Settings",
            &format!("ALLOWED_HOSTS\nA list of names.\n{}", filler.repeat(400)),
        )
    };
    let mention = |n: usize| {
        page(
            &format!("http://a.example/topic/{n}"),
            &format!("Topic {n}"),
            &format!(
                "ALLOWED_HOSTS and again ALLOWED_HOSTS. {}",
                filler.repeat(1 + n)
            ),
        )
    };
    let mut pages: Vec<_> = (0..9).map(mention).collect();
    pages.push(settings);
    let (_dir, index) = indexed(&pages);
    for query in [
        "ALLOWED_HOSTS",
        "allowed_hosts",
        "allowed hosts",
        "\"allowed hosts\"",
        "\"ALLOWED_HOSTS\"",
    ] {
        assert_eq!(
            search(&index, query).results[0].url,
            "http://a.example/settings",
            "{query}"
        );
    }
}

#[test]
fn operators_are_found_and_symbols_that_are_not_are_named() {
    let (_dir, index) = indexed(&[
        page(
            "http://a.example/unequal",
            "Inequality (!=)",
            "Compares: a != b.",
        ),
        page("http://a.example/pipe", "Pipes", "Read it as x |> f."),
    ]);
    assert_eq!(found(&index, "!="), "/unequal");
    assert_eq!(found(&index, "|>"), "/pipe");
    for query in ["??", "%"] {
        let answer = search(&index, query);
        assert_eq!((answer.total, answer.unknown), (0, vec![query.to_owned()]));
    }
}

#[test]
fn a_suggestion_is_written_as_pages_write_it() {
    let (_dir, index) = indexed(&[page(
        "http://a.example/",
        "Élevage",
        "Des chèvres et leur fromagerie.",
    )]);
    assert_eq!(found(&index, "chevrez"), "/ (chèvres?)");
}

#[test]
fn a_suggestion_keeps_text_without_spaces_as_typed() {
    let (_dir, index) = indexed(&[page("http://a.example/", "日本語", "A dictionary.")]);
    assert_eq!(found(&index, "日本語dictionery"), "/ (日本語 dictionary?)");
}

#[test]
fn words_that_most_titles_share_do_not_count_in_titles() {
    let mut pages: Vec<_> = (0..29)
        .map(|n| {
            let title = format!("Topic {n} | Acme manual");
            page(
                &format!("http://a.example/{n}"),
                &title,
                &format!("Number {n} of many."),
            )
        })
        .collect();
    pages.push(page(
        "http://a.example/handling",
        "Handling",
        "The manual valve is opened by hand, a manual task.",
    ));
    let (_dir, index) = indexed(&pages);
    assert_eq!(
        search(&index, "manual").results[0].url,
        "http://a.example/handling"
    );
}

#[test]
fn lists_of_changes_rank_fully_for_queries_about_changes() {
    let text = "Kettles heat faster and the kettle lid closes.";
    let (_dir, index) = indexed(&[
        page("http://a.example/relnotes", "Release notes", text),
        page(
            "http://a.example/kettle",
            "Kettle",
            &format!("{text} Release the lid."),
        ),
        page(
            "http://a.example/_modules/kettle",
            "Kettle source",
            &format!("{text} Kettle kettle."),
        ),
    ]);
    assert_eq!(
        found(&index, "kettle"),
        "/kettle /relnotes /_modules/kettle"
    );
    assert!(found(&index, "kettle release notes").starts_with("/relnotes"));
}

#[test]
fn one_of_two_words_suffices_if_few_pages_have_both() {
    let mut pages: Vec<_> = (0..6)
        .map(|n| {
            page(
                &format!("http://a.example/{n}"),
                "Kettle",
                &format!("A kettle, number {n}."),
            )
        })
        .collect();
    pages.push(page(
        "http://a.example/both",
        "Whistles",
        "The whistle of a kettle.",
    ));
    let (_dir, index) = indexed(&pages);
    let answer = search(&index, "kettle whistle");
    assert_eq!((answer.total, answer.lacks_words), (7, true));
    assert_eq!(answer.results[0].url, "http://a.example/both");
    assert_eq!(
        answer.left_out().as_deref(),
        Some("Few pages have all words: pages with some of them follow.")
    );
    assert!(!search(&index, "kettle number").lacks_words);
}

#[test]
fn results_that_lack_words_are_named_for_queries_of_any_length() {
    let mut texts = vec![String::from("kettle whistle steam")];
    texts.extend((0..9).map(|n| format!("kettle whistle {n}")));
    texts.extend((0..30).map(|n| format!("filler{n}")));
    let page_of = |(n, text): (usize, &String)| {
        page(&format!("http://a.example/{n}"), &format!("Page {n}"), text)
    };
    let pages: Vec<_> = texts.iter().enumerate().map(page_of).collect();
    let (_dir, index) = indexed(&pages);
    let answer = search(&index, "kettle whistle steam");
    assert_eq!((answer.total, answer.lacks_words), (10, true));
    assert_eq!(answer.results[0].url, "http://a.example/0");
    let sentence = "Few pages have all words: pages with some of them follow.";
    assert_eq!(answer.left_out().as_deref(), Some(sentence));
    // No page has most of the words.
    assert!(search(&index, "steam filler1 filler2").lacks_words);
    // All results have all words, or no page has one of them.
    assert!(!search(&index, "kettle whistle page").lacks_words);
    let answer = search(&index, "kettle whistle zebra");
    assert_eq!((answer.lacks_words, answer.unknown.len()), (false, 1));
}

#[test]
fn hebrew_abbreviations_formulas_and_arabic_articles_are_found() {
    let hebrew = IndexedPage {
        language: Some("he".to_owned()),
        ..page("http://a.example/he", "דו״ח שנתי", "אתר של צה\"ל ושל ארה”ב")
    };
    let arabic = IndexedPage {
        language: Some("ar".to_owned()),
        ..page("http://a.example/ar", "الخدمات", "كل المعلومات والشركات")
    };
    let formulas = page("http://a.example/co2", "CO₂", "10 km² of H₂O");
    let (_dir, index) = indexed(&[hebrew, arabic, formulas]);
    for (query, expected) in [
        ("צה\"ל", "/he"),
        ("צה״ל", "/he"),
        ("צה”ל", "/he"),
        ("\"דו\"ח שנתי\"", "/he"),
        ("ארה\"ב", "/he"),
        ("خدمات", "/ar"),
        ("معلومات", "/ar"),
        ("شركات", "/ar"),
        ("co2", "/co2"),
        ("CO₂", "/co2"),
        ("km2", "/co2"),
        ("H2O", "/co2"),
    ] {
        assert_eq!(found(&index, query), expected, "{query}");
        assert_eq!(search(&index, query).did_you_mean, None, "{query}");
    }
}

#[test]
fn withheld_text_is_found_but_not_shown() {
    let (_dir, index) = indexed(&[IndexedPage {
        withheld: "Confidential price".to_owned(),
        ..page("http://a.example/a", "Lamps", "Public text")
    }]);
    let answer = search(&index, "confidential");
    assert_eq!(answer.total, 1);
    assert!(
        !serde_json::to_string(&answer)
            .unwrap()
            .contains("onfidential p")
    );
    assert_eq!(found(&index, "\"confidential price\""), "/a");
}

#[test]
fn optional_marks_and_digits_of_other_scripts_are_found() {
    let (_dir, index) = indexed(&[
        page("http://a.example/he", "שָׁלוֹם", "עולם"),
        page("http://a.example/ar", "مُحَمَّد", "سنة ٢٠٢٤"),
        page("http://a.example/fa", "سال", "۱۴۰۳"),
    ]);
    assert_eq!(found(&index, "שלום"), "/he");
    assert_eq!(found(&index, "مـــحمد"), "/ar");
    assert_eq!(found(&index, "2024"), "/ar");
    assert_eq!(found(&index, "۲۰۲۴"), "/ar");
    assert_eq!(found(&index, "1403"), "/fa");
}

#[test]
fn a_word_that_only_titles_have_is_found() {
    let page = |n: usize| {
        page(
            &format!("http://a.example/{n}"),
            &format!("Topic {n} | Acme manual"),
            &format!("Number {n} of many."),
        )
    };
    let (_dir, index) = indexed(&(0..30).map(page).collect::<Vec<_>>());
    for query in ["acme", "\"acme manual\"", "acme topic 7"] {
        assert!(search(&index, query).total > 0, "{query}");
    }
    assert_eq!(
        search(&index, "acme topic 7").results[0].url,
        "http://a.example/7"
    );
}
