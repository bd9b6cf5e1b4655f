//! A slow, simple reference for RFC 9309, written independently of the crate. It makes one pass per
//! path, uses no index, and tries a pattern at every position.

use crawl_policy::{MAX_ROBOTS_BYTES, ProductToken};

/// Returns whether the path is allowed, and the line that decides, if any.
pub(super) fn judge(file: &[u8], agent: &ProductToken, path: &str) -> (bool, Option<u32>) {
    let path = normal(path.split('#').next().unwrap_or_default().as_bytes());
    let path: Vec<Unit> = match path.first() {
        Some(Unit::Byte(b'/')) => path,
        _ => [vec![Unit::Byte(b'/')], path].concat(),
    };
    if path == normal(b"/robots.txt") {
        return (true, None);
    }
    let groups = groups(file, agent);
    let named = groups.iter().any(|group| group.named);
    let mut best: Option<(usize, bool, u32)> = None;
    for group in groups {
        if !(group.named || (group.star && !named)) {
            continue;
        }
        for (allow, value, line) in group.rules {
            for value in [Some(value.clone()), folder_of_index(allow, &value)]
                .into_iter()
                .flatten()
            {
                let (pattern, anchored, bytes) = pattern(&value);
                if bytes == 0 || !fits(&pattern, anchored, &path) {
                    continue;
                }
                let outweighed = best.is_some_and(|(most, allowed, first)| {
                    let (own, other) = ((bytes, allow), (most, allowed));
                    own < other || (own == other && first <= line)
                });
                if !outweighed {
                    best = Some((bytes, allow, line));
                }
            }
        }
    }
    best.map_or((true, None), |(_, allow, line)| (allow, Some(line)))
}

#[derive(Default)]
struct Group {
    named: bool,
    star: bool,
    rules: Vec<(bool, Vec<u8>, u32)>,
}

fn groups(file: &[u8], agent: &ProductToken) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut in_rules = true;
    for (number, line) in (1..).zip(lines(file)) {
        let Some((key, value)) = split(&line) else {
            continue;
        };
        let key = key.to_ascii_lowercase();
        let begins = |names: &[&str]| names.iter().any(|name| key.starts_with(name.as_bytes()));
        if begins(&["user-agent", "useragent", "user agent"]) {
            if in_rules {
                groups.push(Group::default());
                in_rules = false;
            }
            if let Some(group) = groups.last_mut() {
                group.star |= value == b"*"
                    || (value.starts_with(b"*")
                        && value.get(1).is_some_and(|b| b" \t\x0b\x0c\r\n".contains(b)));
                group.named |= names(&value, agent.as_str());
            }
            continue;
        }
        let disallow = begins(&[
            "disallow",
            "dissallow",
            "dissalow",
            "disalow",
            "diasllow",
            "disallaw",
        ]);
        if disallow || begins(&["allow"]) {
            in_rules = true;
            if let Some(group) = groups.last_mut() {
                group.rules.push((!disallow, value, number));
            }
        }
    }
    groups
}

fn names(value: &[u8], agent: &str) -> bool {
    let agent = agent.to_ascii_lowercase().into_bytes();
    if agent.is_empty() {
        return false;
    }
    let value = value.to_ascii_lowercase();
    let cut = |with_digits: bool| {
        let end = value.iter().position(|b| {
            !(b.is_ascii_alphabetic() || b"-_".contains(b) || (with_digits && b.is_ascii_digit()))
        });
        value[..end.unwrap_or(value.len())].to_vec()
    };
    value == agent || cut(false) == agent || cut(agent.iter().any(u8::is_ascii_digit)) == agent
}

fn lines(file: &[u8]) -> Vec<Vec<u8>> {
    let mut file = file.to_vec();
    for mark in [0xEF, 0xBB, 0xBF] {
        if file.first() != Some(&mark) {
            break;
        }
        file.remove(0);
    }
    let cut = file.len() > MAX_ROBOTS_BYTES;
    file.truncate(MAX_ROBOTS_BYTES);
    let mut lines = vec![Vec::new()];
    let mut after_cr = false;
    for byte in file {
        match byte {
            b'\n' if after_cr => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            byte => lines.last_mut().unwrap().push(byte),
        }
        after_cr = byte == b'\r';
    }
    if cut {
        lines.pop();
    }
    for line in &mut lines {
        for end in [0, b'#'] {
            let at = line.iter().position(|&b| b == end).unwrap_or(line.len());
            line.truncate(at);
        }
    }
    lines
}

fn split(line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let line = trim(line);
    if let Some(colon) = line.iter().position(|&b| b == b':') {
        return Some((trim(&line[..colon]), trim(&line[colon + 1..])));
    }
    let words: Vec<_> = line
        .split(|b| b" \t".contains(b))
        .filter(|word| !word.is_empty())
        .collect();
    match words[..] {
        [key, value] => Some((key.to_vec(), trim(value))),
        _ => None,
    }
}

fn trim(text: &[u8]) -> Vec<u8> {
    let blank = |b: &u8| b" \t\x0b\x0c".contains(b);
    let mut text = text.to_vec();
    while text.last().is_some_and(blank) {
        text.pop();
    }
    while text.first().is_some_and(blank) {
        text.remove(0);
    }
    text
}

fn folder_of_index(allow: bool, value: &[u8]) -> Option<Vec<u8>> {
    let slash = value.iter().rposition(|&b| b == b'/')?;
    (allow && value[slash..].starts_with(b"/index.htm")).then(|| [&value[..=slash], b"$"].concat())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Byte(u8),
    Any,
}

/// Returns the units of a pattern, whether it is anchored, and its number of bytes.
fn pattern(value: &[u8]) -> (Vec<Unit>, bool, usize) {
    let (body, anchored) = match value.strip_suffix(b"$") {
        Some(body) => (body, true),
        None => (value, false),
    };
    let (mut units, mut bytes) = (Vec::new(), usize::from(anchored));
    let mut rest = body;
    while let Some(&first) = rest.first() {
        let len = escape(rest).map_or(1, |_| 3);
        if first == b'*' {
            units.push(Unit::Any);
            bytes += 1;
        } else {
            let one = normal(&rest[..len]);
            bytes += match (first, one.len()) {
                (b'%', 1) if len == 3 && matches!(one[0], Unit::Byte(b'*' | b'$')) => 3,
                (b'%', n) => n,
                (0x80.., n) => n,
                _ => 1,
            };
            units.extend(one);
        }
        rest = &rest[len..];
    }
    (units, anchored, bytes)
}

fn escape(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else {
        return None;
    };
    let digit = |b: &u8| char::from(*b).to_digit(16);
    Some((digit(high)? * 16 + digit(low)?) as u8)
}

fn normal(text: &[u8]) -> Vec<Unit> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let (byte, escaped) = match escape(rest) {
            Some(byte) => (byte, true),
            None => (first, false),
        };
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~*$".contains(&byte);
        let raw = matches!(byte, 0x21..=0x7E) && !b"\"#<>\\^`{|}".contains(&byte);
        match (escaped, unreserved, raw) {
            (true, true, _) | (false, _, true) => out.push(char::from(byte)),
            _ => out += &format!("%{byte:02X}"),
        }
        rest = &rest[if escaped { 3 } else { 1 }..];
    }
    out.bytes().map(Unit::Byte).collect()
}

/// Returns whether a pattern matches. Computes, unit by unit, which prefixes of the path the
/// pattern can match so far.
fn fits(pattern: &[Unit], anchored: bool, path: &[Unit]) -> bool {
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for unit in pattern {
        let mut next = vec![false; path.len() + 1];
        for at in 0..=path.len() {
            next[at] = match unit {
                Unit::Any => reached[..=at].contains(&true),
                Unit::Byte(_) => at > 0 && reached[at - 1] && path[at - 1] == *unit,
            };
        }
        reached = next;
    }
    match anchored {
        true => reached[path.len()],
        false => reached.contains(&true),
    }
}
