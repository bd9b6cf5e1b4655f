//! Tests of the results of queries and their order.

use crawl_index::{IndexSearcher, IndexWriter, IndexedPage, SearchOptions, SearchRules};
use expect_test::{Expect, expect};
use tempfile::TempDir;

use crate::support::{anchor, found, heading, indexed, page, search, shown};

fn teas() -> (TempDir, IndexSearcher) {
    indexed(&[
        page(
            "http://a.example/green",
            "Green tea",
            "Leaves that are steamed.\nBrewing green tea takes water that does not boil.",
        ),
        page(
            "http://a.example/black",
            "Black tea",
            "Oxidised leaves. Brew black tea with boiling water.\nGreen leaves make no black tea.",
        ),
        page(
            "http://a.example/docs/kettle",
            "Kettles",
            "A kettle boils water for coffee and for brewing.",
        ),
        page(
            "http://b.example/shop",
            "Shop",
            "Buy a teapot, a kettle and user_agent strings.",
        ),
    ])
}

#[track_caller]
fn check(query: &str, expected: Expect) {
    let (_dir, index) = teas();
    expected.assert_eq(&found(&index, query));
}

#[test]
fn words_in_titles_weigh_more() {
    check("green tea", expect!["/green /black http://b.example/shop"]);
    check("tea", expect!["/black /green http://b.example/shop"]);
    check("\"tea\"", expect!["/black /green"]);
    check("kettle", expect!["/docs/kettle http://b.example/shop"]);
}

/// Writes the pages in several commits, with drafts that are replaced and pages that are removed.
fn written_in_parts(pages: &[IndexedPage]) -> (TempDir, IndexSearcher) {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = IndexWriter::open(dir.path()).unwrap();
    for (n, page) in pages.iter().enumerate() {
        let draft = IndexedPage {
            text: "A draft about green tea, a kettle and a samovar. ".repeat(9),
            ..page.clone()
        };
        let removed = IndexedPage {
            url: format!("http://a.example/removed/{n}"),
            ..draft.clone()
        };
        writer.put(&draft).unwrap();
        writer.put(&removed).unwrap();
        writer.commit("drafts").unwrap();
        writer.put(page).unwrap();
        writer.drop_url(&removed.url);
    }
    writer.commit("pages").unwrap();
    writer.close().unwrap();
    let index = IndexSearcher::open(dir.path()).unwrap();
    (dir, index)
}

#[test]
fn scores_do_not_depend_on_segments_and_deleted_pages() {
    let mut pages: Vec<IndexedPage> = (0..24)
        .map(|n| {
            let text = format!(
                "Chapter {n} is about brewing. {}",
                "Water boils. ".repeat(n)
            );
            page(
                &format!("http://a.example/{n}"),
                &format!("Part {n}"),
                &text,
            )
        })
        .collect();
    let green = "Green tea is brewed. A kettle boils the water for green teas.";
    pages.push(page("http://a.example/green", "Green tea", green));
    pages.push(page(
        "http://a.example/kettle",
        "Kettles",
        "A kettle, and brewed tea.",
    ));
    let (_dir, parts) = written_in_parts(&pages);
    let (_dir, whole) = indexed(&pages);
    let queries = [
        "tea",
        "green tea",
        "brew water in a kettle",
        "chapter 3",
        "boil*",
        "\"green tea\"",
    ];
    for query in queries.into_iter().chain(["samovar", "samovars tea"]) {
        let scores = |index| {
            let answer = search(index, query);
            let scores = answer
                .results
                .into_iter()
                .map(|hit| (hit.score.to_bits(), hit.url));
            (
                answer.total,
                answer.did_you_mean,
                scores.collect::<Vec<_>>(),
            )
        };
        assert_eq!(scores(&parts), scores(&whole), "{query}");
    }
}

#[test]
fn a_heading_with_all_words_ranks_above_headings_with_some() {
    let page = |url: &str, title: &str, headings: [&str; 3]| IndexedPage {
        headings: headings.map(|text| heading(2, text, "", 0)).to_vec(),
        ..page(url, title, &format!("{title}.\n{}", headings.join("\n")))
    };
    let (_dir, index) = indexed(&[
        page(
            "http://a.example/apart",
            "First advice",
            [
                "Descale pipes, drains and taps in our house",
                "All copper things that we sell in this town",
                "Kettle",
            ],
        ),
        page(
            "http://a.example/together",
            "Second advice for you, for your house and for what you have in it",
            [
                "Pipes, drains and taps in our house",
                "All things that we sell in this town, and in any other town near it",
                "Descale a copper kettle",
            ],
        ),
    ]);
    assert_eq!(found(&index, "descale copper kettle"), "/together /apart");
}

#[test]
fn a_description_with_all_words_counts_as_a_heading() {
    let described = |url: &str, title: &str, description: &str| IndexedPage {
        description: description.to_owned(),
        ..page(
            url,
            title,
            &format!("{title}: the copper kettle that we descale."),
        )
    };
    let (_dir, index) = indexed(&[
        described("http://a.example/some", "Kettle", "Descale copper things"),
        described("http://a.example/all", "Advice", "Descale a copper kettle"),
    ]);
    assert_eq!(found(&index, "descale copper kettle"), "/all /some");
}

#[test]
fn a_rare_word_of_a_short_page_outweighs_a_common_one_of_a_long_page() {
    // Filler that moves the query words out of the start of the text, where words have more weight.
    let filler = "One two three four five six seven eight nine ten. ".repeat(2);
    let mut pages = vec![
        page(
            "http://a.example/short",
            "Care",
            &format!("{} Descale what is in the kettle.", filler.repeat(4)),
        ),
        page(
            "http://a.example/long",
            "Water",
            &format!(
                "{}{} Some descale it, others never descale it.",
                filler.repeat(4),
                format!("{filler} {filler} The kettle. ").repeat(10)
            ),
        ),
    ];
    for n in 0..30 {
        let (url, title) = (format!("http://a.example/{n}"), format!("Number {n}"));
        let text = format!("{n}. {} The kettle.", filler.repeat(3));
        pages.push(page(&url, &title, &text));
    }
    let (_dir, index) = indexed(&pages);
    let answer = search(&index, "descale kettle");
    let urls = answer.results.iter().map(|hit| hit.url.as_str());
    let first: Vec<&str> = urls.take(2).collect();
    assert_eq!(first, ["http://a.example/short", "http://a.example/long"]);
}

#[test]
fn words_are_found_by_their_stems() {
    check("brewed", expect!["/docs/kettle /green /black"]);
    check("boil", expect!["/docs/kettle /green /black"]);
    check("Kettles", expect!["/docs/kettle http://b.example/shop"]);
}

#[test]
fn phrases_match_as_typed() {
    check("\"green tea\"", expect!["/green"]);
    check("\"green leaves\"", expect!["/black"]);
    // If no page has a phrase, its words are looked up.
    let (_dir, index) = teas();
    let answer = search(&index, "\"leaves green\"");
    assert_eq!(
        (answer.total, answer.unknown),
        (2, vec!["\"leaves green\"".to_owned()])
    );
}

#[test]
fn the_words_of_a_phrase_that_is_taken_apart_are_counted_one_by_one() {
    let filler = "More of the same. ".repeat(30);
    let text = format!("A green door, a green wall. {filler}The tea there is green.");
    let (_dir, index) = indexed(&[page("http://a.example/", "Home", &text)]);
    let answer = search(&index, "\"green tea\"");
    let excerpt = shown(&answer.results[0].excerpt_parts);
    assert!(excerpt.contains("The [tea] there is [green]"), "{excerpt}");
}

#[test]
fn words_can_be_left_out() {
    check("tea -black", expect!["/green"]);
    check("kettle -site:b.example", expect!["/docs/kettle"]);
    check("tea -\"green leaves\"", expect!["/green"]);
    check("kettle -tea", expect!["/docs/kettle http://b.example/shop"]);
    check("-\"green tea\"", expect![""]);
}

#[test]
fn sites_are_hosts_domains_and_folders() {
    check("kettle site:b.example", expect!["http://b.example/shop"]);
    check(
        "kettle site:http://a.example/docs/",
        expect!["/docs/kettle"],
    );
    check(
        "site:example kettle",
        expect!["/docs/kettle http://b.example/shop"],
    );
    check("site:b.example", expect!["http://b.example/shop"]);
    check("site:a.example/do kettle", expect![""]);
    check("site:A.Example/docs kettle", expect!["/docs/kettle"]);
    let ported = page("http://127.0.0.1:8620/can/open", "Can", "A can of tea.");
    let (_dir, index) = indexed(&[ported]);
    for site in ["127.0.0.1", "127.0.0.1:8620"] {
        for folder in ["", "/can", "/can/open"] {
            let query = format!("tea site:{site}{folder}");
            assert_eq!(search(&index, &query).total, 1, "{query}");
        }
    }
    let international = page(
        "http://xn--bcher-kva.example/my%20docs/%E6%97%A5/a",
        "A",
        "A can of tea.",
    );
    let (_dir, index) = indexed(&[international]);
    for site in [
        "bücher.example",
        "Bücher.Example/my%20docs/日",
        "\"bücher.example/my docs\"",
    ] {
        let query = format!("tea site:{site}");
        assert_eq!(search(&index, &query).total, 1, "{query}");
    }
}

#[test]
fn queries_can_be_limited_to_titles() {
    check("title:tea", expect!["/green /black"]);
    check("title:\"green tea\"", expect!["/green"]);
    check("title:leaves", expect![""]);
}

#[test]
fn prefixes_match_words() {
    check("ket*", expect!["/docs/kettle http://b.example/shop"]);
    check("oxi*", expect!["/black"]);
}

#[test]
fn typing_errors_are_forgiven_and_named() {
    check("oxidized", expect!["/black (oxidised?)"]);
    check(
        "kettel",
        expect!["/docs/kettle http://b.example/shop (kettle?)"],
    );
    check("greentea", expect!["/green /black (green tea?)"]);
    check("tea pot", expect!["http://b.example/shop /black /green"]);
    check("zzzzzz", expect![""]);
}

#[test]
fn pages_with_one_word_are_found_if_none_has_all() {
    check("steamed coffee", expect!["/docs/kettle /green"]);
    check("site:b.example zzzz", expect![""]);
    check("\"green tea\" zzzz", expect!["/green"]);
}

#[test]
fn misspellings_that_keep_the_consonants_are_corrected() {
    let pages = [
        page(
            "http://a.example/ride",
            "Ride",
            "The bicycle of the committee and its grammar.",
        ),
        page("http://a.example/far", "Far", "A battery near the ripple."),
    ];
    let (_dir, index) = indexed(&pages);
    for (misspelt, expected) in [
        ("bycicle", "/ride (bicycle?)"),
        ("bicicle", "/ride (bicycle?)"),
        ("bicylce", "/ride (bicycle?)"),
        ("comitee", "/ride (committee?)"),
        ("gramer", "/ride (grammar?)"),
        // Two changes away and with other consonants, so not a correction.
        ("baltory", ""),
        ("topple", ""),
    ] {
        assert_eq!(found(&index, misspelt), expected, "{misspelt}");
    }
}

#[test]
fn a_corrected_word_counts_as_adjacent() {
    let pages = [
        page(
            "http://a.example/apart",
            "One",
            "Copper shines if the kettle is polished often.",
        ),
        page(
            "http://a.example/adjacent",
            "Two",
            "It shines if the copper kettle is polished often.",
        ),
    ];
    let (_dir, index) = indexed(&pages);
    assert_eq!(found(&index, "copper kettle"), "/adjacent /apart");
    assert_eq!(
        found(&index, "copper kettel"),
        "/adjacent /apart (copper kettle?)"
    );
}

#[test]
fn excluded_words_are_not_corrected() {
    check("tea -kettel", expect!["/black /green"]);
    check("kettle -user_agent", expect!["/docs/kettle"]);
    check(
        "kettle -user.boils",
        expect!["/docs/kettle http://b.example/shop"],
    );
}

#[test]
fn scripts_without_spaces_have_marks_too() {
    let (_dir, index) = indexed(&[page("http://a.example/ja", "旅", "東京、大阪と茶。")]);
    for query in ["東京、大阪", "大阪、茶", "\"東京、大阪\"", "東京 旅"] {
        assert_eq!(found(&index, query), "/ja", "{query}");
    }
}

#[test]
fn names_are_found_by_their_parts() {
    check("user_agent", expect!["http://b.example/shop"]);
    check("agent", expect!["http://b.example/shop"]);
    check("userAgent", expect!["http://b.example/shop"]);
}

#[test]
fn the_last_word_may_be_unfinished() {
    check("black te", expect!["/black /green http://b.example/shop"]);
    check("ke", expect!["/docs/kettle http://b.example/shop"]);
    // The word is the prefix of another word, so it is not corrected.
    check("steame", expect!["/green"]);
}

#[test]
fn a_known_last_word_ranks_above_its_completions() {
    let (_dir, index) = indexed(&[
        page(
            "http://a.example/longer",
            "Configuration",
            "The configuration of it.",
        ),
        page(
            "http://a.example/conf",
            "Files",
            "The file conf has it, and no more.",
        ),
    ]);
    assert_eq!(found(&index, "conf"), "/conf /longer");
    assert_eq!(found(&index, "conf file"), "/conf");
    assert_eq!(found(&index, "\"conf\""), "/conf");
}

#[test]
fn words_that_no_page_has_are_left_out_and_named() {
    let mut pages: Vec<IndexedPage> = (0..21)
        .map(|n| {
            page(
                &format!("http://a.example/{n}"),
                &format!("Pool {n}"),
                "The pool. Opening: see there.",
            )
        })
        .collect();
    pages.push(page(
        "http://a.example/hours",
        "Opening hours",
        "Monday to Friday.",
    ));
    let (_dir, index) = indexed(&pages);
    for query in [
        "opening zzzz",
        "zzzz opening",
        "opening zzzz -tea",
        "pool \"zzzz opening\"",
    ] {
        let answer = search(&index, query);
        assert!(answer.total > 0, "{query}");
        assert_eq!(answer.unknown.len(), 1, "{query}: {:?}", answer.unknown);
    }
    let best = |query: &str| search(&index, query).results[0].url.clone();
    assert_eq!(best("opening zzzz"), "http://a.example/hours");
    assert_eq!(search(&index, "zzzz").unknown, ["zzzz"]);
    // A word on three of 22 pages is not common.
    assert_eq!(best("pool hours"), "http://a.example/hours");
}

#[test]
fn a_minus_that_is_part_of_a_word_does_not_exclude() {
    let (_dir, index) = indexed(&[
        page(
            "http://a.example/fts",
            "Full text",
            "Build sqlite with -DSQLITE_ENABLE_FTS5 to have it.",
        ),
        page(
            "http://a.example/dump",
            "pg_dump",
            "With --no-owner the owner is not set.",
        ),
        page(
            "http://a.example/other",
            "Owners",
            "There is no such thing. An owner of sqlite.",
        ),
    ]);
    assert_eq!(found(&index, "-DSQLITE_ENABLE_FTS5"), "/fts");
    assert_eq!(found(&index, "sqlite -DSQLITE_ENABLE_FTS5"), "/fts /other");
    assert!(found(&index, "--no-owner").starts_with("/dump"));
    assert_eq!(found(&index, "sqlite -build"), "/other");
    assert_eq!(found(&index, "-owner"), "/other /dump");
}

#[test]
fn names_are_found_whole_before_their_parts() {
    let (_dir, index) = indexed(&[
        page(
            "http://a.example/parts",
            "Sorting in std",
            "A vec of std. One vec, another vec. Of std::sort and Vec.",
        ),
        page(
            "http://a.example/whole",
            "Growing",
            "Use std::vec::Vec here, for all that grows and shrinks.",
        ),
        page(
            "http://a.example/stat",
            "Activity",
            "The view pg_stat_activity shows it. setTimeOut waits.",
        ),
    ]);
    assert!(found(&index, "std::vec::Vec").starts_with("/whole"));
    for query in [
        "pg_stat_activity",
        "stat activity",
        "pg_stat",
        "setTimeOut",
        "settimeout",
        "time out",
    ] {
        assert_eq!(found(&index, query), "/stat", "{query}");
    }
}

#[test]
fn words_of_nearly_every_page_are_marked_next_to_others() {
    let mut pages: Vec<IndexedPage> = (0..21)
        .map(|n| {
            page(
                &format!("http://a.example/{n}"),
                "",
                &format!("To create it is to have it {n} times."),
            )
        })
        .collect();
    let text = format!(
        "You create what you like.\n{}\nCREATE INDEX makes an index.",
        "Words of no note. ".repeat(30)
    );
    pages.push(page(
        "http://a.example/index",
        "How to create an index",
        &text,
    ));
    let (_dir, index) = indexed(&pages);
    let hit = &search(&index, "create index").results[0];
    expect!["How to create an [index]"].assert_eq(&shown(&hit.title_parts));
    expect!["… [CREATE] [INDEX] makes an [index]."].assert_eq(&shown(&hit.excerpt_parts));
}

#[test]
fn compounds_are_found_by_their_parts_and_parts_by_compounds() {
    let german = |url: &str, title: &str, text: &str| IndexedPage {
        language: Some("de".to_owned()),
        ..page(url, title, text)
    };
    let (_dir, index) = indexed(&[
        german(
            "http://a.example/kasse",
            "Krankenversicherungen",
            "Wer krank wird, hat sie.",
        ),
        german(
            "http://a.example/kind",
            "Betreuung",
            "Was die Betreuung eines Kindes an Kosten macht.",
        ),
    ]);
    assert_eq!(found(&index, "Versicherung"), "/kasse");
    assert!(found(&index, "Betreuungskosten").starts_with("/kind"));
    // Words that are their own stem are compounds too.
    for (language, text, word) in [
        ("da", "Folkebiblioteket, Universitetshospital", "hospital"),
        ("de", "Auf dem Bahnhofsvorplatz", "Platz"),
        // The stem of this compound is `ferienwohn`, and that of `Torte` has four letters.
        ("de", "Zwei Ferienwohnungen", "Wohnung"),
        ("de", "Eine Sahnetorte", "Torte"),
        ("de", "Ein Haust\u{fc}rschl\u{fc}ssel", "Schl\u{fc}ssel"),
        ("fi", "Rautatieasema, kes\u{e4}loma", "asema"),
        ("is", "H\u{e1}sk\u{f3}lab\u{f3}kasafn", "b\u{f3}kasafn"),
        ("nl", "Het stadsziekenhuis", "ziekenhuis"),
        ("no", "Universitetssykehuset", "sykehuset"),
    ] {
        let [compound, english] = [language, "en"].map(|language| IndexedPage {
            language: Some(language.to_owned()),
            ..page(&format!("http://a.example/{language}"), "", text)
        });
        let (_dir, index) = indexed(&[compound]);
        assert_eq!(found(&index, word), format!("/{language}"), "{word}");
        // A word of English pages is not a compound, whatever languages other pages have.
        let (_dir, index) = indexed(&[english, german("http://a.example/x", "", "Anderes.")]);
        assert_eq!(found(&index, word), "", "{word}");
    }
    // The language of this page writes compounds as separate words, so compounds are not looked up.
    let (_dir, index) = indexed(&[page("http://a.example/", "Overriding", "Overriding of it.")]);
    assert_eq!(found(&index, "riding"), "");
}

#[test]
fn characters_are_found_apart_where_no_page_has_the_run() {
    let (_dir, index) = indexed(&[page("http://a.example/ja", "旅", "東京と大阪。")]);
    assert_eq!(found(&index, "東京大学"), "/ja");
    assert_eq!(found(&index, "京都"), "");
}

#[test]
fn words_of_headings_can_be_typed_in_part() {
    let rules = IndexedPage {
        headings: vec![heading(1, "Unreachable rules", "top", 0)],
        ..page("http://a.example/rules", "Rules", "What holds.")
    };
    let (_dir, index) = indexed(&[rules]);
    for typed in ["unr", "unreach", "unreacha", "unreachable"] {
        assert_eq!(search(&index, typed).total, 1, "{typed}");
    }
}

#[test]
fn excerpts_show_the_query_words() {
    let long = format!(
        "{}\nThe samovar stands in the kitchen. It is hot.\n{}",
        "Nothing of note. ".repeat(40),
        "More of the same. ".repeat(40)
    );
    let (_dir, index) = indexed(&[page("http://a.example/", "Home & <b>hearth</b>", &long)]);
    let answer = search(&index, "kitchens hearth");
    let hit = &answer.results[0];
    expect!["Home & <b>[hearth]</b>"].assert_eq(&shown(&hit.title_parts));
    expect!["… The samovar stands in the [kitchen]. It is hot. More of the same. More of the same. More of the same. More of the same. More of the same. More of the same. More of the same. More of the same. More of the same. More of the same. More of the …"].assert_eq(&shown(&hit.excerpt_parts));
    assert!(hit.excerpt.chars().count() <= 244, "{}", hit.excerpt);
    let first = &search(&index, "title:home").results[0];
    assert!(
        first.excerpt.starts_with("Nothing of note."),
        "{}",
        first.excerpt
    );
}

#[test]
fn excerpts_lead_to_their_section() {
    let text = "Tea\nAll about it.\nWater\nFresh water is best.";
    let tea = IndexedPage {
        headings: vec![
            heading(1, "Tea", "tea", 0),
            heading(2, "Water", "water \u{1b}", text.find("Water").unwrap()),
        ],
        ..page("http://a.example/tea", "Tea", text)
    };
    let (_dir, index) = indexed(&[tea]);
    let section = search(&index, "fresh").results[0].section.clone().unwrap();
    assert_eq!(section.heading, "Water");
    assert_eq!(section.url, "http://a.example/tea#water%20%1B");
    assert_eq!(search(&index, "about").results[0].section, None);
}

#[test]
fn excerpts_respect_max_snippet() {
    let secret = IndexedPage {
        max_snippet: Some(0),
        ..page(
            "http://a.example/secret",
            "Secret",
            "The word is swordfish.",
        )
    };
    let short = IndexedPage {
        max_snippet: Some(10),
        ..page(
            "http://a.example/short",
            "Short",
            "The other word is swordfish, said the duck.",
        )
    };
    let (_dir, index) = indexed(&[secret, short]);
    for hit in search(&index, "swordfish").results {
        let max_chars = if hit.title == "Secret" {
            0
        } else {
            10 + "… ".chars().count() * 2
        };
        assert!(hit.excerpt.chars().count() <= max_chars, "{}", hit.excerpt);
    }
}

#[test]
fn no_result_shows_headings_of_a_page_that_bounds_its_excerpts() {
    let text = "Fish\nAll about it.\nSpecies\nThe swordfish swims in the sea.";
    let open = IndexedPage {
        headings: vec![
            heading(1, "Fish", "fish", 0),
            heading(2, "Species", "species", text.find("Species").unwrap()),
        ],
        ..page("http://a.example/open", "Open", text)
    };
    let bounded = IndexedPage {
        url: "http://a.example/bounded".to_owned(),
        title: "Bounded".to_owned(),
        text: text.replace("sea", "bay"),
        max_snippet: Some(5),
        ..open.clone()
    };
    let (_dir, index) = indexed(&[open, bounded]);
    let hits = search(&index, "swordfish").results;
    assert_eq!(hits.len(), 2);
    for hit in hits {
        let has_headings = !hit.sections.is_empty() || hit.section.is_some();
        assert_eq!(has_headings, hit.title == "Open", "{hit:?}");
    }
}

#[test]
fn link_texts_find_their_target() {
    let links = vec![
        anchor("http://a.example/m17", "sealing wax"),
        anchor("http://a.example/m17", "next"),
    ];
    let from = IndexedPage {
        links,
        ..page("http://a.example/", "Home", "Welcome.")
    };
    let (_dir, index) = indexed(&[from, page("http://a.example/m17", "M17", "Red sticks.")]);
    assert_eq!(found(&index, "sealing wax"), "/m17");
    let stored = index.page("http://a.example/m17").unwrap().unwrap();
    assert_eq!(stored.anchors, ["next", "sealing wax"]);
    assert_eq!(stored.linked_from, 1);
}

#[test]
fn languages_have_their_own_stems() {
    let of = |language: &str, url: &str, title: &str, text: &str| IndexedPage {
        language: Some(language.to_owned()),
        ..page(url, title, text)
    };
    let (_dir, index) = indexed(&[
        of(
            "de",
            "http://a.example/de",
            "Häuser",
            "Die Häuser der Straße.",
        ),
        of(
            "fr",
            "http://a.example/fr",
            "Chevaux",
            "Les chevaux mangent des pommes.",
        ),
        of(
            "ja",
            "http://a.example/ja",
            "東京都の天気",
            "東京都は晴れです。お茶。",
        ),
        of("zh", "http://a.example/zh", "北京", "北京是中国的首都"),
        of("th", "http://a.example/th", "ภาษาไทย", "ภาษาไทยเป็นภาษา"),
        of("ru", "http://a.example/ru", "Книги", "Читать книги полезно"),
    ]);
    for (query, expected) in [
        ("haus", "/de"),
        ("hauser", "/de"),
        ("strasse", "/de"),
        ("pomme", "/fr"),
        ("東京", "/ja"),
        ("茶", "/ja"),
        ("首都", "/zh"),
        ("ไทย", "/th"),
        ("книга", "/ru"),
        ("京东", ""),
    ] {
        assert_eq!(found(&index, query), expected, "{query}");
    }
}

#[test]
fn results_are_returned_in_pages() {
    let pages: Vec<_> = (0..30)
        .map(|n| {
            let url = format!("http://a.example/{n}");
            page(&url, &format!("Page {n}"), &format!("common words {n}"))
        })
        .collect();
    let (_dir, index) = indexed(&pages);
    let mut urls = std::collections::BTreeSet::new();
    for offset in [0, 10, 20] {
        let options = SearchOptions {
            offset,
            ..SearchOptions::default()
        };
        let answer = index.search("common", &options).unwrap();
        assert_eq!((answer.total, answer.results.len()), (30, 10));
        urls.extend(answer.results.into_iter().map(|hit| hit.url));
    }
    assert_eq!(urls.len(), 30);
}

#[test]
fn text_outside_the_main_text_is_found_and_weighs_little() {
    let beside = |url: &str, text: &str, beside: &str| IndexedPage {
        beside: beside.to_owned(),
        ..page(url, "Page", text)
    };
    let (_dir, index) = indexed(&[
        beside(
            "http://a.example/1",
            "Kettles of all kinds.",
            "1. Descaled with vinegar\nBakery Lane 7",
        ),
        beside("http://a.example/2", "Vinegar is sour.", "Bakery Lane 7"),
        beside("http://a.example/3", "Descaled kettles.", "Bakery Lane 7"),
    ]);
    let urls = |query: &str| -> Vec<String> {
        let results = search(&index, query).results;
        results.into_iter().map(|hit| hit.url).collect()
    };
    let first = "http://a.example/1";
    assert_eq!(urls("descaled vinegar")[0], first);
    assert_eq!(urls("\"descaled with vinegar\""), [first]);
    assert_eq!(urls("vinegar"), ["http://a.example/2", first]);
    assert_eq!(urls("bakery").len(), 3);
    // Every page has the excluded word outside its main text, where exclusions don't apply.
    assert_eq!(urls("kettles -bakery").len(), 2);
    let hit = search(&index, "descaled vinegar").results.remove(0);
    assert!(
        hit.excerpt.contains("Descaled with vinegar"),
        "{}",
        hit.excerpt
    );
    // The last word of a query also matches as a prefix, here outside the main text.
    assert_eq!(urls("baker").len(), 3);
}

#[test]
fn words_of_descriptions_and_keywords_are_known() {
    let (_dir, index) = indexed(&[
        IndexedPage {
            description: "A guide to the marlin".to_owned(),
            keywords: vec!["weasel".to_owned()],
            ..page("http://a.example/guide", "Guide", "Fish and game.")
        },
        page("http://a.example/bird", "Bird", "The merlin is a bird."),
    ]);
    for query in ["marlin", "weasel", "marlin weasel", "weas", "fish -merlin"] {
        let answer = search(&index, query);
        assert_eq!(found(&index, query), "/guide", "{query}");
        assert!(answer.unknown.is_empty(), "{query}: {:?}", answer.unknown);
    }
    assert_eq!(found(&index, "fish -weasel"), "");
    // A misspelt word is corrected to a word of a description too.
    assert_eq!(found(&index, "weasle"), "/guide (weasel?)");
}

/// Returns a page whose main text consists of sections. Each of `parts` is a section: the level and
/// text of its heading, whether the heading has an ID, and a line of text below it.
fn page_of(url: &str, title: &str, parts: &[(u8, &str, bool, &str)]) -> IndexedPage {
    let mut made = page(url, title, "");
    for (level, words, has_id, text) in parts {
        let mut heading = heading(
            *level,
            words,
            &words.to_lowercase().replace(' ', "-"),
            made.text.len(),
        );
        heading.id = heading.id.filter(|_| *has_id);
        made.headings.push(heading);
        made.text += &format!("{words}\n{text}\n");
    }
    made
}

#[test]
fn results_lead_to_their_best_sections() {
    let gin = page_of(
        "http://a.example/gin",
        "GIN Indexes",
        &[
            (1, "GIN Indexes", true, "About inverted indexes."),
            (2, "Introduction", true, "What they are."),
            (2, "Tips and Tricks", true, "Some tips."),
            (
                3,
                "Fast update",
                true,
                "The pending list grows with each insert.",
            ),
            (
                3,
                "Memory, limits & more",
                false,
                "A pending list takes memory.",
            ),
            (2, "Limitations", true, "None is pending."),
        ],
    );
    let other_page = page(
        "http://a.example/other",
        "Lists",
        "A list of what is pending.",
    );
    let (_dir, index) = indexed(&[gin, other_page]);
    let hit = |query: &str| {
        let results = search(&index, query).results;
        results
            .into_iter()
            .find(|hit| hit.url.ends_with("gin"))
            .unwrap()
    };
    let shown = |query: &str| {
        let hit = hit(query);
        let sections = hit.sections.iter();
        let sections: Vec<_> = sections
            .map(|section| format!("{} {}", section.name(), section.url))
            .collect();
        format!("{}\n{}", hit.leads_to, sections.join("\n"))
    };
    // The heading contains more of the query than the title, so the result links to the heading.
    expect![[r#"
        http://a.example/gin#fast-update
        Fast update · Tips and Tricks http://a.example/gin#fast-update"#]]
    .assert_eq(&shown("gin fast update"));
    // Sections with the words, best first. A section without an ID has a text fragment.
    expect![[r#"
        http://a.example/gin#:~:text=Memory%2C%20limits%20%26%20more
        Memory, limits & more · Tips and Tricks http://a.example/gin#:~:text=Memory%2C%20limits%20%26%20more
        Fast update · Tips and Tricks http://a.example/gin#fast-update"#]].assert_eq(&shown("pending list memory"));
    // The title already contains the terms, so the result links to the page itself.
    expect![[r#"
        http://a.example/gin
    "#]]
    .assert_eq(&shown("gin indexes"));
    assert!(hit("inverted").sections.is_empty());
}

#[test]
fn the_owner_of_a_site_may_name_synonyms_and_pin_pages() {
    let (_dir, index) = indexed(&[
        page(
            "http://a.example/hours",
            "Opening hours",
            "We are open from nine to five.",
        ),
        page(
            "http://a.example/clusters",
            "Clusters",
            "Kubernetes runs containers.",
        ),
        page(
            "http://a.example/boats",
            "Boats",
            "A visit by boat takes an hour.",
        ),
        page("http://a.example/visit", "Your trip", "How to come here."),
    ]);
    let urls = |index: &IndexSearcher, query: &str| -> Vec<String> {
        let results = search(index, query).results;
        let path = |hit: &crawl_index::Hit| hit.url.rsplit('/').next().unwrap().to_owned();
        results.iter().map(path).collect()
    };
    assert!(urls(&index, "k8s").is_empty());
    let rules = "synonyms = [['K8s', 'kubernetes'], ['times', 'hours']]\n\
                 [[pins]]\nqueries = ['visit', 'How to get here?']\n\
                 url = 'http://a.example/visit'\n\
                 [[pins]]\nqueries = ['gone']\nurl = 'http://a.example/gone'\n";
    let index = index.with_rules(SearchRules::parse(rules).unwrap());
    assert_eq!(urls(&index, "k8s"), ["clusters"]);
    assert_eq!(urls(&index, "opening times"), ["hours", "boats"]);
    assert_eq!(urls(&index, "Visit"), ["visit", "boats"]);
    let results = search(&index, "visit");
    assert_eq!((results.total, results.results[0].pinned), (2, true));
    assert!(!results.results[1].pinned);
    // A pinned page is found even without the query's words. A pin is ignored if the index lacks
    // its page.
    assert_eq!(urls(&index, "how to GET here")[0], "visit");
    assert!(urls(&index, "gone").is_empty());
    let limited = SearchOptions {
        limit: 1,
        ..SearchOptions::default()
    };
    let first = index.search("visit", &limited).unwrap();
    assert_eq!((first.total, first.results.len()), (2, 1));
}

#[test]
fn a_pin_finds_its_page_by_other_spellings_of_its_url() {
    let books = "http://a.example/b%C3%BCcher/";
    let twin = IndexedPage {
        gives_way_to: Some(books.to_owned()),
        ..page("http://a.example/old", "Old", "twin")
    };
    let (_dir, index) = indexed(&[
        page("http://a.example/b%C3%BCcher/", "Books", "shelf"),
        page("http://a.example/my%20docs", "Docs", "docs"),
        twin,
    ]);
    let mut index = index;
    for (url, expected) in [
        (
            "HTTP://A.example:80/b\u{fc}cher/#top",
            "http://a.example/b%C3%BCcher/",
        ),
        (
            "http://a.example/b\u{fc}cher",
            "http://a.example/b%C3%BCcher/",
        ),
        ("http://a.example/my docs", "http://a.example/my%20docs"),
        ("http://a.example/my docs/", "http://a.example/my%20docs"),
        // The results show the page that replaces the pinned one.
        ("http://a.example/old", "http://a.example/b%C3%BCcher/"),
        ("http://a.example/gone", ""),
    ] {
        let rules = format!("[[pins]]\nqueries = ['x']\nurl = '{url}'\n");
        let rules = SearchRules::parse(&rules).unwrap();
        let (_, missing) = index.resolve_pins(rules.clone()).unwrap();
        assert_eq!(missing.len(), usize::from(expected.is_empty()), "{url}");
        index = index.with_rules(rules);
        let results = search(&index, "x").results;
        let first = results.first().map_or("", |hit| &hit.url);
        assert_eq!(first, expected, "{url}");
    }
}

#[test]
fn each_result_is_on_one_screen_next_to_a_pinned_page() {
    let mut pages: Vec<_> = (0..23)
        .map(|n| {
            let words = "words ".repeat(n + 1);
            let url = format!("http://a.example/{n}");
            page(&url, &format!("Page {n}"), &format!("common {words}"))
        })
        .collect();
    pages.push(page(
        "http://a.example/other",
        "Other",
        "It lacks the word.",
    ));
    let (_dir, index) = indexed(&pages);
    // Pin pages that match the query, at both ends and in the middle of the results, and one that
    // doesn't match.
    let ranked = search(&index, "common").results;
    let mut pins: Vec<_> = [0, 5, 9].map(|n| (ranked[n].url.clone(), 23)).into();
    pins.push(("http://a.example/22".to_owned(), 23));
    pins.push(("http://a.example/other".to_owned(), 24));
    let mut index = index;
    for (pinned, expected) in pins {
        let rules = format!("[[pins]]\nqueries = ['common']\nurl = '{pinned}'\n");
        index = index.with_rules(SearchRules::parse(&rules).unwrap());
        for limit in [1, 5, 10] {
            let mut urls = Vec::new();
            for offset in (0..30).step_by(limit) {
                let options = SearchOptions {
                    limit,
                    offset,
                    ..SearchOptions::default()
                };
                let answer = index.search("common", &options).unwrap();
                assert_eq!(answer.total, expected, "{pinned} from {offset}");
                urls.extend(answer.results.into_iter().map(|hit| hit.url));
            }
            assert_eq!(urls[0], pinned);
            assert_eq!(urls.len(), expected);
            urls.sort();
            urls.dedup();
            assert_eq!(urls.len(), expected, "{pinned}");
        }
    }
}
