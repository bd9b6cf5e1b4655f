use expect_test::{Expect, expect};

use super::{ErrorCollector, parse, usable};

fn check(text: &str, expect: Expect) {
    let mut problems = ErrorCollector::default();
    let layer = usable(text, "crawl.toml", &mut problems);
    let text = match problems.or(layer) {
        Ok(_) => "read".to_owned(),
        Err(refusal) => refusal.to_string(),
    };
    expect.assert_eq(&text);
}

#[test]
fn unknown_keys_name_the_nearest() {
    check(
        "[politeness]\n# so\ndealy = \"1s\"\n",
        expect![[r#"
            error: crawl.toml:3:1: unknown key `dealy` in [politeness]
            hint: did you mean `delay`?"#]],
    );
    check(
        "[fetch]\ndelay = \"1s\"\n",
        expect![[r#"
            error: crawl.toml:2:1: unknown key `delay` in [fetch]
            hint: `delay` belongs to the table [politeness]"#]],
    );
    check(
        "delay = \"1s\"\n",
        expect![[r#"
            error: crawl.toml:1:1: unknown key or table `delay`
            hint: `delay` belongs to the table [politeness]"#]],
    );
    check(
        "\n[politness]\n",
        expect![[r#"
            error: crawl.toml:2:2: unknown key or table `politness`
            hint: did you mean `[politeness]`?"#]],
    );
    check(
        "seeds = []\n",
        expect![[r#"
            error: crawl.toml:1:1: unknown key or table `seeds`
            hint: did you mean `seed`?"#]],
    );
    check(
        "[scope]\nzzzzqq = 1\n",
        expect![[r#"
            error: crawl.toml:2:1: unknown key `zzzzqq` in [scope]
            hint: `crawl config` prints every table and key"#]],
    );
}

#[test]
fn bad_values_name_their_line() {
    check(
        "[fetch]\n\ntimeout = 20\n",
        expect![[r#"
            error: crawl.toml:3:11: `timeout`: `20` isn't a duration: add a unit, as in `500ms`, `2s` or `1h`
            hint: `crawl config` prints a configuration with every key"#]],
    );
    check(
        "[scope]\nscope = \"hosts\"\n",
        expect![[r#"
            error: crawl.toml:2:9: `scope`: `hosts` isn't one of `host`, `domain`, `prefix`, `any`
            hint: did you mean `host`?"#]],
    );
    check(
        "[exclusion]\nrobots-forbidden = \"deni\"\n",
        expect![[r#"
            error: crawl.toml:2:20: `robots-forbidden`: `deni` isn't one of `allow`, `deny`
            hint: did you mean `deny`?"#]],
    );
    check(
        "[scope]\nexclude = [\n  \"a\",\n  \"a(\",\n]\n",
        expect![[r#"
            error: crawl.toml:4:3: bad regular expression in `exclude` `a(`: unclosed group
            hint: for the syntax, see https://docs.rs/regex"#]],
    );
    check(
        "[operator]\ncontact = \"me\"\n",
        expect![[r#"
            error: crawl.toml:2:11: unusable `contact` `me`: not an email address, nor an http or https URL
            hint: it looks like `you@example.org` or `https://example.org/bot`"#]],
    );
    check(
        "[operator]\nagent = \"a b\"\n",
        expect![[r#"
            error: crawl.toml:2:9: unusable `agent`: `a b` isn't a product token: use one or more letters, digits, `_` and `-`
            hint: give a single word such as `crawl`; version and contact are added"#]],
    );
    check(
        "seed = \"http://a/\"\n",
        expect![[r#"
            error: crawl.toml:1:8: `seed`: expected a list, found string "http://a/"
            hint: `crawl config` prints a configuration with every key"#]],
    );
    check(
        "scope = \"host\"\n",
        expect!["error: crawl.toml:1:1: `scope` must be a table"],
    );
    check(
        "[fetch\n",
        expect![[r#"
            error: crawl.toml:1:7: unclosed table, expected `]`
            hint: `crawl config` prints a configuration with every key"#]],
    );
    check(
        "[scope]\nmax-pages = 1\nmax_pages = 2\n",
        expect!["error: crawl.toml:3:1: duplicate key `max-pages`"],
    );
}

#[test]
fn all_problems_are_reported_at_once() {
    check(
        "seed = [\"http://a.example/\", 7]\ndelay = 3\n[operator]\ncontact = \"ä\"\n[politness]\nx = 1\n\
         [scope]\nmax-page = 5\n  exclude = [\"ü\", \"(\", \")\"]\nscope = \"hosts\"\n\
         [site.\"a.example\"]\ndelay = 5\nper-host = \"many\"\ncolour = \"red\"\nheaders = \"k: secret\"\n\
         [site]\nb = 1\n",
        expect![[r#"
            error: crawl.toml:1:30: `seed`: expected a string or a table, found integer `7`
            hint: `crawl config` prints a configuration with every key
            error: crawl.toml:2:1: unknown key or table `delay`
            hint: `delay` belongs to the table [politeness]
            error: crawl.toml:5:2: unknown key or table `politness`
            hint: did you mean `[politeness]`?
            error: crawl.toml:8:1: unknown key `max-page` in [scope]
            hint: did you mean `max-pages`?
            error: crawl.toml:10:9: `scope`: `hosts` isn't one of `host`, `domain`, `prefix`, `any`
            hint: did you mean `host`?
            error: crawl.toml:12:9: `delay`: `5` isn't a duration: add a unit, as in `500ms`, `2s` or `1h`
            hint: `crawl config` prints a configuration with every key
            error: crawl.toml:13:12: `per-host`: expected a non-negative whole number that isn't too large, found string "many"
            hint: `crawl config` prints a configuration with every key
            error: crawl.toml:14:1: unknown key `colour` in [site."a.example"]
            hint: `crawl config` prints every table and key
            error: crawl.toml:15:11: `headers`: expected a table, found string
            hint: `crawl config` prints a configuration with every key
            error: crawl.toml:17:1: `b` in [site] must be a table: [site."b"]
            error: crawl.toml:4:11: unusable `contact` `ä`: not an email address, nor an http or https URL
            hint: it looks like `you@example.org` or `https://example.org/bot`
            error: crawl.toml:9:19: bad regular expression in `exclude` `(`: unclosed group
            hint: for the syntax, see https://docs.rs/regex
            error: crawl.toml:9:24: bad regular expression in `exclude` `)`: unopened group
            hint: for the syntax, see https://docs.rs/regex"#]],
    );
    // The misspelt key `dealy` isn't reported, because it is unknown which table a key after a
    // broken line belongs to.
    check(
        "[scope]\nmax-pages = = 5\n[fetch\ndealy = 1\n",
        expect![[r#"
        error: crawl.toml:2:13: extra `=`, expected nothing
        hint: `crawl config` prints a configuration with every key
        error: crawl.toml:2:15: unexpected key or value, expected newline, `#`
        hint: `crawl config` prints a configuration with every key
        error: crawl.toml:3:7: unclosed table, expected `]`
        hint: `crawl config` prints a configuration with every key"#]],
    );
}

#[test]
fn usable_parts_are_read_despite_other_problems() {
    let text = "seed = [\"http://a.example/\"]\n[scope]\nmax-pages = 5\nmax-depth = \"x\"\n\
                [site.\"a.example\"]\ndelay = \"5s\"\nper-host = -1\n";
    let mut problems = ErrorCollector::default();
    let layer = super::ConfigFileText { text, name: "x" }.read(&mut problems);
    let expected = "seed = [\"http://a.example/\"]\n[scope]\nmax-pages = 5\n\
                    [site.\"a.example\"]\ndelay = \"5s\"\n";
    assert_eq!(layer, parse(expected, "x").unwrap());
    assert_eq!(problems.or(()).unwrap_err().others.len(), 1);
}

#[test]
fn underscores_and_notes_are_taken() {
    let text = "seed = [\"http://a.example/\"]\n[crawl]\nanything = 1\n[scope]\nmax_pages = 5\nsitemaps = false\n";
    let layer = parse(text, "x").unwrap();
    assert_eq!(layer.scope.max_pages.unwrap().to_string(), "5");
    assert_eq!(layer.scope.sitemaps.unwrap().to_string(), "off");
    assert_eq!(layer.seed.unwrap(), ["http://a.example/"]);
}
