//! Clauses about groups and rules of robots.txt (RFC 9309, sections 2.1 and 2.2).

use super::rule;
use crate::clause::{Clause, RequirementLevel};

const GROUPS: &str = "RFC 9309 section 2.2.1";
const RULES: &str = "RFC 9309 section 2.2.2";
const CHARACTERS: &str = "RFC 9309 section 2.2.3";
const RECORDS: &str = "RFC 9309 section 2.2.4";
const SYNTAX: &str = "RFC 9309 section 2.2";
const ERRORS: &str = "RFC 9309 section 2.3.1.5";

pub(super) const CLAUSES: &[Clause] = &[
    rule(
        (
            "disallow",
            "obeys a Disallow line",
            "RFC 9309 section 2.3.1.1",
        ),
        "User-agent: *\nDisallow: /private/\n",
        &["/private/", "/private/page"],
        &["/privateer"],
    ),
    Clause {
        shows: &["/robots.txt"],
        ..rule(
            (
                "disallow-all",
                "requests only robots.txt if all is disallowed",
                RULES,
            ),
            "User-agent: *\nDisallow: /\n",
            &["/", "/open"],
            &[],
        )
    },
    rule(
        (
            "disallow-empty",
            "reads an empty Disallow line as: nothing",
            SYNTAX,
        ),
        "User-agent: *\nDisallow:\n\nUser-agent: {token}x\nDisallow: /\n",
        &[],
        &["/any"],
    ),
    rule(
        ("agent-case", "finds its group in any case", GROUPS),
        "User-agent: {TOKEN}\nDisallow: /mine\n",
        &["/mine"],
        &["/other"],
    ),
    rule(
        (
            "agent-own-group",
            "obeys its own group in place of `*`",
            GROUPS,
        ),
        "User-agent: *\nDisallow: /stars\n\nUser-agent: {token}\nDisallow: /mine\n",
        &["/mine"],
        &["/stars"],
    ),
    rule(
        (
            "agent-star",
            "obeys the group `*` if no group names it",
            GROUPS,
        ),
        "User-agent: *\nDisallow: /stars\n\nUser-agent: {token}x\nDisallow: /theirs\n",
        &["/stars"],
        &["/theirs"],
    ),
    rule(
        ("agent-combined", "combines groups that name it", GROUPS),
        "User-agent: {token}\nDisallow: /first\n\nUser-agent: otherbot\nDisallow: /theirs\n\n\
         User-agent: {token}\nDisallow: /second\n",
        &["/first", "/second"],
        &["/theirs"],
    ),
    rule(
        ("agent-star-combined", "combines groups `*`", GROUPS),
        "User-agent: *\nDisallow: /first\n\nUser-agent: otherbot\nDisallow: /theirs\n\n\
         User-agent: *\nDisallow: /second\n",
        &["/first", "/second"],
        &["/theirs"],
    )
    .level(RequirementLevel::Should),
    rule(
        (
            "agent-several",
            "finds itself among several user-agents of a group",
            GROUPS,
        ),
        "User-agent: otherbot\nUser-agent: {token}\nUser-agent: thirdbot\nDisallow: /mine\n",
        &["/mine"],
        &["/other"],
    ),
    rule(
        (
            "agent-blank-line",
            "reads user-agents as one group across a blank line",
            SYNTAX,
        ),
        "User-agent: {token}\n\nUser-agent: otherbot\nDisallow: /mine\n",
        &["/mine"],
        &["/other"],
    ),
    rule(
        (
            "agent-order",
            "finds its group after the group `*`, and before it",
            GROUPS,
        ),
        "User-agent: {token}\nDisallow: /mine\n\nUser-agent: *\nDisallow: /stars\n",
        &["/mine"],
        &["/stars"],
    ),
    rule(
        (
            "group-without-rules",
            "reads a group without rules as: all is allowed",
            SYNTAX,
        ),
        "User-agent: *\nDisallow: /stars\n\nUser-agent: {token}\n",
        &[],
        &["/stars"],
    ),
    rule(
        (
            "rules-before-groups",
            "ignores rules before the first user-agent",
            SYNTAX,
        ),
        "Disallow: /early\nUser-agent: *\nDisallow: /late\n",
        &[],
        &["/early"],
    )
    .level(RequirementLevel::Should),
    rule(
        ("longest-allow", "lets the longest match win: Allow", RULES),
        "User-agent: *\nDisallow: /folder/\nAllow: /folder/page\n",
        &["/folder/other"],
        &["/folder/page"],
    ),
    rule(
        (
            "longest-disallow",
            "lets the longest match win: Disallow",
            RULES,
        ),
        "User-agent: *\nAllow: /folder/\nDisallow: /folder/page\n",
        &["/folder/page"],
        &["/folder/other"],
    ),
    rule(
        ("tie-allow", "lets Allow win between equal matches", RULES),
        "User-agent: *\nDisallow: /tie\nAllow: /tie\nDisallow: /lost\n",
        &["/lost"],
        &["/tie"],
    )
    .level(RequirementLevel::Should),
    rule(
        (
            "allow-root-only",
            "reads `Allow: /$` as the front page alone",
            CHARACTERS,
        ),
        "User-agent: *\nDisallow: /\nAllow: /$\nAllow: /open\n",
        &["/closed"],
        &["/open"],
    ),
    rule(
        (
            "prefix",
            "matches a rule from the start of the path, as a prefix",
            RULES,
        ),
        "User-agent: *\nDisallow: /fish\n",
        &["/fish", "/fish.html", "/fishheads/yummy", "/fish?id=1"],
        &["/catfish", "/a/fish"],
    ),
    rule(
        ("path-case", "matches paths by case", RULES),
        "User-agent: *\nDisallow: /Fish\n",
        &["/Fish"],
        &["/fish"],
    )
    .level(RequirementLevel::Should),
    rule(
        ("query", "matches the query too", RULES),
        "User-agent: *\nDisallow: /list?sort=\n",
        &["/list?sort=up"],
        &["/list?page=2"],
    ),
    rule(
        (
            "escape-octets",
            "compares a character outside of ASCII with its escape",
            RULES,
        ),
        "User-agent: *\nDisallow: /caf\u{e9}/\nDisallow: /%E3%83%84/\n",
        &["/caf%C3%A9/menu", "/\u{30c4}/page"],
        &["/cafe/menu"],
    ),
    rule(
        (
            "escape-unreserved",
            "compares an escaped letter with the letter",
            RULES,
        ),
        "User-agent: *\nDisallow: /foo/bar/%62%61%7A\n",
        &["/foo/bar/baz"],
        &["/foo/bar/bay"],
    ),
    rule(
        ("escape-case", "compares escapes in any case", RULES),
        "User-agent: *\nDisallow: /a%3cd\n",
        &["/a%3Cd"],
        &["/a%3Ed"],
    ),
    rule(
        (
            "escape-special",
            "reads an escaped `*` or `$` as that character",
            CHARACTERS,
        ),
        "User-agent: *\nDisallow: /star-%2A.html\nDisallow: /dollar-%24\n",
        &["/star-*.html", "/dollar-$x"],
        &["/star-x.html", "/dollar-"],
    )
    .level(RequirementLevel::Should),
    rule(
        ("star", "reads `*` as any characters", CHARACTERS),
        "User-agent: *\nDisallow: /a/*/c\n",
        &["/a/b/c", "/a/b/b/c/d"],
        &["/a/c"],
    ),
    rule(
        ("star-first", "reads `*` at the start of a path", CHARACTERS),
        "User-agent: *\nDisallow: /*-old\n",
        &["/pages/a-old", "/b-old?big"],
        &["/pages/a-new"],
    ),
    rule(
        ("stars", "reads several `*` in a rule", CHARACTERS),
        "User-agent: *\nDisallow: /x*y*z\n",
        &["/x-y-z", "/xyzzy"],
        &["/x-z-y"],
    ),
    rule(
        ("dollar", "reads `$` as the end of the URL", CHARACTERS),
        "User-agent: *\nDisallow: /*.php$\n",
        &["/index.php"],
        &["/index.php?x=1", "/index.php5"],
    ),
    rule(
        (
            "star-dollar-longest",
            "compares lengths of rules with `*` and `$`",
            RULES,
        ),
        "User-agent: *\nDisallow: /*.html\nAllow: /page-with-a-long-name.html\n",
        &["/other.html"],
        &["/page-with-a-long-name.html"],
    ),
    rule(
        (
            "comments",
            "ignores comments, also behind a rule",
            CHARACTERS,
        ),
        "# Disallow: /comment\nUser-agent: * # everyone\nDisallow: /closed # for now\n",
        &["/closed"],
        &["/comment"],
    ),
    rule(
        ("field-case", "reads names of fields in any case", SYNTAX),
        "USER-AGENT: *\ndisallow: /lower\nDISALLOW: /upper\nDiSaLLoW: /mixed\n",
        &["/lower", "/upper", "/mixed"],
        &[],
    ),
    rule(
        (
            "whitespace",
            "ignores spaces and tabs around names and values",
            SYNTAX,
        ),
        "  User-agent\t:  *  \n\tDisallow :\t/closed  \n",
        &["/closed"],
        &["/other"],
    ),
    rule(
        ("crlf", "reads lines that end with CR LF", SYNTAX),
        "User-agent: *\r\nDisallow: /first\r\nDisallow: /second\r\n",
        &["/first", "/second"],
        &["/third"],
    ),
    rule(
        ("cr", "reads lines that end with CR", SYNTAX),
        "User-agent: *\rDisallow: /first\rDisallow: /second\r",
        &["/first", "/second"],
        &["/third"],
    ),
    rule(
        ("last-line", "reads a last line that has no end", SYNTAX),
        "User-agent: *\nDisallow: /first\nDisallow: /last",
        &["/first", "/last"],
        &["/third"],
    ),
    rule(
        (
            "byte-order-mark",
            "reads the first line behind a byte order mark",
            ERRORS,
        ),
        "\u{feff}User-agent: *\nDisallow: /closed\n",
        &["/closed"],
        &["/other"],
    )
    .level(RequirementLevel::Custom),
    rule(
        (
            "other-records",
            "isn't disturbed by other records within a group",
            RECORDS,
        ),
        "User-agent: *\nSitemap: http://{0}/no-sitemap.xml\nNoindex: /x\nCrawl-delay: 0\n\
         Disallow: /closed\n",
        &["/closed"],
        &["/other"],
    ),
    rule(
        (
            "other-records-between",
            "isn't disturbed by a record between user-agents",
            RECORDS,
        ),
        "User-agent: {token}\nSitemap: http://{0}/no-sitemap.xml\nUser-agent: otherbot\n\
         Disallow: /closed\n",
        &["/closed"],
        &["/other"],
    ),
    rule(
        (
            "broken-lines",
            "skips lines that it can't read, and obeys the others",
            ERRORS,
        ),
        "User-agent: *\nDisallow: /first\n<p>oops\n: :\nDisallow\n=====\nDisallow: /second\n",
        &["/first", "/second"],
        &["/third"],
    ),
];

#[cfg(test)]
mod tests {
    use super::CLAUSES;

    #[test]
    fn every_clause_cites_rfc_9309_and_has_groups() {
        for clause in CLAUSES {
            assert!(clause.source.starts_with("RFC 9309"), "{}", clause.id);
            assert!(
                clause.robots.to_lowercase().contains("user-agent"),
                "{}",
                clause.id
            );
        }
    }
}
