//! Formats numbers for people, the same way in the summary, the report and its pages.

/// Formats `1234567` as `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats `1 page`, `2 pages`.
#[must_use]
pub fn counted(number: u64, one: &str, more: &str) -> String {
    let name = if number == 1 { one } else { more };
    format!("{} {name}", grouped(number))
}

/// Formats bytes as `1.2 MB`, rounded down.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes / 100;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if tenths < 10_000 {
            break;
        }
        tenths /= 1000;
        unit = next;
    }
    match tenths {
        tenths if tenths < 1000 => format!("{}.{} {unit}", tenths / 10, tenths % 10),
        tenths => format!("{} {unit}", grouped(tenths / 10)),
    }
}

#[cfg(test)]
mod tests {
    use super::{counted, grouped, size};

    #[test]
    fn numbers_are_easy_to_read() {
        let shown = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        let shown = [0, 1, 1000].map(|number| counted(number, "page", "pages"));
        assert_eq!(shown, ["0 pages", "1 page", "1,000 pages"]);
        let shown = [999, 1000, 12_345, 999_999, 1_500_000, 5_000_000_000_000_000].map(size);
        let expected = ["999 B", "1.0 kB", "12.3 kB", "999 kB", "1.5 MB", "5,000 TB"];
        assert_eq!(shown, expected);
    }
}
