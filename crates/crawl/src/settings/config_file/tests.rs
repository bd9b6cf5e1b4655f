use expect_test::{Expect, expect};

use super::{Problems, parse, usable};

fn check(text: &str, expect: Expect) {
    let mut problems = Problems::default();
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
            hint: the nearest is `delay`"#]],
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
            hint: the nearest is `[politeness]`"#]],
    );
    check(
        "seeds = []\n",
        expect![[r#"
            error: crawl.toml:1:1: unknown key or table `seeds`
            hint: the nearest is `seed`"#]],
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
            error: crawl.toml:3:11: `timeout`: `20` is no duration: a number needs a unit, as in `500ms`, `2s` or `1h`
            hint: `crawl config` prints a configuration with every key"#]],
    );
    check(
        "[scope]\nscope = \"hosts\"\n",
        expect![[r#"
            error: crawl.toml:2:9: `scope`: `hosts` is none of `host`, `domain`, `prefix`, `any`
            hint: the nearest is `host`"#]],
    );
    check(
        "[exclusion]\nrobots-forbidden = \"deni\"\n",
        expect![[r#"
            error: crawl.toml:2:20: `robots-forbidden`: `deni` is none of `allow`, `deny`
            hint: the nearest is `deny`"#]],
    );
    check(
        "[scope]\nexclude = [\n  \"a\",\n  \"a(\",\n]\n",
        expect![[r#"
            error: crawl.toml:4:3: bad regular expression in `exclude` `a(`: unclosed group
            hint: the syntax is that of https://docs.rs/regex"#]],
    );
    check(
        "[operator]\ncontact = \"me\"\n",
        expect![[r#"
            error: crawl.toml:2:11: unusable `contact` `me`: it is neither a mail address nor an http or https URL
            hint: give one such as `you@example.org` or `https://example.org/bot`"#]],
    );
    check(
        "[operator]\nagent = \"a b\"\n",
        expect![[r#"
            error: crawl.toml:2:9: unusable `agent`: `a b` is no product token: letters, digits, `_` and `-` only, at least one
            hint: a product token is a single word such as `crawl`; version and contact are added"#]],
    );
    check(
        "seed = \"http://a/\"\n",
        expect![[r#"
            error: crawl.toml:1:8: `seed`: a list is expected, and this is the string "http://a/"
            hint: `crawl config` prints a configuration with every key"#]],
    );
    check(
        "scope = \"host\"\n",
        expect!["error: crawl.toml:1:1: `scope` is a table"],
    );
    check(
        "[fetch\n",
        expect![[r#"
            error: crawl.toml:1:7: unclosed table, expected `]`
            hint: `crawl config` prints a configuration with every key"#]],
    );
    check(
        "[scope]\nmax-pages = 1\nmax_pages = 2\n",
        expect!["error: crawl.toml:3:1: `max-pages` stands here twice"],
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
            error: crawl.toml:1:30: `seed`: a string or a table is expected, and this is the integer `7`
            hint: `crawl config` prints a configuration with every key
            error: crawl.toml:2:1: unknown key or table `delay`
            hint: `delay` belongs to the table [politeness]
            error: crawl.toml:5:2: unknown key or table `politness`
            hint: the nearest is `[politeness]`
            error: crawl.toml:8:1: unknown key `max-page` in [scope]
            hint: the nearest is `max-pages`
            error: crawl.toml:10:9: `scope`: `hosts` is none of `host`, `domain`, `prefix`, `any`
            hint: the nearest is `host`
            error: crawl.toml:12:9: `delay`: `5` is no duration: a number needs a unit, as in `500ms`, `2s` or `1h`
            hint: `crawl config` prints a configuration with every key
            error: crawl.toml:13:12: `per-host`: a whole number that is not negative and not too large is expected, and this is the string "many"
            hint: `crawl config` prints a configuration with every key
            error: crawl.toml:14:1: unknown key `colour` in [site."a.example"]
            hint: `crawl config` prints every table and key
            error: crawl.toml:15:11: `headers`: a table is expected, and this is the string
            hint: `crawl config` prints a configuration with every key
            error: crawl.toml:17:1: `b` in [site] is a table: [site."b"]
            error: crawl.toml:4:11: unusable `contact` `ä`: it is neither a mail address nor an http or https URL
            hint: give one such as `you@example.org` or `https://example.org/bot`
            error: crawl.toml:9:19: bad regular expression in `exclude` `(`: unclosed group
            hint: the syntax is that of https://docs.rs/regex
            error: crawl.toml:9:24: bad regular expression in `exclude` `)`: unopened group
            hint: the syntax is that of https://docs.rs/regex"#]],
    );
    // The lines after a broken line may belong to it.
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
    let mut problems = Problems::default();
    let layer = super::Source { text, name: "x" }.read(&mut problems);
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
