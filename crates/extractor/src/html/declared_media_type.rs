//! The media type that a tag declares for the target of its link.

use super::tokenizer::TagAttributes;
use crate::collapsed_text_builder::trim;
use crate::link::{Link, LinkKind};
use crate::link_rel::Rel;

/// Adds to a link the link types and the media type that its tag declares.
pub(super) fn typed(link: Link, attributes: TagAttributes<'_>) -> Link {
    let rel = attributes.get("rel").map(Rel::parse).unwrap_or_default();
    // Drop the parameters of the media type, and very long media types. Neither helps to determine
    // the kind of target.
    let media_type = attributes.get("type").map(media_type);
    Link {
        rel,
        media_type: media_type.filter(|value| !value.is_empty() && value.len() <= 255),
        ..link
    }
}

/// Returns a media type without its parameters.
fn media_type(value: &str) -> String {
    trim(value.split(';').next().unwrap_or_default()).to_ascii_lowercase()
}

/// Returns the kind of the link in an `object` or `embed`. If the tag declares that the target is a
/// page, the element works like a frame, and the link leads to a page.
pub(super) fn kind_of_object(attributes: TagAttributes<'_>) -> LinkKind {
    match attributes.get("type").map(media_type).as_deref() {
        Some("text/html" | "application/xhtml+xml") => LinkKind::Page,
        _ => LinkKind::Resource,
    }
}

/// Resolves the URL `file` against the folder `base`. Returns an absolute `file` as it is.
pub(super) fn below(base: &str, file: &str) -> String {
    let scheme = file.split(['/', '?', '#']).next().unwrap_or_default();
    if base.is_empty() || file.starts_with('/') || scheme.contains(':') {
        return file.to_owned();
    }
    let slash = if base.ends_with('/') { "" } else { "/" };
    format!("{base}{slash}{file}")
}
